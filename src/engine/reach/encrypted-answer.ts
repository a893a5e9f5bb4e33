import { addressText, type PeerAddress } from "../../base/address.ts";
import { DecodeError } from "../../base/errors.ts";
import type { TcpHandlers, TcpSocket } from "../../runtime/contract.ts";
import { MseAnswerer } from "../../swarm/mse/answerer.ts";
import type { MseOutcome } from "../../swarm/mse/contract.ts";
import type { MseStream } from "../../swarm/mse/stream.ts";
import { mayBeHandshake, PROTOCOL_BYTES } from "../../wire/handshake.ts";
import { deciphered } from "./deciphered.ts";
import type { EncryptedHouse } from "./encrypted-net.ts";

/** Somebody's call: its first bytes say whether it is in the clear. */
export class EncryptedAnswer implements TcpSocket {
  readonly #house: EncryptedHouse;
  readonly #socket: TcpSocket;
  readonly #upper: TcpHandlers;
  readonly #first = new Uint8Array(PROTOCOL_BYTES);
  #filled = 0;
  #stage: "unknown" | "plain" | "handshake" | "encrypted" | "refused" = "unknown";
  #handshake: MseAnswerer | undefined;
  #stream: MseStream | undefined;
  /** What the socket is to call. */
  readonly handlers: TcpHandlers = {
    received: (bytes) => this.#received(bytes),
    drained: () => this.#upper.drained(),
    closed: (reason) => this.#upper.closed(reason),
  };

  /** Whoever waits for peers gets it at once: how long one may say nothing is for them to say. */
  constructor(house: EncryptedHouse, socket: TcpSocket, accept: (socket: TcpSocket) => TcpHandlers) {
    this.#house = house;
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
    this.#stage = "refused";
    this.#socket.close();
  }

  #received(bytes: Uint8Array): void {
    if (this.#stage === "plain") this.#upper.received(bytes);
    else if (this.#stage === "encrypted") this.#deliver(bytes, this.#stream!);
    else if (this.#stage === "handshake") this.#proceed(bytes);
    else if (this.#stage === "unknown") this.#look(bytes);
  }

  /** Gathers the first bytes until they say what it is. */
  #look(bytes: Uint8Array): void {
    const part = bytes.subarray(0, PROTOCOL_BYTES - this.#filled);
    this.#first.set(part, this.#filled);
    this.#filled += part.length;
    const first = this.#first.subarray(0, this.#filled);
    const rest = bytes.subarray(part.length);
    if (!mayBeHandshake(first)) {
      this.#answer(first, rest);
      return;
    }
    if (this.#filled < PROTOCOL_BYTES) return;
    if (!this.#house.letsInPlain) {
      this.#refuse("in the clear");
      return;
    }
    this.#stage = "plain";
    this.#upper.received(first);
    if (rest.length > 0) this.#received(rest);
  }

  #answer(first: Uint8Array, rest: Uint8Array): void {
    const { flood, clock, index, methods, tools } = this.#house;
    if (!flood.admits(this.remote.host, clock.now())) {
      this.#refuse("too many handshakes");
      return;
    }
    this.#stage = "handshake";
    this.#handshake = new MseAnswerer({ find: (hash) => index.find(hash), methods }, tools);
    this.#proceed(first);
    if (rest.length > 0) this.#received(rest);
  }

  #proceed(bytes: Uint8Array): void {
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
    deciphered(bytes, stream, this.#house.scratch, (clear) => this.#upper.received(clear));
  }

  #refuse(reason: string): void {
    this.#house.log.debug("call refused", { from: addressText(this.remote), reason });
    this.close();
  }
}
