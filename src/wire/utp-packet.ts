import { readU16, readU32, writeU16, writeU32 } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";

/** What a packet is for (BEP 29): bytes, the last of them, an acknowledgement alone, an abrupt end, a beginning. */
export type UtpKind = "data" | "fin" | "state" | "reset" | "syn";

/** One packet of uTP (BEP 29). */
export interface UtpPacket extends UtpHeader {
  /** A bit for each packet after the next expected one, lowest bit of each byte first; absent where none came early. */
  readonly selectiveAck: Uint8Array | undefined;
  readonly payload: Uint8Array;
}

/** What every packet says. */
export interface UtpHeader {
  readonly kind: UtpKind;
  /** 16 bits. */
  readonly connectionId: number;
  /** The sender's clock in microseconds, and what the last packet from us took by both clocks; both modulo 2^32. */
  readonly timestampUs: number;
  readonly delayUs: number;
  /** How many bytes more the sender can take. */
  readonly windowBytes: number;
  /** 16 bits each: this packet's number, and the last one that came without a gap. */
  readonly sequence: number;
  readonly ack: number;
}

/** How long a packet without extensions and payload is. */
export const UTP_HEADER_BYTES = 20;

const FORMAT = "uTP packet";
const KINDS: readonly UtpKind[] = ["data", "fin", "state", "reset", "syn"];
const NUMBERS: Readonly<Record<UtpKind, number>> = { data: 0, fin: 1, state: 2, reset: 3, syn: 4 };
const VERSION = 1;
const SELECTIVE_ACK = 1;
/** An extension that nobody knows and everybody skips, as BEP 29 asks: it makes a packet longer. */
const PADDING = 0x70;
const MAX_EXTENSION_BYTES = 255;
/** BEP 29 knows two extensions, and a padded packet has seven at most. */
const MAX_EXTENSIONS = 16;

/** Reads a datagram. Views on `bytes` are as long valid as they are. Throws `DecodeError`. */
export function decodeUtpPacket(bytes: Uint8Array): UtpPacket {
  if (bytes.length < UTP_HEADER_BYTES) throw new DecodeError(FORMAT, bytes.length, "shorter than a header");
  const kind = KINDS[bytes[0]! >> 4];
  if (kind === undefined || (bytes[0]! & 0x0f) !== VERSION) {
    throw new DecodeError(FORMAT, 0, `expected version 1 and one of five types, not ${bytes[0]}`);
  }
  let selectiveAck: Uint8Array | undefined;
  let at = UTP_HEADER_BYTES;
  let extension = bytes[1]!;
  for (let count = 0; extension !== 0; count++) {
    if (count >= MAX_EXTENSIONS) throw new DecodeError(FORMAT, at, `more than ${MAX_EXTENSIONS} extensions`);
    if (at + 2 > bytes.length) throw new DecodeError(FORMAT, at, "an extension beyond the end");
    const end = at + 2 + bytes[at + 1]!;
    if (end > bytes.length) throw new DecodeError(FORMAT, at, "an extension beyond the end");
    if (extension === SELECTIVE_ACK) selectiveAck = bytes.subarray(at + 2, end);
    extension = bytes[at]!;
    at = end;
  }
  return {
    kind,
    connectionId: readU16(bytes, 2),
    timestampUs: readU32(bytes, 4),
    delayUs: readU32(bytes, 8),
    windowBytes: readU32(bytes, 12),
    sequence: readU16(bytes, 16),
    ack: readU16(bytes, 18),
    selectiveAck,
    payload: bytes.subarray(at),
  };
}

/** What a packet carries besides its header. */
export interface UtpBody {
  /** At most 252 bytes, in fours (BEP 29). */
  readonly selectiveAck?: Uint8Array | undefined;
  /** Fills the packet with bytes that say nothing up to this length; where it would be longer anyway, or shorter by a single
   * byte, it stays as it is. */
  readonly paddedBytes?: number;
  /** The length of the payload, which the caller writes at the end. */
  readonly payloadBytes?: number;
}

/** Makes a packet whose payload is yet to be written: the last `payloadBytes` of it. */
export function encodeUtpPacket(header: UtpHeader, body: UtpBody = {}): Uint8Array<ArrayBuffer> {
  const { selectiveAck, paddedBytes = 0, payloadBytes = 0 } = body;
  const ackBytes = selectiveAck ? 2 + selectiveAck.length : 0;
  const bareBytes = UTP_HEADER_BYTES + ackBytes + payloadBytes;
  const padding = paddingOf(paddedBytes - bareBytes);
  const bytes = new Uint8Array(bareBytes + padding.reduce((sum, length) => sum + 2 + length, 0));
  bytes[0] = (NUMBERS[header.kind] << 4) | VERSION;
  writeU16(bytes, 2, header.connectionId);
  writeU16(bytes, 16, header.sequence);
  updateUtpPacket(bytes, header);
  // Each extension says at its beginning what follows it; the header says what comes first.
  let linkAt = 1;
  let at = UTP_HEADER_BYTES;
  const extend = (kind: number, length: number) => {
    bytes[linkAt] = kind;
    bytes[at + 1] = length;
    linkAt = at;
    at += 2 + length;
  };
  if (selectiveAck) {
    bytes.set(selectiveAck, at + 2);
    extend(SELECTIVE_ACK, selectiveAck.length);
  }
  for (const length of padding) extend(PADDING, length);
  return bytes;
}

/** Writes what a packet says anew each time it is sent: clocks, window and acknowledgement. */
export function updateUtpPacket(
  bytes: Uint8Array,
  header: Pick<UtpHeader, "timestampUs" | "delayUs" | "windowBytes" | "ack">,
): void {
  writeU32(bytes, 4, header.timestampUs);
  writeU32(bytes, 8, header.delayUs);
  writeU32(bytes, 12, header.windowBytes);
  writeU16(bytes, 18, header.ack);
}

/** The lengths of the extensions that take `bytes` in all, two of each for its own head. */
function paddingOf(bytes: number): number[] {
  const lengths: number[] = [];
  let left = bytes;
  while (left >= 2) {
    // A single byte that is left over could not be an extension.
    const whole = Math.min(left, 2 + MAX_EXTENSION_BYTES);
    const taken = left - whole === 1 ? whole - 1 : whole;
    lengths.push(taken - 2);
    left -= taken;
  }
  return lengths;
}
