import { latin1Text } from "../base/bytes.ts";
import { DIGEST_BYTES, type Merkle } from "../base/merkle.ts";
import { TokenBucket } from "../base/rate.ts";
import type { Budget } from "../base/rate-limit.ts";
import { after, earliest, type Instant } from "../base/time.ts";
import { encodeHashRange, type HashRange, proofHashes } from "../wire/hash-message.ts";
import { MESSAGE } from "../wire/peer-message.ts";
import type { PieceLayer } from "../wire/piece-layers.ts";
import type { ConnectionId } from "./contract.ts";
import { pieceLevel } from "./layer-ranges.ts";
import { LayerTree } from "./layer-tree.ts";
import { leafAnswer, leafPiece } from "./leaf-answer.ts";
import type { Peer } from "./peer.ts";
import type { SwarmState } from "./state.ts";

/** Requests that wait for one peer: we ask for four at once, libtorrent for two. Others are rejected. */
const MAX_WAITING = 16;
/** What one peer may have of hashes: at once those of 30,000 pieces, then 8,000 a second. */
const BURST_BYTES = 1024 * 1024;
const BYTES_PER_SECOND = 256 * 1024;
/** What all may have together: who is choked may ask, too, and a full swarm of those would else take 20 MiB a second. */
const TOGETHER_BURST_BYTES = 8 * 1024 * 1024;
const TOGETHER_BYTES_PER_SECOND = 1024 * 1024;
/** Nodes of trees that are made for all who ask, before the first answer of each file: 10 to 50 ms of work at once (of
 * files of 8,000 pieces), then a fifth of the time or less; that of the largest tree there may be takes seconds. */
const BURST_NODES = 8_192;
const NODES_PER_SECOND = 100_000;
/** So many are made before the time is asked for again. */
const NODES_AT_ONCE = 1_024;

/** Bytes of pieces that are read and hashed for those who ask for leaves, of all peers together: about 1 % of a core. */
const LEAF_BURST_BYTES = 16 * 1024 * 1024;
const LEAF_BYTES_PER_SECOND = 8 * 1024 * 1024;

interface Waiting {
  readonly ranges: HashRange[];
  readonly budget: TokenBucket;
  /** The piece that the first range asks for the leaves of is being read. */
  isReading: boolean;
}

/** A file whose layer we hold, and its tree. */
interface LayerFile {
  readonly layer: PieceLayer;
  readonly tree: LayerTree;
}

/**
 * Answers those who ask for hashes (BEP 52): in turn, at a rate, out of the layers we hold; for those below, the leaves, out of
 * the pieces we have.
 */
export class LayerServing {
  readonly #state: SwarmState;
  readonly #merkle: Merkle;
  /** Who was answered last comes last. */
  readonly #waiting = new Map<ConnectionId, Waiting>();
  /** By the root of the file. */
  #files: ReadonlyMap<string, LayerFile> | undefined;
  readonly #together = new TokenBucket(TOGETHER_BYTES_PER_SECOND, TOGETHER_BURST_BYTES);
  readonly #leaves = new TokenBucket(LEAF_BYTES_PER_SECOND, LEAF_BURST_BYTES);
  readonly #nodes = new TokenBucket(NODES_PER_SECOND, BURST_NODES);
  #dueAt: Instant | undefined;

  constructor(state: SwarmState, merkle: Merkle) {
    this.#state = state;
    this.#merkle = merkle;
  }

