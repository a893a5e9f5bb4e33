import { type Random, randomBelow } from "../../../src/base/random.ts";
import { type Instant, instant } from "../../../src/base/time.ts";
import type { LiveOutput } from "../../../src/protocol/live/contract.ts";
import type { SignedHeader } from "../../../src/protocol/live/messages.ts";
import { chunkRange } from "../../../src/wire/live/chunks.ts";
import { seededRandom } from "../../seeded-random.ts";
import {
  ASLEEP_MS,
  ASLEEP_PERCENT,
  ENOUGH_PAGES,
  FIND_MS,
  LISTED_PAGES,
  PAGE_KEEP_MS,
  PAGE_OFFER,
  PAGE_UPLINKS,
  RARE_FIND_MS,
  UNCALLABLE_PERCENT,
} from "./browser-profile.ts";
import { EventHeap } from "./event-heap.ts";
import { hashOf, tagOf } from "./fake-hashes.ts";
import { Histogram } from "./histogram.ts";
import { ATTACKS, type Attack, HostilePeer, type MadePiece } from "./hostile-peer.ts";
import { LiveNet, LiveNode, type NodeOptions } from "./live-net.ts";

/** The parameters of one run. Times in seconds unless the name says otherwise. */
export interface LiveScenario {
  readonly peers: number;
  readonly seed: number;
  /** The measured time, after all viewers have joined and settled. */
  readonly seconds: number;
  readonly stripes: number;
  readonly pieceMs: number;
  readonly bytesPerSecond: number;
  readonly lagMs: number;
  /** Per cent of the viewers that vanish each minute; each is replaced. */
  readonly churnPercent: number;
  /** The viewers multiply by this within ten seconds, at the start of the measured time. */
  readonly crowd: number;
  readonly blackHolePercent: number;
  /** Upload that black holes claim, in multiples of the bitrate; if absent, slightly more than many others. */
  readonly blackHoleUpload?: number;
  /** Per cent of the viewers that are unreachable. */
  readonly natPercent: number;
  /** Per cent of the connections to unreachable viewers that succeed by hole punching. */
  readonly punchPercent?: number;
  readonly sourceUpload: number;
  /** Upload of viewers in multiples of the bitrate, with the share of each; by default the mix of a city. */
  readonly uploads?: readonly (readonly [share: number, upload: number])[];
  /** If not 0, the viewers are processes of one machine, each of which offers twice the bitrate. */
  readonly loopback?: number;
  /** The line of the viewers that join in a crowd, in multiples of the bitrate; absent: no limit. */
  readonly crowdDownload?: number;
  /** Hostile peers, what they do, and whether they are there before the viewers. They connect to up to
   * {@link MAX_TARGETS} viewers. */
  readonly attackers?: number;
  readonly attack?: Attack | "mixed";
  /** With mixed attacks: after this time, a new hostile peer with the next attack takes the place of each. */
  readonly attackSeconds?: number;
  readonly attacksEarly?: boolean;
  /** If present, connections behave as TCP does, over lines with a limit in each direction: per cent of the packets
   * that are lost, besides those that find a queue full. */
  readonly lossPercent?: number;
  /** If not 0, the viewers are pages of browsers: see `browser-profile.ts`. */
  readonly browsers?: number;
  /** They connect to the source as well, and take places there. */
  readonly attacksSource?: boolean;
}

/** Defaults for a small swarm. */
export const SMALL: LiveScenario = {
  peers: 50,
  seed: 1,
  seconds: 10,
  stripes: 16,
  pieceMs: 125,
  bytesPerSecond: 1_000_000,
  lagMs: 3_000,
  churnPercent: 0,
  crowd: 1,
  blackHolePercent: 0,
  natPercent: 30,
  sourceUpload: 10,
};

