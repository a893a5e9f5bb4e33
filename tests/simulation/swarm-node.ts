import type { PeerAddress } from "../../src/base/address.ts";
import { addressText } from "../../src/base/address.ts";
import { equalBytes, latin1Bytes } from "../../src/base/bytes.ts";
import { type Random, randomBelow } from "../../src/base/random.ts";
import type {
  CandidateOrigin,
  ConnectionId,
  SwarmInput,
  SwarmLimits,
  SwarmOutput,
} from "../../src/protocol/swarm/contract.ts";
import { Swarm } from "../../src/protocol/swarm/swarm.ts";
import { HANDSHAKE_BYTES } from "../../src/wire/peer/handshake.ts";
import { someLimits } from "../protocol/swarm/some-limits.ts";
import { sha256 } from "../wire/make-torrent.ts";
import { Playback, type PlaybackOptions } from "./playback.ts";
import { type SimulatedContent, sha1 } from "./simulated-content.ts";
import type { Host, SimulatedNet, SimulatedSocket, SocketHandlers } from "./simulated-net.ts";
import type { SimulatedTracker } from "./simulated-tracker.ts";

/** The pieces and data that a node has at the start, and its simulated faults. */
export interface SwarmNodeOptions {
  readonly content: SimulatedContent;
  readonly held: "all" | "none" | Iterable<number>;
  /** True if the node knows only the infohash at the start. */
  readonly isMagnet?: boolean;
  readonly trackers?: ReadonlyMap<string, SimulatedTracker>;
  readonly uploadLimit?: number;
  /** Limits that this node shares with other nodes. */
  readonly limits?: SwarmLimits;
  readonly memoryBytes?: number;
  /** The fraction of sent blocks that are corrupted, 0 to 1. */
  readonly poison?: number;
  /** True if the node never answers block requests. */
  readonly isMute?: boolean;
  /** Wrong metadata that the node sends to peers. */
  readonly fakeInfoBytes?: Uint8Array;
}

const READER_TICK_MS = 100;
/** If the swarm is woken more often than this at the same instant, the node reports an endless loop. */
const MAX_WAKES_AT_ONCE = 10_000;

/** Runs a swarm on a simulated host, and replaces the engine's driver, store and readers. */
export class SwarmNode {
  readonly host: Host;
  readonly swarm: Swarm;
  readonly held = new Set<number>();
  readonly banned: { address: PeerAddress; reason: string; at: number }[] = [];
  readonly playbacks: Playback[] = [];
  readonly closes: { address: string; reason: string }[] = [];
  /** The number of delivered pieces that no reader wanted, and of wrong pieces. Both must stay 0. */
  unwantedPieces = 0;
  wrongPieces = 0;
  hasMetadata = false;
  /** True if the node held all pieces at the start. */
  readonly isSeeder: boolean;
  readonly #net: SimulatedNet;
  readonly #options: SwarmNodeOptions;
  readonly #random: Random;
  readonly #sockets = new Map<ConnectionId, SimulatedSocket>();
  readonly #readers = new Map<Playback, number>();
  readonly #wanted = new Map<number, { start: number; end: number }>();
  readonly #pools = new Map<number, Uint8Array<ArrayBuffer>[]>();
  #takenBytes = 0;
  #nextIncoming = 1;
  #nextReader = 1;
  #cancelWake: (() => void) | undefined;
  #wakeAt: number | undefined;
  #wakesAtOnce = 0;
  #lastWake = -1;
  #isOver = false;

