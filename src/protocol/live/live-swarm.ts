import type { Machine } from "../../base/machine.ts";
import { after, type Instant, instant } from "../../base/time.ts";
import { Advertiser } from "./advertiser.ts";
import { Answers } from "./answers.ts";
import { Children } from "./children.ts";
import { Chunks } from "./chunks.ts";
import { Conduct } from "./conduct.ts";
import type { LiveFigures, LiveInput, LiveOutput, LiveSetup } from "./contract.ts";
import { Fetched, type LateMedia } from "./fetched.ts";
import { HeaderRequests } from "./header-requests.ts";
import { Headers } from "./headers.ts";
import { Joining } from "./joining.ts";
import { SOURCE_PAUSE_MS, TICK_MS } from "./limits.ts";
import type { LiveMessage, SignedHeader } from "./messages.ts";
import { Neighbours } from "./neighbours.ts";
import { Parents } from "./parents.ts";
import { LivePeer } from "./peer.ts";
import { Placement } from "./placement.ts";
import { Playout } from "./playout.ts";
import { Pulls } from "./pulls.ts";
import { Source } from "./source.ts";
import { SpareUpload } from "./spare-upload.ts";
import { LiveState } from "./state.ts";
import { Stats } from "./stats.ts";

/** All peers of one live stream. Passes each input to the part that handles it, and queues outputs for the driver. */
export class LiveSwarm implements Machine<LiveInput, LiveOutput> {
  readonly #state: LiveState;
  readonly #neighbours: Neighbours;
  readonly #conduct: Conduct;
  readonly #headers: Headers;
  readonly #chunks: Chunks;
  readonly #parents: Parents;
  readonly #children: Children;
  readonly #pulls: Pulls;
  readonly #answers: Answers;
  readonly #joining: Joining;
  readonly #headerRequests: HeaderRequests;
  readonly #placement: Placement;
  readonly #playout: Playout;
  readonly #advertiser: Advertiser;
  readonly #source: Source;
  readonly #stats: Stats;
  readonly #fetched: Fetched;
  /** Whether an incoming connection from this address may be accepted at all. */
  readonly mayAdmit: Neighbours["mayAdmit"] = (address) => this.#neighbours.mayAdmit(address);
  #tickAt: Instant;

