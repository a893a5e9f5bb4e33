import type { PeerAddress } from "../base/address.ts";
import { readU16, readU32, readU48, writeU16, writeU32, writeU48 } from "../base/bytes.ts";
import { ENDPOINT_BYTES, readEndpoint, writeEndpoint } from "./live-address.ts";
import { checkStripe, expectAtLeast, expectBytes, LIVE_KIND, liveFault } from "./live-kinds.ts";
import { MAX_CANDIDATES_TOLD, MAX_CHUNKS_ASKED, MAX_HEADERS_ASKED } from "./live-limits.ts";

/** One chunk: a piece's number and a stripe. */
export interface ChunkName {
  readonly seq: number;
  readonly stripe: number;
}

/** Asks for chunks (REQ), the most urgent first. */
export interface RequestMessage {
  readonly kind: "request";
  readonly epoch: number;
  /** `withinMs`: how long from now on a chunk is of use; later it must not be sent. */
  readonly chunks: readonly (ChunkName & { readonly withinMs: number })[];
}

/** Chunks that were asked for have come from elsewhere (CANCEL). */
export interface CancelMessage {
  readonly kind: "cancel";
  readonly epoch: number;
  readonly chunks: readonly ChunkName[];
}

/** Chunks or headers that were asked for will not come (NAK), and who may have them. */
export interface LackingMessage {
  readonly kind: "lacking";
  readonly epoch: number;
  /** Stripe 255 is the piece's header. */
  readonly chunks: readonly (ChunkName & { readonly reason: LackReason })[];
  readonly holders: readonly PeerAddress[];
}

/** Asks for headers (HREQ): every `step`th from the first on. */
export interface HeaderRequestMessage {
  readonly kind: "headerRequest";
  readonly epoch: number;
  readonly firstSeq: number;
  readonly count: number;
  readonly step: number;
  /** Of pieces with a random access point alone. */
  readonly onlyRandomAccess: boolean;
}

/** By their numbers on the wire. A number that is not here counts as the first. */
const LACKS = ["not-here", "too-late", "busy", "ask-others"] as const;
export type LackReason = (typeof LACKS)[number];

/** Stands for a piece's header where a stripe is named. */
export const HEADER_STRIPE = 255;

const HEAD_BYTES = 8;
const RANDOM_ACCESS = 1;

/** The payload of a REQ. */
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

/** Reads a REQ. Throws `DecodeError`. */
export function decodeRequest(bytes: Uint8Array, stripeCount: number): RequestMessage {
  const count = countIn(bytes, MAX_CHUNKS_ASKED);
  expectBytes(bytes, HEAD_BYTES + 10 * count);
  const chunks = Array.from({ length: count }, (_, i) => {
    const at = HEAD_BYTES + 10 * i;
    const stripe = checkStripe(bytes, at + 6, stripeCount);
    return { seq: readU48(bytes, at), stripe, withinMs: readU16(bytes, at + 8) };
  });
  return { kind: "request", epoch: readU32(bytes, 4), chunks };
}

/** The payload of a CANCEL. */
export function encodeCancel({ epoch, chunks }: CancelMessage): Uint8Array<ArrayBuffer> {
  const bytes = listHead(LIVE_KIND.cancel, epoch, chunks.length, 8);
  for (const [i, { seq, stripe }] of chunks.entries()) {
    writeU48(bytes, HEAD_BYTES + 8 * i, seq);
    bytes[HEAD_BYTES + 8 * i + 6] = stripe;
  }
  return bytes;
}

/** Reads a CANCEL. Throws `DecodeError`. */
export function decodeCancel(bytes: Uint8Array, stripeCount: number): CancelMessage {
  const count = countIn(bytes, MAX_CHUNKS_ASKED);
  expectBytes(bytes, HEAD_BYTES + 8 * count);
  const chunks = Array.from({ length: count }, (_, i) => {
    const at = HEAD_BYTES + 8 * i;
    return { seq: readU48(bytes, at), stripe: checkStripe(bytes, at + 6, stripeCount) };
  });
  return { kind: "cancel", epoch: readU32(bytes, 4), chunks };
}

/** The payload of a NAK. */
export function encodeLacking({ epoch, chunks, holders }: LackingMessage): Uint8Array<ArrayBuffer> {
  const bytes = listHead(LIVE_KIND.lacking, epoch, chunks.length, 8, holders.length * ENDPOINT_BYTES);
  bytes[1] = holders.length;
  for (const [i, { seq, stripe, reason }] of chunks.entries()) {
    const at = HEAD_BYTES + 8 * i;
    writeU48(bytes, at, seq);
    bytes[at + 6] = stripe;
    bytes[at + 7] = LACKS.indexOf(reason);
  }
  const end = HEAD_BYTES + 8 * chunks.length;
  for (const [i, holder] of holders.entries()) writeEndpoint(bytes, end + i * ENDPOINT_BYTES, holder);
  return bytes;
}

/** Reads a NAK; holders that nobody can connect to are left out. Throws `DecodeError`. */
export function decodeLacking(bytes: Uint8Array, stripeCount: number): LackingMessage {
  const count = countIn(bytes, MAX_CHUNKS_ASKED);
  const holderCount = bytes[1]!;
  if (holderCount > MAX_CANDIDATES_TOLD) throw liveFault(LIVE_KIND.lacking, 1, `${holderCount} holders`);
  const end = HEAD_BYTES + 8 * count;
  expectBytes(bytes, end + holderCount * ENDPOINT_BYTES);
  const chunks = Array.from({ length: count }, (_, i) => {
    const at = HEAD_BYTES + 8 * i;
    const stripe = bytes[at + 6] === HEADER_STRIPE ? HEADER_STRIPE : checkStripe(bytes, at + 6, stripeCount);
    return { seq: readU48(bytes, at), stripe, reason: LACKS[bytes[at + 7]!] ?? LACKS[0] };
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

/** The payload of an HREQ. */
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

/** Reads an HREQ. Throws `DecodeError`. */
export function decodeHeaderRequest(bytes: Uint8Array): HeaderRequestMessage {
  expectBytes(bytes, 16);
  const count = countIn(bytes, MAX_HEADERS_ASKED);
  const step = readU16(bytes, 14);
  if (step === 0) throw liveFault(LIVE_KIND.headerRequest, 14, "every 0th header");
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

/** The number of entries, from 1 to `most`. */
function countIn(bytes: Uint8Array, most: number): number {
  expectAtLeast(bytes, HEAD_BYTES);
  const count = readU16(bytes, 2);
  if (count === 0 || count > most) throw liveFault(bytes[0]!, 2, `${count} entries, 1 to ${most} expected`);
  return count;
}
