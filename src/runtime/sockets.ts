import { connect, createServer, type Server, type Socket } from "node:net";
import { connect as openTls } from "node:tls";
import { canonicalAddress, type PeerAddress } from "../base/address.ts";
import { messageOf } from "../base/errors.ts";
import type { ConnectOptions, Net, TcpHandlers, TcpListener, TcpSocket } from "./contract.ts";
import { listenError } from "./listen-error.ts";

/** Unsent bytes of a socket above which its writer must wait; covers a few round trips of a fast peer. */
const WRITE_LIMIT_BYTES = 1024 * 1024;

/** A shorter read shows that little else has arrived, so that another system call would gain nothing. */
const LONG_READ_BYTES = 64 * 1024;
/** Bytes that one connection delivers in a row by {@link TrafficMemory.receiveNow}, before other work continues: a few milliseconds. */
const BURST_BYTES = 2 * 1024 * 1024;

/** What a runtime does about the memory that traffic uses. */
export interface TrafficMemory {
  /** Called with the bytes of each read of a peer connection after they were processed: no code uses them afterwards. */
  read(bytes: Uint8Array): void;
  /** Returns what else the socket has received, in memory that the next call overwrites; undefined if there is nothing. */
  receiveNow?(socket: Socket): Uint8Array | undefined;
  /** Called with the size of each part of a response body that was sent, and whether its buffer is used again. */
  sent(bytes: number, isReused: boolean): void;
  /** See `Runtime.discarded`. */
  discarded?(bytes: number): void;
  /** Called for each accepted peer connection. */
  accepted(): void;
}

/** The `closed` reason of a connection that the peer closed without an error. */
export const CLOSED_BY_PEER = "closed by the peer";

/**
 * Returns the machine's TCP and UDP. `readBuffer` returns the buffer that an outgoing connection reads into (`onread`),
 * which saves an allocation per read; undefined if the runtime allocates an array all the same and would copy it into the buffer.
 * `memory` observes reads and accepted connections.
 */
export function machineNet(
  readBuffer: (() => Uint8Array) | undefined,
  memory: TrafficMemory | undefined,
  bindUdp: Net["bindUdp"],
): Net {
  return {
    connect: (address, handlers, options) => open(address, handlers, options, readBuffer?.(), memory),
    listen: (address, accept, admits) => listen(address, memory, accept, admits),
    bindUdp,
  };
}

/** Passes the reads of a socket to `received` of its handlers. */
function deliver(
  socket: Socket,
  handlers: Pick<TcpHandlers, "received">,
  memory: TrafficMemory | undefined,
): void {
  socket.on("data", (read: Uint8Array) => {
    if (socket.destroyed) return;
    // A `Buffer` copies nothing in `slice`, so a caller that keeps a part would keep a view on it.
    const bytes = Buffer.isBuffer(read) ? new Uint8Array(read.buffer, read.byteOffset, read.length) : read;
    const { length } = bytes;
    handlers.received(bytes);
    memory?.read(bytes);
    if (length >= LONG_READ_BYTES) deliverBurst(socket, handlers, memory);
  });
}

/** Passes on what else the kernel has. A socket that is paused or has bytes in its own queue is left alone. */
function deliverBurst(
  socket: Socket,
  handlers: Pick<TcpHandlers, "received">,
  memory: TrafficMemory | undefined,
): void {
  for (let burst = 0; burst < BURST_BYTES; ) {
    if (socket.destroyed || socket.isPaused() || socket.readableLength > 0) return;
    const bytes = memory?.receiveNow?.(socket);
    if (bytes === undefined) return;
    handlers.received(bytes);
    if (bytes.length < LONG_READ_BYTES) return;
    burst += bytes.length;
  }
}