  constructor(setup: LiveSetup, now: Instant) {
    const state = new LiveState(setup, now);
    this.#state = state;
    this.#neighbours = new Neighbours(state, (peer, reason) => this.#conduct.close(peer, reason));
    this.#conduct = new Conduct(
      state,
      (peer) => this.#left(peer),
      (peer, forMs) => this.#neighbours.forbid(peer, forMs),
    );
    this.#headers = new Headers(
      state,
      this.#conduct,
      (header, from) => this.#headerAdded(header, from),
      () => this.#restarted(),
    );
    this.#parents = new Parents(
      state,
      (candidates) => this.#neighbours.referred(candidates),
      (seq, stripe) => this.#pulls.isRequested(seq, stripe),
    );
    const spareUpload = new SpareUpload(() => {
      return Math.max(0, state.uploadBytesPerSecond - this.#children.used * state.stripeRate);
    });
    this.#children = new Children(state, this.#headers, this.#parents, spareUpload);
    this.#chunks = new Chunks(
      state,
      this.#conduct,
      (chunk) => this.#children.forward(chunk),
      (seq, stripe, from) => this.#pulls.chunkReceived(seq, stripe, from),
      (chunk, from) => this.#headers.chunkOfOther(chunk, from),
    );
    this.#pulls = new Pulls(state, this.#chunks, this.#parents);
    this.#answers = new Answers(state, this.#headers, this.#children, spareUpload, this.#conduct);
    this.#joining = new Joining(state, this.#headers);
    this.#headerRequests = new HeaderRequests(state, this.#chunks, () => this.#orphans);
    this.#placement = new Placement(state, this.#parents, this.#children);
    this.#playout = new Playout(state, this.#headerRequests);
    this.#advertiser = new Advertiser(state, this.#children, this.#parents, spareUpload);
    this.#source = new Source(state, this.#children);
    this.#stats = new Stats(state, this.#conduct);
    this.#fetched = new Fetched(state, this.#children, this.#pulls);
    if (state.isSource) state.startSeq = 0;
    this.#tickAt = after(now, setup.random() * TICK_MS);
  }

  handle(input: LiveInput, now: Instant): void {
    this.#state.now = now;
    this.#dispatch(input);
  }

  wake(now: Instant): void {
    this.#state.now = now;
    this.#join();
    if (now < this.#tickAt) return;
    this.#tickAt = after(now, TICK_MS);
    this.#tick();
  }

  poll(): LiveOutput | undefined {
    return this.#state.poll();
  }

  nextWake(): Instant | undefined {
    if (this.#state.isStopped) return undefined;
    const due = this.#joining.dueAt;
    return due !== undefined && due < this.#tickAt ? instant(due) : this.#tickAt;
  }

  /** Statistics for `stat` and `livepos`. */
  figures(now: Instant): LiveFigures {
    return this.#state.figures(now);
  }

  /** Pieces that peers may not deliver in time: see {@link Fetched}. */
  late(now: Instant): LateMedia {
    this.#state.now = now;
    return this.#fetched;
  }

  /** Number of hops to the source, by stripe. */
  depths(): number[] {
    return Array.from({ length: this.#state.setup.layout.stripes }, (_, i) => this.#parents.pathOf(i).depth);
  }

  #dispatch(input: LiveInput): void {
    const peer = "connection" in input ? this.#state.peers.get(input.connection) : undefined;
    switch (input.kind) {
      case "message":
        if (peer) this.#receive(peer, input.message);
        return;
      case "found":
        this.#neighbours.found(input.addresses);
        this.#neighbours.round(this.#orphans);
        return;
      case "opened": {
        const address = this.#neighbours.dialed(input.connection);
        if (address) this.#open(input.connection, { ...input, address, isReachable: true });
        return;
      }
      case "accepted":
        this.#state.hasAcceptedPeer = true;
        if (this.#neighbours.admits(input.address, input.about)) this.#open(input.connection, input);
        else this.#state.emit({ kind: "close", connection: input.connection, reason: "connection limit" });
        return;
      case "proved":
        if (!peer) return;
        peer.about = { ...peer.about, role: input.role };
        this.#neighbours.opened(peer);
        this.#join();
        return;
      case "closed": {
        const failed = this.#neighbours.dialed(input.connection);
        if (failed) this.#neighbours.failed(failed);
        if (peer) this.#left(peer);
        return;
      }
      case "backlog":
        if (peer) this.#children.backlog(peer, input);
        return;
      case "produced":
        this.#produced(input.header, input.chunks);
        return;
      case "fetched":
        this.#fetched.take(input.found);
        this.#play();
        return;
      case "stat":
        this.#stats.publish(input.stat);
        return;
      case "successor":
        this.#stats.revoke(input.record);
        return;
      case "idle":
        this.#setIdle(input.isIdle);
        return;
      case "history":
        this.#state.historyMs = input.ms;
        return;
      case "offer":
        this.#state.offeredBytesPerSecond = input.uploadBytesPerSecond;
        this.#children.offered();
        return;
      case "stop":
        this.#state.isStopped = true;
        this.#conduct.leave();
        return;
    }
  }

  #receive(peer: LivePeer, message: LiveMessage): void {
    peer.heardAt = this.#state.now;
    if (!peer.hasSentHello && message.kind !== "hello") {
      this.#conduct.strike(peer, "message before HELLO");
      return;
    }
    switch (message.kind) {
      case "hello":
        if (peer.hasSentHello) this.#conduct.strike(peer, "repeated HELLO");
        else if (this.#joining.helloReceived(peer, message.header)) this.#join();
        return;
      case "header":
        if (!this.#joining.isWaiting) this.#headers.take(message.header, peer);
        else if (this.#joining.headOffered(peer, message.header)) this.#join();
        return;
      case "chunk":
        // A parent that follows another version of the stream delivers nothing.
        if (this.#chunks.take(message, peer) && message.epoch === this.#state.epoch)
          this.#parents.chunkReceived(peer, message.stripe, message.seq);
        this.#play();
        return;
      case "subscribe":
        this.#children.subscribe(peer, message);
        return;
      case "subscribed":
        this.#parents.accepted(peer, message);
        return;
      case "refused":
        this.#parents.refused(peer, message);
        this.#placement.refused(message.stripes, message.candidates.length > 0);
        return;
      case "unsubscribe":
        // A child that leaves and a parent that drops us send the same message.
        this.#children.unsubscribe(peer, message.stripes & peer.childOf);
        this.#parents.dropped(peer, message.stripes & peer.parentOf);
        return;
      case "window":
        peer.updateWindow(message.window, this.#state.window.head, this.#state.now);
        return;
      case "paths": {
        const isFirst = peer.paths.every((path) => path === undefined);
        peer.updatePaths(message.paths, this.#state.now);
        this.#parents.pathsChanged(peer, message.paths);
        // If stripes have no parent, the first paths of a new peer are used at once, not at the next tick.
        if (isFirst && this.#orphans > 0) this.#parents.round();
        return;
      }
      case "request":
        this.#answers.request(peer, message);
        return;
      case "lacking":
        this.#neighbours.found(message.holders);
        this.#headerRequests.refused(peer, message);
        if (this.#pulls.lacking(peer, message)) this.#pulls.round();
        return;
      case "headerRequest":
        this.#answers.headers(peer, message);
        return;
      case "stat":
        this.#stats.take(message.stat, peer);
        return;
      case "ping":
      case "pong":
        this.#neighbours.pinged(peer, message);
        return;
      case "bye":
        this.#neighbours.referred(message.candidates);
        this.#conduct.close(peer, "the peer left (BYE)");
        return;
      case "cancel":
        // The driver removes the chunk from its queue; marking it as sent prevents forwarding it later.
        if (message.epoch !== this.#state.epoch) return;
        for (const { seq, stripe } of message.chunks) peer.markSent(seq, stripe);
        return;
    }
  }

  #open(connection: number, peer: Pick<LivePeer, "address" | "isReachable" | "about" | "rttMs">): void {
    const { window, peers, now, setup } = this.#state;
    const opened = new LivePeer(connection, peer, setup.layout.stripes, now);
    peers.set(connection, opened);
    this.#neighbours.opened(opened);
    const head = window.piece(window.head)?.header;
    opened.knowsHead = head !== undefined;
    this.#state.send(opened, { kind: "hello", header: head });
    this.#advertiser.sendTo(opened);
    this.#stats.sendTo(opened);
  }

  #headerAdded(header: SignedHeader, from: LivePeer | undefined): void {
    const { window, now, headAt } = this.#state;
    if (header.value.seq === window.head) {
      if (now - headAt > SOURCE_PAUSE_MS) this.#parents.resumed();
      this.#state.headAt = now;
    }
    const piece = window.piece(header.value.seq);
    if (piece) this.#children.passHeader(piece, from);
    this.#chunks.headerAdded(header);
    this.#headerRequests.headerArrived();
    this.#headers.passHead(header);
    if (this.#state.nextSeq < 0) this.#play();
  }

  /** Plays what is complete. A newly chosen start may lie before the subscribed pieces, so those are
   * pulled. */
  #play(): void {
    if (this.#state.isIdle) return;
    const hadStart = this.#state.nextSeq >= 0;
    this.#playout.round();
    if (!hadStart && this.#state.nextSeq >= 0) this.#pulls.round();
  }

  #produced(header: SignedHeader, chunks: readonly Uint8Array[]): void {
    const { window, now } = this.#state;
    if (header.value.epoch > this.#state.epoch) {
      this.#state.epoch = header.value.epoch;
      window.reset();
      this.#restarted();
    }
    this.#headers.add(header, undefined);
    const piece = window.piece(header.value.seq);
    if (!piece) return;
    for (const [stripe, bytes] of chunks.entries()) {
      if (!window.addChunk(piece, stripe, bytes, now)) continue;
      this.#children.forward({ piece, stripe, from: undefined, isLate: false });
    }
  }

  /** Discards what belongs to the previous epoch. */
  #restarted(): void {
    this.#state.nextSeq = -1;
    this.#chunks.reset();
    this.#pulls.reset();
    this.#parents.reset();
    this.#parents.resumed();
    this.#playout.started();
    this.#children.restarted();
    for (const peer of this.#state.peers.values()) peer.restarted();
    if (!this.#state.isSource) this.#state.startSeq = 0;
  }

  /** Stripes without a parent; 0 before the head is known. */
  get #orphans(): number {
    const { isSource, isIdle, startSeq } = this.#state;
    return isSource || isIdle || startSeq < 0 ? 0 : this.#parents.orphans;
  }

  #setIdle(isIdle: boolean): void {
    if (this.#state.isSource || this.#state.isIdle === isIdle) return;
    this.#state.isIdle = isIdle;
    if (!isIdle) {
      this.#joining.joinAgain();
      return;
    }
    this.#pulls.release();
    this.#parents.release();
    this.#children.release();
  }

  #join(): void {
    if (!this.#joining.round()) return;
    this.#playout.joined();
    this.#parents.started();
    this.#headerRequests.requestRecent(this.#playout.earliestSeq);
    this.#parents.round();
    this.#play();
  }

  #tick(): void {
    this.#neighbours.round(this.#orphans);
    if (this.#state.isSource) this.#headerRequests.detectOtherSource();
    else if (!this.#state.isIdle) {
      if (this.#playout.isStuck) {
        this.#joining.restart();
        this.#playout.started();
      }
      if (this.#state.startSeq >= 0 && !this.#state.isEnding) this.#parents.round();
      this.#headerRequests.round();
      this.#playout.round();
      this.#pulls.round();
      this.#placement.round();
    }
    this.#children.round();
    this.#source.round();
    this.#advertiser.round();
    this.#stats.round();
    this.#neighbours.ping();
  }

  #left(peer: LivePeer): void {
    if (!this.#state.peers.delete(peer.connection)) return;
    this.#parents.left(peer);
    this.#children.left(peer);
    this.#pulls.left(peer);
    this.#neighbours.left(peer);
  }
}