  /** A peer asks for hashes. */
  requested(peer: Peer, range: HashRange): void {
    const waiting = this.#waiting.get(peer.connection) ?? {
      ranges: [],
      budget: new TokenBucket(BYTES_PER_SECOND, BURST_BYTES),
      isReading: false,
    };
    if (!this.#has(range) || waiting.ranges.length >= MAX_WAITING) {
      peer.writer.hash(MESSAGE.hashReject, encodeHashRange(range));
      return;
    }
    this.#waiting.set(peer.connection, waiting);
    waiting.ranges.push(range);
    this.#pump(peer, waiting);
  }

  /** The store's answer to a `read`: the piece whose leaves the first range asks for; undefined where it is gone. */
  read(peer: Peer, bytes: Uint8Array | undefined): void {
    const waiting = this.#waiting.get(peer.connection);
    const range = waiting?.isReading && waiting.ranges.shift();
    if (!range) return;
    waiting.isReading = false;
    const { tree } = this.#fileOf(range)!;
    const hashes = bytes && leafAnswer(range, this.#level, { tree, bytes, merkle: this.#merkle });
    peer.writer.hash(hashes ? MESSAGE.hashes : MESSAGE.hashReject, encodeHashRange(range), hashes);
    this.#pump(peer, waiting);
  }

  /** The connection is over. */
  left(peer: Peer): void {
    this.#waiting.delete(peer.connection);
  }

  /** Answers what the limits held back. */
  round(): void {
    if (this.#dueAt === undefined || this.#state.now < this.#dueAt) return;
    this.#dueAt = undefined;
    for (const [connection, waiting] of [...this.#waiting]) {
      const peer = this.#state.peers.get(connection);
      if (peer) this.#pump(peer, waiting);
    }
  }

  nextWake(): Instant | undefined {
    return this.#dueAt;
  }

  #pump(peer: Peer, waiting: Waiting): void {
    const { now } = this.#state;
    const { ranges, budget } = waiting;
    const upload = this.#state.uploadBudget(peer);
    for (let range = ranges[0]; range && !waiting.isReading; range = ranges[0]) {
      const bytes = DIGEST_BYTES * (range.length + proofHashes(range));
      const { layer, tree } = this.#fileOf(range)!;
      const piece = leafPiece(range, this.#level, tree);
      const leavesMs = piece === undefined ? 0 : this.#leaves.waitMs(now);
      const waitMs =
        this.#makingMs(tree) ||
        leavesMs ||
        budget.waitMs(now) ||
        this.#together.waitMs(now) ||
        uploadMs(upload, bytes, now);
      if (waitMs > 0) {
        this.#dueAt = earliest(this.#dueAt, after(now, waitMs));
        return;
      }
      budget.take(bytes, now);
      this.#together.take(bytes, now);
      this.#waiting.delete(peer.connection);
      this.#waiting.set(peer.connection, waiting);
      if (piece !== undefined) {
        waiting.isReading = true;
        this.#read(peer, layer.firstPiece + piece);
        return;
      }
      ranges.shift();
      peer.writer.hash(MESSAGE.hashes, encodeHashRange(range), tree.answer(range));
    }
  }

  /** Reads a piece for its leaves. */
  #read({ connection }: Peer, piece: number): void {
    const length = this.#state.pieces!.lengthOf(piece);
    this.#leaves.take(length, this.#state.now);
    this.#state.emit({ kind: "read", connection, piece, begin: 0, length, isForHashes: true });
  }

  /** Goes on with a tree as far as we may work on that now; gives in how many milliseconds we may again, 0 where it is done. */
  #makingMs(tree: LayerTree): number {
    const { now } = this.#state;
    while (!tree.isMade) {
      const waitMs = this.#nodes.waitMs(now);
      if (waitMs > 0) return waitMs;
      this.#nodes.take(tree.make(NODES_AT_ONCE), now);
    }
    return 0;
  }

  /** How many levels pieces are above leaves. */
  get #level(): number {
    return pieceLevel(this.#state.pieces!.layout.pieceLength);
  }

  /** Whether we can answer a range. */
  #has(range: HashRange): boolean {
    const file = this.#fileOf(range);
    if (!file) return false;
    const piece = leafPiece(range, this.#level, file.tree);
    return piece === undefined
      ? file.tree.has(range)
      : this.#state.pieces!.have.has(file.layer.firstPiece + piece);
  }

  /** The file that a range names; undefined where we have no layer of it. */
  #fileOf({ root }: HashRange): LayerFile | undefined {
    const layout = this.#state.pieces?.layout;
    if (!layout?.layers) return undefined;
    this.#files ??= new Map(
      layout.layers.map((layer) => [latin1Text(layer.root), this.#file(layer, layout.pieceHashes)]),
    );
    return this.#files.get(latin1Text(root));
  }

  /** Its tree costs nothing before it is made. */
  #file(layer: PieceLayer, pieceHashes: Uint8Array): LayerFile {
    const [from, to] = [layer.firstPiece, layer.firstPiece + layer.pieceCount];
    const hashes = pieceHashes.subarray(from * DIGEST_BYTES, to * DIGEST_BYTES);
    return { layer, tree: new LayerTree(hashes, this.#level, this.#merkle) };
  }
}

/** Takes from an upload limit, or gives in how many milliseconds that may be tried again. */
function uploadMs(upload: Budget, bytes: number, now: Instant): number {
  return upload.take(bytes, now) ? 0 : Math.max(1, upload.waitMs(now));
}
