/** An Opus packet in a PES packet. */
export interface OpusUnit {
  readonly data: Uint8Array;
  /** At 48 kHz. */
  readonly samples: number;
}

/** Samples of a frame at 48 kHz by the four configurations of each mode (RFC 6716 table 2). */
const SILK = [480, 960, 1920, 2880];
const HYBRID = [480, 960];
const CELT = [120, 240, 480, 960];
/** A packet has at most 120 ms. */
const MAX_SAMPLES = 5760;

/** Returns the samples of a packet at 48 kHz (RFC 6716 3.1); undefined if the packet is invalid. */
function opusSamples(packet: Uint8Array): number | undefined {
  const [toc, second = 0] = packet;
  if (toc === undefined) return undefined;
  const config = toc >> 3;
  const frame = config < 12 ? SILK[config & 3]! : config < 16 ? HYBRID[config & 1]! : CELT[config & 3]!;
  const frames = [1, 2, 2, second & 63][toc & 3]!;
  const samples = frame * frames;
  return samples > 0 && samples <= MAX_SAMPLES ? samples : undefined;
}

/** Splits the payload of a PES packet into Opus packets (Opus in MPEG-TS, control header). Stops at the first damaged one. */
export function opusUnits(bytes: Uint8Array): OpusUnit[] {
  const units: OpusUnit[] = [];
  for (let at = 0; at + 3 <= bytes.length; ) {
    if (bytes[at] !== 0x7f || (bytes[at + 1]! & 0xe0) !== 0xe0) break;
    const flags = bytes[at + 1]!;
    at += 2;
    let size = 0;
    while (at < bytes.length && bytes[at] === 0xff) size += bytes[at++]!;
    size += bytes[at++] ?? 0;
    if (flags & 0x10) at += 2;
    if (flags & 0x08) at += 2;
    if (flags & 0x04) at += 1 + (bytes[at] ?? 0);
    const data = bytes.subarray(at, at + size);
    const samples = opusSamples(data);
    if (data.length < size || samples === undefined) break;
    units.push({ data, samples });
    at += size;
  }
  return units;
}