const CITY: readonly (readonly [number, number])[] = [
  [0.2, 0],
  [0.35, 0.75],
  [0.3, 1.75],
  [0.12, 4],
  [0.03, 10],
];
const SETTLE_MS = 12_000;
/** Upload that a black hole claims: enough to get children, no more than many others. */
const BLACK_HOLE_UPLOAD = 1.75;
const TRACKER_PEERS = 40;
const LOOPBACK_UPLOAD = 2;
const LOOPBACK_TRACKER_MS = 5;
const RANDOM_ACCESS_EVERY = 8;
/** Media that must be played before a start counts: half a second. */
const START_MEDIA_MS = 500;
const GENUINE = 0xaa;
/** The connections that a hostile peer opens. */
const MAX_TARGETS = 20;
/** Upload of a hostile peer, real and claimed, in multiples of the bitrate. */
const ATTACKER_UPLOAD = 10;
const ATTACK_AFTER_MS = 2_000;
/** A hostile peer knows the pieces of this time. */
const RECENT_MS = 8_000;
/** Two waits of the player with less time between them are one stall. */
const STALL_GAP_MS = 1_000;

interface ViewerRecord {
  readonly joinedMs: number;
  readonly isCrowd: boolean;
  firstMs: number;
  pieces: number;
  hasStarted: boolean;
  missed: number;
  expected: number;
  /** When the player runs out of media, and the stall that it is in, or was in last. */
  emptyMs: number;
  stallMs: number;
  stalledAtMs: number;
}

/** The results of a run. */
export interface LiveReport {
  readonly startMs: Histogram;
  readonly firstMs: Histogram;
  readonly delayMs: Histogram;
  readonly expectedChunks: number;
  readonly missedChunks: number;
  /** Share of the viewers that missed anything. */
  readonly hitShare: number;
  /** Chunks missed by viewers that joined before the crowd. */
  readonly oldMissedChunks: number;
  readonly neverStarted: number;
  readonly joined: number;
  /** Chunk bytes that the source sent, in multiples of the stream. */
  readonly sourceCopies: number;
  /** All that the source sent, in multiples of the stream. */
  readonly sourceUpload: number;
  readonly duplicateShare: number;
  readonly controlShare: number;
  readonly banned: number;
  readonly innocentBans: number;
  readonly meanDepth: number;
  readonly maxDepth: number;
  readonly wrongPieces: number;
  /** The longest time for which any player had no media, after its first half second of media. */
  readonly worstStallMs: number;
  /** The longest time from joining to half a second of media, of any viewer. */
  readonly worstStartMs: number;
  readonly traceHash: number;
  readonly events: number;
}

/** One simulated broadcast: a source and viewers that come and go, all from one seed. */
export class LiveWorld {
  readonly scenario: LiveScenario;
  readonly events = new EventHeap();
  readonly net: LiveNet;
  readonly source: LiveNode;
  readonly viewers = new Set<LiveNode>();
  readonly liars = new Set<string>();
  readonly #hostile: LiveNode[] = [];
  readonly #random: Random;
  readonly #records = new Map<LiveNode, ViewerRecord>();
  readonly #payload: Uint8Array;
  readonly #start = new Histogram();
  readonly #first = new Histogram();
  readonly #delay = new Histogram();
  readonly #measureFromMs: number;
  #made = 0;
  #expected = 0;
  #missed = 0;
  #oldMissed = 0;
  #joined = 0;
  #neverStarted = 0;
  #hit = 0;
  #played = 0;
  #banned = 0;
  #innocentBans = 0;
  #wrongPieces = 0;
  #worstStallMs = 0;
  #worstStartMs = 0;
  #recent: MadePiece[] = [];
  #sourceBefore = 0;
  #sourceAllBefore = 0;
  #controlBefore = 0;
  #seq = 1_000;
  #previousHash = new Uint8Array(20);
  #receivedGone = 0;
  #duplicateGone = 0;

