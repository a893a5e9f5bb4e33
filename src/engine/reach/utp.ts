import type { PeerAddress } from "../../base/address.ts";
import type { Clock, Runtime, TcpHandlers, TcpSocket } from "../../runtime/contract.ts";
import type { UtpId, UtpInput, UtpOutput } from "../../swarm/utp/contract.ts";
import { UtpTable } from "../../swarm/utp/table.ts";
import { WakeTimer } from "../wake-timer.ts";
import type { SharedUdp } from "./contract.ts";
import { strongRandom } from "./strong-random.ts";

/** Connections over uTP: they look like those over TCP. */
export interface Utp {
  connect(address: PeerAddress, handlers: TcpHandlers, options: { timeoutMs: number }): TcpSocket;
  /** Who lets others in; nobody does until then. */
  listen(accept: (socket: TcpSocket) => TcpHandlers): void;
  /** Ends all connections. */
  close(): void;
}

/** What uTP is made of. */
export interface UtpParts {
  readonly udp: Pick<SharedUdp, "send" | "listen">;
  readonly clock: Clock;
  readonly sha1: Runtime["sha1"];
  readonly randomBytes: Runtime["randomBytes"];
}

/** Above this many bytes unsent in one connection its writer waits, as with TCP. */
const WRITE_MARK_BYTES = 1024 * 1024;
const SECRET_BYTES = 20;

/** uTP (BEP 29) over the port of the peer network. */
export function openUtp(parts: UtpParts): Utp {
  return new UtpDriver(parts);
}

interface Line {
  readonly socket: UtpSocket;
  readonly handlers: TcpHandlers;
}

/** Drives a table of connections with the real clock and port. */
class UtpDriver implements Utp {
  readonly #parts: UtpParts;
  readonly #table: UtpTable;
  readonly #lines = new Map<UtpId, Line>();
  #accept: ((socket: TcpSocket) => TcpHandlers) | undefined;
  #nextOutgoing: UtpId = 2;
  #isBusy = false;
  #isClosed = false;
  readonly #timer: WakeTimer;

  constructor(parts: UtpParts) {
    this.#parts = parts;
    const { clock, sha1, randomBytes, udp } = parts;
    const setup = {
      random: strongRandom(randomBytes),
      sha1,
      secret: randomBytes(SECRET_BYTES),
      answers: true,
    };
    this.#timer = new WakeTimer(clock, () => {
      this.#table.wake(clock.now());
      this.#run();
    });
    this.#table = new UtpTable(setup, clock.now());
    udp.listen("utp", (bytes, from) => this.input({ kind: "datagram", bytes, from }));
  }

  connect(address: PeerAddress, handlers: TcpHandlers, { timeoutMs }: { timeoutMs: number }): TcpSocket {
    const id = this.#nextOutgoing;
    this.#nextOutgoing += 2;
    const socket = new UtpSocket(this, id, address);
    this.#lines.set(id, { socket, handlers });
    this.inputSoon({ kind: "connect", id, address, timeoutMs });
    return socket;
  }

  listen(accept: (socket: TcpSocket) => TcpHandlers): void {
    this.#accept = accept;
  }

  close(): void {
    for (const { socket } of this.#lines.values()) this.input({ kind: "close", id: socket.id });
    this.#isClosed = true;
    this.#timer.stop();
  }

  bufferedBytes(id: UtpId): number {
    return this.#table.bufferedBytes(id);
  }

  /** Hands one input to the table, and carries out what follows from it. */
  input(input: UtpInput): void {
    if (this.#isClosed) return;
    this.#table.handle(input, this.#parts.clock.now());
    this.#run();
  }

  /** The same, when the caller is through: it does not expect to be called back before. */
  inputSoon(input: UtpInput): void {
    if (this.#isClosed) return;
    this.#table.handle(input, this.#parts.clock.now());
    queueMicrotask(() => this.#run());
  }

  #run(): void {
    // What handlers do makes further outputs, which follow those that are being carried out.
    if (this.#isBusy) return;
    this.#isBusy = true;
    try {
      for (let output = this.#table.poll(); output; output = this.#table.poll()) this.#carryOut(output);
    } finally {
      this.#isBusy = false;
    }
    this.#timer.want(this.#table.nextWake());
  }

  #carryOut(output: UtpOutput): void {
    if (output.kind === "send") {
      this.#parts.udp.send(output.bytes, output.to);
      return;
    }
    if (output.kind === "accepted") {
      this.#accepted(output.id, output.remote);
      return;
    }
    const line = this.#lines.get(output.id);
    if (!line) return;
    if (output.kind === "closed") {
      this.#lines.delete(output.id);
      line.socket.isClosed = true;
      line.handlers.closed(output.reason);
    } else if (!line.socket.isClosed) tell(line.handlers, output);
  }

  #accepted(id: UtpId, remote: PeerAddress): void {
    const socket = new UtpSocket(this, id, remote);
    if (!this.#accept) {
      socket.close();
      return;
    }
    this.#lines.set(id, { socket, handlers: this.#accept(socket) });
  }
}

function tell(
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
  /** Nothing comes any more but `closed`. */
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
    return this.bufferedBytes < WRITE_MARK_BYTES;
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
