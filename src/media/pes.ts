import { DecodeError } from "../base/errors.ts";
import { wrapTicks } from "./timestamps.ts";

/** The header of a PES packet (ISO 13818-1 2.4.3.6). Times are 90 kHz ticks, 33 bits. */
interface PesHeader {
  readonly streamId: number;
  /** Bytes after the length field; 0 if unknown (video only). */
  readonly packetBytes: number;
  readonly pts: number | undefined;
  /** The DTS; equal to the PTS if the header has none. */
  readonly dts: number | undefined;
  /** Offset of the elementary stream data from the start code. */
  readonly payloadAt: number;
}

/** Size of a written header: with PTS only, and with PTS and DTS. */
const PES_HEADER_PTS = 14;
const PES_HEADER_PTS_DTS = 19;

/** Stream ids without the optional header (2.4.3.7): map, padding, private 2, ECM, EMM, directory, DSM-CC, H.222.1 type E. */
const IDS_WITHOUT_HEADER = [0xbc, 0xbe, 0xbf, 0xf0, 0xf1, 0xf2, 0xf8, 0xff];

/** Reads the header at offset `at`, in bytes before `end`. Throws {@link DecodeError} if it is truncated or invalid. */
export function readPesHeader(bytes: Uint8Array, at: number, end = bytes.length): PesHeader {
  if (at + 9 > end) throw new DecodeError("PES", at, "truncated header");
  if (bytes[at] !== 0 || bytes[at + 1] !== 0 || bytes[at + 2] !== 1) {
    throw new DecodeError("PES", at, "expected start code 00 00 01");
  }
  const streamId = bytes[at + 3]!;
  const packetBytes = (bytes[at + 4]! << 8) | bytes[at + 5]!;
  if (IDS_WITHOUT_HEADER.includes(streamId))
    return { streamId, packetBytes, pts: undefined, dts: undefined, payloadAt: 6 };
  if ((bytes[at + 6]! & 0xc0) !== 0x80) throw new DecodeError("PES", at + 6, "expected marker bits 10");
  const flags = bytes[at + 7]! >> 6;
  const headerBytes = bytes[at + 8]!;
  if (at + 9 + headerBytes > end)
    throw new DecodeError("PES", at + 8, `header of ${headerBytes} bytes is truncated`);
  const pts = flags >= 2 && headerBytes >= 5 ? readTimestamp(bytes, at + 9) : undefined;
  const dts = flags === 3 && headerBytes >= 10 ? readTimestamp(bytes, at + 14) : pts;
  return { streamId, packetBytes, pts, dts, payloadAt: 9 + headerBytes };
}

/**
 * Writes a header at offset `at` and returns its size. Omits the DTS if it equals the PTS.
 * @param payloadBytes size of the elementary stream data; a packet length above 16 bits is written as 0, allowed for video only (2.4.3.7).
 */
export function writePesHeader(
  bytes: Uint8Array,
  at: number,
  streamId: number,
  payloadBytes: number,
  pts: number,
  dts: number,
): number {
  const headerBytes = pesHeaderBytes(pts, dts);
  const packetBytes = headerBytes - 6 + payloadBytes;
  const length = packetBytes > 0xffff ? 0 : packetBytes;
  bytes[at] = 0;
  bytes[at + 1] = 0;
  bytes[at + 2] = 1;
  bytes[at + 3] = streamId;
  bytes[at + 4] = length >> 8;
  bytes[at + 5] = length;
  bytes[at + 6] = 0x84; // data_alignment_indicator: the payload begins with an access unit
  bytes[at + 7] = pts === dts ? 0x80 : 0xc0;
  bytes[at + 8] = headerBytes - 9;
  writeTimestamp(bytes, at + 9, pts === dts ? 2 : 3, pts);
  if (pts !== dts) writeTimestamp(bytes, at + 14, 1, dts);
  return headerBytes;
}

/** Adds `ticks` to the PTS and DTS of the header at offset `at`, which must be valid ({@link readPesHeader}) and have a PTS. */
export function shiftPesTimes(bytes: Uint8Array, at: number, ticks: number): void {
  const flags = bytes[at + 7]! >> 6;
  for (let i = 0; i < (flags === 3 && bytes[at + 8]! >= 10 ? 2 : 1); i++) {
    const to = at + 9 + 5 * i;
    writeTimestamp(bytes, to, bytes[to]! >> 4, wrapTicks(readTimestamp(bytes, to) + ticks));
  }
}

/** Returns the size of a written header with these times. */
export function pesHeaderBytes(pts: number, dts: number): number {
  return pts === dts ? PES_HEADER_PTS : PES_HEADER_PTS_DTS;
}

/** Reads a 33-bit time from five bytes with marker bits. */
function readTimestamp(bytes: Uint8Array, at: number): number {
  return (
    ((bytes[at]! >> 1) & 7) * 0x40000000 +
    ((bytes[at + 1]! << 22) | ((bytes[at + 2]! >> 1) << 15) | (bytes[at + 3]! << 7) | (bytes[at + 4]! >> 1))
  );
}

/** Writes a 33-bit time as five bytes with marker bits; `prefix` is the first four bits. */
function writeTimestamp(bytes: Uint8Array, at: number, prefix: number, ticks: number): void {
  const high = Math.floor(ticks / 0x40000000);
  const low = ticks % 0x40000000;
  bytes[at] = (prefix << 4) | (high << 1) | 1;
  bytes[at + 1] = low >> 22;
  bytes[at + 2] = ((low >> 14) & 0xfe) | 1;
  bytes[at + 3] = low >> 7;
  bytes[at + 4] = ((low << 1) & 0xfe) | 1;
}
