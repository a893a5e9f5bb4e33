import { DecodeError } from "../base/errors.ts";
import { TICKS_MODULUS } from "./timestamps.ts";

/** Bytes of a transport stream packet (ISO 13818-1 2.4.3.2). */
export const TS_PACKET_BYTES = 188;
/** The first byte of every packet. */
export const TS_SYNC = 0x47;
/** Packets of stuffing have this PID. */
export const NULL_PID = 0x1fff;

/** What the header and the adaptation field of a packet say. */
export interface TsPacket {
  readonly pid: number;
  /** A PES packet or a section begins in the payload. */
  readonly isUnitStart: boolean;
  readonly hasError: boolean;
  readonly isScrambled: boolean;
  readonly continuity: number;
  /** Where the payload begins, counted from the packet's first byte; 188 where there is none. */
  readonly payloadAt: number;
  readonly hasPayload: boolean;
  /** The source says that continuity or the clock jumps here. */
  readonly isDiscontinuous: boolean;
  readonly isRandomAccess: boolean;
  /** The programme clock, base only, in ticks of 90 kHz. */
  readonly pcr: number | undefined;
}

/** Reads the packet at `at`; throws {@link DecodeError} where its sync byte or its lengths are wrong. */
export function readTsPacket(bytes: Uint8Array, at: number): TsPacket {
  if (at + TS_PACKET_BYTES > bytes.length) throw new DecodeError("TS packet", bytes.length, "a cut packet");
  if (bytes[at] !== TS_SYNC)
    throw new DecodeError("TS packet", at, `expected sync byte 0x47, got ${bytes[at]}`);
  const control = bytes[at + 3]!;
  const adaptation = control & 0x20 ? bytes[at + 4]! : -1;
  if (adaptation > 183)
    throw new DecodeError("TS packet", at + 4, `an adaptation field of ${adaptation} bytes`);
  const flags = adaptation > 0 ? bytes[at + 5]! : 0;
  const hasPayload = (control & 0x10) !== 0;
  return {
    pid: pidAt(bytes, at),
    isUnitStart: (bytes[at + 1]! & 0x40) !== 0,
    hasError: (bytes[at + 1]! & 0x80) !== 0,
    isScrambled: (control & 0xc0) !== 0,
    continuity: control & 15,
    payloadAt: hasPayload ? 5 + adaptation : TS_PACKET_BYTES,
    hasPayload,
    isDiscontinuous: (flags & 0x80) !== 0,
    isRandomAccess: (flags & 0x40) !== 0,
    pcr: flags & 0x10 && adaptation >= 7 ? readPcrBase(bytes, at + 6) : undefined,
  };
}

/** The PID of the packet at `at`. */
export function pidAt(bytes: Uint8Array, at: number): number {
  return ((bytes[at + 1]! & 0x1f) << 8) | bytes[at + 2]!;
}

/** Whether a PES packet or a section begins in the packet at `at`. */
export function isUnitStartAt(bytes: Uint8Array, at: number): boolean {
  return (bytes[at + 1]! & 0x40) !== 0;
}

/** Where the payload of the packet at `at` begins in `bytes`: `at + 188` where there is none (or the lengths are wrong). */
export function payloadStartAt(bytes: Uint8Array, at: number): number {
  const control = bytes[at + 3]!;
  if (!(control & 0x10)) return at + TS_PACKET_BYTES;
  if (!(control & 0x20)) return at + 4;
  return at + Math.min(TS_PACKET_BYTES, 5 + bytes[at + 4]!);
}

/** Writes the four header bytes of a packet. */
export function writeTsHeader(
  bytes: Uint8Array,
  at: number,
  pid: number,
  isUnitStart: boolean,
  hasAdaptation: boolean,
  continuity: number,
): void {
  bytes[at] = TS_SYNC;
  bytes[at + 1] = (isUnitStart ? 0x40 : 0) | (pid >> 8);
  bytes[at + 2] = pid;
  bytes[at + 3] = (hasAdaptation ? 0x30 : 0x10) | (continuity & 15);
}

/** Writes the six bytes of a programme clock reference: `ticks` of 90 kHz, extension 0 (2.4.3.5). */
export function writePcr(bytes: Uint8Array, at: number, ticks: number): void {
  bytes[at] = ticks / 0x2000000;
  bytes[at + 1] = (ticks / 0x20000) & 0xff;
  bytes[at + 2] = (ticks / 0x200) & 0xff;
  bytes[at + 3] = (ticks / 2) & 0xff;
  bytes[at + 4] = (ticks % 2) * 0x80 + 0x7e;
  bytes[at + 5] = 0;
}

/** A packet without payload that carries the clock alone; its continuity counter is that of the payload before it. */
export function writePcrPacket(
  bytes: Uint8Array,
  at: number,
  pid: number,
  continuity: number,
  ticks: number,
): void {
  writeTsHeader(bytes, at, pid, false, true, continuity);
  bytes[at + 3] = 0x20 | (continuity & 15);
  bytes[at + 4] = 183;
  bytes[at + 5] = 0x10;
  writePcr(bytes, at + 6, ticks);
  bytes.fill(0xff, at + 12, at + TS_PACKET_BYTES);
}

function readPcrBase(bytes: Uint8Array, at: number): number {
  const high = bytes[at]! * 0x2000000 + bytes[at + 1]! * 0x20000;
  return (high + bytes[at + 2]! * 0x200 + bytes[at + 3]! * 2 + (bytes[at + 4]! >> 7)) % TICKS_MODULUS;
}
