import { latin1Text } from "../../base/bytes.ts";
import { DIGEST_BYTES, type Merkle } from "../../base/merkle.ts";
import { TokenBucket } from "../../base/rate.ts";
import type { Budget } from "../../base/rate-limit.ts";
import { after, earliest, type Instant } from "../../base/time.ts";
import { encodeHashRange, type HashRange, proofHashCount } from "../../wire/peer/hash-message.ts";
import { MESSAGE } from "../../wire/peer/peer-message.ts";
import type { PieceLayer } from "../../wire/torrent/piece-layers.ts";
import type { ConnectionId } from "./contract.ts";
import { pieceLevel } from "./layer-ranges.ts";
import { LayerTree } from "./layer-tree.ts";
import { leafAnswer, leafPiece } from "./leaf-answer.ts";
import type { Peer } from "./peer.ts";
import type { SwarmState } from "./state.ts";

/** Queued requests of one peer: this engine sends four at once, libtorrent two. Further requests are rejected. */
const MAX_WAITING = 16;
/** Hash bytes for one peer: hashes of 30,000 pieces in a burst, then of 8,000 a second. */
const BURST_BYTES = 1024 * 1024;
const BYTES_PER_SECOND = 256 * 1024;
/** Hash bytes for all peers: choked peers may request hashes, too, and a full swarm of them would otherwise use 20 MiB/s. */
const TOTAL_BURST_BYTES = 8 * 1024 * 1024;
const TOTAL_BYTES_PER_SECOND = 1024 * 1024;
/** Tree nodes computed before the first answer of each file: 10 to 50 ms of work in a burst (files of 8,000 pieces), then at
 * most a fifth of the time. The largest possible tree takes seconds. */
const BURST_NODES = 8_192;
const NODES_PER_SECOND = 100_000;
/** Nodes computed between two checks of the budget. */
const NODES_PER_STEP = 1_024;

/** Piece bytes read and hashed to answer leaf requests of all peers: about 1 % of a core. */
const LEAF_BURST_BYTES = 16 * 1024 * 1024;
const LEAF_BYTES_PER_SECOND = 8 * 1024 * 1024;

interface HashRequests {
  readonly ranges: HashRange[];
  readonly budget: TokenBucket;
  /** The store is reading the piece whose leaves the first range requests. */
  isReading: boolean;
}

/** A file with a known layer, and its tree. */
interface LayerFile {
  readonly layer: PieceLayer;
  readonly tree: LayerTree;
}

/**
 * Answers hash requests (BEP 52) in turn and within rate limits: piece layers from the known layers, leaves from the pieces in
 * the store.
 */
export class LayerServing {
  readonly #state: SwarmState;
  readonly #merkle: Merkle;
  /** By connection, least recently answered first. */
  readonly #queues = new Map<ConnectionId, HashRequests>();
  /** By the root of the file. */
  #files: ReadonlyMap<string, LayerFile> | undefined;
  readonly #total = new TokenBucket(TOTAL_BYTES_PER_SECOND, TOTAL_BURST_BYTES);
  readonly #leaves = new TokenBucket(LEAF_BYTES_PER_SECOND, LEAF_BURST_BYTES);
  readonly #nodes = new TokenBucket(NODES_PER_SECOND, BURST_NODES);
  #dueAt: Instant | undefined;

  constructor(state: SwarmState, merkle: Merkle) {
    this.#state = state;
    this.#merkle = merkle;
  }

