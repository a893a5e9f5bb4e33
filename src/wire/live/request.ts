import type { PeerAddress } from "../../base/address.ts";
import { readU16, readU32, readU48, writeU16, writeU32, writeU48 } from "../../base/bytes.ts";
import { ENDPOINT_BYTES, readEndpoint, writeEndpoint } from "./endpoint.ts";
import { MAX_CANDIDATES, MAX_REQUESTED_CHUNKS, MAX_REQUESTED_HEADERS } from "./limits.ts";
import { checkStripe, expectAtLeast, expectBytes, LIVE_KIND, liveMessageError } from "./message-kind.ts";

/** Identifies a chunk: piece number and stripe. */
export interface ChunkName {
  readonly seq: number;
  readonly stripe: number;
}

/** Requests chunks (REQ), most urgent first. */
export interface RequestMessage {
  readonly kind: "request";
  readonly epoch: number;
  /** `withinMs`: time for which the chunk is useful; it must not be sent later. */
  readonly chunks: readonly (ChunkName & { readonly withinMs: number })[];
}

/** Cancels requested chunks that arrived from other peers (CANCEL). */
export interface CancelMessage {
  readonly kind: "cancel";
  readonly epoch: number;
  readonly chunks: readonly ChunkName[];
}

/** Requested chunks or headers that will not be sent (NAK), and peers that may have them. */
export interface LackingMessage {
  readonly kind: "lacking";
  readonly epoch: number;
  /** Stripe 255 stands for the header of the piece. */
  readonly chunks: readonly (ChunkName & { readonly reason: RefusedChunkReason })[];
  readonly holders: readonly PeerAddress[];
}

/** Requests every `step`th header from `firstSeq` on (HREQ). */
export interface HeaderRequestMessage {
  readonly kind: "headerRequest";
  readonly epoch: number;
  readonly firstSeq: number;
  readonly count: number;
  readonly step: number;
  /** Only headers of pieces with a random access point. */
  readonly onlyRandomAccess: boolean;
}

/** Index is the number on the wire; an unknown number counts as the first. */
const NAK_REASONS = ["not-here", "too-late", "busy", "ask-others"] as const;
/** Why a requested chunk is not sent. */
export type RefusedChunkReason = (typeof NAK_REASONS)[number];

/** Stripe number that stands for the header of a piece. */
const HEADER_STRIPE = 255;

const HEAD_BYTES = 8;
const RANDOM_ACCESS = 1;

/** Encodes a REQ. */
export function encodeRequest({ epoch, chunks }: RequestMessage): Uint8Array<ArrayBuffer> {
  const bytes = listHead(LIVE_KIND.request, epoch, chunks.length, 10);
  for (const [i, { seq, stripe, withinMs }] of chunks.entries()) {
    const at = HEAD_BYTES + 10 * i;
    writeU48(bytes, at, seq);
    bytes[at + 6] = stripe;
    writeU16(bytes, at + 8, Math.min(withinMs, 0xffff));
  }
  return bytes;
}

/** Decodes a REQ. Throws `DecodeError`. */
export function decodeRequest(bytes: Uint8Array, stripeCount: number): RequestMessage {
  const count = countIn(bytes, MAX_REQUESTED_CHUNKS);
  expectBytes(bytes, HEAD_BYTES + 10 * count);
  const chunks = Array.from({ length: count }, (_, i) => {
    const at = HEAD_BYTES + 10 * i;
    const stripe = checkStripe(bytes, at + 6, stripeCount);
    return { seq: readU48(bytes, at), stripe, withinMs: readU16(bytes, at + 8) };
  });
  return { kind: "request", epoch: readU32(bytes, 4), chunks };
}

/** Encodes a CANCEL. */
export function encodeCancel({ epoch, chunks }: CancelMessage): Uint8Array<ArrayBuffer> {
  const bytes = listHead(LIVE_KIND.cancel, epoch, chunks.length, 8);
  for (const [i, { seq, stripe }] of chunks.entries()) {
    writeU48(bytes, HEAD_BYTES + 8 * i, seq);
    bytes[HEAD_BYTES + 8 * i + 6] = stripe;
  }
  return bytes;
}

/** Decodes a CANCEL. Throws `DecodeError`. */
export function decodeCancel(bytes: Uint8Array, stripeCount: number): CancelMessage {
  const count = countIn(bytes, MAX_REQUESTED_CHUNKS);
  expectBytes(bytes, HEAD_BYTES + 8 * count);
  const chunks = Array.from({ length: count }, (_, i) => {
    const at = HEAD_BYTES + 8 * i;
    return { seq: readU48(bytes, at), stripe: checkStripe(bytes, at + 6, stripeCount) };
  });
  return { kind: "cancel", epoch: readU32(bytes, 4), chunks };
}

