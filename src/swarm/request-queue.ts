import type { Instant } from "../base/time.ts";
import { BLOCK_BYTES, MAX_REQUEST_QUEUE, MIN_REQUEST_QUEUE } from "./limits.ts";

/** Answers should take about this long: queues are as long as a peer sends in that time (bandwidth × delay). */
const AIM_MS = 400;
/** Answers that come in bursts (programs that work in pulses, queues shorter than a round trip): a queue must outlast
 * so many pauses between them, or it is what limits the rate. Each burst then makes room for a larger one. */
const PAUSES_QUEUED = 3;
/** A longer pause is a stall, which no queue would help. */
const MAX_PAUSE_MS = 1_000;
/** No queue is longer than this, in time. */
const MAX_AIM_MS = 3_000;
/** A pause is forgotten in about this time. */
const PAUSE_MEMORY_MS = 8_000;
/** A slow peer's queue: one block on its way, one that follows. */
const LEAST_QUEUE = 2;
/** A rate is measured over at least this long. */
const SAMPLE_MS = 100;
/** What a peer is thought to need for a first block while nothing is known of it. */
const UNKNOWN_ETA_MS = 250;
/** A peer that has not given a single block yet must do so by then, or others are asked as well. */
const UNPROVEN_DUE_MS = 450;
/** Answers may come so much later than expected before others are asked too: jitter, and one lost packet. */
const SLACK_MS = 150;
/** One more than the most requests that may wait, released ones included. */
const ROOM = 2 * MAX_REQUEST_QUEUE;

const PENDING = 0;
/** Nobody counts on it any more, but the answer is welcome. */
const RELEASED = 1;
const GONE = 2;

/**
 * The requests that wait with one peer, oldest first, in arrays of numbers; and what their answers tell about its
 * speed. Peers answer in order as a rule, so that finding the request of a block is one comparison.
 */
export class RequestQueue {
  readonly #piece = new Int32Array(ROOM);
  readonly #block = new Int32Array(ROOM);
  readonly #sentAt = new Float64Array(ROOM);
  readonly #state = new Uint8Array(ROOM);
  #head = 0;
  #tail = 0;
  /** Requests the swarm counts on. */
  pending = 0;
  /** How many should wait. */
  target = MIN_REQUEST_QUEUE;
  /** When the last block came, or when the queue last began to wait for one. */
  lastProgressAt = 0;
  #delayMs = 0;
  #leastDelayMs = Number.POSITIVE_INFINITY;
  #bytesPerMs = 0;
  #sampleBytes = 0;
  #sampleAt = 0;
  /** How long the pauses between bursts of answers are; about 0 where answers come evenly. */
  #pauseMs = 0;

