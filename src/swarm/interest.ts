import { DecodeError } from "../base/errors.ts";
import type { Peer } from "./peer.ts";
import type { PeerPieces } from "./peer-pieces.ts";
import type { SwarmState } from "./state.ts";

/** So long after the last reader left we stay interested: the next one starts without waiting to be unchoked. */
const LINGER_MS = 60_000;

/** Which peers have what we lack; says so to them, and keeps count of how rare each piece is. */
export class Interest {
  readonly #state: SwarmState;

  constructor(state: SwarmState) {
    this.#state = state;
  }

  /** The peer has one more piece. */
  added(peer: Peer, piece: number): void {
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

  /** The peer says anew what it has; `change` returns false where that breaks the format. */
  replaced(peer: Peer, change: (pieces: PeerPieces) => boolean): void {
    this.left(peer);
    if (!change(peer.pieces)) throw new DecodeError("peer message", 0, "a bitfield of the wrong length");
    this.#arrived(peer);
  }

  /** The metadata is known: what peers said before is understood now. False where it makes no sense. */
  settled(peer: Peer): boolean {
    if (!peer.pieces.settle(this.#state.pieces!.layout.pieceCount)) return false;
    this.#arrived(peer);
    return true;
  }

  /** The peer's pieces count no longer. */
  left(peer: Peer): void {
    if (peer.isCounted && peer.pieces.bits) this.#state.pieces?.count(peer.pieces.bits, -1);
    peer.isCounted = false;
  }

  /** We hold this piece from now on, or (`isHeld` false) no longer. */
  held(piece: number, isHeld: boolean): void {
    for (const peer of this.#state.peers.values()) {
      if (!peer.pieces.has(piece)) continue;
      peer.pieces.useful += isHeld ? -1 : 1;
      this.review(peer);
    }
  }

  /** Says to the peer whether we are interested, where that changed. */
  review(peer: Peer): void {
    if (peer.stage !== "open") return;
    const { wants, wantedAt, now, isStopped } = this.#state;
    const isHungry = !isStopped && (wants.readers > 0 || now - wantedAt < LINGER_MS);
    const isInteresting = isHungry && peer.pieces.useful > 0;
    if (isInteresting === peer.isInteresting) return;
    peer.isInteresting = isInteresting;
    if (isInteresting) peer.writer.interested();
    else peer.writer.notInterested();
  }

  #arrived(peer: Peer): void {
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
