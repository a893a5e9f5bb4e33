import { addressText, type PeerAddress } from "../base/address.ts";
import { concatBytes } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";
import { after } from "../base/time.ts";
import type { MseOutcome } from "../protocol/mse/contract.ts";
import { MseInitiator } from "../protocol/mse/initiator.ts";
import type { MseStream } from "../protocol/mse/stream.ts";
import type { TcpHandlers, TcpSocket } from "../runtime/contract.ts";
import { HANDSHAKE_BYTES } from "../wire/peer/handshake.ts";
import { MSE_METHOD } from "../wire/peer/mse.ts";
import type { PeerConnectOptions, PeerNet } from "./contract.ts";
import type { ConnectionMode, MseContext } from "./mse-context.ts";

/** A peer without MSE support may wait for more bytes instead of closing. The whole handshake has 10 s. */
const MSE_TIMEOUT_MS = 4_000;
/** Bytes kept for a second attempt, normally the handshake. A caller that writes more gets no second attempt. */
const MAX_REPLAY_BYTES = 4 * 1024;
/** Position of the infohash in the handshake (BEP 3). */
const INFOHASH = { start: 28, end: 48 } as const;

/**
 * An outgoing connection. If the peer closes it before responding, it is opened again in the other mode. The caller must first
 * write the handshake of BEP 3, which contains the infohash.
 */
export class MseOutgoing implements TcpSocket {
  readonly remote: PeerAddress;
  readonly #context: MseContext;
  readonly #handlers: TcpHandlers;
  readonly #connect: (handlers: TcpHandlers) => TcpSocket;
  /** All modes, in order of preference, and those that are left. */
  readonly #preferred: readonly ConnectionMode[];
  readonly #modes: ConnectionMode[];
  readonly #offered: number;
  #mode: ConnectionMode;
  #socket: TcpSocket;
  /** True once `opened` was reported to the caller. */
  #isReported = false;
  /** True while the socket of the current attempt is open. */
  #isOpen = false;
  #isClosing = false;
  /** Bytes to write again in a second attempt; undefined once the peer has responded. */
  #replay: Uint8Array[] | undefined = [];
  #handshake: MseInitiator | undefined;
  #stream: MseStream | undefined;
  #cancelTimeout: () => void = () => {};

  constructor(
    context: MseContext,
    net: Pick<PeerNet, "connect">,
    address: PeerAddress,
    handlers: TcpHandlers,
    options: PeerConnectOptions,
  ) {
    this.remote = address;
    this.#context = context;
    this.#handlers = handlers;
    this.#connect = (attemptHandlers) => net.connect(address, attemptHandlers, options);
    const isEncrypted = options.prefersEncryption === true;
    this.#preferred = isEncrypted ? context.encryptedModes : context.outgoingModes;
    this.#offered = isEncrypted ? MSE_METHOD.rc4 : context.offered;
    this.#modes = [...context.modes.order(address, this.#preferred)];
    this.#mode = this.#modes.shift()!;
    this.#socket = this.#connect(this.#attemptHandlers());
  }

  get bufferedBytes(): number {
    return this.#socket.bufferedBytes + (this.#isHolding ? lengthOf(this.#replay!) : 0);
  }

  write(bytes: Uint8Array): boolean {
    if (this.#isClosing) return true;
    if (this.#isHolding) {
      this.#replay!.push(bytes);
      this.#startHandshake();
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

  /** True while writes must wait for the MSE handshake. */
  get #isHolding(): boolean {
    return this.#mode === "encrypted" && !this.#stream;
  }

  /** Returns the socket handlers of one attempt. */
  #attemptHandlers(): TcpHandlers {
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
    const { clock } = this.#context;
    if (this.#mode === "encrypted" && this.#modes.length > 0) {
      const expired = () => this.#socket.close();
      this.#cancelTimeout = clock.at(after(clock.now(), MSE_TIMEOUT_MS), expired);
    }
    if (!this.#isReported) {
      this.#isReported = true;
      this.#handlers.opened?.();
    } else if (this.#mode === "encrypted") this.#startHandshake();
    else if (this.#replay) this.#socket.write(concatBytes(this.#replay));
  }

  /** Starts the MSE handshake as soon as the infohash is known. */
  #startHandshake(): void {
    if (this.#handshake || !this.#isOpen || lengthOf(this.#replay!) < HANDSHAKE_BYTES) return;
    const initial = concatBytes(this.#replay!).subarray(0, HANDSHAKE_BYTES);
    const { crypto } = this.#context;
    const infohash = initial.subarray(INFOHASH.start, INFOHASH.end);
    this.#handshake = new MseInitiator({ infohash, initial, offered: this.#offered }, crypto);
    this.#socket.write(this.#handshake.take()!);
  }

  #received(bytes: Uint8Array): void {
    if (this.#stream) this.#deliver(bytes, this.#stream);
    else if (this.#mode === "plain") {
      this.#responded();
      this.#handlers.received(bytes);
    } else this.#continueHandshake(bytes);
  }

  #continueHandshake(bytes: Uint8Array): void {
    let outcome: MseOutcome | undefined;
    try {
      // An MSE peer never sends first.
      if (!this.#handshake) throw new DecodeError("MSE", 0, "bytes before the handshake of the initiator");
      outcome = this.#handshake.receive(bytes);
    } catch (error) {
      if (!(error instanceof DecodeError)) throw error;
      this.#context.log.debug("MSE handshake failed", {
        peer: addressText(this.remote),
        reason: error.message,
      });
      this.#socket.close();
      return;
    }
    const output = this.#handshake.take();
    if (output) this.#socket.write(output);
    if (outcome) this.#handshakeDone(outcome);
  }

  #handshakeDone({ stream, rest }: MseOutcome): void {
    const held = concatBytes(this.#replay!).subarray(HANDSHAKE_BYTES);
    this.#stream = stream;
    this.#handshake = undefined;
    this.#responded();
    if (held.length > 0) {
      stream.encrypt(held);
      this.#socket.write(held);
    }
    if (rest.length > 0) this.#deliver(rest, stream);
  }

  #deliver(bytes: Uint8Array, stream: MseStream): void {
    this.#context.decryptBuffer.decrypt(bytes, stream, (clear) => this.#handlers.received(clear));
  }

  #remember(bytes: Uint8Array): void {
    if (!this.#replay) return;
    // The socket owns written bytes; another attempt needs a copy.
    this.#replay.push(bytes.slice());
    if (lengthOf(this.#replay) > MAX_REPLAY_BYTES) this.#replay = undefined;
  }

  /** The peer responded in this mode: no further attempt. */
  #responded(): void {
    if (!this.#replay) return;
    this.#replay = undefined;
    this.#cancelTimeout();
    this.#context.modes.responded(this.remote, this.#mode, this.#preferred);
  }

  #closed(reason: string): void {
    this.#cancelTimeout();
    const next = this.#modes.shift();
    // If the socket never opened, the mode is not the cause.
    if (this.#isClosing || !this.#isOpen || !this.#replay || next === undefined) {
      this.#handlers.closed(reason);
      return;
    }
    this.#mode = next;
    this.#isOpen = false;
    this.#handshake = undefined;
    this.#socket = this.#connect(this.#attemptHandlers());
  }
}

function lengthOf(parts: readonly Uint8Array[]): number {
  return parts.reduce((sum, { length }) => sum + length, 0);
}
