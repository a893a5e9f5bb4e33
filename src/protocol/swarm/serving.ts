import { DecodeError } from "../../base/errors.ts";
import { after, earliest, type Instant } from "../../base/time.ts";
import { allowedFastCount, allowedFastSet } from "./allowed-fast.ts";
import { Choker, type ChokerPeer } from "./choker.ts";
import type { ConnectionId } from "./contract.ts";
import { MAX_BLOCK_BYTES, MAX_UPLOAD_QUEUE } from "./limits.ts";
import type { Peer } from "./peer.ts";
import type { SwarmState } from "./state.ts";
import { type BlockRequest, unsentLimit } from "./upload-queue.ts";

/** Refused requests before a peer is disconnected: an honest peer may have a full queue in flight when it is choked. */
const MAX_REFUSED = 4 * MAX_UPLOAD_QUEUE;
/** How many times a choked peer may fetch its allowed fast pieces: once more, in case they fail verification. */
const FAST_COPIES = 2;
/** Refusals that decay per second. */
const REFUSED_DECAY_PER_SECOND = 50;

/** Uploading: chokes peers, accepts their requests, reads and sends blocks. */
export class Serving {
  readonly #state: SwarmState;
  readonly #choker: Choker;
  /** When the upload limit allows the next read. */
  #budgetAt: Instant | undefined;
  #lastServed: ConnectionId | undefined;
  /** Bytes of all blocks sent. */
  uploaded = 0;

