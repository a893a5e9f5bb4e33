import { WakeTimer } from "../async/wake-timer.ts";
import type { PeerAddress } from "../base/address.ts";
import type { UtpId, UtpInput, UtpOutput } from "../protocol/utp/contract.ts";
import { UtpTable } from "../protocol/utp/table.ts";
import type { Clock, Runtime, TcpHandlers, TcpSocket } from "../runtime/contract.ts";
import type { SharedUdp } from "./contract.ts";
import { strongRandom } from "./strong-random.ts";

/** uTP connections behind the interface of TCP sockets. */
export interface Utp {
  connect(address: PeerAddress, handlers: TcpHandlers, options: { timeoutMs: number }): TcpSocket;
  /** Sets the handler of incoming connections; they are refused before. */
  listen(accept: (socket: TcpSocket) => TcpHandlers): void;
  /** Ends all connections. */
  close(): void;
}

export interface UtpDependencies {
  readonly udp: Pick<SharedUdp, "send" | "listen">;
  readonly clock: Clock;
  readonly sha1: Runtime["sha1"];
  readonly randomBytes: Runtime["randomBytes"];
}

/** Backpressure: `write` returns false at this many unsent bytes in a connection. */
const HIGH_WATER_BYTES = 1024 * 1024;
const SECRET_BYTES = 20;
/** Datagrams of one turn of the event loop that are processed together. */
const MAX_BATCH = 64;

/** Starts uTP (BEP 29) on the shared UDP port. */
export function openUtp(dependencies: UtpDependencies): Utp {
  return new UtpDriver(dependencies);
}

interface Connection {
  readonly socket: UtpSocket;
  readonly handlers: TcpHandlers;
}

/** Drives the connection table with the real clock and port. */
class UtpDriver implements Utp {
  readonly #dependencies: UtpDependencies;
  readonly #table: UtpTable;
  readonly #connections = new Map<UtpId, Connection>();
  #accept: ((socket: TcpSocket) => TcpHandlers) | undefined;
  #nextOutgoing: UtpId = 2;
  #isBusy = false;
  /** Datagrams that were passed to the table since it was last polled. */
  #batched = 0;
  #isClosed = false;
  readonly #timer: WakeTimer;

  constructor(dependencies: UtpDependencies) {
    this.#dependencies = dependencies;
    const { clock, sha1, randomBytes, udp } = dependencies;
    const options = {
      random: strongRandom(randomBytes),
      sha1,
      secret: randomBytes(SECRET_BYTES),
      acceptsIncoming: true,
    };
    this.#timer = new WakeTimer(clock, () => {
      this.#table.wake(clock.now());
      this.#run();
    });
    this.#table = new UtpTable(options, clock.now());
    udp.listen("utp", (bytes, from) => this.#datagram(bytes, from));
  }

  connect(address: PeerAddress, handlers: TcpHandlers, { timeoutMs }: { timeoutMs: number }): TcpSocket {
    const id = this.#nextOutgoing;
    this.#nextOutgoing += 2;
    const socket = new UtpSocket(this, id, address);
    this.#connections.set(id, { socket, handlers });
    this.inputSoon({ kind: "connect", id, address, timeoutMs });
    return socket;
  }

  listen(accept: (socket: TcpSocket) => TcpHandlers): void {
    this.#accept = accept;
  }

  close(): void {
    for (const { socket } of this.#connections.values()) this.input({ kind: "close", id: socket.id });
    this.#isClosed = true;
    this.#timer.stop();
  }

  bufferedBytes(id: UtpId): number {
    return this.#table.bufferedBytes(id);
  }

  /** Passes an input to the table and carries out the outputs. */
  input(input: UtpInput): void {
    if (this.#isClosed) return;
    this.#table.handle(input, this.#dependencies.clock.now());
    this.#run();
  }

  /** Like `input`, but carries out the outputs after the caller has returned. */
  inputSoon(input: UtpInput): void {
    if (this.#isClosed) return;
    this.#table.handle(input, this.#dependencies.clock.now());
    queueMicrotask(() => this.#run());
  }

  /** Takes a datagram; those that the system delivers in the same turn of the event loop are acknowledged together. */
  #datagram(bytes: Uint8Array, from: PeerAddress): void {
    if (this.#isClosed) return;
    this.#table.handle({ kind: "datagram", bytes, from }, this.#dependencies.clock.now());
    this.#batched++;
    if (this.#batched >= MAX_BATCH) this.#run();
    else if (this.#batched === 1) setImmediate(() => this.#runBatch());
  }

  #runBatch(): void {
    if (this.#batched === 0 || this.#isClosed) return;
    // Packets carry the time at which they are sent.
    this.#table.wake(this.#dependencies.clock.now());
    this.#run();
  }

  #run(): void {
    this.#batched = 0;
    // Handlers may cause further outputs; the outer loop carries them out.
    if (this.#isBusy) return;
    this.#isBusy = true;
    try {
      for (let output = this.#table.poll(); output; output = this.#table.poll()) this.#execute(output);
    } finally {
      this.#isBusy = false;
    }
    this.#timer.want(this.#table.nextWake());
  }

  #execute(output: UtpOutput): void {
    if (output.kind === "send") {
      this.#dependencies.udp.send(output.bytes, output.to);
      return;
    }
    if (output.kind === "accepted") {
      this.#accepted(output.id, output.remote);
      return;
    }
    const connection = this.#connections.get(output.id);
    if (!connection) return;
    if (output.kind === "closed") {
      this.#connections.delete(output.id);
      connection.socket.isClosed = true;
      connection.handlers.closed(output.reason);
    } else if (!connection.socket.isClosed) notify(connection.handlers, output);
  }

  #accepted(id: UtpId, remote: PeerAddress): void {
    const socket = new UtpSocket(this, id, remote);
    if (!this.#accept) {
      socket.close();
      return;
    }
    this.#connections.set(id, { socket, handlers: this.#accept(socket) });
  }
}

function notify(
  handlers: TcpHandlers,
  output: Extract<UtpOutput, { kind: "opened" | "received" | "drained" }>,
): void {
  if (output.kind === "received") handlers.received(output.bytes);
  else if (output.kind === "drained") handlers.drained();
  else handlers.opened?.();
}

class UtpSocket implements TcpSocket {
  readonly id: UtpId;
  readonly remote: PeerAddress;
  readonly #driver: UtpDriver;
  /** After this, only `closed` is reported. */
  isClosed = false;

  constructor(driver: UtpDriver, id: UtpId, remote: PeerAddress) {
    this.#driver = driver;
    this.id = id;
    this.remote = remote;
  }

  get bufferedBytes(): number {
    return this.#driver.bufferedBytes(this.id);
  }

  write(bytes: Uint8Array): boolean {
    if (this.isClosed) return true;
    this.#driver.input({ kind: "write", id: this.id, bytes });
    return this.bufferedBytes < HIGH_WATER_BYTES;
  }

  pause(): void {
    this.#driver.input({ kind: "pause", id: this.id });
  }

  resume(): void {
    this.#driver.inputSoon({ kind: "resume", id: this.id });
  }

  close(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.#driver.inputSoon({ kind: "close", id: this.id });
  }
}
