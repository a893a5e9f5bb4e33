import { DecodeError } from "../../src/base/errors.ts";
import { TICKS_MODULUS } from "../../src/media/timestamps.ts";
import { pidAt, TS_PACKET_BYTES, TS_SYNC } from "../../src/media/ts-packet.ts";

/** The header and the adaptation field of a packet, parsed independently of the code under test. */
export interface TsPacket {
  readonly pid: number;
  /** True if a PES packet or a section begins in the payload. */
  readonly isUnitStart: boolean;
  readonly continuity: number;
  /** Offset of the payload in the packet; 188 if it has none. */
  readonly payloadAt: number;
  readonly hasPayload: boolean;
  /** The PCR base, in 90 kHz ticks. */
  readonly pcr: number | undefined;
}

/** Parses the packet at offset `at`. Throws `DecodeError` if its sync byte or a length is wrong. */
export function readTsPacket(bytes: Uint8Array, at: number): TsPacket {
  if (at + TS_PACKET_BYTES > bytes.length)
    throw new DecodeError("TS packet", bytes.length, "truncated packet");
  if (bytes[at] !== TS_SYNC)
    throw new DecodeError("TS packet", at, `expected sync byte 0x47, got ${bytes[at]}`);
  const control = bytes[at + 3]!;
  const adaptation = control & 0x20 ? bytes[at + 4]! : -1;
  if (adaptation > 183) throw new DecodeError("TS packet", at + 4, `adaptation field of ${adaptation} bytes`);
  const flags = adaptation > 0 ? bytes[at + 5]! : 0;
  const hasPayload = (control & 0x10) !== 0;
  return {
    pid: pidAt(bytes, at),
    isUnitStart: (bytes[at + 1]! & 0x40) !== 0,
    continuity: control & 15,
    payloadAt: hasPayload ? 5 + adaptation : TS_PACKET_BYTES,
    hasPayload,
    pcr: flags & 0x10 && adaptation >= 7 ? readPcrBase(bytes, at + 6) : undefined,
  };
}

function readPcrBase(bytes: Uint8Array, at: number): number {
  const high = bytes[at]! * 0x2000000 + bytes[at + 1]! * 0x20000;
  return (high + bytes[at + 2]! * 0x200 + bytes[at + 3]! * 2 + (bytes[at + 4]! >> 7)) % TICKS_MODULUS;
}
