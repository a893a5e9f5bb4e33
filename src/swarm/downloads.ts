import { DecodeError } from "../base/errors.ts";
import { BLOCK_BYTES, MAX_UNREQUESTED_BLOCKS } from "./limits.ts";
import type { PartialPiece } from "./partial-piece.ts";
import type { Peer } from "./peer.ts";
import { type PieceCheck, pieceCheck } from "./piece-check.ts";
import type { Pieces } from "./pieces.ts";
import type { BlockSender } from "./smart-ban.ts";
import type { SwarmState } from "./state.ts";

/** A piece that no reader wants any more keeps its blocks so long: players close and reopen when they seek. */
const UNWANTED_MS = 10_000;

/** What downloads need done about whole connections. */
export interface DownloadsPeers {
  ban(peer: BlockSender, reason: string): void;
  /** We hold a piece more or less: tell the others, and see whom we are interested in. */
  held(piece: number): void;
}

/** Blocks on their way: where each goes, what follows when it is there, who is relieved of it. */
export class Downloads {
  readonly #state: SwarmState;
  readonly #peers: DownloadsPeers;
  readonly #isRight: PieceCheck;

  constructor(state: SwarmState, peers: DownloadsPeers) {
    this.#state = state;
    this.#peers = peers;
    this.#isRight = pieceCheck(state.setup.sha1, state.setup.sha256);
  }

  /** A peer begins to send a block: its place, or undefined to skip it. Throws `DecodeError`. */
  begin(peer: Peer, piece: number, begin: number, length: number): Uint8Array | undefined {
    const pieces = this.#state.pieces;
    if (!pieces || piece >= pieces.layout.pieceCount) {
      throw new DecodeError("peer message", 0, `a block of piece ${piece}, which does not exist`);
    }
    const block = blockAt(pieces, piece, begin, length);
    const isAsked = block >= 0 && peer.requests.find(piece, block) >= 0;
    // What was asked for and then cancelled is still welcome; what never was could be poison, and is not looked at.
    const isWelcome = isAsked || this.#forgive(peer);
    const partial = block < 0 || !isWelcome ? undefined : pieces.partials.get(piece);
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

  /** The block that began last has come in full. */
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
    if (target.askers[block] !== 0) this.#cancelOthers(target, block);
    // What completes with nobody wanting it any more is kept back as it is, in case the reader returns.
    if (target.isComplete && target.unwantedSince === undefined) this.#check(pieces, target);
  }

  /** The peer refuses a block (BEP 6). */
  rejected(peer: Peer, piece: number, begin: number, length: number): void {
    const pieces = this.#state.pieces;
    const block = pieces ? blockAt(pieces, piece, begin, length) : -1;
    const at = block < 0 ? -1 : peer.requests.find(piece, block);
    if (at < 0) {
      if (peer.forgiven > 0) peer.forgiven--;
      return;
    }
    if (peer.requests.remove(at)) pieces!.partials.get(piece)?.release(block);
    // What it was asked for was paid, and does not come.
    this.#state.downloadBudget(peer).spend(-length, this.#state.now);
    peer.allowedFast.delete(piece);
    this.#state.demandVersion++;
  }

  /** Nothing that this peer owes is counted on any more; it may still come. */
  release(peer: Peer): void {
    if (peer.requests.pending === 0) return;
    const partials = this.#state.pieces!.partials;
    peer.requests.releaseAll((piece, block) => partials.get(piece)?.release(block));
    this.#state.demandVersion++;
  }

  /** The peer answers nothing it was asked (choked without BEP 6, or gone). */
  forget(peer: Peer): void {
    this.release(peer);
    const lost = peer.requests.clear();
    peer.forgiven += lost;
    if (lost > 0) this.#state.downloadBudget(peer).spend(-lost * BLOCK_BYTES, this.#state.now);
  }

  /** The connection is over. */
  left(peer: Peer): void {
    this.forget(peer);
    this.#detach(peer);
  }