  /** All requests that may still be answered. */
  get length(): number {
    return (this.#tail - this.#head + ROOM) % ROOM;
  }

  /** Measured rate in bytes a millisecond; 0 while unknown. */
  get bytesPerMs(): number {
    return this.#bytesPerMs;
  }

  /** How long answers take on average; 0 while unknown. */
  get delayMs(): number {
    return this.#delayMs;
  }

  /** How many more to ask for now: nothing until a quarter has drained, then all that is missing. */
  room(): number {
    if (this.pending > this.target - Math.max(1, this.target >> 2)) return 0;
    return Math.min(this.target - this.pending, ROOM - 1 - this.length);
  }

  /** Whether one more request could be remembered at all. */
  get isFull(): boolean {
    return this.length >= ROOM - 1;
  }

  /** In how many milliseconds a block asked for now should be here. */
  etaMs(now: Instant): number {
    // What is silent for longer than its answers take is thought to stay so for as long again.
    const silentMs = this.pending === 0 ? 0 : now - this.lastProgressAt;
    const doubtMs = silentMs > Math.max(this.#delayMs, UNKNOWN_ETA_MS) ? silentMs : 0;
    if (this.#bytesPerMs === 0)
      return doubtMs + UNKNOWN_ETA_MS * (1 + this.pending / (2 * MIN_REQUEST_QUEUE));
    return doubtMs + this.#leastDelayMs + ((this.pending + 1) * BLOCK_BYTES) / this.#bytesPerMs;
  }

  /** When the answer to a request made now is late. */
  dueMs(now: Instant): number {
    if (this.#bytesPerMs === 0) return UNPROVEN_DUE_MS;
    return 1.5 * this.etaMs(now) + SLACK_MS;
  }

  push(piece: number, block: number, now: Instant): void {
    if (this.pending === 0) {
      this.lastProgressAt = now;
      this.#sampleAt = now;
      this.#sampleBytes = 0;
    }
    this.#piece[this.#tail] = piece;
    this.#block[this.#tail] = block;
    this.#sentAt[this.#tail] = now;
    this.#state[this.#tail] = PENDING;
    this.#tail = (this.#tail + 1) % ROOM;
    this.pending++;
  }

  /** Where the request for this block is, or -1. */
  find(piece: number, block: number): number {
    for (let at = this.#head; at !== this.#tail; at = at + 1 === ROOM ? 0 : at + 1) {
      if (this.#piece[at] === piece && this.#block[at] === block && this.#state[at] !== GONE) return at;
    }
    return -1;
  }

  /** Takes a request out; true where the swarm still counted on it. */
  remove(at: number): boolean {
    const wasPending = this.#state[at] === PENDING;
    if (wasPending) this.pending--;
    this.#state[at] = GONE;
    while (this.#head !== this.#tail && this.#state[this.#head] === GONE) {
      this.#head = this.#head + 1 === ROOM ? 0 : this.#head + 1;
    }
    return wasPending;
  }

  /** Notes that the answer to the request at `at` is here in full; call it before `remove`. */
  answered(at: number, bytes: number, now: Instant): void {
    const delay = now - this.#sentAt[at]!;
    this.#delayMs = this.#delayMs === 0 ? delay : this.#delayMs * 0.875 + delay * 0.125;
    if (delay < this.#leastDelayMs) this.#leastDelayMs = delay;
    this.#notePause(now - this.lastProgressAt);
    this.lastProgressAt = now;
    this.#sample(bytes, now);
    this.#resize();
  }

  /** The peer stalls: a single request shows when it comes back. */
  collapse(): void {
    this.target = 1;
    this.#bytesPerMs /= 4;
  }

  /** Calls `take` for each request the swarm counts on, which from then on is only welcome, not awaited. */
  releaseAll(take: (piece: number, block: number) => void): void {
    for (let at = this.#head; at !== this.#tail; at = at + 1 === ROOM ? 0 : at + 1) {
      if (this.#state[at] !== PENDING) continue;
      this.#state[at] = RELEASED;
      take(this.#piece[at]!, this.#block[at]!);
    }
    this.pending = 0;
  }

  /** Forgets everything; returns how many answers could still come. Call `releaseAll` first. */
  clear(): number {
    const left = this.length;
    this.#head = this.#tail;
    this.pending = 0;
    return left;
  }

  /** Calls `isKept` for each request; those it refuses are taken out. It must not change the queue itself. */
  filter(isKept: (piece: number, block: number, isPending: boolean) => boolean): void {
    for (let at = this.#head; at !== this.#tail; at = at + 1 === ROOM ? 0 : at + 1) {
      if (this.#state[at] === GONE) continue;
      const isPending = this.#state[at] === PENDING;
      if (isKept(this.#piece[at]!, this.#block[at]!, isPending)) continue;
      if (isPending) this.pending--;
      this.#state[at] = GONE;
    }
    while (this.#head !== this.#tail && this.#state[this.#head] === GONE) {
      this.#head = this.#head + 1 === ROOM ? 0 : this.#head + 1;
    }
  }

  /** Bandwidth × delay: as much as the peer sends while an answer is under way, never less than keeps it busy. */
  #resize(): void {
    const pausesMs = Math.min(MAX_AIM_MS, PAUSES_QUEUED * this.#pauseMs);
    const aimMs = Math.max(AIM_MS, 2 * this.#leastDelayMs, pausesMs);
    const ideal = Math.ceil((Math.max(this.#bytesPerMs, this.#burstBytesPerMs) * aimMs) / BLOCK_BYTES) + 1;
    // Up by two for each answer (threefold in a round trip), down by one: rates are measured with some delay.
    if (this.target < ideal) this.target = Math.min(MAX_REQUEST_QUEUE, ideal, this.target + 2);
    else if (this.target > ideal + (ideal >> 2)) this.target = Math.max(LEAST_QUEUE, this.target - 1);
  }

  /** `waitedMs` went by with requests waiting and no answer. What one block takes at this rate is no pause. */
  #notePause(waitedMs: number): void {
    if (waitedMs === 0 || waitedMs > MAX_PAUSE_MS) return;
    const evenMs = this.#bytesPerMs === 0 ? waitedMs : BLOCK_BYTES / this.#bytesPerMs;
    this.#pauseMs *= 1 - waitedMs / PAUSE_MEMORY_MS;
    // One pause may be chance (a lost packet): half of it counts, and all of it once it comes again and again.
    if (waitedMs - evenMs > this.#pauseMs) this.#pauseMs += (waitedMs - evenMs - this.#pauseMs) / 2;
  }

  /** What the burst under way amounts to already, if it is all until after the next pause. */
  get #burstBytesPerMs(): number {
    return this.#pauseMs < SAMPLE_MS ? 0 : this.#sampleBytes / this.#pauseMs;
  }

  #sample(bytes: number, now: Instant): void {
    this.#sampleBytes += bytes;
    const elapsed = now - this.#sampleAt;
    // A burst and the pause before it belong together.
    if (elapsed < Math.max(SAMPLE_MS, this.#pauseMs) && this.#bytesPerMs !== 0) return;
    const rate = this.#sampleBytes / Math.max(elapsed, 1);
    const weight = rate > this.#bytesPerMs && this.#pauseMs > SAMPLE_MS ? 0.8 : 0.4;
    this.#bytesPerMs = this.#bytesPerMs === 0 ? rate : this.#bytesPerMs * (1 - weight) + rate * weight;
    this.#sampleAt = now;
    this.#sampleBytes = 0;
  }
}
