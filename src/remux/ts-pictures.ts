import { PgsDecoder } from "../media/pgs.ts";
import { PictureStates } from "../media/picture-states.ts";
import type { PictureState, SecondsRange } from "../media/picture-subtitles.ts";
import { DvbDecoder, type DvbPage, type DvbState } from "../media/subtitles/dvb-subtitles.ts";
import { deltaTicks, TICKS_PER_SECOND } from "../media/timestamps.ts";
import { pidAt } from "../media/ts-packet.ts";
import { audioUnits } from "./audio/ts-audio.ts";

/** The type of the segment that begins a PGS picture. */
const PGS_COMPOSITION = 0x16;

/**
 * Returns what subtitles that are pictures show within `seconds`, relative to `zeroTicks`. `packets`: those of their PID, from
 * `PGS_EPOCH_SECONDS` before. `page`: the pages of DVB subtitles; undefined for PGS.
 */
export function decodePictures(
  packets: Uint8Array,
  page: DvbPage | undefined,
  zeroTicks: number,
  seconds: SecondsRange,
): readonly PictureState[] {
  const collected = new PictureStates(seconds);
  const units = packets.length > 0 ? audioUnits(packets, pidAt(packets, 0)) : [];
  const secondsOf = (pts: number) => deltaTicks(pts, zeroTicks) / TICKS_PER_SECOND;
  if (page) {
    const dvb = new DvbDecoder(page);
    let last: DvbState | undefined;
    /** Hides the last picture at the end of its time. */
    const expire = (before: number) =>
      last === undefined ||
      last.parts.length === 0 ||
      last.untilSeconds >= before ||
      collected.add({ ...last, seconds: last.untilSeconds, parts: [] });
    for (const { pts, bytes } of units) {
      const state = pts === undefined ? undefined : dvb.push(bytes, secondsOf(pts));
      if (!state) continue;
      if (!expire(state.seconds) || !collected.add(state)) return collected.states;
      last = state;
    }
    expire(Number.POSITIVE_INFINITY);
    return collected.states;
  }
  const pgs = new PgsDecoder();
  let shownAt: number | undefined;
  for (const { pts, bytes } of units) {
    // Other segments can have the times at which they are decoded.
    if (pts !== undefined && (shownAt === undefined || bytes[0] === PGS_COMPOSITION))
      shownAt = secondsOf(pts);
    const state = pgs.push(bytes, shownAt ?? 0);
    if (state && !collected.add(state)) break;
  }
  return collected.states;
}
