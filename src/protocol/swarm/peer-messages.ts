import { DecodeError } from "../../base/errors.ts";
import type { PeerMessageHandler } from "../../wire/peer/peer-message.ts";
import type { Downloads } from "./downloads.ts";
import type { Extensions } from "./extensions.ts";
import type { Hashes } from "./hashes.ts";
import type { Interest } from "./interest.ts";
import type { Peer } from "./peer.ts";
import type { Picker } from "./picker.ts";
import type { Serving } from "./serving.ts";
import type { SwarmState } from "./state.ts";

/** Limit on `allowed fast` messages of a peer; BEP 6 suggests ten pieces. */
const MAX_ALLOWED_FAST = 64;

/** The components that handle messages. */
export interface MessageTargets {
  readonly state: SwarmState;
  readonly downloads: Downloads;
  readonly picker: Picker;
  readonly serving: Serving;
  readonly interest: Interest;
  readonly extensions: Extensions;
  readonly hashes: Hashes;
}

/** Dispatches the messages of one peer. Its methods throw `DecodeError` for messages that break the protocol. */
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
    // BEP 6: the peer still answers each request by a block or a reject, but other peers may be asked meanwhile.
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
    this.#to.interest.pieceAdded(this.#peer, piece);
    this.#to.picker.refill(this.#peer);
  }

  bitfield(bits: Uint8Array): void {
    this.#to.interest.piecesReplaced(this.#peer, (pieces) => pieces.load(bits));
  }

  haveAll(): void {
    this.#needFast("have all");
    this.#to.interest.piecesReplaced(this.#peer, (pieces) => {
      pieces.setAll();
      return true;
    });
  }

  haveNone(): void {
    this.#needFast("have none");
    this.#to.interest.piecesReplaced(this.#peer, (pieces) => {
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

  /** The DHT port of the peer (BEP 5); only the first one is used. */
  port(port: number): void {
    const { state } = this.#to;
    if (this.#peer.hasReportedNode || port === 0 || state.dhtPort === undefined) return;
    this.#peer.hasReportedNode = true;
    state.emit({ kind: "node", address: { host: this.#peer.address.host, port } });
  }

  /** BEP 6: a hint that the peer has a piece in its cache. Not used, because readers determine the order. */
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
