import { TsMuxer } from "../../src/remux/ts-muxer.ts";
import { boxed, teletextLines, teletextPackets, withTeletext } from "../media/encode-teletext.ts";
import { SYNTHETIC_TRACKS, syntheticPackets } from "./synthetic-ts.ts";

/** The PMT of our muxer. */
const PMT_PID = 0x1000;
const TELETEXT_PID = 0x300;
/** Times in segments of our muxer begin here. */
export const BASE_TICKS = 10 * 90_000;

/** [start, end, text], in seconds of the file; the last two are in different languages. */
export const CUES = [
  [1, 3.2, "First line\nsecond line"],
  [5.9, 9, "Across the border"],
  [9, 11, "At once"],
  [14, 24, "A long one"],
] as const;

/** A film of 30 s with these cues on page 888, a repetition of each after half a second, and one cue on page 889. */
export function teletextFilm(): Uint8Array {
  const ts = new TsMuxer(SYNTHETIC_TRACKS).segment(syntheticPackets(30));
  const events: { seconds: number; page: number; text: string; option?: number }[] = [];
  for (const [start, end, text] of CUES) {
    events.push({ seconds: start, page: 0x88, text }, { seconds: start + 0.5, page: 0x88, text });
    if (!CUES.some(([next]) => next === end)) events.push({ seconds: end, page: 0x88, text: "" });
  }
  events.push({ seconds: 4, page: 0x89, text: "F]r", option: 1 }, { seconds: 6, page: 0x89, text: "" });
  events.sort((a, b) => a.seconds - b.seconds);
  const sent = events.map(({ seconds, page, text, option = 0 }) => {
    const lines = text === "" ? [] : text.split("\n");
    const rows = Object.fromEntries(lines.map((line, index) => [20 + 2 * index, boxed(line)]));
    const pts = BASE_TICKS + Math.round(seconds * 90_000);
    return { pts, packets: teletextPackets(teletextLines({ page, option, rows }), pts, TELETEXT_PID) };
  });
  const pages = [
    ["eng", 0x88, 2],
    ["ger", 0x89, 5],
    ["eng", 0x00, 1],
  ] as const;
  return withTeletext(ts, { pmtPid: PMT_PID, pid: TELETEXT_PID, pages, sent });
}
