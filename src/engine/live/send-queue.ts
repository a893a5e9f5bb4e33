import { writeU32 } from "../../base/bytes.ts";
import type { Instant } from "../../base/time.ts";
import { type LivePriority, PRIORITY } from "../../swarm/live/contract.ts";
import type { WholeChunk } from "../../swarm/live/messages.ts";
import { CHUNK_HEAD_BYTES, writeChunkHead } from "../../wire/live-chunk-message.ts";
import { FRAGMENT_BYTES } from "../../wire/live-limits.ts";
import { MESSAGE } from "../../wire/peer-message.ts";

/** What may wait for one peer, in bytes. More control than this means that the peer takes nothing at all. */
export interface SendLimits {
  readonly controlBytes: number;
  readonly dataBytes: number;
}

/** Control waits for a moment only: some hundred windows, or the metadata twice. */
export const MAX_CONTROL_BYTES = 256 * 1024;
/** Each message costs so much besides its bytes, so that small ones are counted too. */
const ENTRY_BYTES = 64;
/** Length, BEP 10's message id, the extension's id; then what precedes the bytes of a chunk. */
const FRAME_BYTES = 6;
const FRAGMENT_HEAD_BYTES = FRAME_BYTES + CHUNK_HEAD_BYTES;

interface Entry {
  /** Whole messages as they go out; or the bytes of `chunk`, which are shared with all who get it. */
  readonly bytes: Uint8Array;
  readonly chunk: WholeChunk | undefined;
  /** The receiver's number for `sl_live`. */
  readonly id: number;
  readonly expiresAt: Instant;
  readonly queuedAt: Instant;
  /** Bytes of the chunk that are on their way. */
  sent: number;
}

/** A part of a batch: a message, or a fragment of a chunk. */
interface Part {
  readonly entry: Entry;
  readonly from: number;
  readonly to: number;
}

/**
 * What waits for one peer: all of a lower class before any of a higher one, in each class in order. What is of no use
 * any more is thrown away, but a chunk that was begun is ended. The bytes of a chunk are copied once, into the batch.
 */
export class SendQueue {
  readonly #limits: SendLimits;
  readonly #lanes: readonly Entry[][] = [[], [], [], []];
  #controlBytes = 0;
  #dataBytes = 0;
  #takenLiveAt: Instant | undefined;
  /** Messages that were thrown away: too late, or too many. */
  dropped = 0;

  constructor(limits: SendLimits) {
    this.#limits = limits;
  }

  /** Bytes that wait. */
  get bytes(): number {
    return this.#controlBytes + this.#dataBytes;
  }

  /** When the oldest live message that `take` gave was queued, since this was last asked. */
  takenLiveAt(): Instant | undefined {
    const at = this.#takenLiveAt;
    this.#takenLiveAt = undefined;
    return at;
  }

  /** When the oldest live message that waits was queued. */
  get oldestLiveAt(): Instant | undefined {
    return this.#lanes[PRIORITY.live]![0]?.queuedAt;
  }

  /** Adds whole messages, framed. False where too much control waits: the connection is of no use. */
  message(bytes: Uint8Array, priority: LivePriority, expiresAt: Instant, now: Instant): boolean {
    return this.#add({ bytes, chunk: undefined, id: 0, expiresAt, queuedAt: now, sent: 0 }, priority);
  }

  /** Adds a chunk; `id` is the receiver's number for `sl_live`. Empty ones are never sent. */
  chunk(chunk: WholeChunk, id: number, priority: LivePriority, expiresAt: Instant, now: Instant): boolean {
    const { bytes } = chunk;
    if (bytes.length === 0) return true;
    if (priority !== PRIORITY.live && this.#isOnItsWay(chunk, priority)) return true;
    return this.#add({ bytes, chunk, id, expiresAt, queuedAt: now, sent: 0 }, priority);
  }

  /** A chunk that was asked for is wanted no more: taken out where it was not begun. */
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

  /** A subscription to these stripes (a bit each) has ended: what waits for it and was not begun is taken out. */
  unsubscribe(stripes: number): void {
    const lane = this.#lanes[PRIORITY.live]!;
    for (let at = lane.length - 1; at >= 0; at--) {
      const { chunk, sent } = lane[at]!;
      if (chunk && sent === 0 && ((stripes >>> chunk.stripe) & 1) === 1) this.#remove(PRIORITY.live, at);
    }
  }

  /** The class of what goes next; undefined where nothing waits. */
  top(now: Instant): LivePriority | undefined {
    for (const priority of PRIORITIES) if (this.#first(priority, now)) return priority;
    return undefined;
  }

  /**
   * The next messages as one buffer of about `most` bytes (one message at least), of the classes up to `last`;
   * undefined where there are none.
   */
  take(most: number, now: Instant, last: LivePriority = PRIORITY.backfill): Uint8Array | undefined {
    const parts: Part[] = [];
    let bytes = 0;
    for (const priority of PRIORITIES) {
      if (priority > last) break;
      for (
        let entry = this.#first(priority, now);
        entry && bytes < most;
        entry = this.#first(priority, now)
      ) {
        if (priority === PRIORITY.live) this.#takenLiveAt ??= entry.queuedAt;
        bytes += this.#takeOf(entry, priority, parts, most - bytes);
      }
    }
    return bytes === 0 ? undefined : joined(parts, bytes);
  }

  /** Nothing is sent any more. */
  clear(): void {
    for (const lane of this.#lanes) lane.length = 0;
    this.#controlBytes = this.#dataBytes = 0;
  }

  /** Whether a chunk that was asked for waits here already, as urgent, or was begun: its fragments are not to come twice, and
   * among each other. One that is less urgent makes way. */
  #isOnItsWay({ epoch, seq, stripe }: WholeChunk, priority: LivePriority): boolean {
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
        if (this.#dropFrom(priority)) continue;
        this.dropped++;
        return true;
      }
      this.#dataBytes += cost;
    }
    this.#lanes[priority]!.push(entry);
    return true;
  }

  /** Makes room: the oldest message of the least urgent class, but of none more urgent than `priority`. */
  #dropFrom(priority: LivePriority): boolean {
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

  /** The first of a class that is of use. */
  #first(priority: LivePriority, now: Instant): Entry | undefined {
    const lane = this.#lanes[priority]!;
    for (let entry = lane[0]; entry; entry = lane[0]) {
      if (entry.sent > 0 || entry.expiresAt >= now) return entry;
      this.#remove(priority, 0);
      this.dropped++;
    }
    return undefined;
  }

  /** Takes an entry, or fragments of it; returns how many bytes they are on the wire. */
  #takeOf(entry: Entry, priority: LivePriority, parts: Part[], most: number): number {
    if (!entry.chunk) {
      parts.push({ entry, from: 0, to: entry.bytes.length });
      this.#remove(priority, 0);
      return entry.bytes.length;
    }
    let bytes = 0;
    while (entry.sent < entry.bytes.length && bytes < most) {
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

/** An extended message (BEP 10) as it goes out; `id` is the receiver's number for the extension. */
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
