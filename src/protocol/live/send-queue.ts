import { writeU32 } from "../../base/bytes.ts";
import type { Instant } from "../../base/time.ts";
import { CHUNK_HEAD_BYTES, writeChunkHead } from "../../wire/live/chunk-message.ts";
import { FRAGMENT_BYTES } from "../../wire/live/limits.ts";
import { MESSAGE } from "../../wire/peer/peer-message.ts";
import { type LivePriority, PRIORITY } from "./contract.ts";
import type { WholeChunk } from "./messages.ts";

/** Limits of the queue of one peer, in bytes. If control messages exceed theirs, the peer accepts no data at all. */
export interface SendLimits {
  readonly controlBytes: number;
  readonly dataBytes: number;
}

/** Control messages wait only briefly: some hundred WINs, or the metadata twice. */
export const MAX_CONTROL_BYTES = 256 * 1024;
/** Overhead per message, so that small ones count too. */
const ENTRY_BYTES = 64;
/** Length, BEP 10 message id, extension id; then the head of a chunk. */
const FRAME_BYTES = 6;
const FRAGMENT_HEAD_BYTES = FRAME_BYTES + CHUNK_HEAD_BYTES;

interface Entry {
  /** Whole messages; or the bytes of `chunk`, which are shared between all receivers. */
  readonly bytes: Uint8Array;
  readonly chunk: WholeChunk | undefined;
  /** The receiver's message id for `sl_live`. */
  readonly id: number;
  readonly expiresAt: Instant;
  readonly queuedAt: Instant;
  /** Bytes of the chunk that have been sent. */
  sent: number;
}

/** A part of a batch: a message, or a fragment of a chunk. */
interface Part {
  readonly entry: Entry;
  readonly from: number;
  readonly to: number;
}

/** The send queue of one peer: by priority, then in order. Expired messages are dropped, but a chunk that was started
 * is completed. The bytes of a chunk are copied once, into the batch. */
export class SendQueue {
  readonly #limits: SendLimits;
  readonly #lanes: readonly Entry[][] = [[], [], [], []];
  #controlBytes = 0;
  #dataBytes = 0;
  #takenLiveAt: Instant | undefined;
  /** The number of dropped messages: expired, or beyond the limit. */
  dropped = 0;

  constructor(limits: SendLimits) {
    this.#limits = limits;
  }

  /** Queued bytes. */
  get bytes(): number {
    return this.#controlBytes + this.#dataBytes;
  }

  /** Returns when the oldest live message returned by `take` was queued, and resets that. */
  takenLiveAt(): Instant | undefined {
    const at = this.#takenLiveAt;
    this.#takenLiveAt = undefined;
    return at;
  }

  /** When the oldest queued live message was queued. */
  get oldestLiveAt(): Instant | undefined {
    return this.#lanes[PRIORITY.live]![0]?.queuedAt;
  }

  /** Queues whole messages, framed. Returns false if too much control is queued: the connection is of no use. */
  message(bytes: Uint8Array, priority: LivePriority, expiresAt: Instant, now: Instant): boolean {
    return this.#add({ bytes, chunk: undefined, id: 0, expiresAt, queuedAt: now, sent: 0 }, priority);
  }

