import { latin1Bytes, writeU32 } from "../base/bytes.ts";

/** A frame of a fragment. Times are in ticks of its track. */
export interface FragmentSample {
  readonly data: Uint8Array;
  readonly duration: number;
  readonly isSync: boolean;
  /** Presentation time minus decode time; can be negative. */
  readonly compositionOffset: number;
}

/** The frames of one track in a fragment, in decode order; at least one. */
export interface FragmentTrack {
  readonly id: number;
  /** The decode time of the first frame. */
  readonly decodeTime: number;
  readonly samples: readonly FragmentSample[];
}

const MOOF_HEAD = 8 + 16;
/** traf + tfhd + tfdt + the fixed part of trun. */
const TRAF_HEAD = 8 + 16 + 20 + 20;
/** Duration, size, flags, composition offset. */
const SAMPLE_BYTES = 16;
/** Sample flags: depends on no other sample, sync sample (ISO 14496-12 8.8.3.1). */
const SYNC_FLAGS = 0x02000000;
const DELTA_FLAGS = 0x01010000;

/**
 * Builds a `moof` box and its `mdat` (ISO 14496-12 8.8). Every sample has its own flags, so that players find all key frames of a
 * fragment.
 */
export function buildFragment(sequence: number, tracks: readonly FragmentTrack[]): Uint8Array<ArrayBuffer> {
  let moofBytes = MOOF_HEAD;
  let mdatBytes = 8;
  for (const track of tracks) {
    moofBytes += TRAF_HEAD + track.samples.length * SAMPLE_BYTES;
    for (const sample of track.samples) mdatBytes += sample.data.length;
  }
  const out = new Uint8Array(moofBytes + mdatBytes);
  let at = writeHead(out, 0, moofBytes, "moof");
  at = writeFullHead(out, at, 16, "mfhd", 0);
  at = write(out, at, sequence);
  let dataAt = moofBytes + 8;
  for (const track of tracks) {
    at = writeTraf(out, at, track, dataAt);
    for (const sample of track.samples) {
      out.set(sample.data, dataAt);
      dataAt += sample.data.length;
    }
  }
  writeHead(out, at, mdatBytes, "mdat");
  return out;
}

function writeTraf(out: Uint8Array, start: number, track: FragmentTrack, dataAt: number): number {
  const { samples } = track;
  let at = writeHead(out, start, TRAF_HEAD + samples.length * SAMPLE_BYTES, "traf");
  at = writeFullHead(out, at, 16, "tfhd", 0x020000); // default-base-is-moof
  at = write(out, at, track.id);
  at = writeFullHead(out, at, 20, "tfdt", 0x01000000); // version 1: 64 bits
  at = write(out, at, Math.floor(track.decodeTime / 2 ** 32));
  at = write(out, at, track.decodeTime % 2 ** 32);
  // Version 1: signed composition offsets. Flags: data offset, and all four fields for every sample.
  at = writeFullHead(out, at, 20 + samples.length * SAMPLE_BYTES, "trun", 0x01000f01);
  at = write(out, at, samples.length);
  at = write(out, at, dataAt);
  for (const sample of samples) {
    at = write(out, at, sample.duration);
    at = write(out, at, sample.data.length);
    at = write(out, at, sample.isSync ? SYNC_FLAGS : DELTA_FLAGS);
    at = write(out, at, sample.compositionOffset);
  }
  return at;
}

function writeHead(out: Uint8Array, at: number, size: number, type: string): number {
  writeU32(out, at, size);
  out.set(latin1Bytes(type), at + 4);
  return at + 8;
}

function writeFullHead(
  out: Uint8Array,
  at: number,
  size: number,
  type: string,
  versionAndFlags: number,
): number {
  return write(out, writeHead(out, at, size, type), versionAndFlags);
}

function write(out: Uint8Array, at: number, value: number): number {
  writeU32(out, at, value);
  return at + 4;
}
