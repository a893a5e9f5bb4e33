import type { PeerAddress } from "../../base/address.ts";
import { DecodeError } from "../../base/errors.ts";
import type { Infohash } from "../../base/ids.ts";
import { after } from "../../base/time.ts";
import type { Clock, TcpHandlers, TcpSocket } from "../../runtime/contract.ts";
import { MAX_BLOCK_BYTES, MAX_REQUEST_QUEUE } from "../../swarm/limits.ts";
import { encodeHandshake, HANDSHAKE_BYTES } from "../../wire/handshake.ts";
import { PeerMessageDecoder } from "../../wire/peer-message.ts";
import { PeerMessageWriter } from "../../wire/peer-message-writer.ts";
import { RequestReader } from "./request-reader.ts";
import { SeedFault } from "./seed-fault.ts";
import { type SeedBlock, SeedLane } from "./seed-lane.ts";
import type { SeedMap } from "./seed-map.ts";
import type { SeedSource } from "./seed-source.ts";

/** Connections to one web seed for one content: one for each place where somebody reads, within reason. */
const MAX_LANES = 3;
/** A connection that nobody wants anything of is kept so long: players come back to where they were. */
const LANE_IDLE_MS = 10_000;

/** What a web seed that joins a swarm is made of. */
export interface SeedPeerParts {
  readonly infohash: Infohash;
  /** 20 bytes, its own. */
  readonly peerId: Uint8Array;
  /** Stands for the server within the swarm. */
  readonly address: PeerAddress;
  readonly clock: Clock;
  readonly map: SeedMap;
  readonly source: SeedSource;
  /** Gives the connection to the swarm, as that of one who called us; the other end has read the handshake `first`. */
  readonly accept: (socket: TcpSocket, first: Uint8Array) => TcpHandlers;
  /** It has brought a block. */
  readonly gave: () => void;
  /** It has left the swarm: by itself with the fault, or because the swarm closed the connection. */
  readonly left: (fault: SeedFault | undefined) => void;
}

/**
 * A web server as a peer: it speaks the peer protocol with the swarm over a connection within this process. So the picker,
 * its deadlines, its judgement of speed and its bans are the same as for all peers. What the swarm asks for block by block
 * is fetched in long ranges, each by a lane.
 */
export class SeedPeer implements TcpSocket {
  readonly remote: PeerAddress;
  readonly bufferedBytes = 0;
  readonly #parts: SeedPeerParts;
  readonly #writer = new PeerMessageWriter();
  readonly #decoder: PeerMessageDecoder;
  /** Of the swarm's handshake still to come. */
  #greetingLeft = HANDSHAKE_BYTES;
  /** All blocks that it owes, by piece and begin. */
  readonly #owed = new Map<string, SeedBlock>();
  /** Those for which no lane is free, in the order in which they were asked for. */
  readonly #backlog = new Set<SeedBlock>();
  /** The one used last comes last. */
  readonly #lanes: SeedLane[] = [];
  readonly #restTimers = new Map<SeedLane, () => void>();
  #maxLanes = MAX_LANES;
  #handlers: TcpHandlers | undefined;
  #isOver = false;

