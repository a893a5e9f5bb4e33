import { addressText, type PeerAddress } from "../../base/address.ts";
import type { Machine } from "../../base/machine.ts";
import { after, type Instant, instant } from "../../base/time.ts";
import { Answers } from "./answers.ts";
import { Asking } from "./asking.ts";
import { Children } from "./children.ts";
import { Chunks } from "./chunks.ts";
import { Conduct } from "./conduct.ts";
import type { LiveFigures, LiveInput, LiveOutput, LiveSetup } from "./contract.ts";
import { sayGoodbye } from "./farewell.ts";
import { Fetched, type LateMedia } from "./fetched.ts";
import { liveFigures } from "./figures.ts";
import { Headers } from "./headers.ts";
import { Joining } from "./joining.ts";
import { PAUSE_MS, QUIET_MS, TICK_MS } from "./limits.ts";
import type { LiveAbout, LiveWord, SignedHeader } from "./messages.ts";
import { Neighbours } from "./neighbours.ts";
import { News } from "./news.ts";
import { Parents } from "./parents.ts";
import { LivePeer } from "./peer.ts";
import { Places } from "./places.ts";
import { Playout } from "./playout.ts";
import { Pulls } from "./pulls.ts";
import { Pulse } from "./pulse.ts";
import { Source } from "./source.ts";
import { Spare } from "./spare.ts";
import { LiveState } from "./state.ts";
import { Stats } from "./stats.ts";

