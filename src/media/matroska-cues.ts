import { DecodeError } from "../base/errors.ts";
import { eachEbmlChild, ebmlUint } from "./ebml.ts";

/** One entry of the index: a key frame of a track, and the cluster it lies in. */
export interface MatroskaCue {
  /** In ticks of the segment. */
  readonly time: number;
  readonly track: number;
  /** Counted from the start of the segment's data. */
  readonly clusterPosition: number;
}

/** A week of key frames a tenth of a second apart. */
const CUES_LIMIT = 6_000_000;

/** Reads the data of a `Cues` element (RFC 9559 5.1.5), sorted by time; throws {@link DecodeError}. */
export function parseMatroskaCues(bytes: Uint8Array): MatroskaCue[] {
  const cues: MatroskaCue[] = [];
  eachEbmlChild(bytes, 0, bytes.length, (id, start, end) => {
    if (id === 0xbb) parseCuePoint(bytes, start, end, cues);
    if (cues.length > CUES_LIMIT)
      throw new DecodeError("Matroska cues", start, `more than ${CUES_LIMIT} cues`);
  });
  let isSorted = true;
  for (let i = 1; i < cues.length; i++) isSorted &&= cues[i - 1]!.time <= cues[i]!.time;
  return isSorted ? cues : cues.sort((a, b) => a.time - b.time);
}

function parseCuePoint(bytes: Uint8Array, start: number, end: number, cues: MatroskaCue[]): void {
  let time: number | undefined;
  const first = cues.length;
  eachEbmlChild(bytes, start, end, (id, from, to) => {
    if (id === 0xb3) time = ebmlUint(bytes, from, to);
    if (id !== 0xb7) return;
    let [track, clusterPosition] = [0, -1];
    eachEbmlChild(bytes, from, to, (child, at, until) => {
      if (child === 0xf7) track = ebmlUint(bytes, at, until);
      if (child === 0xf1) clusterPosition = ebmlUint(bytes, at, until);
    });
    if (clusterPosition >= 0) cues.push({ time: time ?? -1, track, clusterPosition });
  });
  // The time may come after the positions, or be missing: then the point is worth nothing.
  if (time === undefined) cues.length = first;
  else for (let i = first; i < cues.length; i++) if (cues[i]!.time < 0) cues[i] = { ...cues[i]!, time };
}
