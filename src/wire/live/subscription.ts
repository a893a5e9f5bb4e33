import { readU16, readU32, readU48, writeU16, writeU32, writeU48 } from "../../base/bytes.ts";
import { CANDIDATE_BYTES, type LiveCandidate, readCandidates, writeCandidates } from "./endpoint.ts";
import { MAX_BACKFILL_PIECES, MAX_CANDIDATES } from "./limits.ts";
import {
  checkMask,
  countStripes,
  expectAtLeast,
  expectBytes,
  LIVE_KIND,
  liveMessageError,
} from "./message-kind.ts";

/** Asks a peer to send stripes (SUB). `stripes` is a bit set: bit 0 is stripe 0. */
export interface SubscribeMessage {
  readonly kind: "subscribe";
  readonly stripes: number;
  readonly epoch: number;
  /** First piece requested. */
  readonly startSeq: number;
  /** Number of older pieces that may be sent in addition to new ones. */
  readonly backfillPieces: number;
  /** For each stripe of the set, ascending: bitmap of the pieces that the sender already has, of the 32 from `startSeq` on. */
  readonly have: readonly number[];
  /** Two other peers have refused. */
  readonly isDesperate: boolean;
}

/** Accepts a subscription (SUBOK). */
export interface SubscribedMessage {
  readonly kind: "subscribed";
  readonly stripes: number;
  readonly epoch: number;
  /** First piece that will be sent. */
  readonly startSeq: number;
}

/** Refuses a subscription (SUBNO), with other peers that may have capacity. */
export interface RefusedMessage {
  readonly kind: "refused";
  readonly stripes: number;
  readonly reason: RefusalReason;
  readonly retryMs: number;
  readonly candidates: readonly LiveCandidate[];
}

/** Ends a subscription (UNSUB); either side may send it. */
export interface UnsubscribeMessage {
  readonly kind: "unsubscribe";
  readonly stripes: number;
  readonly reason: UnsubscribeReason;
}

/** The sender is about to disconnect (BYE), with peers that may replace it. */
export interface ByeMessage {
  readonly kind: "bye";
  readonly reason: ByeReason;
  readonly candidates: readonly LiveCandidate[];
}

/** Index is the number on the wire; an unknown number counts as the first. */
const REFUSALS = ["full", "behind", "loop", "not-allowed", "no-content", "leaving"] as const;
const UNSUBSCRIPTIONS = ["moved", "slow", "leaving", "bad"] as const;
const BYES = ["leaving", "too-many", "banned", "ended"] as const;
/** Why a subscription is refused. */
export type RefusalReason = (typeof REFUSALS)[number];
type UnsubscribeReason = (typeof UNSUBSCRIPTIONS)[number];
type ByeReason = (typeof BYES)[number];

const DESPERATE = 1;

/** Encodes a SUB. */
export function encodeSubscribe(message: SubscribeMessage): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(16 + 4 * message.have.length);
  bytes[0] = LIVE_KIND.subscribe;
  bytes[1] = message.isDesperate ? DESPERATE : 0;
  writeU16(bytes, 2, message.stripes);
  writeU32(bytes, 4, message.epoch);
  writeU48(bytes, 8, message.startSeq);
  writeU16(bytes, 14, message.backfillPieces);
  for (const [i, bits] of message.have.entries()) writeU32(bytes, 16 + 4 * i, bits);
  return bytes;
}

/** Decodes a SUB. Throws `DecodeError`. */
export function decodeSubscribe(bytes: Uint8Array, stripeCount: number): SubscribeMessage {
  expectAtLeast(bytes, 16);
  const stripes = checkMask(readU16(bytes, 2), bytes, 2, stripeCount);
  const count = countStripes(stripes);
  expectBytes(bytes, 16 + 4 * count);
  const backfillPieces = readU16(bytes, 14);
  if (backfillPieces > MAX_BACKFILL_PIECES) {
    throw liveMessageError(
      LIVE_KIND.subscribe,
      14,
      `expected a backlog of at most ${MAX_BACKFILL_PIECES}, not ${backfillPieces}`,
    );
  }
  return {
    kind: "subscribe",
    stripes,
    epoch: readU32(bytes, 4),
    startSeq: readU48(bytes, 8),
    backfillPieces,
    have: Array.from({ length: count }, (_, i) => readU32(bytes, 16 + 4 * i)),
    isDesperate: (bytes[1]! & DESPERATE) !== 0,
  };
}

