import { assert } from "../../base/assert.ts";
import { equalBytes } from "../../base/bytes.ts";
import { DecodeError } from "../../base/errors.ts";
import type { Machine } from "../../base/machine.ts";
import { after, earliest, type Instant } from "../../base/time.ts";
import type { AnnounceReply } from "../../wire/tracker/announce.ts";
import { isPrivateOrigin } from "./candidate-origins.ts";
import { Connections } from "./connections.ts";
import type { SwarmFigures, SwarmInput, SwarmLayout, SwarmOutput, SwarmSetup } from "./contract.ts";
import { Downloads } from "./downloads.ts";
import { Endgame } from "./endgame.ts";
import { Extensions } from "./extensions.ts";
import { swarmFigures } from "./figures.ts";
import { Hashes } from "./hashes.ts";
import { Interest } from "./interest.ts";
import type { Peer } from "./peer.ts";
import { Picker } from "./picker.ts";
import { Pieces } from "./pieces.ts";
import { Serving } from "./serving.ts";
import { SwarmState } from "./state.ts";
import { TrackerList } from "./tracker-list.ts";

/** Interval of checks for late blocks while requests are pending. */
const BUSY_ROUND_MS = 100;
/** Interval of timeout checks otherwise. */
const IDLE_ROUND_MS = 1_000;

/** Addresses that a failed swarm passes on: as many as a new swarm can use. */
const MAX_FAILED_PEERS = 100;

/** All peers of one infohash: passes each input to the components, and their outputs to the driver. */
export class Swarm implements Machine<SwarmInput, SwarmOutput> {
  readonly #state: SwarmState;
  readonly #trackers: TrackerList;
  readonly #interest: Interest;
  readonly #downloads: Downloads;
  readonly #picker: Picker;
  readonly #endgame: Endgame;
  readonly #serving: Serving;
  readonly #extensions: Extensions;
  readonly #hashes: Hashes;
  readonly #connections: Connections;
  #roundAt: Instant;
  /** The demand version for which all peers have been asked. */
  #requestedVersion = -1;
  #isWorking = false;
  /** Metadata from another source, used if it matches the infohash. */
  #supplied: (SwarmInput & { kind: "info" }) | undefined;

