import { MAX_UPLOAD_QUEUE } from "./limits.ts";

/** A block that a peer asked for. */
export interface BlockRequest {
  readonly piece: number;
  readonly begin: number;
  readonly length: number;
}

/** Bytes being read for a peer or waiting in its socket: half a second at its own rate, so that what it cancels, and
 * a choke, still find most of its requests unanswered. */
const UNSENT_SECONDS = 0.5;
const LEAST_UNSENT_BYTES = 64 * 1024;
const MAX_UNSENT_BYTES = 1024 * 1024;

/** The limit on unsent bytes for a peer that takes `bytesPerSecond`. */
export function unsentLimit(bytesPerSecond: number): number {
  return Math.min(MAX_UNSENT_BYTES, Math.max(LEAST_UNSENT_BYTES, UNSENT_SECONDS * bytesPerSecond));
}

/** The requests of one peer that we serve: those that wait, and those being read from the store. */
export class UploadQueue {
  #waiting: BlockRequest[] = [];
  #reading: BlockRequest[] = [];
  #readingBytes = 0;
  /** No more than about this much is read ahead of the socket. */
  limitBytes = LEAST_UNSENT_BYTES;
  /** Bytes sent since the connection was last seen drained. */
  unsentBytes = 0;

  /** Requests that wait or are being read. */
  get length(): number {
    return this.#waiting.length + this.#reading.length;
  }

  /** Takes a request, unless it waits already or the queue is full. */
  add(request: BlockRequest): "taken" | "repeated" | "full" {
    if (this.length >= MAX_UPLOAD_QUEUE) return "full";
    if (this.#waiting.some((other) => isSame(other, request))) return "repeated";
    this.#waiting.push(request);
    return "taken";
  }

  /** What {@link next} would give. */
  peek(): BlockRequest | undefined {
    return this.#readingBytes + this.unsentBytes >= this.limitBytes ? undefined : this.#waiting[0];
  }

  /** The next request to read, or undefined where none waits or the connection is behind. */
  next(): BlockRequest | undefined {
    const request = this.peek();
    if (!request) return undefined;
    this.#waiting.shift();
    this.#reading.push(request);
    this.#readingBytes += request.length;
    return request;
  }

  /** A read is over; the request, or undefined where it was withdrawn in the meantime. */
  read(piece: number, begin: number): BlockRequest | undefined {
    const at = this.#reading.findIndex((request) => request.piece === piece && request.begin === begin);
    return at < 0 ? undefined : this.#takeReading(at);
  }

  /** The peer no longer wants this block; false where it never asked, or has it already. */
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

  /** Takes out and returns everything. */
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