/** Encodes a NAK. */
export function encodeLacking({ epoch, chunks, holders }: LackingMessage): Uint8Array<ArrayBuffer> {
  const bytes = listHead(LIVE_KIND.lacking, epoch, chunks.length, 8, holders.length * ENDPOINT_BYTES);
  bytes[1] = holders.length;
  for (const [i, { seq, stripe, reason }] of chunks.entries()) {
    const at = HEAD_BYTES + 8 * i;
    writeU48(bytes, at, seq);
    bytes[at + 6] = stripe;
    bytes[at + 7] = NAK_REASONS.indexOf(reason);
  }
  const end = HEAD_BYTES + 8 * chunks.length;
  for (const [i, holder] of holders.entries()) writeEndpoint(bytes, end + i * ENDPOINT_BYTES, holder);
  return bytes;
}

/** Decodes a NAK and skips holders with port 0. Throws `DecodeError`. */
export function decodeLacking(bytes: Uint8Array, stripeCount: number): LackingMessage {
  const count = countIn(bytes, MAX_REQUESTED_CHUNKS);
  const holderCount = bytes[1]!;
  if (holderCount > MAX_CANDIDATES)
    throw liveMessageError(
      LIVE_KIND.lacking,
      1,
      `expected at most ${MAX_CANDIDATES} holders, not ${holderCount}`,
    );
  const end = HEAD_BYTES + 8 * count;
  expectBytes(bytes, end + holderCount * ENDPOINT_BYTES);
  const chunks = Array.from({ length: count }, (_, i) => {
    const at = HEAD_BYTES + 8 * i;
    const stripe = bytes[at + 6] === HEADER_STRIPE ? HEADER_STRIPE : checkStripe(bytes, at + 6, stripeCount);
    return { seq: readU48(bytes, at), stripe, reason: NAK_REASONS[bytes[at + 7]!] ?? NAK_REASONS[0] };
  });
  const holders = Array.from({ length: holderCount }, (_, i) =>
    readEndpoint(bytes, end + i * ENDPOINT_BYTES),
  );
  return {
    kind: "lacking",
    epoch: readU32(bytes, 4),
    chunks,
    holders: holders.filter(({ port }) => port !== 0),
  };
}

/** Encodes an HREQ. */
export function encodeHeaderRequest(message: HeaderRequestMessage): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(16);
  bytes[0] = LIVE_KIND.headerRequest;
  bytes[1] = message.onlyRandomAccess ? RANDOM_ACCESS : 0;
  writeU16(bytes, 2, message.count);
  writeU32(bytes, 4, message.epoch);
  writeU48(bytes, 8, message.firstSeq);
  writeU16(bytes, 14, message.step);
  return bytes;
}

/** Decodes an HREQ. Throws `DecodeError`. */
export function decodeHeaderRequest(bytes: Uint8Array): HeaderRequestMessage {
  expectBytes(bytes, 16);
  const count = countIn(bytes, MAX_REQUESTED_HEADERS);
  const step = readU16(bytes, 14);
  if (step === 0) throw liveMessageError(LIVE_KIND.headerRequest, 14, "expected a step of at least 1");
  const onlyRandomAccess = (bytes[1]! & RANDOM_ACCESS) !== 0;
  return {
    kind: "headerRequest",
    epoch: readU32(bytes, 4),
    firstSeq: readU48(bytes, 8),
    count,
    step,
    onlyRandomAccess,
  };
}

function listHead(
  kind: number,
  epoch: number,
  count: number,
  entryBytes: number,
  moreBytes = 0,
): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(HEAD_BYTES + entryBytes * count + moreBytes);
  bytes[0] = kind;
  writeU16(bytes, 2, count);
  writeU32(bytes, 4, epoch);
  return bytes;
}

/** Reads the number of entries. Throws `DecodeError` unless it is from 1 to `max`. */
function countIn(bytes: Uint8Array, max: number): number {
  expectAtLeast(bytes, HEAD_BYTES);
  const count = readU16(bytes, 2);
  if (count === 0 || count > max)
    throw liveMessageError(bytes[0]!, 2, `expected 1 to ${max} entries, not ${count}`);
  return count;
}