  constructor(net: SimulatedNet, host: Host, random: Random, options: SwarmNodeOptions) {
    this.#net = net;
    this.host = host;
    this.#options = options;
    this.#random = random;
    this.isSeeder = options.held === "all";
    const { content } = options;
    if (options.held === "all") for (let i = 0; i < content.layout.pieceCount; i++) this.held.add(i);
    else if (options.held !== "none") for (const piece of options.held) this.held.add(piece);
    const peerId = latin1Bytes("-SL0100-            ");
    for (let i = 8; i < 20; i++) peerId[i] = 48 + randomBelow(random, 75);
    const infoBytes = options.fakeInfoBytes ?? content.infoBytes;
    this.hasMetadata = options.isMagnet !== true;
    this.swarm = new Swarm(
      {
        infohash: content.infohash,
        peerId,
        ...(options.isMagnet !== true && { info: { layout: content.layout, infoBytes } }),
        readInfo: (bytes) => content.readInfo(bytes),
        held: this.held,
        trackers: [...(options.trackers?.keys() ?? [])].map((url) => [url]),
        listenPort: host.address.port,
        sha1,
        sha256,
        random,
        limits: options.limits ?? someLimits({ uploadLimit: options.uploadLimit ?? 0 }),
        buffers: { take: (length) => this.#take(length), give: (buffer) => this.#give(buffer) },
      },
      net.events.now,
    );
    host.accept = (socket) => this.#accept(socket);
    net.events.after(0, () => this.#after());
  }

  /** Adds peer addresses to the swarm. */
  found(addresses: readonly PeerAddress[], origin: CandidateOrigin = "tracker"): void {
    this.#input({ kind: "found", addresses, origin });
  }

  /** Opens a reader for a simulated player. The reader closes when the playback is complete. */
  play(options: PlaybackOptions): Playback {
    const { now } = this.#net.events;
    const { pieceLength } = this.#options.content.layout;
    const playback = new Playback(options, pieceLength, (piece) => this.held.has(piece), now);
    const reader = this.#nextReader++;
    this.playbacks.push(playback);
    this.#readers.set(playback, reader);
    this.#want(reader, playback);
    const tick = () => {
      if (this.#isOver || !this.#wanted.has(reader)) return;
      playback.update(this.#net.events.now);
      if (playback.report.isComplete) {
        this.#unwant(reader);
        return;
      }
      this.#want(reader, playback);
      this.#net.events.after(READER_TICK_MS, tick);
    };
    this.#net.events.after(READER_TICK_MS, tick);
    return playback;
  }

  /** Closes the reader of a playback and drops its report, as when the player seeks. */
  stop(playback: Playback): void {
    const reader = this.#readers.get(playback);
    this.playbacks.splice(this.playbacks.indexOf(playback), 1);
    if (reader !== undefined) this.#unwant(reader);
  }

  /** Opens a reader of a fixed range, as a download does. */
  download(range: { start: number; end: number }, urgentBytes = 0): number {
    const reader = this.#nextReader++;
    this.#wanted.set(reader, range);
    this.#input({ kind: "want", reader, range, urgentBytes });
    return reader;
  }

  #want(reader: number, playback: Playback): void {
    const range = playback.wanted;
    const known = this.#wanted.get(reader);
    this.#wanted.set(reader, { start: known?.start ?? range.start, end: range.end });
    this.#input({ kind: "want", reader, range, urgentBytes: playback.options.urgentBytes });
  }

  #unwant(reader: number): void {
    this.#wanted.delete(reader);
    this.#input({ kind: "unwant", reader });
  }

  /** Stops the node: closes its connections if `isPolite`; otherwise the host vanishes as in a power cut. */
  leave(isPolite = true): void {
    if (isPolite) this.#input({ kind: "stop" });
    this.#isOver = true;
    this.#cancelWake?.();
    this.host.leave(isPolite);
  }

  #take(length: number): Uint8Array<ArrayBuffer> | undefined {
    if (this.#takenBytes + length > (this.#options.memoryBytes ?? 64 * 1024 * 1024)) return undefined;
    this.#takenBytes += length;
    return this.#pools.get(length)?.pop() ?? new Uint8Array(length);
  }

  #give(buffer: Uint8Array<ArrayBuffer>): void {
    this.#takenBytes -= buffer.length;
    const pool = this.#pools.get(buffer.length) ?? [];
    pool.push(buffer);
    this.#pools.set(buffer.length, pool);
  }

  #input(input: SwarmInput): void {
    if (this.#isOver) return;
    this.swarm.handle(input, this.#net.events.now);
    this.#after();
  }

  #after(): void {
    for (let output = this.swarm.poll(); output; output = this.swarm.poll()) this.#do(output);
    const wake = this.swarm.nextWake();
    if (wake === this.#wakeAt && this.#cancelWake) return;
    this.#cancelWake?.();
    this.#cancelWake = undefined;
    this.#wakeAt = wake;
    if (wake === undefined || this.#isOver) return;
    this.#cancelWake = this.#net.events.at(wake, () => {
      this.#cancelWake = undefined;
      this.#countWake();
      this.swarm.wake(this.#net.events.now);
      this.#after();
    });
  }

  #countWake(): void {
    const { now } = this.#net.events;
    this.#wakesAtOnce = now === this.#lastWake ? this.#wakesAtOnce + 1 : 0;
    this.#lastWake = now;
    if (this.#wakesAtOnce > MAX_WAKES_AT_ONCE) throw new Error("the swarm wants to be woken without end");
  }

  #do(output: SwarmOutput): void {
    switch (output.kind) {
      case "connect":
        this.#connect(output.connection, output.address);
        break;
      case "send":
        this.#sockets.get(output.connection)?.write(output.bytes);
        break;
      case "close":
        this.#close(output.connection, output.reason);
        break;
      case "metadata":
        this.hasMetadata = true;
        break;
      case "piece":
        this.#piece(output.piece, output.bytes);
        break;
      case "read":
        this.#read(output);
        break;
      case "announce":
        this.#announce(output);
        break;
      case "banned":
        this.banned.push({ address: output.address, reason: output.reason, at: this.#net.events.now });
    }
  }

  #connect(connection: ConnectionId, address: PeerAddress): void {
    const socket = this.host.connect(address, {
      opened: () => this.#input({ kind: "opened", connection }),
      ...this.#handlers(connection),
    });
    this.#sockets.set(connection, socket);
  }

  #accept(socket: SimulatedSocket): SocketHandlers {
    const connection = this.#nextIncoming;
    this.#nextIncoming += 2;
    const handlers = this.#handlers(connection);
    const head: number[] = [];
    let isAccepted = false;
    return {
      ...handlers,
      received: (bytes) => {
        if (isAccepted) return handlers.received(bytes);
        head.push(...bytes.subarray(0, 65_536));
        if (head.length < HANDSHAKE_BYTES) return;
        isAccepted = true;
        this.#sockets.set(connection, socket);
        this.#input({ kind: "accepted", connection, address: socket.remote });
        handlers.received(Uint8Array.from(head));
      },
      closed: (reason) => {
        if (isAccepted) handlers.closed(reason);
      },
    };
  }

  #handlers(connection: ConnectionId): SocketHandlers {
    return {
      received: (bytes) => {
        if (this.#sockets.has(connection)) this.#input({ kind: "received", connection, bytes });
      },
      drained: () => {
        if (this.#sockets.has(connection)) this.#input({ kind: "drained", connection });
      },
      closed: (reason) => {
        if (this.#sockets.delete(connection)) this.#input({ kind: "closed", connection, reason });
      },
    };
  }

  /** Closes the socket of a connection that the swarm closes. Like a driver, it then reports only `closed`. */
  #close(connection: ConnectionId, reason: string): void {
    const socket = this.#sockets.get(connection);
    if (!socket) return;
    this.closes.push({ address: addressText(socket.remote), reason });
    socket.close(reason);
  }

  #piece(piece: number, bytes: Uint8Array<ArrayBuffer>): void {
    const { content } = this.#options;
    const start = piece * content.layout.pieceLength;
    if (!equalBytes(bytes, content.bytes.subarray(start, start + bytes.length))) this.wrongPieces++;
    const isWanted = [...this.#wanted.values()].some(
      (want) => start < want.end && start + bytes.length > want.start,
    );
    if (!isWanted) this.unwantedPieces++;
    this.held.add(piece);
    this.#give(bytes);
    this.#net.events.after(0, () => this.#input({ kind: "buffers" }));
    for (const playback of this.playbacks) playback.update(this.#net.events.now);
  }

  #read(read: SwarmOutput & { kind: "read" }): void {
    const { content, poison, isMute } = this.#options;
    if (isMute) return;
    const { connection, piece, begin } = read;
    const start = piece * content.layout.pieceLength + begin;
    const bytes = content.bytes.slice(start, start + read.length);
    if (poison !== undefined && this.#random() < poison)
      bytes[randomBelow(this.#random, bytes.length)]! ^= 0xff;
    const has = this.held.has(piece);
    this.#net.events.after(0, () =>
      this.#input({ kind: "block", connection, piece, begin, bytes: has ? bytes : undefined }),
    );
  }

  #announce({ announce }: SwarmOutput & { kind: "announce" }): void {
    const tracker = this.#options.trackers?.get(announce.url);
    const reply = tracker?.announce(announce, this.host.address) ?? {
      ok: false as const,
      reason: "no such tracker",
    };
    this.#net.events.after(50, () => this.#input({ kind: "announced", url: announce.url, reply }));
  }
}