/** Encodes a SUBOK. */
export function encodeSubscribed(message: SubscribedMessage): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(14);
  bytes[0] = LIVE_KIND.subscribed;
  writeU16(bytes, 2, message.stripes);
  writeU32(bytes, 4, message.epoch);
  writeU48(bytes, 8, message.startSeq);
  return bytes;
}

/** Decodes a SUBOK. Throws `DecodeError`. */
export function decodeSubscribed(bytes: Uint8Array, stripeCount: number): SubscribedMessage {
  expectBytes(bytes, 14);
  const stripes = checkMask(readU16(bytes, 2), bytes, 2, stripeCount);
  return { kind: "subscribed", stripes, epoch: readU32(bytes, 4), startSeq: readU48(bytes, 8) };
}

/** Encodes a SUBNO. */
export function encodeRefused(message: RefusedMessage): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(8 + CANDIDATE_BYTES * message.candidates.length);
  bytes[0] = LIVE_KIND.refused;
  bytes[1] = REFUSALS.indexOf(message.reason);
  writeU16(bytes, 2, message.stripes);
  writeU16(bytes, 4, Math.min(message.retryMs, 0xffff));
  bytes[6] = message.candidates.length;
  writeCandidates(bytes, 8, message.candidates);
  return bytes;
}

/** Decodes a SUBNO. Throws `DecodeError`. */
export function decodeRefused(bytes: Uint8Array, stripeCount: number): RefusedMessage {
  expectAtLeast(bytes, 8);
  return {
    kind: "refused",
    stripes: checkMask(readU16(bytes, 2), bytes, 2, stripeCount),
    reason: REFUSALS[bytes[1]!] ?? REFUSALS[0],
    retryMs: readU16(bytes, 4),
    candidates: candidatesIn(bytes, 8, bytes[6]!),
  };
}

/** Encodes an UNSUB. */
export function encodeUnsubscribe(message: UnsubscribeMessage): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(4);
  bytes[0] = LIVE_KIND.unsubscribe;
  bytes[1] = UNSUBSCRIPTIONS.indexOf(message.reason);
  writeU16(bytes, 2, message.stripes);
  return bytes;
}

/** Decodes an UNSUB. Throws `DecodeError`. */
export function decodeUnsubscribe(bytes: Uint8Array, stripeCount: number): UnsubscribeMessage {
  expectBytes(bytes, 4);
  const stripes = checkMask(readU16(bytes, 2), bytes, 2, stripeCount);
  return { kind: "unsubscribe", stripes, reason: UNSUBSCRIPTIONS[bytes[1]!] ?? UNSUBSCRIPTIONS[0] };
}

/** Encodes a BYE. */
export function encodeBye(message: ByeMessage): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(4 + CANDIDATE_BYTES * message.candidates.length);
  bytes[0] = LIVE_KIND.bye;
  bytes[1] = BYES.indexOf(message.reason);
  bytes[2] = message.candidates.length;
  writeCandidates(bytes, 4, message.candidates);
  return bytes;
}

/** Decodes a BYE. Throws `DecodeError`. */
export function decodeBye(bytes: Uint8Array): ByeMessage {
  expectAtLeast(bytes, 4);
  return { kind: "bye", reason: BYES[bytes[1]!] ?? BYES[0], candidates: candidatesIn(bytes, 4, bytes[2]!) };
}

function candidatesIn(bytes: Uint8Array, at: number, count: number): LiveCandidate[] {
  if (count > MAX_CANDIDATES) {
    throw liveMessageError(bytes[0]!, at, `expected at most ${MAX_CANDIDATES} candidates, not ${count}`);
  }
  expectBytes(bytes, at + CANDIDATE_BYTES * count);
  return readCandidates(bytes, at, count);
}
