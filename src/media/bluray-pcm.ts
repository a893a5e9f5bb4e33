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

const HEADER_BYTES = 4;
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
  if (payload.length < HEADER_BYTES) return undefined;
  const order = ORDERS[payload[2]! >> 4];
  const sampleRate = RATES[payload[2]! & 15];
  const bytes = SAMPLE_BYTES[payload[3]! >> 6];
  if (!order || !sampleRate || !bytes) return undefined;
  const channels = order.length;
  const stride = bytes * (channels + (channels & 1));
  const samples = Math.floor((payload.length - HEADER_BYTES) / stride);
  if (samples === 0) return undefined;
  const data = new Uint8Array(samples * channels * bytes);
  let to = 0;
  for (let sample = 0; sample < samples; sample++)
    for (const channel of order) {
      const from = HEADER_BYTES + sample * stride + channel * bytes;
      for (let i = 0; i < bytes; i++) data[to++] = payload[from + i]!;
    }
  return { data, bits: bytes === 2 ? 16 : 24, sampleRate, channels, samples };
}