  constructor(state: SwarmState) {
    this.#state = state;
    this.#choker = new Choker(
      state.setup.limits.upload.fairShareBytesPerSecond(state.now),
      state.setup.random,
    );
  }

  /** A peer requests a block. Throws `DecodeError` if the request is invalid. */
  requested(peer: Peer, request: BlockRequest): void {
    const { pieces } = this.#state;
    if (!pieces || request.piece >= pieces.layout.pieceCount) {
      throw new DecodeError("peer message", 0, `request for piece ${request.piece}, which does not exist`);
    }
    const { begin, length } = request;
    if (length === 0 || length > MAX_BLOCK_BYTES || begin + length > pieces.servedLengthOf(request.piece)) {
      throw new DecodeError("peer message", 0, `request for ${length} bytes at ${begin} of a piece`);
    }
    const isServed = pieces.have.has(request.piece) && this.#isPermitted(peer, request);
    const result = isServed ? peer.uploads.add(request) : "full";
    if (result === "accepted") {
      this.#pump(peer);
      return;
    }
    this.#countRefused(peer);
    if (result === "full") this.#reject(peer, request);
  }

  /** Announces the pieces that a peer may request while choked (BEP 6). */
  sendAllowedFast(peer: Peer): void {
    const { pieces, setup } = this.#state;
    if (!pieces) return;
    const { pieceCount, pieceLength } = pieces.layout;
    const count = allowedFastCount(pieceCount, pieceLength);
    for (const piece of allowedFastSet(peer.address.host, setup.infohash, pieceCount, count, setup.sha1)) {
      if (!pieces.have.has(piece)) continue;
      peer.fastPieces.add(piece);
      peer.fastBytes += FAST_COPIES * pieces.lengthOf(piece);
      peer.writer.allowedFast(piece);
    }
  }

  /** A peer cancels a request, which is answered by a reject (BEP 6). */
  cancelled(peer: Peer, request: BlockRequest): void {
    if (peer.uploads.cancel(request)) this.#reject(peer, request);
  }

  /** The store's answer to a `read`. */
  block(peer: Peer, piece: number, begin: number, bytes: Uint8Array | undefined): void {
    const request = peer.uploads.finishRead(piece, begin);
    if (!request) return;
    const whole = bytes && this.#state.pieces!.padded(piece, begin, request.length, bytes);
    if (whole?.length !== request.length) this.#reject(peer, request);
    else {
      const { now } = this.#state;
      peer.writer.block(piece, begin, whole);
      peer.up.add(whole.length, now);
      this.#state.up.add(whole.length, now);
      this.uploaded += whole.length;
      peer.wasUseful = true;
    }
    this.#pump(peer);
  }

  /** The kernel has taken everything sent to the peer. */
  drained(peer: Peer): void {
    peer.uploads.unsentBytes = 0;
    this.#pump(peer);
  }

  /** Runs a due choke round, and sends what the upload limit delayed. */
  round(): void {
    const { now } = this.#state;
    if (this.#budgetAt !== undefined && now >= this.#budgetAt) {
      this.#budgetAt = undefined;
      for (const peer of this.#byTurns()) this.#pump(peer);
    }
    const roundAt = this.#choker.nextWake();
    if (this.#state.isChokeStale || (roundAt !== undefined && now >= roundAt)) this.#choke();
  }

  nextWake(): Instant | undefined {
    return earliest(this.#budgetAt, this.#state.peers.size > 0 ? this.#choker.nextWake() : undefined);
  }

  #choke(): void {
    this.#state.isChokeStale = false;
    const { pieces, now, peers, wants } = this.#state;
    // Other swarms share the limit, so the slots are computed from this swarm's share.
    this.#choker.setLimit(this.#state.setup.limits.upload.fairShareBytesPerSecond(now));
    const chosen = this.#choker.round(
      this.#chokerPeers(),
      wants.readers === 0 || pieces?.isComplete === true,
      now,
    );
    for (const peer of peers.values()) {
      const isChosen = peer.isExempt ? peer.isInterested : chosen.has(peer.connection);
      if (peer.stage !== "open" || peer.isChoked !== isChosen) continue;
      peer.isChoked = !peer.isChoked;
      if (!peer.isChoked) peer.writer.unchoke();
      else {
        peer.writer.choke();
        for (const request of peer.uploads.clear()) this.#reject(peer, request);
      }
    }
  }

  #chokerPeers(): ChokerPeer[] {
    const { now, peers } = this.#state;
    const list: ChokerPeer[] = [];
    for (const peer of peers.values()) {
      // Exempt peers are always unchoked and use no slot.
      if (peer.stage !== "open" || peer.isExempt) continue;
      list.push({
        id: peer.connection,
        isInterested: peer.isInterested,
        isUploadOnly: peer.isUploadOnly || peer.pieces.isAll,
        isSnubbing: peer.isSnubbing,
        bytesPerSecondDown: peer.down.bytesPerSecond(now),
        bytesPerSecondUp: peer.up.bytesPerSecond(now),
        connectedAt: peer.connectedAt,
      });
    }
    return list;
  }

  /** Whether the peer is unchoked, or may request this piece while choked. */
  #isPermitted(peer: Peer, { piece, length }: BlockRequest): boolean {
    if (!peer.isChoked) return true;
    if (!peer.fastPieces.has(piece) || peer.fastBytes < length) return false;
    peer.fastBytes -= length;
    return true;
  }

  /** Reads as many requested blocks for this peer as the limits allow. */
  #pump(peer: Peer): void {
    const { now } = this.#state;
    const budget = this.#state.uploadBudget(peer);
    peer.uploads.limitBytes = unsentLimit(peer.up.bytesPerSecond(now));
    for (let request = peer.uploads.peek(); request; request = peer.uploads.peek()) {
      if (!budget.take(request.length, now)) {
        this.#budgetAt = earliest(this.#budgetAt, after(now, Math.max(1, budget.waitMs(now))));
        return;
      }
      peer.uploads.next();
      this.#lastServed = peer.connection;
      this.#state.emit({ kind: "read", connection: peer.connection, ...request });
    }
  }

  /** All peers, starting after the one served last, so that a small limit is shared among them. */
  #byTurns(): Peer[] {
    const peers = [...this.#state.peers.values()];
    const at = peers.findIndex(({ connection }) => connection === this.#lastServed) + 1;
    return [...peers.slice(at), ...peers.slice(0, at)];
  }

  #countRefused(peer: Peer): void {
    const { now } = this.#state;
    const decayed = ((now - peer.refusedAt) / 1000) * REFUSED_DECAY_PER_SECOND;
    peer.refused = Math.max(0, peer.refused - decayed) + 1;
    peer.refusedAt = now;
    if (peer.refused > MAX_REFUSED) throw new DecodeError("peer message", 0, "too many refused requests");
  }

  #reject(peer: Peer, request: BlockRequest): void {
    if (peer.isFast) peer.writer.reject(request.piece, request.begin, request.length);
  }
}