  /** Queues a chunk; `id` is the receiver's message id for `sl_live`. Empty chunks are not sent. */
  chunk(chunk: WholeChunk, id: number, priority: LivePriority, expiresAt: Instant, now: Instant): boolean {
    const { bytes } = chunk;
    if (bytes.length === 0) return true;
    if (priority !== PRIORITY.live && this.#isQueued(chunk, priority)) return true;
    return this.#add({ bytes, chunk, id, expiresAt, queuedAt: now, sent: 0 }, priority);
  }

  /** Removes a requested chunk, unless it was started. */
  cancel(epoch: number, seq: number, stripe: number): void {
    for (const priority of [PRIORITY.repair, PRIORITY.backfill]) {
      const lane = this.#lanes[priority]!;
      const at = lane.findIndex(
        ({ chunk, sent }) =>
          sent === 0 && chunk?.seq === seq && chunk.stripe === stripe && chunk.epoch === epoch,
      );
      if (at >= 0) this.#remove(priority, at);
    }
  }

  /** Removes the chunks of these stripes (one bit each) that were not started: the subscription has ended. */
  unsubscribe(stripes: number): void {
    const lane = this.#lanes[PRIORITY.live]!;
    for (let at = lane.length - 1; at >= 0; at--) {
      const { chunk, sent } = lane[at]!;
      if (chunk && sent === 0 && ((stripes >>> chunk.stripe) & 1) === 1) this.#remove(PRIORITY.live, at);
    }
  }

  /** Returns the priority of the next message; undefined if none waits. */
  top(now: Instant): LivePriority | undefined {
    for (const priority of PRIORITIES) if (this.#first(priority, now)) return priority;
    return undefined;
  }

  /** Returns the next messages as one buffer of about `maxBytes` bytes (at least one message), with priorities up to
   * `last`; undefined if none waits. */
  take(maxBytes: number, now: Instant, last: LivePriority = PRIORITY.backfill): Uint8Array | undefined {
    const parts: Part[] = [];
    let bytes = 0;
    for (const priority of PRIORITIES) {
      if (priority > last) break;
      for (
        let entry = this.#first(priority, now);
        entry && bytes < maxBytes;
        entry = this.#first(priority, now)
      ) {
        if (priority === PRIORITY.live) this.#takenLiveAt ??= entry.queuedAt;
        bytes += this.#takeOf(entry, priority, parts, maxBytes - bytes);
      }
    }
    return bytes === 0 ? undefined : joined(parts, bytes);
  }

  /** Removes everything. */
  clear(): void {
    for (const lane of this.#lanes) lane.length = 0;
    this.#controlBytes = this.#dataBytes = 0;
  }

  /** Whether a requested chunk is queued already with the same or a higher priority, or was started: its fragments
   * must not be sent twice or interleaved. A copy with a lower priority is removed. */
  #isQueued({ epoch, seq, stripe }: WholeChunk, priority: LivePriority): boolean {
    for (const each of [PRIORITY.live, PRIORITY.repair, PRIORITY.backfill]) {
      const at = this.#lanes[each]!.findIndex(
        ({ chunk }) => chunk?.seq === seq && chunk.stripe === stripe && chunk.epoch === epoch,
      );
      if (at < 0) continue;
      if (each <= priority || this.#lanes[each]![at]!.sent > 0) return true;
      this.#remove(each, at);
    }
    return false;
  }

  #add(entry: Entry, priority: LivePriority): boolean {
    const cost = entry.bytes.length + ENTRY_BYTES;
    if (priority === PRIORITY.control) {
      if (this.#controlBytes + cost > this.#limits.controlBytes) return false;
      this.#controlBytes += cost;
    } else {
      while (this.#dataBytes + cost > this.#limits.dataBytes) {
        if (this.#dropOldest(priority)) continue;
        this.dropped++;
        return true;
      }
      this.#dataBytes += cost;
    }
    this.#lanes[priority]!.push(entry);
    return true;
  }

  /** Drops the oldest message of the lowest priority that is not above `priority`. */
  #dropOldest(priority: LivePriority): boolean {
    for (let each = PRIORITY.backfill as LivePriority; each >= priority; each--) {
      const lane = this.#lanes[each]!;
      const at = lane[0] && lane[0].sent > 0 ? 1 : 0;
      if (at >= lane.length) continue;
      this.#remove(each as LivePriority, at);
      this.dropped++;
      return true;
    }
    return false;
  }

  /** Returns the first message of a priority that has not expired. */
  #first(priority: LivePriority, now: Instant): Entry | undefined {
    const lane = this.#lanes[priority]!;
    for (let entry = lane[0]; entry; entry = lane[0]) {
      if (entry.sent > 0 || entry.expiresAt >= now) return entry;
      this.#remove(priority, 0);
      this.dropped++;
    }
    return undefined;
  }

  /** Takes an entry, or fragments of it, and returns the number of bytes on the wire. */
  #takeOf(entry: Entry, priority: LivePriority, parts: Part[], maxBytes: number): number {
    if (!entry.chunk) {
      parts.push({ entry, from: 0, to: entry.bytes.length });
      this.#remove(priority, 0);
      return entry.bytes.length;
    }
    let bytes = 0;
    while (entry.sent < entry.bytes.length && bytes < maxBytes) {
      const from = entry.sent;
      entry.sent = Math.min(from + FRAGMENT_BYTES, entry.bytes.length);
      parts.push({ entry, from, to: entry.sent });
      bytes += FRAGMENT_HEAD_BYTES + entry.sent - from;
    }
    if (entry.sent === entry.bytes.length) this.#remove(priority, 0);
    return bytes;
  }

  #remove(priority: LivePriority, at: number): void {
    const lane = this.#lanes[priority]!;
    const entry = at === 0 ? lane.shift() : lane.splice(at, 1)[0];
    const cost = entry!.bytes.length + ENTRY_BYTES;
    if (priority === PRIORITY.control) this.#controlBytes -= cost;
    else this.#dataBytes -= cost;
  }
}

const PRIORITIES: readonly LivePriority[] = [
  PRIORITY.control,
  PRIORITY.live,
  PRIORITY.repair,
  PRIORITY.backfill,
];

/** Returns an extended message (BEP 10) with its frame; `id` is the receiver's message id for the extension. */
export function framed(id: number, payload: Uint8Array): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(FRAME_BYTES + payload.length);
  writeFrame(bytes, 0, id, payload.length);
  bytes.set(payload, FRAME_BYTES);
  return bytes;
}

function writeFrame(bytes: Uint8Array, at: number, id: number, payloadBytes: number): void {
  writeU32(bytes, at, 2 + payloadBytes);
  bytes[at + 4] = MESSAGE.extended;
  bytes[at + 5] = id;
}

function joined(parts: readonly Part[], length: number): Uint8Array {
  const [first] = parts;
  if (parts.length === 1 && first && !first.entry.chunk) return first.entry.bytes;
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const { entry, from, to } of parts) {
    if (entry.chunk) at = writeFragment(bytes, at, entry, from, to);
    else {
      bytes.set(entry.bytes, at);
      at += entry.bytes.length;
    }
  }
  return bytes;
}

function writeFragment(bytes: Uint8Array, at: number, entry: Entry, from: number, to: number): number {
  const { epoch, seq, stripe, isLate } = entry.chunk!;
  const isLast = to === entry.bytes.length;
  const body = at + FRAGMENT_HEAD_BYTES;
  writeFrame(bytes, at, entry.id, CHUNK_HEAD_BYTES + to - from);
  const head = bytes.subarray(at + FRAME_BYTES, body);
  writeChunkHead(head, { epoch, seq, stripe, isLate, fragment: from / FRAGMENT_BYTES, isLast });
  bytes.set(entry.bytes.subarray(from, to), body);
  return body + to - from;
}
