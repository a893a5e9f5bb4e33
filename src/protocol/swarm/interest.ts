import { DecodeError } from "../../base/errors.ts";
import type { Peer } from "./peer.ts";
import type { PeerPieces } from "./peer-pieces.ts";
import type { SwarmState } from "./state.ts";

/** How long this engine stays interested after the last reader leaves: the next one starts without waiting for unchoke. */
const LINGER_MS = 60_000;

/** Tracks which peers have pieces that this engine lacks, informs them, and counts how rare each piece is. */
export class Interest {
  readonly #state: SwarmState;

  constructor(state: SwarmState) {
    this.#state = state;
  }

  /** The peer has one more piece. Throws `DecodeError`. */
  pieceAdded(peer: Peer, piece: number): void {
    const result = peer.pieces.add(piece);
    if (result === "bad") throw new DecodeError("peer message", 0, `have: no piece ${piece}`);
    const { pieces } = this.#state;
    if (result === "known" || !pieces) return;
    if (peer.isCounted) pieces.availability[piece]!++;
    else this.#count(peer);
    if (pieces.have.has(piece)) return;
    peer.pieces.useful++;
    peer.idleVersion = -1;
    this.review(peer);
  }

  /** The peer replaces its set of pieces; `change` returns false if the message is malformed. Throws `DecodeError`. */
  piecesReplaced(peer: Peer, change: (pieces: PeerPieces) => boolean): void {
    this.peerLeft(peer);
    if (!change(peer.pieces)) throw new DecodeError("peer message", 0, "a bitfield of the wrong length");
    this.#countPieces(peer);
  }

  /** The layout is known: interprets what the peer sent before. Returns false if it does not fit the layout. */
  layoutKnown(peer: Peer): boolean {
    if (!peer.pieces.settle(this.#state.pieces!.layout.pieceCount)) return false;
    this.#countPieces(peer);
    return true;
  }

  /** Stops counting the pieces of a peer. */
  peerLeft(peer: Peer): void {
    if (peer.isCounted && peer.pieces.bits) this.#state.pieces?.count(peer.pieces.bits, -1);
    peer.isCounted = false;
  }

  /** The store holds this piece from now on, or (`isHeld` false) no longer. */
  heldChanged(piece: number, isHeld: boolean): void {
    for (const peer of this.#state.peers.values()) {
      if (!peer.pieces.has(piece)) continue;
      peer.pieces.useful += isHeld ? -1 : 1;
      this.review(peer);
    }
  }

  /** Sends `interested` or `not interested` to the peer if that changed. */
  review(peer: Peer): void {
    if (peer.stage !== "open") return;
    const { wants, wantedAt, now, isStopped } = this.#state;
    const isWanted = !isStopped && (wants.readers > 0 || now - wantedAt < LINGER_MS);
    const isInteresting = isWanted && peer.pieces.useful > 0;
    if (isInteresting === peer.isInteresting) return;
    peer.isInteresting = isInteresting;
    if (isInteresting) peer.writer.interested();
    else peer.writer.notInterested();
  }

  #countPieces(peer: Peer): void {
    const { pieces } = this.#state;
    const { bits } = peer.pieces;
    if (!pieces || !bits) return;
    this.#count(peer);
    let useful = 0;
    for (let at = 0; at < bits.bytes.length; at++) {
      for (let byte = bits.bytes[at]! & ~pieces.have.bytes[at]!; byte !== 0; byte &= byte - 1) useful++;
    }
    peer.pieces.useful = useful;
    peer.idleVersion = -1;
    this.#state.isChokeStale = true;
    this.review(peer);
  }

  #count(peer: Peer): void {
    if (peer.pieces.isAll) return;
    this.#state.pieces!.count(peer.pieces.bits!, 1);
    peer.isCounted = true;
  }
}