  /** A peer requests hashes. */
  requested(peer: Peer, range: HashRange): void {
    const queue = this.#queues.get(peer.connection) ?? {
      ranges: [],
      budget: new TokenBucket(BYTES_PER_SECOND, BURST_BYTES),
      isReading: false,
    };
    if (!this.#has(range) || queue.ranges.length >= MAX_WAITING) {
      peer.writer.hash(MESSAGE.hashReject, encodeHashRange(range));
      return;
    }
    this.#queues.set(peer.connection, queue);
    queue.ranges.push(range);
    this.#pump(peer, queue);
  }

  /** The store's answer to a `read`: the piece whose leaves the first range requests; undefined if it is no longer held. */
  read(peer: Peer, bytes: Uint8Array | undefined): void {
    const queue = this.#queues.get(peer.connection);
    const range = queue?.isReading && queue.ranges.shift();
    if (!range) return;
    queue.isReading = false;
    const { tree } = this.#fileOf(range)!;
    const hashes = bytes && leafAnswer(range, this.#level, { tree, bytes, merkle: this.#merkle });
    peer.writer.hash(hashes ? MESSAGE.hashes : MESSAGE.hashReject, encodeHashRange(range), hashes);
    this.#pump(peer, queue);
  }

  /** The connection has ended. */
  peerLeft(peer: Peer): void {
    this.#queues.delete(peer.connection);
  }

  /** Sends the answers that rate limits delayed. */
  round(): void {
    if (this.#dueAt === undefined || this.#state.now < this.#dueAt) return;
    this.#dueAt = undefined;
    for (const [connection, queue] of [...this.#queues]) {
      const peer = this.#state.peers.get(connection);
      if (peer) this.#pump(peer, queue);
    }
  }

  nextWake(): Instant | undefined {
    return this.#dueAt;
  }

  #pump(peer: Peer, queue: HashRequests): void {
    const { now } = this.#state;
    const { ranges, budget } = queue;
    const upload = this.#state.uploadBudget(peer);
    for (let range = ranges[0]; range && !queue.isReading; range = ranges[0]) {
      const bytes = DIGEST_BYTES * (range.length + proofHashCount(range));
      const { layer, tree } = this.#fileOf(range)!;
      const piece = leafPiece(range, this.#level, tree);
      const leavesMs = piece === undefined ? 0 : this.#leaves.waitMs(now);
      const waitMs =
        this.#computeTree(tree) ||
        leavesMs ||
        budget.waitMs(now) ||
        this.#total.waitMs(now) ||
        uploadMs(upload, bytes, now);
      if (waitMs > 0) {
        this.#dueAt = earliest(this.#dueAt, after(now, waitMs));
        return;
      }
      budget.take(bytes, now);
      this.#total.take(bytes, now);
      this.#queues.delete(peer.connection);
      this.#queues.set(peer.connection, queue);
      if (piece !== undefined) {
        queue.isReading = true;
        this.#read(peer, layer.firstPiece + piece);
        return;
      }
      ranges.shift();
      peer.writer.hash(MESSAGE.hashes, encodeHashRange(range), tree.answer(range));
    }
  }

  /** Reads a piece to hash its leaves. */
  #read({ connection }: Peer, piece: number): void {
    const length = this.#state.pieces!.lengthOf(piece);
    this.#leaves.take(length, this.#state.now);
    this.#state.emit({ kind: "read", connection, piece, begin: 0, length, isForHashes: true });
  }

  /** Computes a tree as far as the budget allows; returns the milliseconds until it may continue, 0 if it is complete. */
  #computeTree(tree: LayerTree): number {
    const { now } = this.#state;
    while (!tree.isComputed) {
      const waitMs = this.#nodes.waitMs(now);
      if (waitMs > 0) return waitMs;
      this.#nodes.take(tree.compute(NODES_PER_STEP), now);
    }
    return 0;
  }

  /** The level of the piece layer above the leaves. */
  get #level(): number {
    return pieceLevel(this.#state.pieces!.layout.pieceLength);
  }

  /** Whether this engine can answer a request for the range. */
  #has(range: HashRange): boolean {
    const file = this.#fileOf(range);
    if (!file) return false;
    const piece = leafPiece(range, this.#level, file.tree);
    return piece === undefined
      ? file.tree.has(range)
      : this.#state.pieces!.have.has(file.layer.firstPiece + piece);
  }

  /** Returns the file that a range refers to; undefined if its layer is unknown. */
  #fileOf({ root }: HashRange): LayerFile | undefined {
    const layout = this.#state.pieces?.layout;
    if (!layout?.layers) return undefined;
    this.#files ??= new Map(
      layout.layers.map((layer) => [latin1Text(layer.root), this.#file(layer, layout.pieceHashes)]),
    );
    return this.#files.get(latin1Text(root));
  }

  /** The tree is computed on the first request. */
  #file(layer: PieceLayer, pieceHashes: Uint8Array): LayerFile {
    const [from, to] = [layer.firstPiece, layer.firstPiece + layer.pieceCount];
    const hashes = pieceHashes.subarray(from * DIGEST_BYTES, to * DIGEST_BYTES);
    return { layer, tree: new LayerTree(hashes, this.#level, this.#merkle) };
  }
}

/** Charges the upload limit; returns 0, or the milliseconds until the next attempt. */
function uploadMs(upload: Budget, bytes: number, now: Instant): number {
  return upload.take(bytes, now) ? 0 : Math.max(1, upload.waitMs(now));
}
