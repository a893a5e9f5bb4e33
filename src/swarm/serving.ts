import { DecodeError } from "../base/errors.ts";
import { after, earliest, type Instant } from "../base/time.ts";
import { allowedFastCount, allowedFastSet } from "./allowed-fast.ts";
import { Choker, type ChokerPeer } from "./choker.ts";
import type { ConnectionId } from "./contract.ts";
import { MAX_BLOCK_BYTES, MAX_UPLOAD_QUEUE } from "./limits.ts";
import type { Peer } from "./peer.ts";
import type { SwarmState } from "./state.ts";
import { type BlockRequest, unsentLimit } from "./upload-queue.ts";

/** Requests refused at once before it is a flood: an honest peer may have a full queue under way when we choke it. */
const MAX_REFUSED = 4 * MAX_UPLOAD_QUEUE;
/** A choked peer may have its fast pieces so many times: once more, should they fail. */
const FAST_COPIES = 2;
/** So many refusals a second are forgiven. */
const FORGIVEN_PER_SECOND = 50;

/** What we give: whom we choke, whose requests we take, and when their blocks are read. */
export class Serving {
  readonly #state: SwarmState;
  readonly #choker: Choker;
  /** The upload limit holds something back until then. */
  #budgetAt: Instant | undefined;
  #lastServed: ConnectionId | undefined;
  /** All bytes of blocks ever sent. */
  uploaded = 0;

  constructor(state: SwarmState) {
    this.#state = state;
    this.#choker = new Choker(state.setup.limits.upload.fairBytesPerSecond(state.now), state.setup.random);
  }

  /** A peer asks for a block. Throws `DecodeError` where no honest peer would. */
  requested(peer: Peer, request: BlockRequest): void {
    const { pieces } = this.#state;
    if (!pieces || request.piece >= pieces.layout.pieceCount) {
      throw new DecodeError("peer message", 0, `a request for piece ${request.piece}, which does not exist`);
    }
    const { begin, length } = request;
    if (length === 0 || length > MAX_BLOCK_BYTES || begin + length > pieces.servedLengthOf(request.piece)) {
      throw new DecodeError("peer message", 0, `a request for ${length} bytes at ${begin} of a piece`);
    }
    const isHad = pieces.have.has(request.piece) && this.#mayHave(peer, request);
    const fate = isHad ? peer.uploads.add(request) : "full";
    if (fate === "taken") {
      this.#pump(peer);
      return;
    }
    this.#countRefused(peer);
    if (fate === "full") this.#reject(peer, request);
  }

  /** Tells a peer what it may have while it is choked, if it has little to trade (BEP 6). */
  allowFast(peer: Peer): void {
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

  /** A peer takes a request back. BEP 6: that is answered too. */
  cancelled(peer: Peer, request: BlockRequest): void {
    if (peer.uploads.cancel(request)) this.#reject(peer, request);
  }

  /** The store's answer to a `read`. */
  block(peer: Peer, piece: number, begin: number, bytes: Uint8Array | undefined): void {
    const request = peer.uploads.read(piece, begin);
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

  /** Everything sent to the peer has gone. */
  drained(peer: Peer): void {
    peer.uploads.unsentBytes = 0;
    this.#pump(peer);
  }

  /** Does what is due: a round of choking, and what the upload limit held back. */
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
    // The other swarms have their part of the limit, which the slots here are not to be counted from.
    this.#choker.limit(this.#state.setup.limits.upload.fairBytesPerSecond(now));
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
      // For whom there is no limit, there are slots enough.
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

  /** Whether the peer is unchoked, or this is one of the pieces it may have nevertheless. */
  #mayHave(peer: Peer, { piece, length }: BlockRequest): boolean {
    if (!peer.isChoked) return true;
    if (!peer.fastPieces.has(piece) || peer.fastBytes < length) return false;
    peer.fastBytes -= length;
    return true;
  }

  /** Reads what may be read for this peer now. */
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

  /** All peers, those first that come after the last one served: a small limit would be that of the first one alone. */
  #byTurns(): Peer[] {
    const peers = [...this.#state.peers.values()];
    const at = peers.findIndex(({ connection }) => connection === this.#lastServed) + 1;
    return [...peers.slice(at), ...peers.slice(0, at)];
  }

  #countRefused(peer: Peer): void {
    const { now } = this.#state;
    const forgiven = ((now - peer.refusedAt) / 1000) * FORGIVEN_PER_SECOND;
    peer.refused = Math.max(0, peer.refused - forgiven) + 1;
    peer.refusedAt = now;
    if (peer.refused > MAX_REFUSED) throw new DecodeError("peer message", 0, "a flood of requests");
  }

  #reject(peer: Peer, request: BlockRequest): void {
    if (peer.isFast) peer.writer.reject(request.piece, request.begin, request.length);
  }
}
