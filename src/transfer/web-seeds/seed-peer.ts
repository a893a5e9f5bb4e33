import type { PeerAddress } from "../../base/address.ts";
import { DecodeError } from "../../base/errors.ts";
import type { Infohash } from "../../base/ids.ts";
import { after } from "../../base/time.ts";
import { MAX_BLOCK_BYTES, MAX_REQUEST_QUEUE } from "../../protocol/swarm/limits.ts";
import type { Clock, TcpHandlers, TcpSocket } from "../../runtime/contract.ts";
import { encodeHandshake, HANDSHAKE_BYTES } from "../../wire/peer/handshake.ts";
import { handleOnly, PeerMessageDecoder } from "../../wire/peer/peer-message.ts";
import { PeerMessageWriter } from "../../wire/peer/peer-message-writer.ts";
import { SeedFault } from "./seed-fault.ts";
import { type SeedBlock, SeedLane } from "./seed-lane.ts";
import type { SeedLayout } from "./seed-map.ts";
import type { SeedSource } from "./seed-source.ts";

/** Connections to one web seed for one content: one for each position that is being read. */
const MAX_LANES = 3;
/** An idle connection is kept for this time: players often continue where they were. */
const LANE_IDLE_MS = 10_000;

/** Dependencies of {@link SeedPeer}. */
export interface SeedPeerDependencies {
  readonly infohash: Infohash;
  /** 20 bytes. */
  readonly peerId: Uint8Array;
  /** Represents the server within the swarm. */
  readonly address: PeerAddress;
  readonly clock: Clock;
  readonly map: SeedLayout;
  readonly source: SeedSource;
  /** Passes the connection to the swarm as an incoming one; `first` is the handshake. */
  readonly accept: (socket: TcpSocket, first: Uint8Array) => TcpHandlers;
  /** A block was delivered. */
  readonly delivered: () => void;
  /** The web seed has left the swarm: because of the fault, or because the swarm closed the connection. */
  readonly left: (fault: SeedFault | undefined) => void;
}

/**
 * A web server as a peer: it speaks the peer protocol with the swarm over a connection within this process. So the picker, its
 * deadlines, speed measurements and bans are the same as for all peers. Lanes fetch the requested blocks in long ranges.
 */
export class SeedPeer implements TcpSocket {
  readonly remote: PeerAddress;
  readonly bufferedBytes = 0;
  readonly #dependencies: SeedPeerDependencies;
  readonly #writer = new PeerMessageWriter();
  readonly #decoder: PeerMessageDecoder;
  /** Bytes of the swarm's handshake that are still missing. */
  #handshakeLeft = HANDSHAKE_BYTES;
  /** Requested blocks by piece and begin. */
  readonly #requests = new Map<string, SeedBlock>();
  /** Requested blocks without a lane, in the order of requests. */
  readonly #backlog = new Set<SeedBlock>();
  /** The least recently used first. */
  readonly #lanes: SeedLane[] = [];
  readonly #idleTimers = new Map<SeedLane, () => void>();
  #maxLanes = MAX_LANES;
  #handlers: TcpHandlers | undefined;
  #isOver = false;

