import { addressText, type PeerAddress } from "../base/address.ts";
import { DecodeError } from "../base/errors.ts";
import type { MseOutcome } from "../protocol/mse/contract.ts";
import { MseResponder } from "../protocol/mse/responder.ts";
import type { MseStream } from "../protocol/mse/stream.ts";
import type { TcpHandlers, TcpSocket } from "../runtime/contract.ts";
import { isHandshakePrefix, PROTOCOL_BYTES } from "../wire/peer/handshake.ts";
import type { MseContext } from "./mse-context.ts";

/** An incoming connection. Its first bytes show whether it is encrypted. */
export class MseIncoming implements TcpSocket {
  readonly #context: MseContext;
  readonly #socket: TcpSocket;
  readonly #upper: TcpHandlers;
  readonly #first = new Uint8Array(PROTOCOL_BYTES);
  #filled = 0;
  #stage: "detecting" | "plain" | "handshake" | "encrypted" | "closed" = "detecting";
  #handshake: MseResponder | undefined;
  #stream: MseStream | undefined;
  /** The handlers of the underlying socket. */
  readonly handlers: TcpHandlers = {
    received: (bytes) => this.#received(bytes),
    drained: () => this.#upper.drained(),
    closed: (reason) => this.#upper.closed(reason),
  };

  /** Calls `accept` immediately: the caller limits how long a peer may stay silent. */
  constructor(context: MseContext, socket: TcpSocket, accept: (socket: TcpSocket) => TcpHandlers) {
    this.#context = context;
    this.#socket = socket;
    this.#upper = accept(this);
  }

  get remote(): PeerAddress {
    return this.#socket.remote;
  }

  get bufferedBytes(): number {
    return this.#socket.bufferedBytes;
  }

  write(bytes: Uint8Array): boolean {
    this.#stream?.encrypt(bytes);
    return this.#socket.write(bytes);
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  close(): void {
    this.#stage = "closed";
    this.#socket.close();
  }

  #received(bytes: Uint8Array): void {
    if (this.#stage === "plain") this.#upper.received(bytes);
    else if (this.#stage === "encrypted") this.#deliver(bytes, this.#stream!);
    else if (this.#stage === "handshake") this.#continueHandshake(bytes);
    else if (this.#stage === "detecting") this.#detect(bytes);
  }

  /** Collects the first bytes until they show the mode. */
  #detect(bytes: Uint8Array): void {
    const part = bytes.subarray(0, PROTOCOL_BYTES - this.#filled);
    this.#first.set(part, this.#filled);
    this.#filled += part.length;
    const first = this.#first.subarray(0, this.#filled);
    const rest = bytes.subarray(part.length);
    if (!isHandshakePrefix(first)) {
      this.#startHandshake(first, rest);
      return;
    }
    if (this.#filled < PROTOCOL_BYTES) return;
    if (!this.#context.acceptsPlain) {
      this.#refuse("not encrypted");
      return;
    }
    this.#stage = "plain";
    this.#upper.received(first);
    if (rest.length > 0) this.#received(rest);
  }

  #startHandshake(first: Uint8Array, rest: Uint8Array): void {
    const { handshakeLimit, clock, index, methods, crypto } = this.#context;
    if (!handshakeLimit.admits(this.remote.host, clock.now())) {
      this.#refuse("handshake limit reached");
      return;
    }
    this.#stage = "handshake";
    this.#handshake = new MseResponder({ find: (hash) => index.find(hash), methods }, crypto);
    this.#continueHandshake(first);
    if (rest.length > 0) this.#received(rest);
  }

  #continueHandshake(bytes: Uint8Array): void {
    const handshake = this.#handshake!;
    let outcome: MseOutcome | undefined;
    try {
      outcome = handshake.receive(bytes);
    } catch (error) {
      if (!(error instanceof DecodeError)) throw error;
      this.#refuse(error.message);
      return;
    }
    const output = handshake.take();
    if (output) this.#socket.write(output);
    if (!outcome) return;
    this.#stage = "encrypted";
    this.#stream = outcome.stream;
    this.#handshake = undefined;
    if (outcome.rest.length > 0) this.#deliver(outcome.rest, outcome.stream);
  }

  #deliver(bytes: Uint8Array, stream: MseStream): void {
    this.#context.decryptBuffer.decrypt(bytes, stream, (clear) => this.#upper.received(clear));
  }

  #refuse(reason: string): void {
    this.#context.log.debug("connection refused", { from: addressText(this.remote), reason });
    this.close();
  }
}
