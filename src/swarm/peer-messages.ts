import { DecodeError } from "../base/errors.ts";
import type { PeerMessageHandler } from "../wire/peer-message.ts";
import type { Downloads } from "./downloads.ts";
import type { Extensions } from "./extensions.ts";
import type { Hashes } from "./hashes.ts";
import type { Interest } from "./interest.ts";
import type { Peer } from "./peer.ts";
import type { Picker } from "./picker.ts";
import type { Serving } from "./serving.ts";
import type { SwarmState } from "./state.ts";

/** Pieces a peer may allow us while it chokes us: BEP 6 suggests ten. */
const MAX_ALLOWED_FAST = 64;

/** The machines that messages are for. */
export interface MessageTargets {
  readonly state: SwarmState;
  readonly downloads: Downloads;
  readonly picker: Picker;
  readonly serving: Serving;
  readonly interest: Interest;
  readonly extensions: Extensions;
  readonly hashes: Hashes;
}

/** Hands each message of one peer to the machine it is for. Throws `DecodeError` where the peer is at fault. */
export class PeerMessages implements PeerMessageHandler {
  readonly #peer: Peer;
  readonly #to: MessageTargets;

  constructor(peer: Peer, targets: MessageTargets) {
    this.#peer = peer;
    this.#to = targets;
  }

  keepAlive(): void {}

  choke(): void {
    this.#peer.isChoking = true;
    // BEP 6: each request is answered by a reject or the block, so that it stays known, but others may ask meanwhile.
    if (this.#peer.isFast) this.#to.downloads.release(this.#peer);
    else this.#to.downloads.forget(this.#peer);
  }

  unchoke(): void {
    this.#peer.isChoking = false;
    this.#peer.idleVersion = -1;
    this.#to.picker.refill(this.#peer);
  }

  interested(): void {
    this.#peer.isInterested = true;
    this.#to.state.isChokeStale = true;
  }

  notInterested(): void {
    this.#peer.isInterested = false;
    this.#to.state.isChokeStale = true;
  }

  have(piece: number): void {
    this.#to.interest.added(this.#peer, piece);
    this.#to.picker.refill(this.#peer);
  }

  bitfield(bits: Uint8Array): void {
    this.#to.interest.replaced(this.#peer, (pieces) => pieces.load(bits));
  }

  haveAll(): void {
    this.#needFast("have all");
    this.#to.interest.replaced(this.#peer, (pieces) => {
      pieces.setAll();
      return true;
    });
  }

  haveNone(): void {
    this.#needFast("have none");
    this.#to.interest.replaced(this.#peer, (pieces) => {
      pieces.setNone();
      return true;
    });
  }

  request(piece: number, begin: number, length: number): void {
    this.#to.serving.requested(this.#peer, { piece, begin, length });
  }

  cancel(piece: number, begin: number, length: number): void {
    this.#to.serving.cancelled(this.#peer, { piece, begin, length });
  }

  /** Once is enough, and what it names is asked whether it is one. */
  port(port: number): void {
    const { state } = this.#to;
    if (this.#peer.hasToldNode || port === 0 || state.dhtPort === undefined) return;
    this.#peer.hasToldNode = true;
    state.emit({ kind: "node", address: { host: this.#peer.address.host, port } });
  }

  /** BEP 6: a hint that a piece is in the peer's cache. Our order is the readers', so that only its range is checked. */
  suggest(piece: number): void {
    this.#needPiece(piece);
  }

  allowedFast(piece: number): void {
    this.#needFast("allowed fast");
    this.#needPiece(piece);
    if (this.#peer.allowedFast.size >= MAX_ALLOWED_FAST) return;
    this.#peer.allowedFast.add(piece);
    this.#peer.idleVersion = -1;
    this.#to.picker.refill(this.#peer);
  }

  reject(piece: number, begin: number, length: number): void {
    this.#needFast("reject");
    this.#to.downloads.rejected(this.#peer, piece, begin, length);
  }

  extended(id: number, payload: Uint8Array): void {
    this.#to.extensions.received(this.#peer, id, payload);
  }

  hash(id: number, payload: Uint8Array): void {
    this.#to.hashes.received(this.#peer, id, payload);
  }

  block(piece: number, begin: number, length: number): Uint8Array | undefined {
    return this.#to.downloads.begin(this.#peer, piece, begin, length);
  }

  blockDone(piece: number, begin: number, length: number): void {
    this.#to.downloads.end(this.#peer, piece, begin, length);
  }

  #needFast(message: string): void {
    if (!this.#peer.isFast) throw new DecodeError("peer message", 0, `${message} without the fast extension`);
  }

  #needPiece(piece: number): void {
    const count = this.#to.state.pieces?.layout.pieceCount;
    if (count !== undefined && piece >= count) throw new DecodeError("peer message", 0, `no piece ${piece}`);
  }
}
