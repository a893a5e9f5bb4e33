import { latin1Text } from "../base/bytes.ts";
import { DIGEST_BYTES, type Merkle } from "../base/merkle.ts";
import { TokenBucket } from "../base/rate.ts";
import { after, earliest, type Instant } from "../base/time.ts";
import { encodeHashRange, type HashRange, proofHashes } from "../wire/hash-message.ts";
import { MESSAGE } from "../wire/peer-message.ts";
import type { PieceLayer } from "../wire/piece-layers.ts";
import type { ConnectionId } from "./contract.ts";
import { pieceLevel } from "./layer-ranges.ts";
import { LayerTree } from "./layer-tree.ts";
import type { Peer } from "./peer.ts";
import type { SwarmState } from "./state.ts";

/** Requests that wait for one peer: we ask for four at once, libtorrent for two. Others are rejected. */
const MAX_WAITING = 16;
/** What one peer may have of hashes: at once those of 30,000 pieces, then 8,000 a second, which cost us a millisecond. */
const BURST_BYTES = 1024 * 1024;
const BYTES_PER_SECOND = 256 * 1024;

interface Waiting {
  readonly ranges: HashRange[];
  readonly budget: TokenBucket;
}

/** Answers those who ask for hashes of pieces (BEP 52): in turn, at a rate, out of the layers we hold. */
export class LayerServing {
  readonly #state: SwarmState;
  readonly #merkle: Merkle;
  readonly #waiting = new Map<ConnectionId, Waiting>();
  /** By the root of the file. */
  #layers: ReadonlyMap<string, PieceLayer> | undefined;
  readonly #trees = new Map<PieceLayer, LayerTree>();
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
    };
    if (!this.#treeOf(range) || waiting.ranges.length >= MAX_WAITING) {
      peer.writer.hash(MESSAGE.hashReject, encodeHashRange(range));
      return;
    }
    this.#waiting.set(peer.connection, waiting);
    waiting.ranges.push(range);
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
    for (const [connection, waiting] of this.#waiting) {
      const peer = this.#state.peers.get(connection);
      if (peer) this.#pump(peer, waiting);
    }
  }

  nextWake(): Instant | undefined {
    return this.#dueAt;
  }

  #pump(peer: Peer, { ranges, budget }: Waiting): void {
    const { now } = this.#state;
    const upload = this.#state.uploadBudget(peer);
    while (ranges.length > 0) {
      const bytes = DIGEST_BYTES * (ranges[0]!.length + proofHashes(ranges[0]!));
      const isAllowed = budget.waitMs(now) === 0 && upload.take(bytes, now);
      if (!isAllowed) {
        const waitMs = Math.max(1, budget.waitMs(now), upload.waitMs(now));
        this.#dueAt = earliest(this.#dueAt, after(now, waitMs));
        return;
      }
      budget.take(bytes, now);
      this.#answer(peer, ranges.shift()!);
    }
  }

  #answer(peer: Peer, range: HashRange): void {
    const hashes = this.#treeOf(range)?.answer(range);
    const id = hashes ? MESSAGE.hashes : MESSAGE.hashReject;
    peer.writer.hash(id, encodeHashRange(range), hashes);
  }

  /** The tree of the file that a range names; undefined where we have no layer of it. */
  #treeOf({ root }: HashRange): LayerTree | undefined {
    const layout = this.#state.pieces?.layout;
    if (!layout?.layers) return undefined;
    this.#layers ??= new Map(layout.layers.map((layer) => [latin1Text(layer.root), layer]));
    const layer = this.#layers.get(latin1Text(root));
    if (!layer) return undefined;
    const known = this.#trees.get(layer);
    if (known) return known;
    const { firstPiece, pieceCount } = layer;
    const hashes = layout.pieceHashes.subarray(
      firstPiece * DIGEST_BYTES,
      (firstPiece + pieceCount) * DIGEST_BYTES,
    );
    const tree = new LayerTree(hashes, pieceLevel(layout.pieceLength), this.#merkle);
    this.#trees.set(layer, tree);
    return tree;
  }
}
