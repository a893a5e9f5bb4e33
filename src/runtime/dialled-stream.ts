import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import type { Dial, TcpSocket } from "./contract.ts";
import { CLOSED_BY_PEER } from "./sockets.ts";

/**
 * A connection that somebody else makes, as the stream that `node:http` and `node:tls` take for a socket. It has no end of
 * its own to send: whoever is done destroys it.
 */
export function dialledStream(dial: Dial): Socket {
  let socket: TcpSocket | undefined;
  let isOpen = false;
  let isOver = false;
  /** What goes on when the connection stands, or takes more. */
  let waiting = () => {};
  const goOn = () => {
    const next = waiting;
    waiting = () => {};
    next();
  };
  const stream = new Duplex({
    read: () => socket?.resume(),
    write(chunk: Uint8Array, _encoding, done) {
      // The connection owns what it is given, and this chunk is a view on who knows what.
      const send = () => {
        if (isOver || socket!.write(new Uint8Array(chunk))) done();
        else waiting = done;
      };
      if (isOpen) send();
      else waiting = send;
    },
    destroy(error, done) {
      isOver = true;
      socket?.close();
      goOn();
      done(error);
    },
  });
  socket = dial({
    opened() {
      isOpen = true;
      stream.emit("connect");
      goOn();
    },
    received(bytes) {
      if (!stream.destroyed && !stream.push(new Uint8Array(bytes))) socket?.pause();
    },
    drained: goOn,
    closed(reason) {
      isOver = true;
      if (isOpen && reason === CLOSED_BY_PEER) stream.push(null);
      else stream.destroy(new Error(reason));
      goOn();
    },
  });
  // What is asked of sockets, and has no meaning here.
  const same = () => stream;
  const settings = { setTimeout: same, setNoDelay: same, setKeepAlive: same, ref: same, unref: same };
  return Object.assign(stream, settings) as unknown as Socket;
}