  /** Readers moved: what nobody wants any more is cancelled. */
  reviewWants(): void {
    const pieces = this.#state.pieces;
    if (!pieces) return;
    const unwanted = new Set<number>();
    for (const partial of pieces.partials.values()) {
      if (this.#state.wants.includes(partial.index)) {
        const isBack = partial.unwantedSince !== undefined;
        partial.unwantedSince = undefined;
        if (isBack && partial.isComplete) this.#check(pieces, partial);
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

  /** Gives up pieces that nobody has wanted for a while, or at once. */
  abandonUnwanted(isHurried: boolean): boolean {
    const pieces = this.#state.pieces;
    let any = false;
    for (const partial of pieces?.partials.values() ?? []) {
      const since = partial.unwantedSince;
      if (since === undefined || (!isHurried && this.#state.now - since < UNWANTED_MS)) continue;
      this.abandon(partial);
      any = true;
    }
    return any;
  }

  /** Gives up a piece that was started. */
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

  /** Whether a block that is not awaited may be one that was. Throws where too many are not. */
  #forgive(peer: Peer): boolean {
    if (peer.forgiven > 0) {
      peer.forgiven--;
      return true;
    }
    if (++peer.unrequested > MAX_UNREQUESTED_BLOCKS) {
      throw new DecodeError("peer message", 0, `more than ${MAX_UNREQUESTED_BLOCKS} blocks nobody asked for`);
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
      peer.forgiven++;
      return false;
    });
  }

  /** The block is here: whoever else was asked for it need not send it. */
  #cancelOthers(partial: PartialPiece, block: number): void {
    for (const peer of this.#state.peers.values()) {
      const at = peer.requests.pending === 0 ? -1 : peer.requests.find(partial.index, block);
      if (at < 0) continue;
      if (peer.requests.remove(at)) partial.release(block);
      peer.writer.cancel(partial.index, block * BLOCK_BYTES, partial.blockLength(block));
      peer.forgiven++;
    }
  }

  #detachWriter(partial: PartialPiece, block: number): void {
    for (const peer of this.#state.peers.values()) {
      const isWriter = peer.receiving === partial && peer.receivingBlock === block;
      if (isWriter && !peer.isReceivingToScratch) this.#detach(peer);
    }
  }

  /** Whatever the peer is in the middle of sending goes nowhere. */
  #detach(peer: Peer): void {
    peer.decoder?.skipBlock();
    if (peer.receiving && !peer.isReceivingToScratch) peer.receiving.writing[peer.receivingBlock] = 0;
    peer.receiving = undefined;
  }

  #check(pieces: Pieces, partial: PartialPiece): void {
    const { index, buffer, senders } = partial;
    const { smartBan } = this.#state;
    if (this.#isRight(pieces.layout, index, buffer)) {
      const liars = smartBan.passed(index, buffer, senders);
      for (const sender of senders) {
        const peer = sender && this.#state.peers.get(sender.connection);
        if (peer) peer.wasUseful = true;
      }
      pieces.finish(partial);
      this.#state.emit({ kind: "piece", piece: index, bytes: buffer });
      this.#peers.held(index);
      this.#accuse(liars);
      return;
    }
    this.#state.wasted += partial.length;
    const liars = smartBan.failed(index, buffer, senders);
    partial.restart();
    this.#accuse(liars);
    partial.onlyFor = undefined;
    this.#state.demandVersion++;
  }

  #accuse(liars: readonly BlockSender[]): void {
    const partials = this.#state.pieces!.partials;
    for (const liar of liars) {
      this.#peers.ban(liar, "sent bytes that fail verification");
      // What else it sent is better asked again now than when whole pieces fail for it.
      for (const partial of partials.values()) this.#state.wasted += partial.disown(liar.connection);
    }
    if (liars.length > 0) this.#state.demandVersion++;
  }
}

/** The number of the block at `begin`, or -1 where no request of ours could have these bounds. */
function blockAt(pieces: Pieces, piece: number, begin: number, length: number): number {
  if (begin % BLOCK_BYTES !== 0) return -1;
  const pieceLength = pieces.lengthOf(piece);
  const expected = Math.min(BLOCK_BYTES, pieceLength - begin);
  return expected > 0 && length === expected ? begin / BLOCK_BYTES : -1;
}