  constructor(scenario: LiveScenario) {
    this.scenario = scenario;
    this.#random = seededRandom(scenario.seed);
    this.#payload = new Uint8Array(1024 + (scenario.bytesPerSecond * scenario.pieceMs) / 1_000);
    const watcher = { output: (node: LiveNode, output: LiveOutput) => this.#watch(node, output) };
    const isPunched = () =>
      scenario.punchPercent !== undefined && this.#random() * 100 < scenario.punchPercent;
    const { lossPercent } = scenario;
    const isLost = lossPercent !== undefined ? () => this.#random() * 100 < lossPercent : undefined;
    this.net = new LiveNet(this.events, watcher, !!scenario.loopback, isPunched, isLost);
    this.source = this.#node("source", scenario.sourceUpload, { isReachable: true });
    const { peers, crowd } = scenario;
    const settled = Math.round(peers / crowd);
    // The audience doubles repeatedly, as real ones grow; otherwise all viewers would be part of a crowd.
    const growMs = Math.min(40_000, Math.max(5_000, settled * 20));
    this.#measureFromMs = growMs + SETTLE_MS;
    for (let i = 0; i < settled; i++) {
      this.#at((growMs * Math.log(i + 1)) / Math.log(settled + 1), () => this.join(false));
    }
    for (let i = settled; i < peers; i++) {
      this.#at(this.#measureFromMs + (10_000 * (i - settled)) / (peers - settled), () =>
        this.join(true, this.#crowdLine()),
      );
    }
    const attackMs = scenario.attacksEarly ? 1 : this.#measureFromMs + ATTACK_AFTER_MS;
    for (let i = 0; i < (scenario.attackers ?? 0); i++) this.#at(attackMs + 20 * i, () => this.#attack(i));
    if (scenario.churnPercent > 0) this.#churn();
    this.#produce();
  }

  #crowdLine(): Partial<NodeOptions> {
    const { crowdDownload, bytesPerSecond } = this.scenario;
    return crowdDownload === undefined ? {} : { downloadBytesPerSecond: crowdDownload * bytesPerSecond };
  }

  /** Runs the scenario. */
  run(): LiveReport {
    this.events.runTo(this.#measureFromMs * 1_000);
    this.#sourceBefore = this.source.uplink.sentBytes;
    this.#sourceAllBefore = sentBy(this.source);
    this.#controlBefore = this.net.controlBytes;
    // Exclude what happened before: the sums start at the negated counters.
    for (const { swarm } of this.viewers) {
      const figures = swarm.figures(instant(this.events.nowMs));
      this.#receivedGone -= figures.receivedBytes;
      this.#duplicateGone -= figures.duplicateBytes;
    }
    const untilMs = this.#measureFromMs + this.scenario.seconds * 1_000;
    this.events.runTo(untilMs * 1_000);
    return this.#report();
  }

  /** Adds a viewer. */
  join(isCrowd: boolean, options: Partial<NodeOptions> = {}, upload = this.#upload()): LiveNode {
    const isBlackHole = options.isBlackHole ?? this.#random() * 100 < this.scenario.blackHolePercent;
    const { browsers } = this.scenario;
    const isReachable = this.#random() * 100 >= (browsers ? UNCALLABLE_PERCENT : this.scenario.natPercent);
    const node = this.#node(
      "viewer",
      isBlackHole ? (this.scenario.blackHoleUpload ?? BLACK_HOLE_UPLOAD) : upload,
      {
        isReachable,
        ...(browsers && this.#page()),
        ...options,
        isBlackHole,
      },
    );
    if (browsers) this.#sleep(node);
    this.viewers.add(node);
    const at = this.events.nowMs;
    if (isBlackHole || options.tamper) this.liars.add(node.address.host);
    else
      this.#records.set(node, {
        joinedMs: at,
        isCrowd,
        firstMs: -1,
        pieces: 0,
        hasStarted: false,
        missed: 0,
        expected: 0,
        emptyMs: -1,
        stallMs: 0,
        stalledAtMs: -1,
      });
    if (at >= this.#measureFromMs && this.#records.has(node)) this.#joined++;
    this.#ask(node);
    return node;
  }

  #page(): Partial<NodeOptions> {
    const { bytesPerSecond } = this.scenario;
    const carried = pick(PAGE_UPLINKS, this.#random());
    return { isPage: true, uplinkBytesPerSecond: Math.min(carried, PAGE_OFFER) * bytesPerSecond };
  }

  /** A page goes to the background and comes back, again and again. */
  #sleep(node: LiveNode): void {
    const share = ASLEEP_PERCENT / 100;
    const { uploadBytesPerSecond } = node.setup.about;
    const next = (isAsleep: boolean): void => {
      if (!node.isAlive) return;
      node.handle({ kind: "offer", uploadBytesPerSecond: isAsleep ? 0 : uploadBytesPerSecond });
      const meanMs = isAsleep ? ASLEEP_MS : (ASLEEP_MS * (1 - share)) / share;
      this.#at(this.events.nowMs - meanMs * Math.log(1 - this.#random()), () => next(!isAsleep));
    };
    next(this.#random() < share);
  }

