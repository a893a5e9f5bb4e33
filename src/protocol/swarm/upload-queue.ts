import { MAX_UPLOAD_QUEUE } from "./limits.ts";

/** A requested block. Offsets and lengths in bytes. */
export interface BlockRequest {
  readonly piece: number;
  readonly begin: number;
  readonly length: number;
}

/** Limit on bytes being read for a peer or waiting in its socket: half a second at its rate, so that a cancel or choke still
 * finds most of its requests unanswered. */
const UNSENT_SECONDS = 0.5;
const LEAST_UNSENT_BYTES = 64 * 1024;
const MAX_UNSENT_BYTES = 1024 * 1024;

/** Returns the limit on unsent bytes for a peer that receives `bytesPerSecond`. */
export function unsentLimit(bytesPerSecond: number): number {
  return Math.min(MAX_UNSENT_BYTES, Math.max(LEAST_UNSENT_BYTES, UNSENT_SECONDS * bytesPerSecond));
}

/** The requests of one peer: those waiting, and those being read from the store. */
export class UploadQueue {
  #waiting: BlockRequest[] = [];
  #reading: BlockRequest[] = [];
  #readingBytes = 0;
  /** Limit on bytes read ahead of the socket. */
  limitBytes = LEAST_UNSENT_BYTES;
  /** Bytes sent since the socket was last drained. */
  unsentBytes = 0;

  /** Number of requests that wait or are being read. */
  get length(): number {
    return this.#waiting.length + this.#reading.length;
  }

  /** Adds a request, unless it is a duplicate or the queue is full. */
  add(request: BlockRequest): "accepted" | "duplicate" | "full" {
    if (this.length >= MAX_UPLOAD_QUEUE) return "full";
    if (this.#waiting.some((other) => isSame(other, request))) return "duplicate";
    this.#waiting.push(request);
    return "accepted";
  }

  /** Returns the request that {@link next} would return. */
  peek(): BlockRequest | undefined {
    return this.#readingBytes + this.unsentBytes >= this.limitBytes ? undefined : this.#waiting[0];
  }

  /** Returns the next request to read, or undefined if none waits or the connection is behind. */
  next(): BlockRequest | undefined {
    const request = this.peek();
    if (!request) return undefined;
    this.#waiting.shift();
    this.#reading.push(request);
    this.#readingBytes += request.length;
    return request;
  }

  /** A read has finished; returns its request, or undefined if it was cancelled meanwhile. */
  finishRead(piece: number, begin: number): BlockRequest | undefined {
    const at = this.#reading.findIndex((request) => request.piece === piece && request.begin === begin);
    return at < 0 ? undefined : this.#takeReading(at);
  }

  /** Cancels a request; returns false if it is unknown or already answered. */
  cancel(request: BlockRequest): boolean {
    const at = this.#waiting.findIndex((other) => isSame(other, request));
    if (at >= 0) {
      this.#waiting.splice(at, 1);
      return true;
    }
    const reading = this.#reading.findIndex((other) => isSame(other, request));
    if (reading >= 0) this.#takeReading(reading);
    return reading >= 0;
  }

  /** Removes and returns all requests. */
  clear(): BlockRequest[] {
    const all = [...this.#reading, ...this.#waiting];
    this.#waiting = [];
    this.#reading = [];
    this.#readingBytes = 0;
    return all;
  }

  #takeReading(at: number): BlockRequest {
    const [request] = this.#reading.splice(at, 1);
    this.#readingBytes -= request!.length;
    return request!;
  }
}

function isSame(a: BlockRequest, b: BlockRequest): boolean {
  return a.piece === b.piece && a.begin === b.begin && a.length === b.length;
}
