import muxjs from "mux.js";
import { concatBytes } from "../base/bytes.ts";
import { SluiceError } from "../base/errors.ts";
import type { TsStream } from "../media/ts-programme.ts";

/** One segment as fMP4. */
export interface Fmp4Segment {
  /** `ftyp` and `moov`: the same for all segments of a stream. */
  readonly init: Uint8Array<ArrayBuffer>;
  /** `moof` and `mdat`. */
  readonly data: Uint8Array<ArrayBuffer>;
}

/** Why the streams cannot go into fMP4 this way, naming the codec; undefined where they can. */
export function tsToFmp4Problem(
  streams: readonly Pick<TsStream, "kind" | "codec">[],
): SluiceError | undefined {
  for (const { kind, codec } of streams) {
    const isCarried = (kind === "video" && codec === "h264") || (kind === "audio" && codec === "aac");
    if (isCarried || (kind !== "video" && kind !== "audio")) continue;
    return new SluiceError(
      "unsupported_codec",
      `fMP4 from MPEG-TS carries H.264 and AAC; this ${kind} is ${codec}`,
    );
  }
  return undefined;
}

/**
 * Whole MPEG-TS segments in, each beginning with a keyframe; each as fMP4 out. H.264 and AAC only. Times are those of the
 * source, and each segment has a converter of its own, so that they may come in any order. Fails with
 * `SluiceError("broken_media")` where nothing in a segment can be converted.
 */
export class TsToFmp4 extends TransformStream<Uint8Array, Fmp4Segment> {
  constructor() {
    super({
      transform(segment, controller) {
        controller.enqueue(convert(segment));
      },
    });
  }
}

function convert(segment: Uint8Array): Fmp4Segment {
  const transmuxer = new muxjs.mp4.Transmuxer({ keepOriginalTimestamps: true, remux: true });
  const inits: Uint8Array[] = [];
  const parts: Uint8Array[] = [];
  transmuxer.on("data", (part) => {
    inits.push(part.initSegment);
    parts.push(part.data);
  });
  transmuxer.push(segment);
  transmuxer.flush();
  transmuxer.dispose();
  if (inits.length === 0) throw new SluiceError("broken_media", "a segment without any H.264 or AAC frame");
  return { init: concatBytes(inits.slice(0, 1)), data: concatBytes(parts) };
}
