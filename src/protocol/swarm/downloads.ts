import { DecodeError } from "../../base/errors.ts";
import { BLOCK_BYTES, MAX_UNREQUESTED_BLOCKS } from "./limits.ts";
import type { PartialPiece } from "./partial-piece.ts";
import type { Peer } from "./peer.ts";
import { type PieceCheck, pieceCheck } from "./piece-check.ts";
import type { Pieces } from "./pieces.ts";
import type { BlockSender } from "./smart-ban.ts";
import type { SwarmState } from "./state.ts";

/** How long a piece that no reader wants keeps its blocks: players close and reopen connections when they seek. */
const UNWANTED_MS = 10_000;

/** Operations of the swarm that `Downloads` depends on. */
interface DownloadsDependencies {
  ban(peer: BlockSender, reason: string): void;
  /** A piece is verified. */
  held(piece: number): void;
}

/** Receives blocks: places each in its piece, verifies completed pieces, cancels requests that became redundant. */
export class Downloads {
  readonly #state: SwarmState;
  readonly #dependencies: DownloadsDependencies;
  readonly #isValid: PieceCheck;

  constructor(state: SwarmState, dependencies: DownloadsDependencies) {
    this.#state = state;
    this.#dependencies = dependencies;
    this.#isValid = pieceCheck(state.setup.sha1, state.setup.sha256);
  }

  /** A peer starts to send a block. Returns the buffer to write it to, or undefined to skip it. Throws `DecodeError`. */
  begin(peer: Peer, piece: number, begin: number, length: number): Uint8Array | undefined {
    const pieces = this.#state.pieces;
    if (!pieces || piece >= pieces.layout.pieceCount) {
      throw new DecodeError("peer message", 0, `block of piece ${piece}, which does not exist`);
    }
    const block = blockAt(pieces, piece, begin, length);
    const isRequested = block >= 0 && peer.requests.find(piece, block) >= 0;
    // A block that was requested and cancelled is accepted; an unrequested one could be poison and is discarded.
    const isAccepted = isRequested || this.#acceptLate(peer);
    const partial = block < 0 || !isAccepted ? undefined : pieces.partials.get(piece);
    if (partial?.done[block] !== 0) return undefined;
    peer.receiving = partial;
    peer.receivingBlock = block;
    peer.isReceivingToScratch = partial.writing[block] !== 0;
    if (peer.isReceivingToScratch) {
      peer.scratch ??= new Uint8Array(BLOCK_BYTES);
      return peer.scratch.subarray(0, length);
    }
    partial.writing[block] = 1;
    return partial.buffer.subarray(begin, begin + length);
  }

  /** The block announced by the last `begin` is complete. */
  end(peer: Peer, piece: number, begin: number, length: number): void {
    const { now } = this.#state;
    const pieces = this.#state.pieces!;
    peer.down.add(length, now);
    this.#state.down.add(length, now);
    const block = blockAt(pieces, piece, begin, length);
    const partial = pieces.partials.get(piece);
    const at = block < 0 ? -1 : peer.requests.find(piece, block);
    if (at >= 0) {
      peer.requests.answered(at, length, now);
      if (peer.requests.remove(at)) partial?.release(block);
    }
    const target = peer.receiving;
    peer.receiving = undefined;
    if (!target || target !== partial || target.done[block] !== 0) {
      this.#state.wasted += length;
      return;
    }
    if (peer.isReceivingToScratch) {
      this.#detachWriter(target, block);
      target.buffer.set(peer.scratch!.subarray(0, length), begin);
    }
    target.writing[block] = 0;
    peer.isSnubbing = false;
    peer.snubbedSince = undefined;
    target.finish(block, peer);
    if (target.requesters[block] !== 0) this.#cancelOthers(target, block);
    // A complete piece that no reader wants stays as it is, in case the reader returns.
    if (target.isComplete && target.unwantedSince === undefined) this.#verify(pieces, target);
  }

  /** The peer rejects a request (BEP 6). */
  rejected(peer: Peer, piece: number, begin: number, length: number): void {
    const pieces = this.#state.pieces;
    const block = pieces ? blockAt(pieces, piece, begin, length) : -1;
    const at = block < 0 ? -1 : peer.requests.find(piece, block);
    if (at < 0) {
      if (peer.lateBlocksAllowed > 0) peer.lateBlocksAllowed--;
      return;
    }
    if (peer.requests.remove(at)) pieces!.partials.get(piece)?.release(block);
    // The budget was charged for the request, but the block will not arrive.
    this.#state.downloadBudget(peer).spend(-length, this.#state.now);
    peer.allowedFast.delete(piece);
    this.#state.demandVersion++;
  }

  /** The swarm no longer relies on the blocks that this peer owes; they may still arrive. */
  release(peer: Peer): void {
    if (peer.requests.pending === 0) return;
    const partials = this.#state.pieces!.partials;
    peer.requests.releaseAll((piece, block) => partials.get(piece)?.release(block));
    this.#state.demandVersion++;
  }

  /** The peer will not answer its requests (choked without BEP 6, or disconnected). */
  forget(peer: Peer): void {
    this.release(peer);
    const lost = peer.requests.clear();
    peer.lateBlocksAllowed += lost;
    if (lost > 0) this.#state.downloadBudget(peer).spend(-lost * BLOCK_BYTES, this.#state.now);
  }

  /** The connection has ended. */
  peerLeft(peer: Peer): void {
    this.forget(peer);
    this.#detach(peer);
  }

