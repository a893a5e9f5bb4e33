import { readU16, readU32, writeU16, writeU32 } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";

/** Packet types (BEP 29): payload, end of stream, acknowledgement only, abort, connection request. */
export type UtpKind = "data" | "fin" | "state" | "reset" | "syn";

/** A decoded uTP packet (BEP 29). */
export interface UtpPacket extends UtpHeader {
  /** One bit for each packet after the next expected one, lowest bit of each byte first; undefined if there is no such extension. */
  readonly selectiveAck: Uint8Array | undefined;
  readonly payload: Uint8Array;
}

/** The fields of the header that every packet has. */
export interface UtpHeader {
  readonly kind: UtpKind;
  /** 16 bits. */
  readonly connectionId: number;
  /** The sender's clock, and the one-way delay that it measured for our last packet; microseconds modulo 2^32. */
  readonly timestampUs: number;
  readonly delayUs: number;
  /** Bytes that the sender can still receive. */
  readonly windowBytes: number;
  /** 16 bits each: number of this packet, and of the last packet received in order. */
  readonly sequence: number;
  readonly ack: number;
}

/** Length of a packet without extensions and payload. */
export const UTP_HEADER_BYTES = 20;

const FORMAT = "uTP packet";
const KINDS: readonly UtpKind[] = ["data", "fin", "state", "reset", "syn"];
const NUMBERS: Readonly<Record<UtpKind, number>> = { data: 0, fin: 1, state: 2, reset: 3, syn: 4 };
const VERSION = 1;
const SELECTIVE_ACK = 1;
/** An unassigned extension, which receivers skip (BEP 29), used to pad a packet. */
const PADDING = 0x70;
const MAX_EXTENSION_BYTES = 255;
/** BEP 29 defines two extensions; a padded packet has at most seven. */
const MAX_EXTENSIONS = 16;

/** Decodes a datagram. The packet holds views of `bytes`. Throws `DecodeError`. */
export function decodeUtpPacket(bytes: Uint8Array): UtpPacket {
  if (bytes.length < UTP_HEADER_BYTES)
    throw new DecodeError(FORMAT, bytes.length, "packet shorter than a header");
  const kind = KINDS[bytes[0]! >> 4];
  if (kind === undefined || (bytes[0]! & 0x0f) !== VERSION) {
    throw new DecodeError(FORMAT, 0, `expected version 1 and one of five types, not ${bytes[0]}`);
  }
  let selectiveAck: Uint8Array | undefined;
  let at = UTP_HEADER_BYTES;
  let extension = bytes[1]!;
  for (let count = 0; extension !== 0; count++) {
    if (count >= MAX_EXTENSIONS) throw new DecodeError(FORMAT, at, `more than ${MAX_EXTENSIONS} extensions`);
    if (at + 2 > bytes.length) throw new DecodeError(FORMAT, at, "extension exceeds the packet");
    const end = at + 2 + bytes[at + 1]!;
    if (end > bytes.length) throw new DecodeError(FORMAT, at, "extension exceeds the packet");
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

/** The parts of a packet besides its header. */
export interface UtpBody {
  /** At most 252 bytes, a multiple of four (BEP 29). */
  readonly selectiveAck?: Uint8Array | undefined;
  /** Pads the packet to this length, unless it is already longer or only one byte shorter. */
  readonly paddedBytes?: number;
  /** Length of the payload, which the caller writes at the end. */
  readonly payloadBytes?: number;
}

/** Encodes a packet without its payload: the caller writes the last `payloadBytes` bytes. */
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
  // Each extension starts with the type of the next extension; the header has the type of the first.
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

/** Overwrites the fields that change on each transmission: clocks, window and acknowledgement. */
export function updateUtpPacket(
  bytes: Uint8Array,
  header: Pick<UtpHeader, "timestampUs" | "delayUs" | "windowBytes" | "ack">,
): void {
  writeU32(bytes, 4, header.timestampUs);
  writeU32(bytes, 8, header.delayUs);
  writeU32(bytes, 12, header.windowBytes);
  writeU16(bytes, 18, header.ack);
}

/** Returns the lengths of padding extensions that take `bytes` in total, including two bytes of header each. */
function paddingOf(bytes: number): number[] {
  const lengths: number[] = [];
  let left = bytes;
  while (left >= 2) {
    // One remaining byte would be too short for an extension.
    const whole = Math.min(left, 2 + MAX_EXTENSION_BYTES);
    const taken = left - whole === 1 ? whole - 1 : whole;
    lengths.push(taken - 2);
    left -= taken;
  }
  return lengths;
}
