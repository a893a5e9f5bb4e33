import type { PeerMessageHandler } from "../../wire/peer-message.ts";

/** What a web seed cares about in what a swarm says. */
interface RequestTaker {
  request(piece: number, begin: number, length: number): void;
  cancel(piece: number, begin: number, length: number): void;
}

/** Of all messages of a peer the requests, and what takes them back: who only gives need not know more. */
export class RequestReader implements PeerMessageHandler {
  readonly #taker: RequestTaker;

  constructor(taker: RequestTaker) {
    this.#taker = taker;
  }

  request(piece: number, begin: number, length: number): void {
    this.#taker.request(piece, begin, length);
  }

  cancel(piece: number, begin: number, length: number): void {
    this.#taker.cancel(piece, begin, length);
  }

  block(): undefined {
    return undefined;
  }

  keepAlive(): void {}
  choke(): void {}
  unchoke(): void {}
  interested(): void {}
  notInterested(): void {}
  have(): void {}
  bitfield(): void {}
  port(): void {}
  suggest(): void {}
  haveAll(): void {}
  haveNone(): void {}
  reject(): void {}
  allowedFast(): void {}
  extended(): void {}
  hash(): void {}
  blockDone(): void {}
}
