import { assert } from "../base/assert.ts";
import type { Machine } from "../base/machine.ts";
import { after, earliest, type Instant } from "../base/time.ts";
import type { AnnounceReply } from "../wire/tracker.ts";
import { isPrivateOrigin } from "./candidate-origins.ts";
import { Connections } from "./connections.ts";
import type {
  CandidateOrigin,
  SwarmFigures,
  SwarmInput,
  SwarmLayout,
  SwarmOutput,
  SwarmSetup,
} from "./contract.ts";
import { Downloads } from "./downloads.ts";
import { Extensions } from "./extensions.ts";
import { swarmFigures } from "./figures.ts";
import { Hashes } from "./hashes.ts";
import { Interest } from "./interest.ts";
import type { Peer } from "./peer.ts";
import { Picker } from "./picker.ts";
import { Pieces } from "./pieces.ts";
import { readLayout } from "./read-layout.ts";
import { Relief } from "./relief.ts";
import { Serving } from "./serving.ts";
import { SwarmState } from "./state.ts";
import { TrackerList } from "./tracker-list.ts";

/** How often late blocks are looked for while any are owed. */
const BUSY_MS = 100;
/** How often time-outs are looked for otherwise. */
const CALM_MS = 1_000;

/** As many addresses are handed on where a swarm ends itself: connections that a swarm has at first. */
const MAX_PEERS_LEFT = 100;