  constructor(parts: SeedPeerParts) {
    this.#parts = parts;
    this.remote = parts.address;
    const reader = new RequestReader({
      request: (piece, begin, length) => this.#requested(piece, begin, length),
      cancel: (piece, begin, length) => this.#cancelled(piece, begin, length),
    });
    const { pieceCount } = parts.map.file.info;
    const maxBitfieldBytes = (pieceCount + 7) >> 3;
    this.#decoder = new PeerMessageDecoder(reader, {
      maxBitfieldBytes,
      maxExtendedBytes: 0,
      maxBlockBytes: MAX_BLOCK_BYTES,
    });
  }

  /** Joins the swarm: says what the server has, and that anybody may ask. */
  join(): void {
    const { infohash, peerId, map, accept } = this.#parts;
    const greeting = encodeHandshake({ infohash, peerId, extensions: false, fast: true, dht: false });
    this.#handlers = accept(this, greeting);
    const pieces = map.pieces();
    if (pieces.count === pieces.length) this.#writer.haveAll();
    else this.#writer.bitfield(pieces.bytes);
    this.#writer.unchoke();
    this.#say();
  }

  /** Leaves the swarm. */
  leave(fault: SeedFault | undefined): void {
    if (this.#isOver) return;
    this.#isOver = true;
    for (const lane of [...this.#lanes]) this.#drop(lane);
    this.#owed.clear();
    this.#backlog.clear();
    // Never within a call of the swarm: it may have closed us just now.
    void Promise.resolve().then(() => this.#handlers?.closed(fault?.message ?? "closed"));
    this.#parts.left(fault);
  }

  /** What the swarm says. */
  write(bytes: Uint8Array): boolean {
    const greeting = Math.min(this.#greetingLeft, bytes.length);
    this.#greetingLeft -= greeting;
    if (!this.#isOver) this.#decoder.feed(bytes.subarray(greeting));
    return true;
  }

  /** Whoever does not read what comes is nobody here: the swarm always does. */
  pause(): void {}

  resume(): void {}

  close(): void {
    this.leave(undefined);
  }

  #requested(piece: number, begin: number, length: number): void {
    const key = `${piece}:${begin}`;
    if (this.#owed.has(key)) return;
    // The swarm keeps to its own limits: more is a bug of ours.
    if (this.#owed.size > 2 * MAX_REQUEST_QUEUE)
      throw new DecodeError("peer message", 0, "too many requests");
    const start = piece * this.#parts.map.file.info.pieceLength + begin;
    const block: SeedBlock = { piece, begin, start, end: start + length };
    this.#owed.set(key, block);
    this.#assign(block);
  }

  /** BEP 6: what is taken back is answered, too. */
  #cancelled(piece: number, begin: number, length: number): void {
    const key = `${piece}:${begin}`;
    const block = this.#owed.get(key);
    if (!block) return;
    this.#owed.delete(key);
    this.#backlog.delete(block);
    for (const lane of this.#lanes) lane.remove(block);
    this.#writer.reject(piece, begin, length);
    void Promise.resolve().then(() => this.#say());
  }

  /** Gives a block to the lane that passes there, or to a free one; where none is, it waits. */
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
    let least = Number.POSITIVE_INFINITY;
    for (const lane of this.#lanes) {
      const gap = lane.gapTo(start);
      if (gap === undefined || gap >= least) continue;
      nearest = lane;
      least = gap;
    }
    return nearest;
  }

  #freeLane(): SeedLane | undefined {
    if (this.#lanes.length >= this.#maxLanes) return this.#lanes.find(({ isIdle }) => isIdle);
    const { source, map } = this.#parts;
    return new SeedLane(source, map, {
      arrived: (block, bytes) => this.#arrived(block, bytes),
      rested: (lane) => this.#rested(lane),
      failed: (lane, thrown) => this.#failed(lane, thrown),
    });
  }

  #use(lane: SeedLane): void {
    this.#restTimers.get(lane)?.();
    this.#restTimers.delete(lane);
    const at = this.#lanes.indexOf(lane);
    if (at >= 0) this.#lanes.splice(at, 1);
    this.#lanes.push(lane);
  }

  #arrived(block: SeedBlock, bytes: Uint8Array): void {
    if (!this.#owed.delete(`${block.piece}:${block.begin}`)) return;
    this.#parts.gave();
    this.#writer.block(block.piece, block.begin, bytes);
    this.#say();
  }

  #rested(lane: SeedLane): void {
    for (const block of [...this.#backlog]) {
      if (lane.isIdle || lane.gapTo(block.start) !== undefined) {
        this.#backlog.delete(block);
        lane.add(block);
      }
    }
    if (!lane.isIdle) return;
    const { clock } = this.#parts;
    this.#restTimers.get(lane)?.();
    this.#restTimers.set(
      lane,
      clock.at(after(clock.now(), LANE_IDLE_MS), () => this.#drop(lane)),
    );
  }

  #failed(lane: SeedLane, thrown: unknown): void {
    const blocks = lane.takeAll();
    this.#drop(lane);
    if (!(thrown instanceof SeedFault)) {
      this.leave(new SeedFault("later", "its connection broke in a way that was not foreseen"));
      throw thrown;
    }
    const others = this.#lanes.some(({ isIdle }) => !isIdle);
    if (thrown.fate !== "later" || !others) {
      this.leave(thrown);
      return;
    }
    // Some servers let one address have one connection only: then one it is.
    this.#maxLanes = 1;
    for (const block of blocks) this.#assign(block);
  }

  #drop(lane: SeedLane): void {
    lane.close();
    this.#restTimers.get(lane)?.();
    this.#restTimers.delete(lane);
    const at = this.#lanes.indexOf(lane);
    if (at >= 0) this.#lanes.splice(at, 1);
  }

  #say(): void {
    const bytes = this.#isOver ? undefined : this.#writer.take();
    if (bytes) this.#handlers!.received(bytes);
  }
}
