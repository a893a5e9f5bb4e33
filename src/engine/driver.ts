import type { PeerAddress } from "../base/address.ts";
import { addressText } from "../base/address.ts";
import type { Infohash } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import type { Machine } from "../base/machine.ts";
import { after, type Instant } from "../base/time.ts";
import type { Clock, TcpHandlers, TcpSocket } from "../runtime/contract.ts";
import type {
  Candidate,
  ConnectionId,
  SwarmFigures,
  SwarmInput,
  SwarmLayout,
  SwarmOutput,
} from "../swarm/contract.ts";
import { CONNECT_TIMEOUT_MS } from "../swarm/limits.ts";
import type { PeerNet } from "./reach/contract.ts";
import { type DriverAnnouncer, RunningAnnounces } from "./running-announces.ts";
import { WakeTimer } from "./wake-timer.ts";

/** A swarm as the driver knows it. */
export interface DrivenSwarm extends Machine<SwarmInput, SwarmOutput> {
  figures(now: Instant): SwarmFigures;
}

/** Where pieces go to, and where blocks for peers come from. */
export interface DriverHooks {
  piece(piece: number, bytes: Uint8Array<ArrayBuffer>): void;
  /** A copy of a block, at once where the piece is in memory; undefined where the store does not hold it. */
  block(
    piece: number,
    begin: number,
    length: number,
  ): Uint8Array | undefined | Promise<Uint8Array | undefined>;
  metadata(infoBytes: Uint8Array, layout: SwarmLayout): void;
  /** The content is private, which is known before all of it is. */
  private?(): void;
  /** A peer has a node of the DHT there. */
  node?(address: PeerAddress): void;
  /** The metadata is of no use, and the swarm has stopped; `peers` are those it knew. */
  failed(reason: string, peers: readonly Candidate[]): void;
  /** This address sent wrong bytes, and is not listened to again. */
  banned(address: PeerAddress): void;
}

/** Counts the connections of all transfers together. */
export interface ConnectionCount {
  open: number;
  readonly limit: number;
}

/** What a driver is made of. */
export interface DriverParts {
  readonly infohash: Infohash;
  readonly swarm: DrivenSwarm;
  readonly clock: Clock;
  readonly net: Pick<PeerNet, "connect">;
  readonly announcer: DriverAnnouncer;
  readonly hooks: DriverHooks;
  readonly connections: ConnectionCount;
  readonly log: Log;
}

/** Where no connection is to be had, the swarm hears so after a while: it would try the next candidate at once. */
const NO_CONNECTION_MS = 1_000;

/**
 * Drives one swarm with real sockets and a real clock. Everything that happens becomes an input; after each input all
 * outputs are carried out, in one loop. A socket whose peer does not take what we send is not read from meanwhile.
 */
export class Driver {
  readonly #parts: DriverParts;
  readonly #sockets = new Map<ConnectionId, TcpSocket>();
  readonly #paused = new Set<ConnectionId>();
  readonly #later: SwarmInput[] = [];
  readonly #announces: RunningAnnounces;
  /** The swarm is in the middle of an input, or its outputs are being carried out. */
  #isBusy = false;
  #isStopped = false;
  #nextIncoming: ConnectionId = 1;
  readonly #timer: WakeTimer;

