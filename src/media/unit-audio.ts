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

/** Uncompressed audio of one PES packet. */
export interface PcmUnit {
  /** Big-endian samples, interleaved in the order of WAV files. */
  readonly data: Uint8Array<ArrayBuffer>;
  readonly bits: 16 | 24;
  readonly sampleRate: number;
  readonly channels: number;
  /** Per channel. */
  readonly samples: number;
}

const PCM_HEADER_BYTES = 4;
const RATES: Readonly<Record<number, number>> = { 1: 48_000, 4: 96_000, 5: 192_000 };
/** Of 20 bits, the lowest four are zero. */
const SAMPLE_BYTES: Readonly<Record<number, 2 | 3>> = { 1: 2, 2: 3, 3: 3 };
/**
 * By channel assignment: for each channel in the order of WAV files (left, right, centre, low frequencies, back or side) its position in
 * the packet, where low frequencies are last. An odd number of channels is followed by an empty one.
 */
const ORDERS: Readonly<Record<number, readonly number[]>> = {
  1: [0],
  3: [0, 1],
  4: [0, 1, 2],
  5: [0, 1, 2],
  6: [0, 1, 2, 3],
  7: [0, 1, 2, 3],
  8: [0, 1, 2, 3, 4],
  9: [0, 1, 2, 5, 3, 4],
  10: [0, 1, 2, 4, 5, 3, 6],
  11: [0, 1, 2, 7, 4, 5, 3, 6],
};

/** Reads the LPCM of a Blu-ray PES packet (type 0x80 of its transport streams); undefined if it is damaged. */
export function readBlurayPcm(payload: Uint8Array): PcmUnit | undefined {
  if (payload.length < PCM_HEADER_BYTES) return undefined;
  const order = ORDERS[payload[2]! >> 4];
  const sampleRate = RATES[payload[2]! & 15];
  const bytes = SAMPLE_BYTES[payload[3]! >> 6];
  if (!order || !sampleRate || !bytes) return undefined;
  const channels = order.length;
  const stride = bytes * (channels + (channels & 1));
  const samples = Math.floor((payload.length - PCM_HEADER_BYTES) / stride);
  if (samples === 0) return undefined;
  const data = new Uint8Array(samples * channels * bytes);
  let to = 0;
  for (let sample = 0; sample < samples; sample++)
    for (const channel of order) {
      const from = PCM_HEADER_BYTES + sample * stride + channel * bytes;
      for (let i = 0; i < bytes; i++) data[to++] = payload[from + i]!;
    }
  return { data, bits: bytes === 2 ? 16 : 24, sampleRate, channels, samples };
}
