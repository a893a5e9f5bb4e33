import type { PeerAddress } from "../../../base/address.ts";
import type { TcpHandlers, TcpSocket } from "../../../runtime/contract.ts";

/** What carries the bytes of a {@link PageSocket}. */
export interface Carrier {
  send(bytes: Uint8Array): void;
  close(): void;
}

/** Neither a WebSocket nor a data channel can pause reading. A peer that sends more than this meanwhile is disconnected. */
const MAX_PAUSED_BYTES = 1024 * 1024;
/** Memory of a message beside its bytes. */
const MESSAGE_OVERHEAD_BYTES = 256;
/** Unsent bytes above which the writer must wait. */
const WRITE_LIMIT_BYTES = 256 * 1024;

/** A byte stream of the page in the form of a TCP connection. Its owner reports what the carrier does. */
export class PageSocket implements TcpSocket {
  readonly remote: PeerAddress;
  readonly #carrier: Carrier;
  #handlers: TcpHandlers | undefined;
  #paused: Uint8Array[] | undefined;
  #pausedBytes = 0;
  #written = 0;
  #sent = 0;
  #isClosed = false;

  constructor(remote: PeerAddress, carrier: Carrier) {
    this.remote = remote;
    this.#carrier = carrier;
  }

  /** Sets the handlers, which are known after the socket exists. */
  handle(handlers: TcpHandlers): void {
    this.#handlers = handlers;
  }

  get bufferedBytes(): number {
    return this.#written - this.#sent;
  }

  write(bytes: Uint8Array): boolean {
    if (this.#isClosed) return true;
    this.#written += bytes.length;
    this.#carrier.send(bytes);
    return this.bufferedBytes < WRITE_LIMIT_BYTES;
  }

  pause(): void {
    this.#paused ??= [];
  }

  resume(): void {
    const waiting = this.#paused ?? [];
    this.#paused = undefined;
    this.#pausedBytes = 0;
    for (const bytes of waiting) this.received(bytes);
  }

  close(): void {
    if (this.#isClosed) return;
    this.#carrier.close();
    this.closed("closed by us");
  }

  /** The connection is established. */
  opened(): void {
    if (!this.#isClosed) this.#handlers?.opened?.();
  }

  /** Bytes have arrived. */
  received(bytes: Uint8Array): void {
    if (this.#isClosed) return;
    if (this.#paused === undefined) {
      this.#handlers?.received(bytes);
      return;
    }
    this.#pausedBytes += bytes.length + MESSAGE_OVERHEAD_BYTES;
    if (this.#pausedBytes > MAX_PAUSED_BYTES) this.close();
    else this.#paused.push(bytes);
  }

  /** `total` of the written bytes have left the buffer. */
  sent(total: number): void {
    if (this.#isClosed || total <= this.#sent) return;
    this.#sent = total;
    if (this.bufferedBytes === 0) this.#handlers?.drained();
  }

  /** The connection has ended. */
  closed(reason: string): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    // As sockets do: not within the call that closes it.
    queueMicrotask(() => this.#handlers?.closed(reason));
  }

  /** The number of bytes written so far. */
  get written(): number {
    return this.#written;
  }
}