  constructor(dependencies: SeedPeerDependencies) {
    this.#dependencies = dependencies;
    this.remote = dependencies.address;
    const handler = handleOnly({
      request: (piece, begin, length) => this.#request(piece, begin, length),
      cancel: (piece, begin, length) => this.#cancel(piece, begin, length),
    });
    const { pieceCount } = dependencies.map.file.info;
    const maxBitfieldBytes = (pieceCount + 7) >> 3;
    this.#decoder = new PeerMessageDecoder(handler, {
      maxBitfieldBytes,
      maxExtendedBytes: 0,
      maxBlockBytes: MAX_BLOCK_BYTES,
    });
  }

  /** Joins the swarm: announces the server's pieces and unchokes the swarm. */
  join(): void {
    const { infohash, peerId, map, accept } = this.#dependencies;
    const handshake = encodeHandshake({ infohash, peerId, extensions: false, fast: true, dht: false });
    this.#handlers = accept(this, handshake);
    const pieces = map.pieces();
    if (pieces.count === pieces.length) this.#writer.haveAll();
    else this.#writer.bitfield(pieces.bytes);
    this.#writer.unchoke();
    this.#flush();
  }

  /** The server has one more piece. */
  have(piece: number): void {
    this.#writer.have(piece);
    this.#flush();
  }

  /** Leaves the swarm. */
  leave(fault: SeedFault | undefined): void {
    if (this.#isOver) return;
    this.#isOver = true;
    for (const lane of [...this.#lanes]) this.#drop(lane);
    this.#requests.clear();
    this.#backlog.clear();
    // Not during a call of the swarm, which may be closing this connection.
    void Promise.resolve().then(() => this.#handlers?.closed(fault?.message ?? "closed"));
    this.#dependencies.left(fault);
  }

  /** Receives bytes from the swarm. */
  write(bytes: Uint8Array): boolean {
    const handshake = Math.min(this.#handshakeLeft, bytes.length);
    this.#handshakeLeft -= handshake;
    if (!this.#isOver) this.#decoder.feed(bytes.subarray(handshake));
    return true;
  }

  /** Not needed: data arrives only as the swarm requests it. */
  pause(): void {}

  resume(): void {}

  close(): void {
    this.leave(undefined);
  }

  #request(piece: number, begin: number, length: number): void {
    const key = `${piece}:${begin}`;
    if (this.#requests.has(key)) return;
    // The swarm limits its requests: more is a bug of this program.
    if (this.#requests.size > 2 * MAX_REQUEST_QUEUE)
      throw new DecodeError("peer message", 0, "too many requests");
    const start = piece * this.#dependencies.map.file.info.pieceLength + begin;
    const block: SeedBlock = { piece, begin, start, end: start + length };
    this.#requests.set(key, block);
    this.#assign(block);
  }

  /** A canceled request is answered with a reject (BEP 6). */
  #cancel(piece: number, begin: number, length: number): void {
    const key = `${piece}:${begin}`;
    const block = this.#requests.get(key);
    if (!block) return;
    this.#requests.delete(key);
    this.#backlog.delete(block);
    for (const lane of this.#lanes) lane.remove(block);
    this.#writer.reject(piece, begin, length);
    void Promise.resolve().then(() => this.#flush());
  }

  /** Adds a block to the lane that reaches it first, or to a free lane; without either it waits. */
  #assign(block: SeedBlock): void {
    const lane = this.#nearestLane(block.start) ?? this.#freeLane();
    if (!lane) {
      this.#backlog.add(block);
      return;
    }
    this.#backlog.delete(block);
    this.#use(lane);
    lane.add(block);
  }

  #nearestLane(start: number): SeedLane | undefined {
    let nearest: SeedLane | undefined;
    let smallestGap = Number.POSITIVE_INFINITY;
    for (const lane of this.#lanes) {
      const gap = lane.gapTo(start);
      if (gap === undefined || gap >= smallestGap) continue;
      nearest = lane;
      smallestGap = gap;
    }
    return nearest;
  }

  #freeLane(): SeedLane | undefined {
    if (this.#lanes.length >= this.#maxLanes) return this.#lanes.find(({ isIdle }) => isIdle);
    const { source, map } = this.#dependencies;
    return new SeedLane(source, map, {
      arrived: (block, bytes) => this.#arrived(block, bytes),
      idle: (lane) => this.#idle(lane),
      failed: (lane, thrown) => this.#failed(lane, thrown),
    });
  }

  #use(lane: SeedLane): void {
    this.#idleTimers.get(lane)?.();
    this.#idleTimers.delete(lane);
    const at = this.#lanes.indexOf(lane);
    if (at >= 0) this.#lanes.splice(at, 1);
    this.#lanes.push(lane);
  }

  #arrived(block: SeedBlock, bytes: Uint8Array): void {
    if (!this.#requests.delete(`${block.piece}:${block.begin}`)) return;
    this.#dependencies.delivered();
    this.#writer.block(block.piece, block.begin, bytes);
    this.#flush();
  }

  #idle(lane: SeedLane): void {
    for (const block of [...this.#backlog]) {
      if (lane.isIdle || lane.gapTo(block.start) !== undefined) {
        this.#backlog.delete(block);
        lane.add(block);
      }
    }
    if (!lane.isIdle) return;
    const { clock } = this.#dependencies;
    this.#idleTimers.get(lane)?.();
    this.#idleTimers.set(
      lane,
      clock.at(after(clock.now(), LANE_IDLE_MS), () => this.#drop(lane)),
    );
  }

  #failed(lane: SeedLane, thrown: unknown): void {
    const blocks = lane.takeAll();
    this.#drop(lane);
    if (!(thrown instanceof SeedFault)) {
      this.leave(new SeedFault("later", "unexpected error"));
      throw thrown;
    }
    const hasOtherLanes = this.#lanes.some(({ isIdle }) => !isIdle);
    if (thrown.retry !== "later" || !hasOtherLanes) {
      this.leave(thrown);
      return;
    }
    // Some servers accept only one connection per client.
    this.#maxLanes = 1;
    for (const block of blocks) this.#assign(block);
  }

  #drop(lane: SeedLane): void {
    lane.close();
    this.#idleTimers.get(lane)?.();
    this.#idleTimers.delete(lane);
    const at = this.#lanes.indexOf(lane);
    if (at >= 0) this.#lanes.splice(at, 1);
  }

  #flush(): void {
    const bytes = this.#isOver ? undefined : this.#writer.take();
    if (bytes) this.#handlers!.received(bytes);
  }
}
