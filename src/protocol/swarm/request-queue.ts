import type { Instant } from "../../base/time.ts";
import { BLOCK_BYTES, MAX_REQUEST_QUEUE, MIN_REQUEST_QUEUE } from "./limits.ts";

/** Queues hold as many requests as a peer answers in about this time (bandwidth × delay). */
const TARGET_MS = 400;
/** Some peers answer in bursts (they work in intervals, or their queue is shorter than a round trip). A queue must cover this
 * many pauses between bursts, or it limits the rate itself. */
const PAUSES_QUEUED = 3;
/** A longer pause is a stall, which a longer queue does not help. */
const MAX_PAUSE_MS = 1_000;
/** Limit on the target time of a queue. */
const MAX_TARGET_MS = 3_000;
/** Time in which the estimate of pauses decays. */
const PAUSE_MEMORY_MS = 8_000;
/** The queue of a slow peer: one block in progress, one to follow. */
const MIN_TARGET = 2;
/** Minimum time over which a rate is measured. */
const SAMPLE_MS = 100;
/** Assumed time to the first block of an unknown peer. */
const UNKNOWN_ETA_MS = 250;
/** A peer that has not sent any block must do so within this time, or others are asked, too. */
const FIRST_BLOCK_DUE_MS = 450;
/** Tolerance before an answer counts as late: jitter, and one lost packet. */
const SLACK_MS = 150;
/** One more than the maximum number of requests, including released ones. */
const CAPACITY = 2 * MAX_REQUEST_QUEUE;

const PENDING = 0;
/** The swarm no longer relies on the answer, but accepts it. */
const RELEASED = 1;
const REMOVED = 2;

/**
 * The requests pending at one peer, oldest first, in typed arrays, and the speed measured from their answers. Peers usually
 * answer in order, so finding the request of a block usually takes one comparison.
 */
export class RequestQueue {
  readonly #piece = new Int32Array(CAPACITY);
  readonly #block = new Int32Array(CAPACITY);
  readonly #sentAt = new Float64Array(CAPACITY);
  readonly #state = new Uint8Array(CAPACITY);
  #head = 0;
  #tail = 0;
  /** Requests that the swarm relies on. */
  pending = 0;
  /** The intended number of pending requests. */
  target = MIN_REQUEST_QUEUE;
  /** When the last block arrived, or when the queue last became non-empty. */
  lastProgressAt = 0;
  #delayMs = 0;
  #leastDelayMs = Number.POSITIVE_INFINITY;
  #bytesPerMs = 0;
  #sampleBytes = 0;
  #sampleAt = 0;
  /** Length of the pauses between bursts of answers; about 0 if answers arrive evenly. */
  #pauseMs = 0;