  constructor(setup: SwarmSetup, now: Instant) {
    const state = new SwarmState(setup, now);
    this.#state = state;
    this.#roundAt = now;
    const { infohash, peerId, listenPort, random } = setup;
    this.#trackers = new TrackerList({ infohash, peerId, listenPort, tiers: setup.trackers, random });
    this.#interest = new Interest(state);
    this.#downloads = new Downloads(state, {
      ban: (sender, reason) => {
        const peer = state.peers.get(sender.connection);
        if (peer) this.#connections.ban(peer, reason);
        else state.candidates.ban(sender.address);
      },
      held: (piece) => this.#held(piece),
    });
    this.#picker = new Picker(state, this.#downloads);
    this.#endgame = new Endgame(state, this.#downloads, this.#picker);
    this.#serving = new Serving(state);
    this.#extensions = new Extensions(state, {
      metadata: (infoBytes) => this.#metadataReceived(infoBytes),
      ban: (peer, reason) => this.#connections.ban(peer, reason),
      close: (peer, reason) => this.#connections.close(peer, reason),
      punch: (address) => this.#connections.punch(address),
    });
    this.#hashes = new Hashes(state, {
      complete: (infoBytes, layout) => this.#layoutKnown(infoBytes, layout),
      ban: (peer, reason) => this.#connections.ban(peer, reason),
    });
    this.#connections = new Connections(
      state,
      {
        state,
        downloads: this.#downloads,
        picker: this.#picker,
        serving: this.#serving,
        interest: this.#interest,
        extensions: this.#extensions,
        hashes: this.#hashes,
      },
      (peer) => this.#peerLeft(peer),
    );
    this.#round();
  }

  handle(input: SwarmInput, now: Instant): void {
    this.#begin(now);
    this.#take(input);
    this.#settle();
    this.#isWorking = false;
  }

  wake(now: Instant): void {
    this.#begin(now);
    this.#settle();
    this.#isWorking = false;
  }

  /** A component that takes or returns a buffer may call the store, which must not call the swarm again. */
  #begin(now: Instant): void {
    assert(!this.#isWorking, "a swarm was called from within its own call");
    this.#isWorking = true;
    this.#state.now = now;
  }

  poll(): SwarmOutput | undefined {
    return this.#state.poll();
  }

  nextWake(): Instant | undefined {
    const { peers, now } = this.#state;
    let next = earliest(this.#trackers.nextWake(now), this.#connections.nextWake());
    if (peers.size > 0) next = earliest(next, this.#roundAt);
    next = earliest(next, this.#hashes.nextWake());
    return earliest(next, earliest(this.#serving.nextWake(), this.#extensions.nextWake()));
  }

  /** Returns the statistics of the swarm. */
  figures(now: Instant): SwarmFigures {
    return swarmFigures(this.#state, this.#trackers.size, now);
  }

  #take(input: SwarmInput): void {
    const { peers, candidates, now } = this.#state;
    switch (input.kind) {
      case "received": {
        const peer = peers.get(input.connection);
        if (!peer) return;
        this.#connections.received(peer, input.bytes);
        if (peer.stage === "open") this.#picker.refill(peer);
        return;
      }
      case "drained": {
        const peer = peers.get(input.connection);
        if (peer) this.#serving.drained(peer);
        return;
      }
      case "block": {
        const peer = peers.get(input.connection);
        if (peer && input.isForHashes) this.#hashes.read(peer, input.bytes);
        else if (peer) this.#serving.block(peer, input.piece, input.begin, input.bytes);
        return;
      }
      case "want":
        this.#want(input);
        return;
      case "unwant":
        this.#unwant(input.reader);
        return;
      case "info":
        this.#supplied = input;
        this.#extensions.supply(input.infoBytes);
        if (input.layout) this.#hashes.supply(input.infoBytes, input.layout);
        return;
      case "dropped":
        this.#dropped(input.piece);
        return;
      case "buffers":
        if (this.#state.pieces) this.#state.pieces.isOutOfBuffers = false;
        this.#state.demandVersion++;
        return;
      case "found":
        // BEP 27: private content takes peers from its trackers and its link only.
        if (this.#state.isPrivate && !isPrivateOrigin(input.origin)) return;
        candidates.add(input.addresses, input.origin, now);
        return;
      case "trackers":
        this.#trackers.add(input.tiers);
        return;
      case "announced":
        this.#announced(input.url, input.reply);
        return;
      case "scraped":
        this.#state.claims.scraped(input.url, input.counts);
        return;
      case "opened":
        this.#connections.opened(input.connection);
        return;
      case "accepted":
        this.#connections.accepted(input);
        return;
      case "closed": {
        const peer = peers.get(input.connection);
        if (peer) this.#connections.closed(peer);
        return;
      }
      case "stop":
        this.#stop();
        return;
    }
  }

  #announced(url: string, reply: AnnounceReply): void {
    const { claims, candidates, now, setup } = this.#state;
    this.#trackers.replied(url, reply, now);
    if (claims.replied(url, reply, now)) this.#state.emit({ kind: "scrape", url });
    if (!reply.ok) return;
    // Trackers may return this engine's own address.
    if (reply.externalAddress) candidates.exclude({ host: reply.externalAddress, port: setup.listenPort });
    candidates.add(reply.peers, "tracker", now);
  }

  #want(input: SwarmInput & { kind: "want" }): void {
    const { pieces, wants, pendingWants } = this.#state;
    if (!pieces) {
      pendingWants.set(input.reader, input);
      return;
    }
    const wasIdle = wants.readers === 0;
    const { pieceLength, pieceCount } = pieces.layout;
    if (!wants.set(input.reader, input.range, input.urgentBytes, pieceLength, pieceCount)) return;
    this.#state.demandVersion++;
    this.#downloads.reviewWants();
    if (wasIdle) for (const peer of this.#state.peers.values()) this.#interest.review(peer);
  }

  #unwant(reader: number): void {
    this.#state.pendingWants.delete(reader);
    if (!this.#state.wants.remove(reader)) return;
    this.#state.wantedAt = this.#state.now;
    this.#state.demandVersion++;
    this.#downloads.reviewWants();
  }

  #dropped(piece: number): void {
    const { pieces, wants } = this.#state;
    const wasComplete = pieces?.isComplete;
    if (!pieces?.drop(piece)) return;
    if (wasComplete) {
      this.#extensions.sendHandshakeToAll();
      this.#state.candidates.becameIncomplete();
    }
    wants.dropped(piece);
    this.#interest.heldChanged(piece, false);
    this.#state.demandVersion++;
  }

  /** A piece has been verified. */
  #held(piece: number): void {
    const { pieces, peers } = this.#state;
    for (const peer of peers.values()) {
      if (peer.stage === "open" && !peer.pieces.has(piece)) peer.writer.have(piece);
    }
    this.#interest.heldChanged(piece, true);
    if (pieces?.isComplete) {
      this.#trackers.completed();
      this.#extensions.sendHandshakeToAll();
    }
    if (!this.#state.isPickingLimited) return;
    this.#state.isPickingLimited = false;
    this.#state.demandVersion++;
  }

  #metadataReceived(infoBytes: Uint8Array): void {
    let layout: SwarmLayout;
    try {
      layout = this.#layoutOf(infoBytes);
    } catch (thrown) {
      if (!(thrown instanceof DecodeError)) throw thrown;
      // The bytes match the infohash, so no peer can send better ones.
      const peers = this.#state.candidates.best(MAX_FAILED_PEERS, this.#state.now);
      this.#state.emit({ kind: "failed", reason: thrown.message, peers });
      this.#stop();
      return;
    }
    if (!layout.lacksLayers) {
      this.#layoutKnown(infoBytes, layout);
      return;
    }
    this.#hashes.fetchLayers(infoBytes, layout);
    if (!layout.isPrivate) return;
    this.#state.emit({ kind: "private" });
    this.#dropUnverifiedPeers();
  }

  /** Decodes metadata, unless a matching layout was supplied. Throws `DecodeError`. */
  #layoutOf(infoBytes: Uint8Array): SwarmLayout {
    const { layout, infoBytes: supplied } = this.#supplied ?? {};
    return layout && supplied && equalBytes(supplied, infoBytes)
      ? layout
      : this.#state.setup.readInfo(infoBytes);
  }

  /** The layout is known, including piece layers. */
  #layoutKnown(infoBytes: Uint8Array, layout: SwarmLayout): void {
    const { setup, peers } = this.#state;
    this.#supplied = undefined;
    this.#state.pieces = new Pieces(layout, setup.held ?? [], setup.buffers);
    this.#state.emit({ kind: "metadata", infoBytes, layout });
    for (const peer of [...peers.values()]) {
      if (!this.#interest.layoutKnown(peer))
        this.#connections.ban(peer, "announced pieces that do not exist");
    }
    if (layout.isPrivate) this.#dropUnverifiedPeers();
    for (const want of this.#state.pendingWants.values()) this.#want(want);
    this.#state.pendingWants.clear();
    this.#state.demandVersion++;
  }

  /** The metadata has shown that the content is private: drops peers that private content may not use (BEP 27). */
  #dropUnverifiedPeers(): void {
    const { peers, candidates } = this.#state;
    for (const peer of [...peers.values()]) {
      if (peer.origin !== "web" && peer.origin !== "webrtc" && !isPrivateOrigin(peer.origin))
        this.#connections.close(peer, "the content is private");
    }
    candidates.dropUnverifiedPeers();
  }

  #peerLeft(peer: Peer): void {
    this.#downloads.peerLeft(peer);
    this.#interest.peerLeft(peer);
    this.#extensions.peerLeft(peer);
    this.#hashes.peerLeft(peer);
  }

  #stop(): void {
    this.#state.isStopped = true;
    this.#trackers.stop();
    for (const peer of [...this.#state.peers.values()]) this.#connections.close(peer, "stopped");
  }

  /** Does what an input, or the passing of time, has made due. */
  #settle(): void {
    const state = this.#state;
    if (state.now >= this.#roundAt) this.#round();
    this.#serving.round();
    this.#extensions.round();
    this.#hashes.round();
    if (this.#requestedVersion !== state.demandVersion) {
      this.#requestedVersion = state.demandVersion;
      this.#picker.refillAll();
    }
    const soon = after(state.now, BUSY_ROUND_MS);
    // The download limit may be the only reason to request again, so a round must follow.
    if (this.#roundAt > soon && this.#isHeldBack()) this.#roundAt = soon;
    this.#connections.dial();
    this.#announce();
    this.#flush();
  }

  #round(): void {
    const { now, wants } = this.#state;
    if (wants.readers > 0) this.#state.wantedAt = now;
    this.#connections.round();
    if (this.#isBusy()) this.#endgame.round();
    if (this.#downloads.abandonUnwanted(false)) this.#state.demandVersion++;
    if (wants.readers > 0) this.#picker.refillAll();
    this.#roundAt = after(now, this.#isBusy() ? BUSY_ROUND_MS : IDLE_ROUND_MS);
  }

  /** Whether requests are pending, or the download limit holds requests back. */
  #isBusy(): boolean {
    if (this.#isHeldBack()) return true;
    for (const peer of this.#state.peers.values()) if (peer.requests.pending > 0) return true;
    return false;
  }

  #isHeldBack(): boolean {
    const { now, wants, setup } = this.#state;
    return wants.readers > 0 && setup.limits.download.waitMs(now) > 0;
  }

  #announce(): void {
    const state = this.#state;
    const due = this.#trackers.nextWake(state.now);
    if (due === undefined || due > state.now) return;
    const { pieces } = state;
    const held = pieces ? pieces.have.count * pieces.layout.pieceLength : 0;
    const left = pieces ? Math.max(0, pieces.isComplete ? 0 : pieces.layout.length - held) : 1;
    const status = {
      uploaded: this.#serving.uploaded,
      downloaded: state.down.total,
      left,
      peers: [...state.peers.values()].filter((peer) => !peer.isWebSeed).length,
      isPaused: pieces !== undefined && !pieces.isComplete && state.wants.readers === 0,
    };
    for (const announce of this.#trackers.due(status, state.now)) state.emit({ kind: "announce", announce });
  }

  /** Sends everything written for a peer during this call at once. */
  #flush(): void {
    for (const peer of this.#state.peers.values()) {
      const bytes = peer.writer.take();
      if (!bytes) continue;
      peer.lastSentAt = this.#state.now;
      peer.uploads.unsentBytes += bytes.length;
      this.#state.emit({ kind: "send", connection: peer.connection, bytes });
    }
  }
}
