import { connect, createServer, type Server, type Socket } from "node:net";
import { canonicalAddress, type PeerAddress } from "../base/address.ts";
import { messageOf, SluiceError } from "../base/errors.ts";
import type { ConnectOptions, Net, TcpHandlers, TcpListener, TcpSocket } from "./contract.ts";
import { bindUdp } from "./udp.ts";

/** Above this many bytes unsent in one socket its writer waits: a few round trips of a fast peer. */
const WRITE_MARK_BYTES = 1024 * 1024;

/** Why a connection is over that nobody disturbed. */
export const CLOSED_BY_PEER = "closed by the peer";

/** Gives the buffer that a connection reads into. */
type ReadBuffers = () => Uint8Array;

/**
 * TCP and UDP of the machine. Outgoing connections read into a buffer that is used again and again (`onread`), which
 * saves an allocation a read; `readBuffer` says whether it is one for all or one for each connection. `received` hears
 * of every read, after it has been handed over.
 */
export function machineNet(readBuffer: ReadBuffers, received: (bytes: number) => void): Net {
  const counted = (handlers: TcpHandlers): TcpHandlers => ({
    opened: () => handlers.opened?.(),
    received: (bytes) => {
      handlers.received(bytes);
      received(bytes.length);
    },
    drained: () => handlers.drained(),
    closed: (reason) => handlers.closed(reason),
  });
  return {
    connect: (address, handlers, options) => open(address, counted(handlers), options, readBuffer()),
    listen: (address, accept) => listen(address, (socket) => counted(accept(socket))),
    bindUdp,
  };
}

function open(
  { host, port }: PeerAddress,
  handlers: TcpHandlers,
  { timeoutMs, localAddress }: ConnectOptions,
  buffer: Uint8Array,
): TcpSocket {
  let socket: Socket;
  const callback = (length: number, bytes: Uint8Array) => {
    if (!socket.destroyed) handlers.received(bytes.length === length ? bytes : bytes.subarray(0, length));
    return true;
  };
  try {
    const from = localAddress === undefined ? {} : { localAddress };
    socket = connect({ host, port, ...from, noDelay: true, onread: { buffer, callback } });
  } catch (error) {
    // A port of 0 or above 65535 is refused before anything is tried.
    queueMicrotask(() => handlers.closed(messageOf(error)));
    return closedSocket({ host, port });
  }
  const timer = setTimeout(() => socket.destroy(new Error(`no connection in ${timeoutMs} ms`)), timeoutMs);
  socket.once("connect", () => {
    clearTimeout(timer);
    handlers.opened?.();
  });
  socket.once("close", () => clearTimeout(timer));
  return wire(socket, { host, port }, handlers);
}

/** Ties the events of a socket to handlers, so that `closed` comes exactly once and nothing comes after it. */
function wire(socket: Socket, remote: PeerAddress, handlers: TcpHandlers): TcpSocket {
  let reason = CLOSED_BY_PEER;
  let owesDrained = false;
  const written = () => {
    if (!owesDrained || socket.destroyed || socket.writableLength > 0) return;
    owesDrained = false;
    handlers.drained();
  };
  socket.on("error", (error) => {
    reason = messageOf(error);
  });
  // The peer network knows no half-closed connections.
  socket.on("end", () => socket.destroy());
  socket.once("close", () => handlers.closed(reason));
  return {
    remote,
    get bufferedBytes() {
      return socket.writableLength;
    },
    write(bytes) {
      if (socket.destroyed) return true;
      owesDrained = true;
      socket.write(bytes, written);
      return socket.writableLength < WRITE_MARK_BYTES;
    },
    pause: () => void socket.pause(),
    resume: () => void socket.resume(),
    close() {
      if (!socket.destroyed) reason = "closed by us";
      socket.destroy();
    },
  };
}

function closedSocket(remote: PeerAddress): TcpSocket {
  const nothing = () => {};
  return { remote, bufferedBytes: 0, write: () => true, pause: nothing, resume: nothing, close: nothing };
}

async function listen(
  address: PeerAddress,
  accept: (socket: TcpSocket) => TcpHandlers,
): Promise<TcpListener> {
  const open = new Set<Socket>();
  const server = createServer({ noDelay: true }, (socket) => {
    open.add(socket);
    socket.once("close", () => open.delete(socket));
    adopt(socket, accept);
  });
  await bound(server, address);
  const at = server.address();
  if (at === null || typeof at === "string") throw new Error("the listener has no address");
  return {
    address: { host: canonicalAddress(at.address) ?? at.address, port: at.port },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of open) socket.destroy();
      }),
  };
}

function adopt(socket: Socket, accept: (socket: TcpSocket) => TcpHandlers): void {
  const host = canonicalAddress(socket.remoteAddress ?? "");
  if (host === undefined || socket.remotePort === undefined) {
    socket.destroy(); // It is gone already: there is no one to talk to.
    return;
  }
  // The handlers are known only after `accept` has seen the socket.
  let handlers: TcpHandlers | undefined;
  const tcp = wire(
    socket,
    { host, port: socket.remotePort },
    {
      received: (bytes) => handlers?.received(bytes),
      drained: () => handlers?.drained(),
      closed: (reason) => handlers?.closed(reason),
    },
  );
  handlers = accept(tcp);
  socket.on("data", (bytes: Uint8Array) => {
    if (!socket.destroyed) handlers.received(bytes);
  });
}

/** Resolves when `server` listens; rejects with `port_busy` where another program does. */
export function bound(server: Server, address: PeerAddress): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      const text = `${address.host} port ${address.port}`;
      if (error.code === "EADDRINUSE") {
        reject(new SluiceError("port_busy", `another program listens on ${text}`, { cause: error }));
      } else {
        reject(error);
      }
    });
    server.listen({ host: address.host, port: address.port }, () => {
      server.removeAllListeners("error");
      // What fails after this point fails one accept, as when descriptors run out: the listener goes on.
      server.on("error", () => {});
      resolve();
    });
  });
}
