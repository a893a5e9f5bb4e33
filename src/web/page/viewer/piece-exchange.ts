import { onAbort } from "../../../async/abort.ts";
import { type Deferred, deferred } from "../../../async/deferred.ts";
import type { PeerAddress } from "../../../base/address.ts";
import { concatBytes, equalBytes, readU32, writeU32 } from "../../../base/bytes.ts";
import { shuffle } from "../../../base/random.ts";
import { TokenBucket } from "../../../base/rate.ts";
import { after, type Instant } from "../../../base/time.ts";
import { trimOldest } from "../../../base/trim-oldest.ts";
import type { Clock, TcpHandlers, TcpSocket } from "../../../runtime/contract.ts";

/** The first bytes of a request, before the number of the segment (u32). A handshake begins with another byte. */
const REQUEST = new TextEncoder().encode("sl_pieces:");
const REQUEST_BYTES = REQUEST.length + 4;
/** Limit of an answer: 10 s of 12 Mbit/s. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;
/** The answer is written in parts of this size. */
const WRITE_BYTES = 16 * 1024;
/** Pages that are served at the same time. */
const MAX_SERVED = 4;
/** A page serves as much of the past as the stream has in this time at once, and then the bitrate of the stream. */
const BURST_SECONDS = 8;
/** A page that has not sent the whole segment by then is not waited for. */
const ANSWER_TIMEOUT_MS = 4_000;
/** An accepted connection sends its first bytes within this time. */
const FIRST_BYTES_MS = 10_000;
/** Pages that are asked for one segment, one after the other. */
const MAX_ASKED = 2;
/** A page that lacked a segment, was too slow or sent something else is not asked for this time. */
const AVOID_MS = 30_000;
const MAX_AVOIDED = 200;
/** A connection without requests is closed after this time. */
const IDLE_MS = 15_000;

/** Resolves with whether these are the genuine pieces of the segment. */
export type TakePieces = (pieces: Uint8Array) => Promise<boolean>;

interface PieceExchangeOptions {
  readonly clock: Clock;
  /** Of the stream. */
  readonly bytesPerSecond: number;
  connect(address: PeerAddress, handlers: TcpHandlers): TcpSocket;
  /** Returns the pages that can be asked. */
  pages(): readonly PeerAddress[];
  /** Whether this page may upload now. */
  maySend(): boolean;
  /** Returns the pieces of a segment; rejects if this page lacks it. */
  segment(number: number): Promise<Uint8Array>;
}

/** A connection by which this page asks another one. */
interface Asked {
  readonly socket: TcpSocket;
  readonly opened: Promise<void>;
  answer: Deferred<Uint8Array> | undefined;
  received: Uint8Array[];
  receivedBytes: number;
}

/**
 * Asks other pages for the pieces of segments from before this page joined, and answers such requests, over connections of their own (live
 * protocol: Browsers). What arrives is not verified.
 */
export class PieceExchange {
  readonly #options: PieceExchangeOptions;
  readonly #asked = new Map<string, Asked>();
  readonly #avoidUntil = new Map<string, Instant>();
  readonly #allowance: TokenBucket;
  #served = 0;

  constructor(options: PieceExchangeOptions) {
    this.#options = options;
    this.#allowance = new TokenBucket(options.bytesPerSecond, BURST_SECONDS * options.bytesPerSecond);
  }