  /** Adds hostile peer number `index`. It connects to the viewers that are there, and those that come later connect to it. */
  #attack(index: number): void {
    const { attacksSource = false, attackSeconds = 60, stripes, pieceMs } = this.scenario;
    const isMixed = this.scenario.attack === "mixed";
    const attack = isMixed ? ATTACKS[index % ATTACKS.length]! : (this.scenario.attack ?? "nothing");
    const targets = [...this.viewers].slice(0, MAX_TARGETS).map(({ address }) => address);
    if (attacksSource) targets.push(this.source.address);
    const hostile = (now: Instant) =>
      new HostilePeer(
        {
          ...{ attack, stripes, pieceMs, random: this.#random, targets, subscribes: attacksSource },
          recent: () => this.#recent,
        },
        now,
      );
    // A source knows which relays it has listed; a viewer may not.
    const isPage = !!this.scenario.browsers;
    const role = attacksSource || isPage ? "viewer" : "relay";
    const node = this.#node(role, ATTACKER_UPLOAD, { isReachable: true, hostile });
    this.liars.add(node.address.host);
    this.#hostile.push(node);
    if (!isMixed) return;
    this.#at(this.events.nowMs + 1_000 * attackSeconds, () => {
      this.#hostile.splice(this.#hostile.indexOf(node), 1);
      node.vanish();
      this.#attack(index + this.scenario.attackers!);
    });
  }

  /** A viewer vanishes. */
  leave(node: LiveNode): void {
    this.viewers.delete(node);
    this.#settle(node);
    node.vanish();
  }

  #at(ms: number, run: () => void): void {
    this.events.at(ms * 1_000, run);
  }

  #upload(): number {
    if (this.net.isLoopback) return LOOPBACK_UPLOAD;
    const roll = this.#random();
    return this.scenario.browsers ? PAGE_OFFER : pick(this.scenario.uploads ?? CITY, roll);
  }

  #node(role: "source" | "relay" | "viewer", upload: number, options: NodeOptions): LiveNode {
    const { stripes, pieceMs, bytesPerSecond, lagMs, seed } = this.scenario;
    const made = this.#made++;
    const random = seededRandom(seed * 1_000_003 + made);
    const address = { host: `${11 + (made >> 16)}.${(made >> 8) & 255}.${made & 255}.7`, port: 6881 };
    const node = new LiveNode(
      this.net,
      address,
      {
        about: {
          role,
          uploadBytesPerSecond: upload * bytesPerSecond,
          homeStripe: randomBelow(random, stripes),
          digest: (made * 40_503 + 7) & 0xffff,
        },
        layout: { stripes, pieceMs, bytesPerSecond, maxPieceBytes: 2 * 1024 * 1024 },
        lagMs,
        keepMs: options.isPage ? PAGE_KEEP_MS : 8_000,
        random,
        isSigned: ({ bytes }) => bytes[0] === GENUINE,
        isValidChunk: (header, stripe, bytes) => bytes.byteOffset === tagOf(header.value.seq, stripe),
        hash: hashOf,
        isSignedStat: () => true,
        unixMs: (now) => now + 1_000_000,
      },
      options,
      random,
    );
    this.net.nodes.set(address.host, node);
    return node;
  }

  /** A tracker responds after 150 to 300 ms with some of the present viewers; the link names the source. */
  #ask(node: LiveNode): void {
    if (node.options.isPage) {
      this.#introduce(node);
      return;
    }
    const answerMs = this.net.isLoopback ? LOOPBACK_TRACKER_MS : 150 + 150 * this.#random();
    this.#at(this.events.nowMs + answerMs, () => {
      const all = [...this.viewers];
      const addresses = [this.source.address];
      if (this.#random() > 0.05 && all.length > TRACKER_PEERS) addresses.pop();
      // Hostile peers announce themselves most often.
      addresses.push(...this.#hostile.map(({ address }) => address));
      for (let i = 0; i < Math.min(TRACKER_PEERS, all.length); i++) {
        const other = all[randomBelow(this.#random, all.length)]!;
        if (other !== node) addresses.push(other.address);
      }
      node.handle({ kind: "found", addresses });
    });
  }

  /** The engine lists some other pages, again and again. Its own address is in the link. */
  #introduce(node: LiveNode): void {
    this.#at(this.events.nowMs + 50 + 100 * this.#random(), () => {
      if (!node.isAlive) return;
      const others = [...this.viewers].filter((other) => other !== node && other.options.isPage);
      const addresses = [this.source.address, ...this.#hostile.map(({ address }) => address)];
      while (addresses.length <= LISTED_PAGES && others.length > 0)
        addresses.push(
          ...others.splice(randomBelow(this.#random, others.length), 1).map(({ address }) => address),
        );
      node.handle({ kind: "found", addresses });
      const waitMs = node.links.size <= ENOUGH_PAGES ? FIND_MS : RARE_FIND_MS;
      this.#at(this.events.nowMs + waitMs, () => this.#introduce(node));
    });
  }

  #churn(): void {
    const perMs = (this.scenario.churnPercent / 100 / 60_000) * this.scenario.peers;
    const next = () => {
      const waitMs = -Math.log(1 - this.#random()) / perMs;
      this.#at(this.events.nowMs + waitMs, () => {
        if (this.events.nowMs > this.#measureFromMs - SETTLE_MS) {
          const all = [...this.viewers];
          const leaver = all[randomBelow(this.#random, all.length)];
          if (leaver) this.leave(leaver);
          this.join(false);
        }
        next();
      });
    };
    next();
  }

  #produce(): void {
    const { stripes, pieceMs, bytesPerSecond } = this.scenario;
    const seq = this.#seq++;
    const pieceBytes = Math.round((bytesPerSecond * pieceMs) / 1_000);
    const bytes = new Uint8Array(122 + 20 * stripes);
    bytes[0] = GENUINE;
    new DataView(bytes.buffer).setUint32(4, seq);
    const header: SignedHeader = {
      bytes,
      value: {
        epoch: 1,
        seq,
        timestampMs: 1_000_000 + this.events.nowMs,
        spanMs: pieceMs,
        clockReference: undefined,
        randomAccessOffset: seq % RANDOM_ACCESS_EVERY === 0 ? 0 : undefined,
        isSegmentStart: false,
        segment: 0,
        isDiscontinuity: false,
        isEnd: false,
        pieceBytes,
        previousHash: this.#previousHash,
        chunkHashes: bytes,
      },
    };
    this.#previousHash = hashOf(bytes);
    const chunks = Array.from({ length: stripes }, (_, stripe) => {
      const { start, end } = chunkRange(pieceBytes, stripes, stripe);
      const tag = tagOf(seq, stripe);
      return this.#payload.subarray(tag, tag + end - start);
    });
    this.#recent = [...this.#recent.slice(-RECENT_MS / pieceMs), { header, chunks }];
    this.source.handle({ kind: "produced", header, chunks });
    this.#at(this.events.nowMs + pieceMs, () => this.#produce());
  }

  #watch(node: LiveNode, output: LiveOutput): void {
    const record = this.#records.get(node);
    if (output.kind === "find" && !node.options.isPage) this.#ask(node);
    else if (output.kind === "banned") {
      this.#banned++;
      if (!this.liars.has(output.address.host)) this.#innocentBans++;
    } else if (output.kind === "piece" && record) this.#piece(record, output);
    else if (output.kind === "skip" && record) this.#skip(record, output.missingChunks);
  }

  #piece(record: ViewerRecord, { header, chunks, completedAt }: LiveOutput & { kind: "piece" }): void {
    const { seq, timestampMs } = header.value;
    for (const [stripe, bytes] of chunks.entries()) {
      if (bytes.length > 0 && bytes.byteOffset !== tagOf(seq, stripe)) this.#wrongPieces++;
    }
    const now = this.events.nowMs;
    if (record.firstMs < 0) record.firstMs = now - record.joinedMs;
    record.pieces++;
    this.#play(record);
    if (!record.hasStarted && record.pieces * this.scenario.pieceMs >= START_MEDIA_MS) {
      record.hasStarted = true;
      this.#worstStartMs = Math.max(this.#worstStartMs, now - record.joinedMs);
      if (record.joinedMs >= this.#measureFromMs) {
        this.#first.add(record.firstMs);
        this.#start.add(now - record.joinedMs);
      }
    }
    if (now < this.#measureFromMs) return;
    const delayMs = completedAt - (timestampMs - 1_000_000);
    this.#delay.add(delayMs);
    const late = delayMs > this.scenario.lagMs ? 1 : 0;
    this.#count(record, late);
  }

  /** The player has one more piece. */
  #play(record: ViewerRecord): void {
    const { nowMs } = this.events;
    if (record.emptyMs < 0) record.emptyMs = nowMs;
    const waitedMs = nowMs - record.emptyMs;
    if (waitedMs > 0 && record.hasStarted) {
      if (nowMs - record.stalledAtMs > STALL_GAP_MS) record.stallMs = 0;
      record.stallMs += waitedMs;
      record.stalledAtMs = nowMs;
      this.#worstStallMs = Math.max(this.#worstStallMs, record.stallMs);
    }
    record.emptyMs = Math.max(record.emptyMs, nowMs) + this.scenario.pieceMs;
  }

  #skip(record: ViewerRecord, missing: number): void {
    if (this.events.nowMs >= this.#measureFromMs) this.#count(record, missing);
  }

  #count(record: ViewerRecord, missed: number): void {
    record.expected += this.scenario.stripes;
    record.missed += missed;
    this.#expected += this.scenario.stripes;
    this.#missed += missed;
    if (!record.isCrowd && record.joinedMs < this.#measureFromMs) this.#oldMissed += missed;
  }

  #settle(node: LiveNode): void {
    const record = this.#records.get(node);
    if (this.events.nowMs >= this.#measureFromMs) {
      const figures = node.swarm.figures(instant(this.events.nowMs));
      this.#receivedGone += figures.receivedBytes;
      this.#duplicateGone += figures.duplicateBytes;
    }
    if (!record) return;
    this.#records.delete(node);
    if (record.expected > 0) this.#played++;
    if (record.missed > 0) this.#hit++;
    const isLong = this.events.nowMs - record.joinedMs > 5_000;
    if (!record.hasStarted && isLong) this.#neverStarted++;
  }

  #report(): LiveReport {
    const depths = [...this.viewers].flatMap((node) => node.swarm.depths().filter((depth) => depth < 255));
    for (const node of this.viewers) this.#settle(node);
    const stream = this.scenario.bytesPerSecond * this.scenario.seconds;
    return {
      startMs: this.#start,
      firstMs: this.#first,
      delayMs: this.#delay,
      expectedChunks: this.#expected,
      missedChunks: this.#missed,
      hitShare: this.#hit / Math.max(1, this.#played),
      oldMissedChunks: this.#oldMissed,
      neverStarted: this.#neverStarted,
      joined: this.#joined,
      sourceCopies: (this.source.uplink.sentBytes - this.#sourceBefore) / stream,
      sourceUpload: (sentBy(this.source) - this.#sourceAllBefore) / stream,
      duplicateShare: this.#duplicateGone / Math.max(1, this.#receivedGone),
      controlShare: (this.net.controlBytes - this.#controlBefore) / Math.max(1, this.#receivedGone),
      banned: this.#banned,
      innocentBans: this.#innocentBans,
      meanDepth: depths.reduce((sum, depth) => sum + depth, 0) / Math.max(1, depths.length),
      maxDepth: Math.max(0, ...depths.slice(0, 50_000)),
      wrongPieces: this.#wrongPieces,
      worstStallMs: this.#worstStallMs,
      worstStartMs: this.#worstStartMs,
      traceHash: this.net.traceHash,
      events: this.events.ran,
    };
  }
}

function pick(shares: readonly (readonly [share: number, value: number])[], roll: number): number {
  let rest = roll;
  for (const [share, value] of shares) {
    if (rest < share) return value;
    rest -= share;
  }
  return 0;
}

function sentBy({ uplink, controlBytes }: LiveNode): number {
  return uplink.sentBytes + controlBytes;
}
