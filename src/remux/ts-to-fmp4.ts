import muxjs from "mux.js";
import { concatBytes } from "../base/bytes.ts";
import { SluiceError } from "../base/errors.ts";
import type { TsStream } from "../media/ts-programme.ts";
import { Remuxer } from "./remuxer.ts";

/**
 * Why {@link tsToFmp4} cannot convert these streams, naming the codec; undefined if it can convert the video, or the audio of a file
 * without video. It omits audio other than AAC.
 */
export function tsToFmp4Problem(
  streams: readonly Pick<TsStream, "kind" | "codec">[],
): SluiceError | undefined {
  const video = streams.find(({ kind }) => kind === "video");
  const audio = streams.find(({ kind }) => kind === "audio");
  const problem = video ? video.codec !== "h264" && video : !hasAac(streams) && audio;
  if (!problem) return undefined;
  return new SluiceError(
    "unsupported_codec",
    `MPEG-TS is converted to fMP4 only with H.264 and AAC; this ${problem.kind} is ${problem.codec}`,
  );
}

/** Returns true if {@link tsToFmp4} finds audio in these streams that it can convert. */
export function hasAac(streams: readonly Pick<TsStream, "kind" | "codec">[]): boolean {
  return streams.some(({ kind, codec }) => kind === "audio" && codec === "aac");
}

/**
 * Converts one MPEG-TS segment of H.264 and AAC that begins with a key frame: to the initialisation segment (`ftyp` and `moov`, the
 * same for all segments of a stream), or to the data (`moof` and `mdat`). Keeps the times of the source; segments are independent
 * of each other. mux.js holds the segment. Fails with `SluiceError("broken_media")` if the segment has nothing to convert.
 */
export function tsToFmp4(part: "init" | "data"): Remuxer<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>> {
  const transmuxer = new muxjs.mp4.Transmuxer({ keepOriginalTimestamps: true, remux: true });
  const made: { initSegment: Uint8Array; data: Uint8Array }[] = [];
  transmuxer.on("data", (segment) => made.push(segment));
  return new Remuxer({
    transform(packets) {
      transmuxer.push(packets);
      return [];
    },
    flush() {
      transmuxer.flush();
      transmuxer.dispose();
      if (made.length === 0) throw new SluiceError("broken_media", "the segment has no H.264 or AAC frame");
      return [concatBytes(part === "init" ? [made[0]!.initSegment] : made.map(({ data }) => data))];
    },
  });
}