  /** Readers moved: cancels requests for pieces that no reader wants any more. */
  reviewWants(): void {
    const pieces = this.#state.pieces;
    if (!pieces) return;
    const unwanted = new Set<number>();
    for (const partial of pieces.partials.values()) {
      if (this.#state.wants.includes(partial.index)) {
        const isBack = partial.unwantedSince !== undefined;
        partial.unwantedSince = undefined;
        if (isBack && partial.isComplete) this.#verify(pieces, partial);
      } else if (partial.unwantedSince === undefined) {
        partial.unwantedSince = this.#state.now;
        unwanted.add(partial.index);
      }
    }
    if (unwanted.size === 0) return;
    for (const peer of this.#state.peers.values()) this.#cancel(peer, unwanted);
    for (const piece of unwanted) {
      const partial = pieces.partials.get(piece)!;
      if (partial.doneCount === 0) this.abandon(partial);
    }
  }

  /** Abandons pieces that no reader has wanted for a while, or with `isImmediate` all of them. Returns whether it did. */
  abandonUnwanted(isImmediate: boolean): boolean {
    const pieces = this.#state.pieces;
    let any = false;
    for (const partial of pieces?.partials.values() ?? []) {
      const since = partial.unwantedSince;
      if (since === undefined || (!isImmediate && this.#state.now - since < UNWANTED_MS)) continue;
      this.abandon(partial);
      any = true;
    }
    return any;
  }

  /** Abandons a started piece. */
  abandon(partial: PartialPiece): void {
    const only = new Set([partial.index]);
    for (const peer of this.#state.peers.values()) {
      this.#cancel(peer, only);
      if (peer.receiving === partial) this.#detach(peer);
    }
    this.#state.wasted += partial.doneCount * BLOCK_BYTES;
    this.#state.pieces!.abandon(partial);
    this.#state.demandVersion++;
  }

  /** Whether an unexpected block may be the answer to a cancelled request. Throws if too many were never requested. */
  #acceptLate(peer: Peer): boolean {
    if (peer.lateBlocksAllowed > 0) {
      peer.lateBlocksAllowed--;
      return true;
    }
    if (++peer.unrequested > MAX_UNREQUESTED_BLOCKS) {
      throw new DecodeError("peer message", 0, `more than ${MAX_UNREQUESTED_BLOCKS} unrequested blocks`);
    }
    return false;
  }

  #cancel(peer: Peer, pieces: ReadonlySet<number>): void {
    const partials = this.#state.pieces!.partials;
    peer.requests.filter((piece, block, isPending) => {
      if (!pieces.has(piece)) return true;
      const partial = partials.get(piece);
      if (partial && isPending) {
        partial.release(block);
        peer.writer.cancel(piece, block * BLOCK_BYTES, partial.blockLength(block));
      }
      peer.lateBlocksAllowed++;
      return false;
    });
  }

  /** The block has arrived: cancels the requests for it to other peers. */
  #cancelOthers(partial: PartialPiece, block: number): void {
    for (const peer of this.#state.peers.values()) {
      const at = peer.requests.pending === 0 ? -1 : peer.requests.find(partial.index, block);
      if (at < 0) continue;
      if (peer.requests.remove(at)) partial.release(block);
      peer.writer.cancel(partial.index, block * BLOCK_BYTES, partial.blockLength(block));
      peer.lateBlocksAllowed++;
    }
  }

  #detachWriter(partial: PartialPiece, block: number): void {
    for (const peer of this.#state.peers.values()) {
      const isWriter = peer.receiving === partial && peer.receivingBlock === block;
      if (isWriter && !peer.isReceivingToScratch) this.#detach(peer);
    }
  }

  /** Discards the rest of the block that the peer is sending. */
  #detach(peer: Peer): void {
    peer.decoder?.skipBlock();
    if (peer.receiving && !peer.isReceivingToScratch) peer.receiving.writing[peer.receivingBlock] = 0;
    peer.receiving = undefined;
  }

  #verify(pieces: Pieces, partial: PartialPiece): void {
    const { index, buffer, senders } = partial;
    const { smartBan } = this.#state;
    if (this.#isValid(pieces.layout, index, buffer)) {
      const culprits = smartBan.passed(index, buffer, senders);
      for (const sender of senders) {
        const peer = sender && this.#state.peers.get(sender.connection);
        if (peer) peer.wasUseful = true;
      }
      pieces.finish(partial);
      this.#state.emit({ kind: "piece", piece: index, bytes: buffer });
      this.#dependencies.held(index);
      this.#ban(culprits);
      return;
    }
    this.#state.wasted += partial.length;
    const culprits = smartBan.failed(index, buffer, senders);
    partial.restart();
    this.#ban(culprits);
    partial.onlyFor = undefined;
    this.#state.demandVersion++;
  }

  #ban(culprits: readonly BlockSender[]): void {
    const partials = this.#state.pieces!.partials;
    for (const culprit of culprits) {
      this.#dependencies.ban(culprit, "sent data that fails verification");
      // Requesting its other blocks again now is faster than letting whole pieces fail because of them.
      for (const partial of partials.values()) this.#state.wasted += partial.discardFrom(culprit.connection);
    }
    if (culprits.length > 0) this.#state.demandVersion++;
  }
}

/** Returns the index of the block at `begin`, or -1 if no request of this engine has these bounds. */
function blockAt(pieces: Pieces, piece: number, begin: number, length: number): number {
  if (begin % BLOCK_BYTES !== 0) return -1;
  const pieceLength = pieces.lengthOf(piece);
  const expected = Math.min(BLOCK_BYTES, pieceLength - begin);
  return expected > 0 && length === expected ? begin / BLOCK_BYTES : -1;
}