  constructor(parts: DriverParts) {
    this.#parts = parts;
    this.#timer = new WakeTimer(parts.clock, () => this.#run());
    const told = (input: SwarmInput) => {
      if (!this.#isStopped) this.input(input);
    };
    this.#announces = new RunningAnnounces({
      ...parts,
      announced: ({ url }, reply) => told({ kind: "announced", url, reply }),
      scraped: (url, counts) => told({ kind: "scraped", url, counts }),
    });
  }

  /** Carries out what the swarm wants from the start. */
  start(): void {
    this.#run();
  }

  /** Hands one input to the swarm, and carries out what follows from it. */
  input(input: SwarmInput): void {
    if (this.#isBusy) {
      // Something that an output set off, or the swarm itself by taking a buffer (memory for it may cost a piece): a
      // machine is never called in the middle of its own work. Received bytes never come this way.
      this.#later.push(input);
      return;
    }
    this.#run(input);
  }

  /** Takes over an incoming connection whose handshake `first` has been read; `webSeed`: it is a web server's, by this name. */
  accept(socket: TcpSocket, first: Uint8Array, webSeed?: string): TcpHandlers {
    const { connections } = this.#parts;
    if (this.#isStopped || connections.open >= connections.limit) {
      socket.close();
      return { received: () => {}, drained: () => {}, closed: () => {} };
    }
    const connection = this.#nextIncoming;
    this.#nextIncoming += 2;
    connections.open++;
    this.#sockets.set(connection, socket);
    const name = webSeed !== undefined && { webSeed };
    this.input({ kind: "accepted", connection, address: socket.remote, ...name });
    this.input({ kind: "received", connection, bytes: first });
    return this.#handlers(connection);
  }

  figures(): SwarmFigures {
    return this.#parts.swarm.figures(this.#parts.clock.now());
  }

  /** Says goodbye to trackers and closes all connections; resolves when that is done, within seconds. */
  async stop(): Promise<void> {
    if (this.#isStopped) return;
    this.input({ kind: "stop" });
    this.#isStopped = true;
    this.#timer.stop();
    for (const socket of this.#sockets.values()) socket.close();
    await this.#announces.settle();
  }

  /** Lets the swarm work once (for `input`, or for time where there is none), then does all that it puts out. */
  #run(input?: SwarmInput): void {
    const { swarm, clock } = this.#parts;
    this.#isBusy = true;
    try {
      if (input) swarm.handle(input, clock.now());
      else this.#wakeIfDue();
      for (;;) {
        for (let output = swarm.poll(); output; output = swarm.poll()) this.#carryOut(output);
        const next = this.#later.shift();
        if (next === undefined) break;
        swarm.handle(next, clock.now());
      }
    } finally {
      this.#isBusy = false;
    }
    this.#timer.want(swarm.nextWake());
  }

  #carryOut(output: SwarmOutput): void {
    switch (output.kind) {
      case "send":
        this.#send(output.connection, output.bytes);
        break;
      case "piece":
        this.#parts.hooks.piece(output.piece, output.bytes);
        break;
      case "read":
        this.#read(output);
        break;
      case "connect":
        this.#connect(output);
        break;
      case "close":
        this.#close(output.connection, output.reason);
        break;
      case "announce":
        this.#announces.announce(output.announce);
        break;
      case "scrape":
        void this.#announces.scrape(output.url);
        break;
      case "metadata":
        this.#parts.hooks.metadata(output.infoBytes, output.layout);
        break;
      case "private":
        this.#parts.hooks.private?.();
        break;
      case "node":
        this.#parts.hooks.node?.(output.address);
        break;
      case "failed":
        this.#parts.hooks.failed(output.reason, output.peers);
        break;
      case "banned":
        this.#parts.hooks.banned(output.address);
        this.#parts.log.info("peer banned", {
          peer: addressText(output.address),
          reason: output.reason,
        });
        break;
    }
  }

  #send(connection: ConnectionId, bytes: Uint8Array): void {
    const socket = this.#sockets.get(connection);
    // A peer that takes nothing from us gets no further requests answered, nor read.
    if (!socket || socket.write(bytes)) return;
    this.#paused.add(connection);
    socket.pause();
  }

  #read({ length, ...read }: Extract<SwarmOutput, { kind: "read" }>): void {
    const answer = (bytes: Uint8Array | undefined) => {
      if (!this.#isStopped) this.input({ ...read, kind: "block", bytes });
    };
    const bytes = this.#parts.hooks.block(read.piece, read.begin, length);
    if (bytes instanceof Promise) void bytes.then(answer);
    else answer(bytes);
  }

  #connect({ connection, address, isPunch }: Extract<SwarmOutput, { kind: "connect" }>): void {
    const { connections, net } = this.#parts;
    if (connections.open >= connections.limit) {
      this.#refuse(connection);
      return;
    }
    connections.open++;
    const handlers = this.#handlers(connection);
    const options = { timeoutMs: CONNECT_TIMEOUT_MS, ...(isPunch && { isPunch }) };
    this.#sockets.set(connection, net.connect(address, handlers, options));
  }

  #refuse(connection: ConnectionId): void {
    const { clock } = this.#parts;
    clock.at(after(clock.now(), NO_CONNECTION_MS), () => {
      if (!this.#isStopped) this.input({ kind: "closed", connection, reason: "too many connections" });
    });
  }

  #handlers(connection: ConnectionId): TcpHandlers {
    return {
      opened: () => this.#happened({ kind: "opened", connection }),
      received: (bytes) => this.#received(connection, bytes),
      drained: () => {
        if (this.#paused.delete(connection)) this.#sockets.get(connection)?.resume();
        this.#happened({ kind: "drained", connection });
      },
      closed: (reason) => this.#closed(connection, reason),
    };
  }

  #received(connection: ConnectionId, bytes: Uint8Array): void {
    // The swarm may have closed the connection while these bytes were on their way.
    if (!this.#isStopped && this.#sockets.has(connection))
      this.input({ kind: "received", connection, bytes });
  }

  #happened(input: Extract<SwarmInput, { connection: ConnectionId }>): void {
    if (!this.#isStopped && this.#sockets.has(input.connection)) this.input(input);
  }

  #closed(connection: ConnectionId, reason: string): void {
    this.#parts.connections.open--;
    this.#paused.delete(connection);
    // What the swarm closed itself it does not hear of again.
    if (this.#sockets.delete(connection) && !this.#isStopped)
      this.input({ kind: "closed", connection, reason });
  }

  #close(connection: ConnectionId, reason: string): void {
    const socket = this.#sockets.get(connection);
    this.#sockets.delete(connection);
    if (socket) this.#parts.log.debug("connection closed", { peer: addressText(socket.remote), reason });
    socket?.close();
  }

  #wakeIfDue(): void {
    const { swarm, clock } = this.#parts;
    const now = clock.now();
    const due = swarm.nextWake();
    if (due !== undefined && due <= now) swarm.wake(now);
  }
}
