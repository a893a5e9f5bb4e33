import { WakeTimer } from "../async/wake-timer.ts";
import type { PeerAddress } from "../base/address.ts";
import { addressText } from "../base/address.ts";
import type { Infohash } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import type { Machine } from "../base/machine.ts";
import { after, type Instant } from "../base/time.ts";
import type { PeerNet } from "../net/contract.ts";
import { PendingAnnounces, type SwarmAnnouncer } from "../net/pending-announces.ts";
import type {
  Candidate,
  ConnectionId,
  SwarmFigures,
  SwarmInput,
  SwarmLayout,
  SwarmOutput,
} from "../protocol/swarm/contract.ts";
import { CONNECT_TIMEOUT_MS } from "../protocol/swarm/limits.ts";
import type { Clock, TcpHandlers, TcpSocket } from "../runtime/contract.ts";
import type { ConnectionCount, ConnectionHolder } from "./connection-count.ts";

/** The swarm, as the driver uses it. */
export interface DrivenSwarm extends Machine<SwarmInput, SwarmOutput> {
  figures(now: Instant): SwarmFigures;
}

/** Callbacks for the outputs of the swarm that concern the transfer. */
export interface DriverHooks {
  piece(piece: number, bytes: Uint8Array<ArrayBuffer>): void;
  /** Returns a copy of a block; undefined if the store does not hold the piece. */
  block(
    piece: number,
    begin: number,
    length: number,
  ): Uint8Array | undefined | Promise<Uint8Array | undefined>;
  metadata(infoBytes: Uint8Array, layout: SwarmLayout): void;
  /** The content is private (BEP 27). Called before the metadata is complete. */
  private?(): void;
  /** A peer runs a DHT node at this address. */
  node?(address: PeerAddress): void;
  /** The metadata is invalid and the swarm has stopped; `peers` are its known peers. */
  failed(reason: string, peers: readonly Candidate[]): void;
  /** This address sent corrupt data and is banned. */
  banned(address: PeerAddress): void;
}

/** Dependencies of {@link Driver}. */
export interface DriverDependencies {
  readonly infohash: Infohash;
  readonly swarm: DrivenSwarm;
  readonly clock: Clock;
  readonly net: Pick<PeerNet, "connect">;
  readonly announcer: SwarmAnnouncer;
  readonly hooks: DriverHooks;
  readonly connections: ConnectionCount;
  readonly log: Log;
}

/** At the connection limit, the swarm gets the failure after this delay; otherwise it would try the next candidate at once. */
const REFUSAL_DELAY_MS = 1_000;

/**
 * Drives one swarm with sockets and a clock. Every event becomes an input; after each input all outputs are executed, in one
 * loop. While a peer does not accept our data, its socket is not read (backpressure).
 */
export class Driver implements ConnectionHolder {
  readonly #dependencies: DriverDependencies;
  readonly #sockets = new Map<ConnectionId, TcpSocket>();
  readonly #paused = new Set<ConnectionId>();
  readonly #queued: SwarmInput[] = [];
  readonly #announces: PendingAnnounces;
  /** True while the swarm handles an input or its outputs are executed. */
  #isBusy = false;
  #isStopped = false;
  #nextIncoming: ConnectionId = 1;
  readonly #timer: WakeTimer;