  /** Asks some connected pages for the pieces of a segment until `take` resolves with true: the pieces are genuine. */
  async fetch(number: number, signal: AbortSignal, take: TakePieces): Promise<void> {
    const now = this.#options.clock.now();
    const pages = shuffle(
      this.#options.pages().filter(({ host }) => (this.#avoidUntil.get(host) ?? now) <= now),
      Math.random,
    );
    // Those that are connected first.
    pages.sort((a, b) => Number(this.#asked.has(b.host)) - Number(this.#asked.has(a.host)));
    for (const page of pages.slice(0, MAX_ASKED)) {
      const bytes = await this.#ask(page, number, signal);
      if (await take(bytes)) return;
      this.#avoidUntil.set(page.host, after(this.#options.clock.now(), AVOID_MS));
      trimOldest(this.#avoidUntil, MAX_AVOIDED);
    }
  }

  /** Handles an incoming connection: as a request for pieces, or by `otherwise` if it begins with something else. */
  accept(socket: TcpSocket, otherwise: (socket: TcpSocket) => TcpHandlers): TcpHandlers {
    const { clock } = this.#options;
    let handlers: TcpHandlers | undefined;
    const cancel = clock.at(after(clock.now(), FIRST_BYTES_MS), () => socket.close());
    return {
      received: (bytes) => {
        cancel();
        handlers ??= bytes[0] === REQUEST[0] ? this.#serve(socket) : otherwise(socket);
        handlers.received(bytes);
      },
      drained: () => handlers?.drained(),
      closed: (reason) => {
        cancel();
        handlers?.closed(reason);
      },
    };
  }

  /** Returns the answer of a page; nothing if it has none, is too slow or unreachable. */
  async #ask(page: PeerAddress, number: number, signal: AbortSignal): Promise<Uint8Array> {
    const { clock } = this.#options;
    const asked = this.#asked.get(page.host) ?? this.#connect(page);
    if (asked.answer) return new Uint8Array(0);
    const answer = deferred<Uint8Array>();
    asked.answer = answer;
    const giveUp = () => asked.socket.close();
    const release = onAbort(signal, giveUp);
    const cancel = clock.at(after(clock.now(), ANSWER_TIMEOUT_MS), giveUp);
    void asked.opened.then(() => asked.socket.write(requestOf(number)));
    try {
      return await answer.promise;
    } finally {
      cancel();
      release();
      asked.answer = undefined;
      clock.at(after(clock.now(), IDLE_MS), () => {
        if (!asked.answer) asked.socket.close();
      });
    }
  }

  #connect(page: PeerAddress): Asked {
    const opened = deferred();
    const end = () => {
      if (this.#asked.get(page.host) === asked) this.#asked.delete(page.host);
      asked.answer?.resolve(new Uint8Array(0));
    };
    const socket = this.#options.connect(page, {
      opened: () => opened.resolve(),
      drained() {},
      received: (bytes) => {
        asked.received.push(bytes);
        asked.receivedBytes += bytes.length;
        const all = asked.receivedBytes;
        const isComplete = all >= 4 && all >= 4 + lengthIn(asked.received);
        if (!asked.answer || all > 4 + MAX_ANSWER_BYTES) socket.close();
        else if (isComplete) {
          const answer = concatBytes(asked.received).subarray(4);
          asked.received = [];
          asked.receivedBytes = 0;
          asked.answer.resolve(answer);
        }
      },
      closed: end,
    });
    const asked: Asked = {
      socket,
      opened: opened.promise,
      answer: undefined,
      received: [],
      receivedBytes: 0,
    };
    this.#asked.set(page.host, asked);
    return asked;
  }

  #serve(socket: TcpSocket): TcpHandlers {
    let request = new Uint8Array(0);
    let isAnswering = false;
    let wake: () => void = () => {};
    let isClosed = false;
    this.#served++;
    const answer = async () => {
      const bytes = await this.#answerTo(request);
      request = new Uint8Array(0);
      const length = new Uint8Array(4);
      writeU32(length, 0, bytes.length);
      socket.write(length);
      for (let at = 0; at < bytes.length && !isClosed; at += WRITE_BYTES)
        if (!socket.write(bytes.subarray(at, at + WRITE_BYTES)))
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
      isAnswering = false;
    };
    const handlers: TcpHandlers = {
      received: (bytes) => {
        request = concatBytes([request, bytes]);
        // One request at a time.
        if (isAnswering || request.length > REQUEST_BYTES || this.#served > MAX_SERVED) socket.close();
        else if (request.length === REQUEST_BYTES) {
          isAnswering = true;
          void answer();
        }
      },
      drained: () => wake(),
      closed: () => {
        isClosed = true;
        this.#served--;
        wake();
      },
    };
    return handlers;
  }

  /** Returns the pieces that are asked for; nothing if this page lacks them, or has uploaded enough. */
  async #answerTo(request: Uint8Array): Promise<Uint8Array> {
    const { maySend, segment, clock } = this.#options;
    const none = new Uint8Array(0);
    const isRequest = equalBytes(request.subarray(0, REQUEST.length), REQUEST);
    if (!isRequest || !maySend() || this.#allowance.waitMs(clock.now()) > 0) return none;
    const bytes = await segment(readU32(request, REQUEST.length)).catch(() => none);
    if (bytes.length > MAX_ANSWER_BYTES) return none;
    this.#allowance.spend(bytes.length, clock.now());
    return bytes;
  }
}

function requestOf(number: number): Uint8Array {
  const bytes = new Uint8Array(REQUEST_BYTES);
  bytes.set(REQUEST);
  writeU32(bytes, REQUEST.length, number);
  return bytes;
}

/** Returns the number in the first four bytes. */
function lengthIn(parts: readonly Uint8Array[]): number {
  const [first] = parts;
  return readU32(first && first.length >= 4 ? first : concatBytes(parts), 0);
}
