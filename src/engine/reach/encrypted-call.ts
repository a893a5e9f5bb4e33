import { addressText, type PeerAddress } from "../../base/address.ts";
import { concatBytes } from "../../base/bytes.ts";
import { DecodeError } from "../../base/errors.ts";
import { after } from "../../base/time.ts";
import type { TcpHandlers, TcpSocket } from "../../runtime/contract.ts";
import { MseCaller } from "../../swarm/mse/caller.ts";
import type { MseOutcome } from "../../swarm/mse/contract.ts";
import type { MseStream } from "../../swarm/mse/stream.ts";
import { HANDSHAKE_BYTES } from "../../wire/handshake.ts";
import type { PeerCallOptions, PeerNet } from "./contract.ts";
import { deciphered } from "./deciphered.ts";
import type { EncryptedHouse, Way } from "./encrypted-net.ts";

/** A peer that does not know what we speak may wait for more of it: so long we bear that, of the 10 s that a greeting has. */
const PATIENCE_MS = 4_000;
/** What is written before the peer answers is its greeting; who writes more must be content with the first way. */
const MAX_UNANSWERED_BYTES = 4 * 1024;
/** The infohash in a greeting (BEP 3). */
const INFOHASH = { start: 28, end: 48 } as const;

/**
 * A call that begins in one way, and once more in the other where the peer closes before it has answered. The first write of
 * its user is the greeting of BEP 3, which names the infohash.
 */
export class EncryptedCall implements TcpSocket {
  readonly remote: PeerAddress;
  readonly #house: EncryptedHouse;
  readonly #handlers: TcpHandlers;
  readonly #connect: (handlers: TcpHandlers) => TcpSocket;
  readonly #ways: Way[];
  #way: Way;
  #socket: TcpSocket;
  /** Our user has heard that the connection stands; and this attempt's does. */
  #isOpened = false;
  #isOpen = false;
  #isClosing = false;
  /** What was written and is not known to have been understood; undefined once the peer has answered. */
  #unanswered: Uint8Array[] | undefined = [];
  #handshake: MseCaller | undefined;
  #stream: MseStream | undefined;
  #cancelPatience: () => void = () => {};

  constructor(
    house: EncryptedHouse,
    net: Pick<PeerNet, "connect">,
    address: PeerAddress,
    handlers: TcpHandlers,
    options: PeerCallOptions,
  ) {
    this.remote = address;
    this.#house = house;
    this.#handlers = handlers;
    this.#connect = (given) => net.connect(address, given, options);
    this.#ways = [...house.ways.order(address, house.calls)];
    this.#way = this.#ways.shift()!;
    this.#socket = this.#connect(this.#attempt());
  }

  get bufferedBytes(): number {
    return this.#socket.bufferedBytes + (this.#isHolding ? lengthOf(this.#unanswered!) : 0);
  }

  write(bytes: Uint8Array): boolean {
    if (this.#isClosing) return true;
    if (this.#isHolding) {
      this.#unanswered!.push(bytes);
      this.#greet();
      return true;
    }
    this.#remember(bytes);
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
    this.#isClosing = true;
    this.#socket.close();
  }

  /** What is written waits for the handshake. */
  get #isHolding(): boolean {
    return this.#way === "encrypted" && !this.#stream;
  }

  /** What the socket of one attempt tells. */
  #attempt(): TcpHandlers {
    return {
      opened: () => this.#opened(),
      received: (bytes) => this.#received(bytes),
      drained: () => {
        if (!this.#isHolding) this.#handlers.drained();
      },
      closed: (reason) => this.#closed(reason),
    };
  }

  #opened(): void {
    this.#isOpen = true;
    const { clock } = this.#house;
    if (this.#way === "encrypted" && this.#ways.length > 0) {
      const impatient = () => this.#socket.close();
      this.#cancelPatience = clock.at(after(clock.now(), PATIENCE_MS), impatient);
    }
    if (!this.#isOpened) {
      this.#isOpened = true;
      this.#handlers.opened?.();
    } else if (this.#way === "encrypted") this.#greet();
    else if (this.#unanswered) this.#socket.write(concatBytes(this.#unanswered));
  }

  /** Begins the handshake as soon as it is known what for. */
  #greet(): void {
    if (this.#handshake || !this.#isOpen || lengthOf(this.#unanswered!) < HANDSHAKE_BYTES) return;
    const initial = concatBytes(this.#unanswered!).subarray(0, HANDSHAKE_BYTES);
    const { offered, tools } = this.#house;
    const infohash = initial.subarray(INFOHASH.start, INFOHASH.end);
    this.#handshake = new MseCaller({ infohash, initial, offered }, tools);
    this.#socket.write(this.#handshake.take()!);
  }

  #received(bytes: Uint8Array): void {
    if (this.#stream) this.#deliver(bytes, this.#stream);
    else if (this.#way === "plain") {
      this.#answered();
      this.#handlers.received(bytes);
    } else this.#proceed(bytes);
  }

  #proceed(bytes: Uint8Array): void {
    let outcome: MseOutcome | undefined;
    try {
      // Who speaks first does not speak this.
      if (!this.#handshake) throw new DecodeError("MSE", 0, "bytes before ours");
      outcome = this.#handshake.receive(bytes);
    } catch (error) {
      if (!(error instanceof DecodeError)) throw error;
      this.#house.log.debug("not encrypted", { peer: addressText(this.remote), reason: error.message });
      this.#socket.close();
      return;
    }
    const output = this.#handshake.take();
    if (output) this.#socket.write(output);
    if (outcome) this.#stands(outcome);
  }

  #stands({ stream, rest }: MseOutcome): void {
    const held = concatBytes(this.#unanswered!).subarray(HANDSHAKE_BYTES);
    this.#stream = stream;
    this.#handshake = undefined;
    this.#answered();
    if (held.length > 0) {
      stream.encrypt(held);
      this.#socket.write(held);
    }
    if (rest.length > 0) this.#deliver(rest, stream);
  }

  #deliver(bytes: Uint8Array, stream: MseStream): void {
    deciphered(bytes, stream, this.#house.scratch, (clear) => this.#handlers.received(clear));
  }

  #remember(bytes: Uint8Array): void {
    if (!this.#unanswered) return;
    // What is written belongs to the socket: another attempt needs its own.
    this.#unanswered.push(bytes.slice());
    if (lengthOf(this.#unanswered) > MAX_UNANSWERED_BYTES) this.#unanswered = undefined;
  }

  /** The peer speaks our way: there is no other attempt. */
  #answered(): void {
    if (!this.#unanswered) return;
    this.#unanswered = undefined;
    this.#cancelPatience();
    this.#house.ways.answered(this.remote, this.#way, this.#house.calls);
  }

  #closed(reason: string): void {
    this.#cancelPatience();
    const next = this.#ways.shift();
    // Where not even the socket opened, it was not the way that failed.
    if (this.#isClosing || !this.#isOpen || !this.#unanswered || next === undefined) {
      this.#handlers.closed(reason);
      return;
    }
    this.#way = next;
    this.#isOpen = false;
    this.#handshake = undefined;
    this.#socket = this.#connect(this.#attempt());
  }
}

function lengthOf(parts: readonly Uint8Array[]): number {
  return parts.reduce((sum, { length }) => sum + length, 0);
}