function open(
  { host, port }: PeerAddress,
  handlers: TcpHandlers,
  { timeoutMs, localAddress }: ConnectOptions,
  buffer: Uint8Array | undefined,
  memory: TrafficMemory | undefined,
): TcpSocket {
  let socket: Socket;
  const callback = (length: number, bytes: Uint8Array) => {
    if (!socket.destroyed) handlers.received(bytes.length === length ? bytes : bytes.subarray(0, length));
    return true;
  };
  try {
    const from = localAddress === undefined ? {} : { localAddress };
    socket = connect({ host, port, ...from, noDelay: true, ...(buffer && { onread: { buffer, callback } }) });
    if (!buffer) deliver(socket, handlers, memory);
  } catch (error) {
    // `connect` throws for invalid ports.
    queueMicrotask(() => handlers.closed(messageOf(error)));
    return closedSocket({ host, port });
  }
  const expire = () => socket.destroy(new Error(`no connection within ${timeoutMs} ms`));
  const timer = setTimeout(expire, timeoutMs);
  socket.once("connect", () => {
    clearTimeout(timer);
    handlers.opened?.();
  });
  socket.once("close", () => clearTimeout(timer));
  return wire(socket, { host, port }, handlers);
}

/** Opens a TLS connection without verifying the certificate; see `Runtime.connectTls`. */
export function connectTls(
  { host, port }: PeerAddress,
  handlers: TcpHandlers,
  { timeoutMs }: { readonly timeoutMs: number },
): TcpSocket {
  const socket = openTls({ host, port, rejectUnauthorized: false });
  const timer = setTimeout(
    () => socket.destroy(new Error(`no connection within ${timeoutMs} ms`)),
    timeoutMs,
  );
  socket.on("data", (bytes: Uint8Array) => {
    if (!socket.destroyed) handlers.received(bytes);
  });
  socket.once("secureConnect", () => {
    clearTimeout(timer);
    handlers.opened?.();
  });
  socket.once("close", () => clearTimeout(timer));
  return wire(socket, { host, port }, handlers);
}

/** Connects a socket's events to handlers; `closed` is called exactly once and last. */
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
  // The peer protocols do not use half-closed connections.
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
      return socket.writableLength < WRITE_LIMIT_BYTES;
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
  const noop = () => {};
  return { remote, bufferedBytes: 0, write: () => true, pause: noop, resume: noop, close: noop };
}

async function listen(
  address: PeerAddress,
  memory: TrafficMemory | undefined,
  accept: (socket: TcpSocket) => TcpHandlers,
  admits: (host: string) => boolean = () => true,
): Promise<TcpListener> {
  const open = new Set<Socket>();
  const server = createServer({ noDelay: true }, (socket) => {
    memory?.accepted();
    const host = canonicalAddress(socket.remoteAddress ?? "");
    // Without an address, the peer has closed the connection already.
    if (host === undefined || socket.remotePort === undefined || !admits(host)) {
      // A reset leaves no TIME-WAIT state behind.
      socket.on("error", () => {});
      socket.resetAndDestroy();
      return;
    }
    open.add(socket);
    socket.once("close", () => open.delete(socket));
    adopt(socket, { host, port: socket.remotePort }, accept, memory);
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

function adopt(
  socket: Socket,
  remote: PeerAddress,
  accept: (socket: TcpSocket) => TcpHandlers,
  memory: TrafficMemory | undefined,
): void {
  // The handlers are known only after `accept` has seen the socket.
  let handlers: TcpHandlers | undefined;
  const tcp = wire(socket, remote, {
    received: (bytes) => handlers?.received(bytes),
    drained: () => handlers?.drained(),
    closed: (reason) => handlers?.closed(reason),
  });
  handlers = accept(tcp);
  deliver(socket, handlers, memory);
}

/** Starts listening. Rejects with `port_busy` if another program uses the port, with `bad_parameter` for other reasons. */
export function bound(server: Server, address: PeerAddress): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      reject(listenError(error, "TCP", address));
    });
    server.listen({ host: address.host, port: address.port }, () => {
      server.removeAllListeners("error");
      // Later errors concern one `accept`, for example if descriptors run out; the listener continues.
      server.on("error", () => {});
      resolve();
    });
  });
}
