import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import type { Dial, TcpSocket } from "./contract.ts";
import { CLOSED_BY_PEER } from "./sockets.ts";

/**
 * Wraps a connection made by `dial` as a stream that `node:http` and `node:tls` accept as a socket. The stream cannot be
 * half-closed; destroy it to close the connection.
 */
export function dialledStream(dial: Dial): Socket {
  let socket: TcpSocket | undefined;
  let isOpen = false;
  let isClosed = false;
  /** The write that waits for the connection to open or to drain. */
  let pending = () => {};
  const runPending = () => {
    const next = pending;
    pending = () => {};
    next();
  };
  const stream = new Duplex({
    read: () => socket?.resume(),
    write(chunk: Uint8Array, _encoding, done) {
      // The socket takes ownership of the bytes, but the chunk may be a view on a shared buffer.
      const send = () => {
        if (isClosed || socket!.write(new Uint8Array(chunk))) done();
        else pending = done;
      };
      if (isOpen) send();
      else pending = send;
    },
    destroy(error, done) {
      isClosed = true;
      socket?.close();
      runPending();
      done(error);
    },
  });
  socket = dial({
    opened() {
      isOpen = true;
      stream.emit("connect");
      runPending();
    },
    received(bytes) {
      if (!stream.destroyed && !stream.push(new Uint8Array(bytes))) socket?.pause();
    },
    drained: runPending,
    closed(reason) {
      isClosed = true;
      if (isOpen && reason === CLOSED_BY_PEER) stream.push(null);
      else stream.destroy(new Error(reason));
      runPending();
    },
  });
  // Socket methods that `node:http` and `node:tls` call and that have no effect on this stream.
  const noEffect = () => stream;
  const methods = {
    ...{ setTimeout: noEffect, setNoDelay: noEffect, setKeepAlive: noEffect },
    ...{ ref: noEffect, unref: noEffect },
  };
  return Object.assign(stream, methods) as unknown as Socket;
}
