import type { AbortSignalLike, RandomAccess } from "../base/byte-source.ts";
import { readU16 } from "../base/bytes.ts";
import { SluiceError } from "../base/errors.ts";
import { decodeUtf8 } from "../base/utf8.ts";
import { trackLanguage } from "../media/language.ts";
import { eachMp4Box } from "../media/mp4-boxes.ts";
import type { Mp4Samples } from "../media/mp4-samples.ts";
import { escapeCueText, type TextCue } from "../media/webvtt.ts";
import type { MediaTrack } from "./contract.ts";
import { firstAtLeast, secondsAt } from "./mp4-reader.ts";
import type { SegmentBounds } from "./packet-reader.ts";
import { CUES_LIMIT, type SubtitleSource, TEXT_LIMIT_BYTES } from "./subtitles.ts";

/** Sample entries for text: 3GPP timed text (TS 26.245) and WebVTT (ISO 14496-30). */
const CODECS: Readonly<Record<string, string>> = { tx3g: "tx3g", text: "tx3g", wvtt: "webvtt" };

/** The text subtitles of an MP4 file. Each sample is read separately, because samples are small and far apart. */
export class Mp4Subtitles implements SubtitleSource {
  readonly tracks: readonly MediaTrack[];
  readonly #source: RandomAccess;
  readonly #own: readonly Mp4Samples[];

  constructor(source: RandomAccess, tables: readonly Mp4Samples[]) {
    this.#source = source;
    this.#own = tables.filter(
      ({ handler, entryType }) => ["sbtl", "subt", "text"].includes(handler) && entryType in CODECS,
    );
    this.tracks = this.#own.map(({ entryType, language, isForced }) => ({
      kind: "subtitle",
      codec: CODECS[entryType]!,
      codecString: "wvtt",
      language: trackLanguage(language),
      title: undefined,
      isDefault: false,
      isForced,
    }));
  }

  async cues(track: number, bounds: SegmentBounds, signal?: AbortSignalLike): Promise<TextCue[]> {
    const table = this.#own[track];
    if (!table) throw new SluiceError("no_such_segment", `the file has no subtitle track ${track}`);
    const at = (seconds: number) => firstAtLeast(table.count, (i) => secondsAt(table, i) - seconds);
    const [from, to] = [at(bounds.startSeconds), at(bounds.endSeconds)];
    const cues: TextCue[] = [];
    for (let index = from; index < Math.min(to, from + CUES_LIMIT); index++) {
      const start = table.offsets[index]!;
      const size = table.sizes[index]!;
      // A sample of two bytes is empty: a pause between cues.
      if (size <= 2 || size > TEXT_LIMIT_BYTES || start + size > this.#source.size) continue;
      const bytes = await this.#source.read({ start, end: start + size }, signal ? { signal } : {});
      const text = table.entryType === "wvtt" ? boxedText(bytes) : escapeCueText(timedText(bytes));
      const startSeconds = secondsAt(table, index);
      const endSeconds = startSeconds + table.durations[index]! / table.timescale;
      if (text !== "") cues.push({ startSeconds, endSeconds, text });
    }
    return cues;
  }
}

/** The text of a 3GPP sample (TS 26.245 5.17), without its style boxes. UTF-16 text begins with a byte order mark. */
function timedText(bytes: Uint8Array): string {
  const text = bytes.subarray(2, 2 + readU16(bytes, 0));
  const mark = text.length >= 2 ? readU16(text, 0) : 0;
  if (mark !== 0xfeff && mark !== 0xfffe) return decodeUtf8(text);
  return new TextDecoder(mark === 0xfeff ? "utf-16be" : "utf-16le").decode(text);
}

/** The payloads of the cue boxes of a WebVTT sample (ISO 14496-30 7.5), already in cue markup. */
function boxedText(bytes: Uint8Array): string {
  const lines: string[] = [];
  eachMp4Box(bytes, 0, bytes.length, (cue) => {
    if (cue.type !== "vttc") return;
    eachMp4Box(bytes, cue.start, cue.end, (box) => {
      if (box.type === "payl") lines.push(decodeUtf8(bytes.subarray(box.start, box.end)));
    });
  });
  const clean = lines
    .join("\n")
    .replaceAll("-->", "--&gt;")
    .split(/\r\n|\r|\n/);
  return clean.filter((line) => line.trim() !== "").join("\n");
}
