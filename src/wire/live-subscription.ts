import { readU16, readU32, readU48, writeU16, writeU32, writeU48 } from "../base/bytes.ts";
import { CANDIDATE_BYTES, type LiveCandidate, readCandidates, writeCandidates } from "./live-address.ts";
import { checkMask, expectAtLeast, expectBytes, LIVE_KIND, liveFault, stripesIn } from "./live-kinds.ts";
import { MAX_BACKFILL_PIECES, MAX_CANDIDATES_TOLD } from "./live-limits.ts";

/** Asks a peer to send stripes from now on (SUB). Stripes are a set: bit 0 is stripe 0. */
export interface SubscribeMessage {
  readonly kind: "subscribe";
  readonly stripes: number;
  readonly epoch: number;
  /** The first piece that is wanted. */
  readonly startSeq: number;
  /** How many pieces of backlog may be sent besides what is new. */
  readonly backfillPieces: number;
  /** For each stripe of the set, ascending: which of the 32 pieces from the start on are here already. */
  readonly have: readonly number[];
  /** Two others have refused. */
  readonly isDesperate: boolean;
}

/** Stripes will come (SUBOK). */
export interface SubscribedMessage {
  readonly kind: "subscribed";
  readonly stripes: number;
  readonly epoch: number;
  /** The first piece that will come. */
  readonly startSeq: number;
}

/** Stripes will not come (SUBNO), why not, and who may have room. */
export interface RefusedMessage {
  readonly kind: "refused";
  readonly stripes: number;
  readonly reason: RefusalReason;
  readonly retryMs: number;
  readonly candidates: readonly LiveCandidate[];
}

/** Stripes are not wanted, or not sent, any more (UNSUB); either end may say so. */
export interface UnsubscribeMessage {
  readonly kind: "unsubscribe";
  readonly stripes: number;
  readonly reason: UnsubscribeReason;
}

/** The sender is about to leave, and who may take its place (BYE). */
export interface ByeMessage {
  readonly kind: "bye";
  readonly reason: ByeReason;
  readonly candidates: readonly LiveCandidate[];
}

/** By their numbers on the wire. A number that is not here counts as the first. */
const REFUSALS = ["full", "behind", "loop", "not-allowed", "no-content", "leaving"] as const;
const UNSUBSCRIPTIONS = ["moved", "slow", "leaving", "bad"] as const;
const BYES = ["leaving", "too-many", "banned", "ended"] as const;
export type RefusalReason = (typeof REFUSALS)[number];
export type UnsubscribeReason = (typeof UNSUBSCRIPTIONS)[number];
export type ByeReason = (typeof BYES)[number];

const DESPERATE = 1;

/** The payload of a SUB. */
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

/** Reads a SUB. Throws `DecodeError`. */
export function decodeSubscribe(bytes: Uint8Array, stripeCount: number): SubscribeMessage {
  expectAtLeast(bytes, 16);
  const stripes = checkMask(readU16(bytes, 2), bytes, 2, stripeCount);
  const count = stripesIn(stripes);
  expectBytes(bytes, 16 + 4 * count);
  const backfillPieces = readU16(bytes, 14);
  if (backfillPieces > MAX_BACKFILL_PIECES) {
    throw liveFault(
      LIVE_KIND.subscribe,
      14,
      `a backlog of ${backfillPieces}, at most ${MAX_BACKFILL_PIECES}`,
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

/** The payload of a SUBOK. */
export function encodeSubscribed(message: SubscribedMessage): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(14);
  bytes[0] = LIVE_KIND.subscribed;
  writeU16(bytes, 2, message.stripes);
  writeU32(bytes, 4, message.epoch);
  writeU48(bytes, 8, message.startSeq);
  return bytes;
}

/** Reads a SUBOK. Throws `DecodeError`. */
export function decodeSubscribed(bytes: Uint8Array, stripeCount: number): SubscribedMessage {
  expectBytes(bytes, 14);
  const stripes = checkMask(readU16(bytes, 2), bytes, 2, stripeCount);
  return { kind: "subscribed", stripes, epoch: readU32(bytes, 4), startSeq: readU48(bytes, 8) };
}

/** The payload of a SUBNO. */
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

/** Reads a SUBNO. Throws `DecodeError`. */
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

/** The payload of an UNSUB. */
export function encodeUnsubscribe(message: UnsubscribeMessage): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(4);
  bytes[0] = LIVE_KIND.unsubscribe;
  bytes[1] = UNSUBSCRIPTIONS.indexOf(message.reason);
  writeU16(bytes, 2, message.stripes);
  return bytes;
}

/** Reads an UNSUB. Throws `DecodeError`. */
export function decodeUnsubscribe(bytes: Uint8Array, stripeCount: number): UnsubscribeMessage {
  expectBytes(bytes, 4);
  const stripes = checkMask(readU16(bytes, 2), bytes, 2, stripeCount);
  return { kind: "unsubscribe", stripes, reason: UNSUBSCRIPTIONS[bytes[1]!] ?? UNSUBSCRIPTIONS[0] };
}

/** The payload of a BYE. */
export function encodeBye(message: ByeMessage): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(4 + CANDIDATE_BYTES * message.candidates.length);
  bytes[0] = LIVE_KIND.bye;
  bytes[1] = BYES.indexOf(message.reason);
  bytes[2] = message.candidates.length;
  writeCandidates(bytes, 4, message.candidates);
  return bytes;
}

/** Reads a BYE. Throws `DecodeError`. */
export function decodeBye(bytes: Uint8Array): ByeMessage {
  expectAtLeast(bytes, 4);
  return { kind: "bye", reason: BYES[bytes[1]!] ?? BYES[0], candidates: candidatesIn(bytes, 4, bytes[2]!) };
}

function candidatesIn(bytes: Uint8Array, at: number, count: number): LiveCandidate[] {
  if (count > MAX_CANDIDATES_TOLD) {
    throw liveFault(bytes[0]!, at, `${count} candidates, at most ${MAX_CANDIDATES_TOLD}`);
  }
  expectBytes(bytes, at + CANDIDATE_BYTES * count);
  return readCandidates(bytes, at, count);
}
