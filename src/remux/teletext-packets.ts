import { concatBytes } from "../base/bytes.ts";
import { TeletextDecoder, type TeletextPage, type TeletextState } from "../media/teletext.ts";
import { deltaTicks, TICKS_PER_SECOND } from "../media/timestamps.ts";
import { pidAt, TS_PACKET_BYTES } from "../media/ts-packet.ts";
import { escapeCueText, type TextCue } from "../media/webvtt.ts";
import { audioUnits } from "./audio/ts-audio.ts";

/** Subtitles that are not erased after this time disappear. */
export const MAX_CUE_SECONDS = 30;

/** Returns copies of the packets with this PID. */
export function packetsOf(packets: Uint8Array, pid: number): Uint8Array {
  const found: Uint8Array[] = [];
  for (let at = 0; at + TS_PACKET_BYTES <= packets.length; at += TS_PACKET_BYTES)
    if (pidAt(packets, at) === pid) found.push(packets.subarray(at, at + TS_PACKET_BYTES));
  return concatBytes(found);
}

/** The states of a teletext page. `open`: the one whose end is not known, if there is one. */
interface DecodedTeletext {
  readonly states: readonly TeletextState[];
  readonly open: Pick<TeletextState, "seconds" | "mark"> | undefined;
}

/** Decodes the packets of one PID. Times are relative to `zeroTicks`; a `mark` is the position of the header in `packets`. */
export function decodeTeletext(packets: Uint8Array, page: TeletextPage, zeroTicks: number): DecodedTeletext {
  const decoder = new TeletextDecoder(page);
  let seconds = 0;
  for (const { at, pts, bytes } of packets.length > 0 ? audioUnits(packets, pidAt(packets, 0)) : []) {
    if (pts !== undefined) seconds = deltaTicks(pts, zeroTicks) / TICKS_PER_SECOND;
    decoder.push(bytes, seconds, at);
  }
  const { received, states } = decoder;
  decoder.flush();
  const last = states.at(-1);
  return { states, open: received ?? (last?.text === "" ? undefined : last) };
}

/** A cue, and the position of its header. */
interface MarkedCue extends TextCue {
  readonly mark: number;
}

/** Returns the cues of the states: each lasts until the next state, the last one until `endSeconds`. */
export function teletextCues(states: readonly TeletextState[], endSeconds: number): MarkedCue[] {
  return states.flatMap(({ seconds: startSeconds, text, mark }, index) => {
    const next = states[index + 1]?.seconds ?? endSeconds;
    const until = Math.min(next, startSeconds + MAX_CUE_SECONDS);
    if (text === "" || until <= startSeconds) return [];
    return [{ startSeconds, endSeconds: until, text: escapeCueText(text), mark }];
  });
}
