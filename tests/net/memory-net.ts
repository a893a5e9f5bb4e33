import type { PeerAddress } from "../../src/base/address.ts";
import type { PeerNet } from "../../src/net/contract.ts";
import type { TcpHandlers, TcpSocket } from "../../src/runtime/contract.ts";

/** A socket of the memory net as tests see it. */
export interface MemorySocket extends TcpSocket {
  /** All bytes written to it, as sent. */
  readonly wire: Uint8Array[];
  isClosed: boolean;
  isPaused: boolean;
}

/** A network in memory. {@link settle} delivers written bytes as a view of a reused buffer. */
export class MemoryNet implements PeerNet {
  readonly #doors = new Map<number, (socket: TcpSocket) => TcpHandlers>();
  readonly #due: (() => void)[] = [];
  /** The connecting sockets, in order. */
  readonly calls: MemorySocket[] = [];
  /** The largest chunk delivered. */
  partBytes = 1000;

  connect(address: PeerAddress, handlers: TcpHandlers): TcpSocket {
    const theirs: { handlers: TcpHandlers | undefined } = { handlers: undefined };
    const caller = this.#socket(
      address,
      () => theirs.handlers,
      () => handlers,
    );
    this.calls.push(caller);
    this.#due.push(() => {
      const accept = this.#doors.get(address.port);
      if (!accept || caller.isClosed) {
        if (!caller.isClosed) handlers.closed("refused");
        caller.isClosed = true;
        return;
      }
      const from = { host: "192.0.2.9", port: 1000 + this.calls.length };
      const called = this.#socket(
        from,
        () => handlers,
        () => theirs.handlers,
      );
      this.#link(caller, called);
      theirs.handlers = accept(called);
      handlers.opened?.();
    });
    return caller;
  }

  async listen(address: PeerAddress, accept: (socket: TcpSocket) => TcpHandlers) {
    this.#doors.set(address.port, accept);
    return { address, close: async () => void this.#doors.delete(address.port) };
  }

  /** Delivers all bytes in flight, and those written in response. */
  settle(): void {
    for (let next = this.#due.shift(); next; next = this.#due.shift()) next();
  }

  #link(a: MemorySocket, b: MemorySocket): void {
    const closes = [a.close, b.close];
    a.close = () => {
      closes[0]!();
      this.#due.push(() => closes[1]!());
    };
    b.close = () => {
      closes[1]!();
      this.#due.push(() => closes[0]!());
    };
  }

  #socket(
    remote: PeerAddress,
    other: () => TcpHandlers | undefined,
    own: () => TcpHandlers | undefined,
  ): MemorySocket {
    const socket: MemorySocket = {
      remote,
      bufferedBytes: 0,
      wire: [],
      isClosed: false,
      isPaused: false,
      write: (bytes) => {
        if (socket.isClosed) return true;
        socket.wire.push(bytes.slice());
        const copy = bytes.slice();
        // The socket owns written bytes: it overwrites them, so that a later use by the caller fails a test.
        bytes.fill(0xee);
        for (let at = 0; at < copy.length; at += this.partBytes) {
          const part = copy.slice(at, at + this.partBytes);
          this.#due.push(() => {
            other()?.received(part);
            part.fill(0xdd);
          });
        }
        this.#due.push(() => own()?.drained());
        return true;
      },
      pause: () => {
        socket.isPaused = true;
      },
      resume: () => {
        socket.isPaused = false;
      },
      close: () => {
        if (socket.isClosed) return;
        socket.isClosed = true;
        this.#due.push(() => own()?.closed("closed"));
      },
    };
    return socket;
  }
}