/** All peers of one infohash: hands each input to the small machines, and what they want to the driver. */
export class Swarm implements Machine<SwarmInput, SwarmOutput> {
  readonly #state: SwarmState;
  readonly #trackers: TrackerList;
  readonly #interest: Interest;
  readonly #downloads: Downloads;
  readonly #picker: Picker;
  readonly #relief: Relief;
  readonly #serving: Serving;
  readonly #extensions: Extensions;
  readonly #hashes: Hashes;
  readonly #connections: Connections;
  #roundAt: Instant;
  /** The version of the demand for which all peers have been asked. */
  #askedVersion = -1;
  #isWorking = false;
  /** What came from elsewhere, in case it fits. */
  #given: (SwarmInput & { kind: "info" }) | undefined;

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
    this.#relief = new Relief(state, this.#downloads, this.#picker);
    this.#serving = new Serving(state);
    this.#extensions = new Extensions(state, {
      metadata: (infoBytes) => this.#gotMetadata(infoBytes),
      ban: (peer, reason) => this.#connections.ban(peer, reason),
      close: (peer, reason) => this.#connections.close(peer, reason),
      punch: (address) => this.#connections.punch(address),
    });
    this.#hashes = new Hashes(state, {
      complete: (infoBytes, layout) => this.#gotLayout(infoBytes, layout),
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
      (peer) => this.#left(peer),
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

  /** Taking a buffer may free another and tempt the store to say so at once: that must wait until we are done. */
  #begin(now: Instant): void {
    assert(!this.#isWorking, "a swarm was called in the middle of its own work");
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

  /** What `stat` and the page show. */
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
        this.#given = input;
        this.#extensions.learn(input.infoBytes);
        if (input.layout) this.#hashes.learn(input.infoBytes, input.layout);
        return;
      case "dropped":
        this.#dropped(input.piece);
        return;
      case "buffers":
        if (this.#state.pieces) this.#state.pieces.isStarved = false;
        this.#state.demandVersion++;
        return;
      case "found":
        if (!this.#isForbidden(input.origin)) candidates.add(input.addresses, input.origin, now);
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
        this.#connections.accepted(input.connection, input.address, input.webSeed);
        return;
      case "closed": {
        const peer = peers.get(input.connection);
        if (peer) this.#connections.gone(peer);
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
    // Trackers tell us of ourselves, too.
    if (reply.externalAddress) candidates.exclude({ host: reply.externalAddress, port: setup.listenPort });
    candidates.add(reply.peers, "tracker", now);
  }

  /** BEP 27: the peers of private content come from its trackers (or its link) only. */
  #isForbidden(origin: CandidateOrigin): boolean {
    return this.#state.isPrivate && !isPrivateOrigin(origin);
  }

  #want(input: SwarmInput & { kind: "want" }): void {
    const { pieces, wants, early } = this.#state;
    if (!pieces) {
      early.set(input.reader, input);
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
    this.#state.early.delete(reader);
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
      this.#extensions.greetAll();
      this.#state.candidates.missing();
    }
    wants.dropped(piece);
    this.#interest.held(piece, false);
    this.#state.demandVersion++;
  }

  /** A piece has been verified. */
  #held(piece: number): void {
    const { pieces, peers } = this.#state;
    for (const peer of peers.values()) {
      if (peer.stage === "open" && !peer.pieces.has(piece)) peer.writer.have(piece);
    }
    this.#interest.held(piece, true);
    if (pieces?.isComplete) {
      this.#trackers.completed();
      this.#extensions.greetAll();
    }
    if (!this.#state.isLimited) return;
    this.#state.isLimited = false;
    this.#state.demandVersion++;
  }

  #gotMetadata(infoBytes: Uint8Array): void {
    const { setup, candidates } = this.#state;
    const layout = readLayout(setup, infoBytes, this.#given);
    if (typeof layout === "string") {
      // Nobody's fault here: the infohash vouches for the bytes, and no peer can help.
      const left = candidates.best(MAX_PEERS_LEFT, this.#state.now);
      this.#state.emit({ kind: "failed", reason: layout, peers: left });
      this.#stop();
      return;
    }
    if (!layout.lacksLayers) {
      this.#gotLayout(infoBytes, layout);
      return;
    }
    this.#hashes.want(infoBytes, layout);
    if (!layout.isPrivate) return;
    this.#state.emit({ kind: "private" });
    this.#leaveHearsay();
  }

  /** All that is to be known of the content is. */
  #gotLayout(infoBytes: Uint8Array, layout: SwarmLayout): void {
    const { setup, peers } = this.#state;
    this.#given = undefined;
    this.#state.pieces = new Pieces(layout, setup.held ?? [], setup.buffers);
    this.#state.emit({ kind: "metadata", infoBytes, layout });
    for (const peer of [...peers.values()]) {
      if (!this.#interest.settled(peer)) this.#connections.ban(peer, "said it has pieces that do not exist");
    }
    if (layout.isPrivate) this.#leaveHearsay();
    for (const want of this.#state.early.values()) this.#want(want);
    this.#state.early.clear();
    this.#state.demandVersion++;
  }

  /** Before the metadata came nobody knew that the content is private: whom it may not have is let go (BEP 27). */
  #leaveHearsay(): void {
    const { peers, candidates } = this.#state;
    for (const peer of [...peers.values()]) {
      if (peer.origin !== "web" && !isPrivateOrigin(peer.origin))
        this.#connections.close(peer, "the content is private");
    }
    candidates.forgetHearsay();
  }

  #left(peer: Peer): void {
    this.#downloads.left(peer);
    this.#interest.left(peer);
    this.#extensions.left(peer);
    this.#hashes.left(peer);
  }

  #stop(): void {
    this.#state.isStopped = true;
    this.#trackers.stop();
    for (const peer of [...this.#state.peers.values()]) this.#connections.close(peer, "stopped");
  }

  /** What follows from an input, or from time alone. */
  #settle(): void {
    const state = this.#state;
    if (state.now >= this.#roundAt) this.#round();
    this.#serving.round();
    this.#extensions.round();
    this.#hashes.round();
    if (this.#askedVersion !== state.demandVersion) {
      this.#askedVersion = state.demandVersion;
      this.#picker.refillAll();
    }
    const soon = after(state.now, BUSY_MS);
    // Nothing else may happen that would make us ask again.
    if (this.#roundAt > soon && this.#isHeldBack()) this.#roundAt = soon;
    this.#connections.dial();
    this.#announce();
    this.#flush();
  }

  #round(): void {
    const { now, wants } = this.#state;
    if (wants.readers > 0) this.#state.wantedAt = now;
    this.#connections.round();
    if (this.#isBusy()) this.#relief.round();
    if (this.#downloads.abandonUnwanted(false)) this.#state.demandVersion++;
    if (wants.readers > 0) this.#picker.refillAll();
    this.#roundAt = after(now, this.#isBusy() ? BUSY_MS : CALM_MS);
  }

  /** Whether blocks are owed, or the download limit holds requests back. */
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

  /** All that a turn wrote for a peer goes out at once. */
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