  /** Number of requests that may still be answered. */
  get length(): number {
    return (this.#tail - this.#head + CAPACITY) % CAPACITY;
  }

  /** Measured rate in bytes a millisecond; 0 while unknown. */
  get bytesPerMs(): number {
    return this.#bytesPerMs;
  }

  /** Average time to an answer in milliseconds; 0 while unknown. */
  get delayMs(): number {
    return this.#delayMs;
  }

  /** How many requests to add now: none until a quarter of the queue has drained, then all that are missing. */
  room(): number {
    if (this.pending > this.target - Math.max(1, this.target >> 2)) return 0;
    return Math.min(this.target - this.pending, CAPACITY - 1 - this.length);
  }

  /** Whether no further request can be stored. */
  get isFull(): boolean {
    return this.length >= CAPACITY - 1;
  }

  /** Expected milliseconds until a block requested now arrives. */
  etaMs(now: Instant): number {
    // A peer that has been silent for longer than usual is expected to stay silent for as long again.
    const silentMs = this.pending === 0 ? 0 : now - this.lastProgressAt;
    const doubtMs = silentMs > Math.max(this.#delayMs, UNKNOWN_ETA_MS) ? silentMs : 0;
    if (this.#bytesPerMs === 0)
      return doubtMs + UNKNOWN_ETA_MS * (1 + this.pending / (2 * MIN_REQUEST_QUEUE));
    return doubtMs + this.#leastDelayMs + ((this.pending + 1) * BLOCK_BYTES) / this.#bytesPerMs;
  }

  /** Milliseconds after which the answer to a request made now is late. */
  dueMs(now: Instant): number {
    if (this.#bytesPerMs === 0) return FIRST_BLOCK_DUE_MS;
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
    this.#tail = (this.#tail + 1) % CAPACITY;
    this.pending++;
  }

  /** Returns the index of the request for this block, or -1. */
  find(piece: number, block: number): number {
    for (let at = this.#head; at !== this.#tail; at = next(at)) {
      if (this.#piece[at] === piece && this.#block[at] === block && this.#state[at] !== REMOVED) return at;
    }
    return -1;
  }

  /** Removes a request; returns true if the swarm relied on it. */
  remove(at: number): boolean {
    const wasPending = this.#state[at] === PENDING;
    if (wasPending) this.pending--;
    this.#state[at] = REMOVED;
    this.#skipRemoved();
    return wasPending;
  }

  /** The answer to the request at `at` is complete; call it before `remove`. */
  answered(at: number, bytes: number, now: Instant): void {
    const delay = now - this.#sentAt[at]!;
    this.#delayMs = this.#delayMs === 0 ? delay : this.#delayMs * 0.875 + delay * 0.125;
    if (delay < this.#leastDelayMs) this.#leastDelayMs = delay;
    this.#notePause(now - this.lastProgressAt);
    this.lastProgressAt = now;
    this.#sample(bytes, now);
    this.#resize();
  }

  /** The peer has stalled: one request at a time shows when it answers again. */
  collapse(): void {
    this.target = 1;
    this.#bytesPerMs /= 4;
  }

  /** Calls `take` for each request that the swarm relies on; its answer is accepted from now on, but not relied on. */
  releaseAll(take: (piece: number, block: number) => void): void {
    for (let at = this.#head; at !== this.#tail; at = next(at)) {
      if (this.#state[at] !== PENDING) continue;
      this.#state[at] = RELEASED;
      take(this.#piece[at]!, this.#block[at]!);
    }
    this.pending = 0;
  }

  /** Removes all requests; returns how many may still be answered. Call `releaseAll` first. */
  clear(): number {
    const left = this.length;
    this.#head = this.#tail;
    this.pending = 0;
    return left;
  }

  /** Calls `isKept` for each request and removes those for which it returns false. It must not change the queue. */
  filter(isKept: (piece: number, block: number, isPending: boolean) => boolean): void {
    for (let at = this.#head; at !== this.#tail; at = next(at)) {
      if (this.#state[at] === REMOVED) continue;
      const isPending = this.#state[at] === PENDING;
      if (isKept(this.#piece[at]!, this.#block[at]!, isPending)) continue;
      if (isPending) this.pending--;
      this.#state[at] = REMOVED;
    }
    this.#skipRemoved();
  }

  #skipRemoved(): void {
    while (this.#head !== this.#tail && this.#state[this.#head] === REMOVED) this.#head = next(this.#head);
  }

  /** Sets the target to bandwidth × delay: as much as the peer sends while a request is in flight. */
  #resize(): void {
    const pausesMs = Math.min(MAX_TARGET_MS, PAUSES_QUEUED * this.#pauseMs);
    const targetMs = Math.max(TARGET_MS, 2 * this.#leastDelayMs, pausesMs);
    const ideal = Math.ceil((Math.max(this.#bytesPerMs, this.#burstBytesPerMs) * targetMs) / BLOCK_BYTES) + 1;
    // Grows by two per answer (threefold per round trip), shrinks by one: measured rates lag behind.
    if (this.target < ideal) this.target = Math.min(MAX_REQUEST_QUEUE, ideal, this.target + 2);
    else if (this.target > ideal + (ideal >> 2)) this.target = Math.max(MIN_TARGET, this.target - 1);
  }

  /** No answer arrived for `waitedMs` while requests were pending. The time of one block at the current rate is no pause. */
  #notePause(waitedMs: number): void {
    if (waitedMs === 0 || waitedMs > MAX_PAUSE_MS) return;
    const evenMs = this.#bytesPerMs === 0 ? waitedMs : BLOCK_BYTES / this.#bytesPerMs;
    this.#pauseMs *= 1 - waitedMs / PAUSE_MEMORY_MS;
    // A single pause may be chance (a lost packet): half of it counts, all of it once it repeats.
    if (waitedMs - evenMs > this.#pauseMs) this.#pauseMs += (waitedMs - evenMs - this.#pauseMs) / 2;
  }

  /** The rate of the current burst, assuming that nothing more arrives until after the next pause. */
  get #burstBytesPerMs(): number {
    return this.#pauseMs < SAMPLE_MS ? 0 : this.#sampleBytes / this.#pauseMs;
  }

  #sample(bytes: number, now: Instant): void {
    this.#sampleBytes += bytes;
    const elapsed = now - this.#sampleAt;
    // A burst is measured together with the pause before it.
    if (elapsed < Math.max(SAMPLE_MS, this.#pauseMs) && this.#bytesPerMs !== 0) return;
    const rate = this.#sampleBytes / Math.max(elapsed, 1);
    const weight = rate > this.#bytesPerMs && this.#pauseMs > SAMPLE_MS ? 0.8 : 0.4;
    this.#bytesPerMs = this.#bytesPerMs === 0 ? rate : this.#bytesPerMs * (1 - weight) + rate * weight;
    this.#sampleAt = now;
    this.#sampleBytes = 0;
  }
}

function next(at: number): number {
  return at + 1 === CAPACITY ? 0 : at + 1;
}