  constructor(dependencies: DriverDependencies) {
    this.#dependencies = dependencies;
    this.#timer = new WakeTimer(dependencies.clock, () => this.#run());
    const forward = (input: SwarmInput) => {
      if (!this.#isStopped) this.input(input);
    };
    this.#announces = new PendingAnnounces({
      ...dependencies,
      announced: ({ url }, reply) => forward({ kind: "announced", url, reply }),
      scraped: (url, counts) => forward({ kind: "scraped", url, counts }),
    });
  }

  /** Executes the first outputs of the swarm. */
  start(): void {
    this.#run();
  }

  /** Passes one input to the swarm and executes the resulting outputs. */
  input(input: SwarmInput): void {
    if (this.#isBusy) {
      // Caused by an output, or by the swarm when it takes a buffer (which may drop a piece): a machine is not reentrant.
      // Received bytes never take this path.
      this.#queued.push(input);
      return;
    }
    this.#run(input);
  }

  /**
   * Takes over an incoming connection whose handshake `first` has been read; undefined: this engine sends the first handshake.
   * `webSeed`: the name of the web seed, if it is one.
   */
  accept(socket: TcpSocket, first: Uint8Array | undefined, webSeed?: string): TcpHandlers {
    const { connections } = this.#dependencies;
    if (this.#isStopped || !connections.hasRoomFor(this)) {
      socket.close();
      return { received: () => {}, drained: () => {}, closed: () => {} };
    }
    const connection = this.#nextIncoming;
    this.#nextIncoming += 2;
    connections.open++;
    this.#sockets.set(connection, socket);
    const name = webSeed !== undefined && { webSeed };
    const transport = socket.transport === "webrtc" && { isWebRtc: true };
    const opens = first === undefined && { opensFirst: true };
    this.input({ kind: "accepted", connection, address: socket.remote, ...name, ...transport, ...opens });
    if (first) this.input({ kind: "received", connection, bytes: first });
    return this.#handlers(connection);
  }

  figures(): SwarmFigures {
    return this.#dependencies.swarm.figures(this.#dependencies.clock.now());
  }

  /** Sets whether the transfer is idle, which means that it has no player: its connections yield to those of other transfers. */
  setIdle(isIdle: boolean): void {
    this.#dependencies.connections.setIdle(this, isIdle);
  }

  closeOne(): boolean {
    const connection = [...this.#sockets.keys()].at(-1);
    if (connection === undefined) return false;
    this.#close(connection, "another transfer needs the connection");
    this.input({ kind: "closed", connection, reason: "another transfer needs the connection" });
    return true;
  }

  /** Announces `stopped` to trackers and closes all connections; resolves when that is done, within seconds. */
  async stop(): Promise<void> {
    if (this.#isStopped) return;
    this.input({ kind: "stop" });
    this.#isStopped = true;
    this.setIdle(false);
    this.#timer.stop();
    for (const socket of this.#sockets.values()) socket.close();
    await this.#announces.settle();
  }

  /** Lets the swarm handle `input`, or a due timer without one, and executes all outputs. */
  #run(input?: SwarmInput): void {
    const { swarm, clock } = this.#dependencies;
    this.#isBusy = true;
    try {
      if (input) swarm.handle(input, clock.now());
      else this.#wakeIfDue();
      for (;;) {
        for (let output = swarm.poll(); output; output = swarm.poll()) this.#execute(output);
        const next = this.#queued.shift();
        if (next === undefined) break;
        swarm.handle(next, clock.now());
      }
    } finally {
      this.#isBusy = false;
    }
    this.#timer.want(swarm.nextWake());
  }

  #execute(output: SwarmOutput): void {
    switch (output.kind) {
      case "send":
        this.#send(output.connection, output.bytes);
        break;
      case "piece":
        this.#dependencies.hooks.piece(output.piece, output.bytes);
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
        this.#dependencies.hooks.metadata(output.infoBytes, output.layout);
        break;
      case "private":
        this.#dependencies.hooks.private?.();
        break;
      case "node":
        this.#dependencies.hooks.node?.(output.address);
        break;
      case "failed":
        this.#dependencies.hooks.failed(output.reason, output.peers);
        break;
      case "banned":
        this.#dependencies.hooks.banned(output.address);
        this.#dependencies.log.info("peer banned", {
          peer: addressText(output.address),
          reason: output.reason,
        });
        break;
    }
  }

  #send(connection: ConnectionId, bytes: Uint8Array): void {
    const socket = this.#sockets.get(connection);
    // While a peer does not accept our data, its requests are not read either.
    if (!socket || socket.write(bytes)) return;
    this.#paused.add(connection);
    socket.pause();
  }

  #read({ length, ...read }: Extract<SwarmOutput, { kind: "read" }>): void {
    const answer = (bytes: Uint8Array | undefined) => {
      if (!this.#isStopped) this.input({ ...read, kind: "block", bytes });
    };
    const bytes = this.#dependencies.hooks.block(read.piece, read.begin, length);
    if (bytes instanceof Promise) void bytes.then(answer);
    else answer(bytes);
  }

  #connect({ connection, address, isPunch }: Extract<SwarmOutput, { kind: "connect" }>): void {
    const { connections, net } = this.#dependencies;
    if (!connections.hasRoomFor(this)) {
      this.#refuse(connection);
      return;
    }
    connections.open++;
    const handlers = this.#handlers(connection);
    const options = { timeoutMs: CONNECT_TIMEOUT_MS, ...(isPunch && { isPunch }) };
    this.#sockets.set(connection, net.connect(address, handlers, options));
  }

  #refuse(connection: ConnectionId): void {
    const { clock } = this.#dependencies;
    clock.at(after(clock.now(), REFUSAL_DELAY_MS), () => {
      if (!this.#isStopped) this.input({ kind: "closed", connection, reason: "too many connections" });
    });
  }

  #handlers(connection: ConnectionId): TcpHandlers {
    return {
      opened: () => this.#inputIfOpen({ kind: "opened", connection }),
      received: (bytes) => this.#received(connection, bytes),
      drained: () => {
        if (this.#paused.delete(connection)) this.#sockets.get(connection)?.resume();
        this.#inputIfOpen({ kind: "drained", connection });
      },
      closed: (reason) => this.#closed(connection, reason),
    };
  }

  #received(connection: ConnectionId, bytes: Uint8Array): void {
    // The swarm may have closed the connection while these bytes were on their way.
    if (!this.#isStopped && this.#sockets.has(connection))
      this.input({ kind: "received", connection, bytes });
  }

  #inputIfOpen(input: Extract<SwarmInput, { connection: ConnectionId }>): void {
    if (!this.#isStopped && this.#sockets.has(input.connection)) this.input(input);
  }

  #closed(connection: ConnectionId, reason: string): void {
    this.#dependencies.connections.open--;
    this.#paused.delete(connection);
    // The swarm needs no input for a connection that it closed itself.
    if (this.#sockets.delete(connection) && !this.#isStopped)
      this.input({ kind: "closed", connection, reason });
  }

  #close(connection: ConnectionId, reason: string): void {
    const socket = this.#sockets.get(connection);
    this.#sockets.delete(connection);
    if (socket)
      this.#dependencies.log.debug("connection closed", { peer: addressText(socket.remote), reason });
    socket?.close();
  }

  #wakeIfDue(): void {
    const { swarm, clock } = this.#dependencies;
    const now = clock.now();
    const due = swarm.nextWake();
    if (due !== undefined && due <= now) swarm.wake(now);
  }
}