/** All peers of one live stream: hands each input to the small machines, and what they want to the driver. */
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
  readonly #asking: Asking;
  readonly #places: Places;
  readonly #playout: Playout;
  readonly #news: News;
  readonly #source: Source;
  readonly #stats: Stats;
  readonly #pulse: Pulse;
  readonly #fetched: Fetched;
  #tickAt: Instant;

  constructor(setup: LiveSetup, now: Instant) {
    const state = new LiveState(setup, now);
    this.#state = state;
    this.#neighbours = new Neighbours(state, (peer) => this.#conduct.close(peer, "of no use to each other"));
    this.#conduct = new Conduct(
      state,
      (peer) => this.#left(peer),
      (peer) => this.#neighbours.forbid(peer),
    );
    this.#headers = new Headers(
      state,
      this.#conduct,
      (header, from) => this.#headerAdded(header, from),
      () => this.#restarted(),
    );
    this.#parents = new Parents(
      state,
      (told) => {
        this.#neighbours.found(
          told.map(({ address }) => address),
          true,
        );
      },
      (seq, stripe) => this.#pulls.isAsked(seq, stripe),
    );
    const spare = new Spare(() => {
      const { uploadBytesPerSecond } = setup.about;
      return Math.max(0, uploadBytesPerSecond - this.#children.used * state.stripeRate);
    });
    this.#children = new Children(state, this.#headers, this.#parents, spare);
    this.#chunks = new Chunks(
      state,
      this.#conduct,
      (chunk) => this.#children.forward(chunk),
      (seq, stripe, from) => this.#pulls.came(seq, stripe, from),
    );
    this.#pulls = new Pulls(state, this.#chunks, this.#parents);
    this.#answers = new Answers(state, this.#headers, this.#children, spare, this.#conduct);
    this.#joining = new Joining(state, this.#headers);
    this.#asking = new Asking(state, this.#chunks);
    this.#places = new Places(state, this.#parents, this.#children);
    this.#playout = new Playout(state, this.#asking);
    this.#news = new News(state, this.#children, this.#parents, spare);
    this.#source = new Source(state, this.#children);
    this.#stats = new Stats(state, this.#conduct);
    this.#pulse = new Pulse(state, this.#conduct);
    this.#fetched = new Fetched(state, this.#children, this.#pulls);
    if (state.isSource) state.startSeq = 0;
    this.#tickAt = after(now, setup.random() * TICK_MS);
  }

  handle(input: LiveInput, now: Instant): void {
    this.#state.now = now;
    this.#take(input);
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

  /** What `stat` and `livepos` show. */
  figures(now: Instant): LiveFigures {
    return liveFigures(this.#state, now);
  }

  /** What peers may not bring in time: see {@link Fetched}. */
  late(now: Instant): LateMedia {
    this.#state.now = now;
    return this.#fetched;
  }

  /** Hops to the source by stripe, for figures and tests. */
  depths(): number[] {
    return Array.from({ length: this.#state.setup.layout.stripes }, (_, i) => this.#parents.pathOf(i).depth);
  }

  #take(input: LiveInput): void {
    const { peers } = this.#state;
    switch (input.kind) {
      case "message": {
        const peer = peers.get(input.connection);
        if (peer) this.#hear(peer, input.message);
        return;
      }
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
        this.#state.wasCalled = true;
        this.#replace(input.address, input.about);
        if (this.#neighbours.admits(input.address)) this.#open(input.connection, input);
        else this.#state.emit({ kind: "close", connection: input.connection, reason: "no room" });
        return;
      case "closed": {
        const failed = this.#neighbours.dialed(input.connection);
        if (failed) this.#neighbours.rest(failed);
        const peer = peers.get(input.connection);
        if (peer) this.#left(peer);
        return;
      }
      case "backlog": {
        const peer = peers.get(input.connection);
        if (peer) this.#children.backlog(peer, input.waitMs);
        return;
      }
      case "produced":
        this.#produced(input.header, input.chunks);
        return;
      case "fetched":
        this.#fetched.take(input.found);
        this.#play();
        return;
      case "stat":
        this.#stats.made(input.stat);
        return;
      case "stop":
        this.#state.isStopped = true;
        sayGoodbye(this.#state, this.#conduct);
        return;
    }
  }

  #hear(peer: LivePeer, message: LiveWord): void {
    peer.heardAt = this.#state.now;
    if (!peer.isGreeted && message.kind !== "hello") {
      this.#conduct.strike(peer, "spoke before it said hello");
      return;
    }
    switch (message.kind) {
      case "hello":
        if (peer.isGreeted) this.#conduct.strike(peer, "said hello twice");
        else if (this.#joining.greeted(peer, message.header)) this.#join();
        return;
      case "header":
        if (!this.#joining.isWaiting) this.#headers.take(message.header, peer);
        else if (this.#joining.told(peer, message.header)) this.#join();
        return;
      case "chunk":
        if (message.epoch === this.#state.epoch) this.#parents.gave(peer, message.stripe, message.seq);
        this.#chunks.take(message, peer);
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
        this.#places.refused(message.stripes, message.candidates.length > 0);
        return;
      case "unsubscribe":
        // The same word from a child that goes, and from a parent that drops us.
        this.#children.unsubscribe(peer, message.stripes & peer.childOf);
        this.#parents.dropped(peer, message.stripes & peer.parentOf);
        return;
      case "window":
        peer.window = message.window;
        return;
      case "paths": {
        const isFirst = peer.paths.every((path) => path === undefined);
        peer.tellPaths(message.paths, this.#state.now);
        this.#parents.pathsChanged(peer, message.paths);
        // Who waits for parents does not wait for the next look around.
        if (isFirst && this.#orphans > 0) this.#parents.round();
        return;
      }
      case "request":
        this.#answers.request(peer, message);
        return;
      case "lacking":
        this.#neighbours.found(message.holders);
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
        this.#pulse.hear(peer, message);
        return;
      case "bye":
        this.#neighbours.found(
          message.candidates.map(({ address }) => address),
          true,
        );
        this.#conduct.close(peer, "said goodbye");
        return;
      case "cancel":
        // The driver takes it out of what waits; nor is it to be handed down once it is here.
        if (message.epoch !== this.#state.epoch) return;
        for (const { seq, stripe } of message.chunks) peer.give(seq, stripe);
        return;
    }
  }

  #open(connection: number, peer: Pick<LivePeer, "address" | "isReachable" | "about" | "rttMs">): void {
    const { window, peers, now, setup } = this.#state;
    const { isRelay, layout } = setup;
    // Who calls itself a relay comes first in every choice: only those that the source lists may.
    const isPretending = peer.about.role === "relay" && isRelay?.(peer.address) === false;
    const about = isPretending ? { ...peer.about, role: "viewer" as const } : peer.about;
    const opened = new LivePeer(connection, { ...peer, about }, layout.stripes, now);
    peers.set(connection, opened);
    this.#neighbours.opened(opened);
    const head = window.piece(window.head)?.header;
    opened.knowsHead = head !== undefined;
    this.#state.send(opened, { kind: "hello", header: head });
    this.#news.tell(opened);
    this.#stats.tell(opened);
  }

  #headerAdded(header: SignedHeader, from: LivePeer | undefined): void {
    const { window, now, headAt } = this.#state;
    if (header.value.seq === window.head) {
      if (now - headAt > PAUSE_MS) this.#parents.resumed();
      this.#state.headAt = now;
    }
    const piece = window.piece(header.value.seq);
    if (piece) this.#children.passHeader(piece, from);
    this.#chunks.headerAdded(header);
    this.#asking.heard();
    this.#tellHead(header);
    if (this.#state.nextSeq < 0) this.#play();
  }

  /** Who came before we had a head may have nobody else to hear of one. */
  #tellHead(header: SignedHeader): void {
    for (const peer of this.#state.peers.values()) {
      if (peer.knowsHead) continue;
      peer.knowsHead = true;
      this.#headers.pass(header, peer, false);
    }
  }

  /** Gives out what can be; a start that was just chosen may lie before what was subscribed to. */
  #play(): void {
    const hadStart = this.#state.nextSeq >= 0;
    this.#playout.round();
    if (!hadStart && this.#state.nextSeq >= 0) this.#pulls.round();
  }

  /** A program that was started again has the address of its former life, which may not be known to be gone yet. */
  #replace(address: PeerAddress, { digest }: LiveAbout): void {
    const { peers, now } = this.#state;
    const key = addressText(address);
    for (const peer of [...peers.values()]) {
      if (peer.key !== key || peer.about.digest === digest) continue;
      if (now - peer.heardAt > QUIET_MS) this.#conduct.close(peer, "came back as another");
    }
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

  /** A new epoch: what was known of the old one is of no use. */
  #restarted(): void {
    this.#state.nextSeq = -1;
    this.#chunks.reset();
    this.#pulls.reset();
    this.#parents.reset();
    this.#parents.resumed();
    this.#playout.began();
    this.#children.restarted();
    for (const peer of this.#state.peers.values()) peer.restarted();
    if (!this.#state.isSource) this.#state.startSeq = 0;
  }

  /** Stripes that nobody gives; none before the head is known. */
  get #orphans(): number {
    return this.#state.isSource || this.#state.startSeq < 0 ? 0 : this.#parents.orphans;
  }

  #join(): void {
    if (!this.#joining.round()) return;
    this.#playout.began();
    this.#parents.began();
    this.#asking.recent(this.#playout.earliestSeq);
    this.#parents.round();
    this.#play();
  }

  #tick(): void {
    this.#neighbours.round(this.#orphans);
    if (!this.#state.isSource) {
      if (this.#playout.isStuck) {
        this.#joining.again();
        this.#playout.began();
      }
      if (this.#state.startSeq >= 0 && !this.#state.isEnding) this.#parents.round();
      this.#asking.round();
      this.#playout.round();
      this.#pulls.round();
      this.#places.round();
    } else this.#asking.ofAnother();
    this.#children.round();
    this.#source.round();
    this.#news.round();
    this.#stats.round();
    this.#pulse.round();
  }

  #left(peer: LivePeer): void {
    if (!this.#state.peers.delete(peer.connection)) return;
    this.#parents.left(peer);
    this.#children.left(peer);
    this.#pulls.left(peer);
    this.#neighbours.left(peer);
  }
}
