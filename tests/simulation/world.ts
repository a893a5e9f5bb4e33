import type { PeerAddress } from "../../src/base/address.ts";
import type { Random } from "../../src/base/random.ts";
import { seededRandom } from "../seeded-random.ts";
import { EventQueue } from "./event-queue.ts";
import { type HostileKind, makeHostile } from "./hostile-peer.ts";
import type { Playback } from "./playback.ts";
import { makeContent, type SimulatedContent } from "./simulated-content.ts";
import { type HostLine, SimulatedNet } from "./simulated-net.ts";
import { SimulatedTracker } from "./simulated-tracker.ts";
import { SwarmNode, type SwarmNodeOptions } from "./swarm-node.ts";

export const KB = 1024;
export const MB = 1024 * 1024;
const TRACKER = "http://tracker/announce";

/** A household with fibre, 20 ms from others. */
export const FIBRE: HostLine = { up: 2 * MB, down: 12 * MB, latencyMs: 5, jitterMs: 2 };

/** The report of a run, as printed and as checked by tests. */
export interface Report {
  readonly seed: number;
  readonly firstByteMs: number | undefined;
  readonly startMs: number | undefined;
  readonly stalls: number;
  readonly stalledMs: number;
  readonly longestStallMs: number;
  readonly isComplete: boolean;
  /** Discarded bytes in per cent of the kept ones. */
  readonly wastePercent: number;
  readonly bans: number;
  readonly innocentBans: number;
  readonly wrongPieces: number;
  readonly unwantedPieces: number;
  /** Bytes that the first seeder sent, in copies of the content. */
  readonly seedCopies: number;
  /** Simulated seconds, and executed events: a measure of work. */
  readonly seconds: number;
  readonly events: number;
}

/** One simulated swarm: the network, a tracker, content, honest and hostile nodes, all from one seed. */
export class World {
  readonly seed: number;
  readonly events = new EventQueue();
  readonly random: Random;
  readonly net: SimulatedNet;
  readonly tracker: SimulatedTracker;
  readonly content: SimulatedContent;
  readonly nodes: SwarmNode[] = [];
  /** Hosts of hostile peers. */
  readonly liars = new Set<string>();
  #hosts = 0;

  constructor(seed: number, content: { length: number; pieceLength: number } | SimulatedContent) {
    this.seed = seed;
    this.random = seededRandom(seed);
    this.net = new SimulatedNet(this.events, seededRandom(seed + 1));
    this.tracker = new SimulatedTracker(seededRandom(seed + 2));
    this.content = "bytes" in content ? content : makeContent(content.length, content.pieceLength, seed);
  }

  /** A new address in a network of its own. */
  address(): PeerAddress {
    const i = this.#hosts++;
    return { host: `11.${i >> 8}.${i & 255}.7`, port: 6881 };
  }

  /** Adds an engine that holds everything. The tracker knows it at once. */
  seeder(
    line: HostLine = FIBRE,
    options: Partial<SwarmNodeOptions> = {},
    address = this.address(),
  ): SwarmNode {
    const node = this.#node(line, { held: "all", ...options }, address);
    if (options.poison || options.isMute || options.fakeInfoBytes) this.liars.add(address.host);
    this.tracker.know([address]);
    return node;
  }

  /** Adds an engine that holds nothing yet. */
  leecher(line: HostLine = FIBRE, options: Partial<SwarmNodeOptions> = {}): SwarmNode {
    return this.#node(line, { held: "none", ...options }, this.address());
  }

  /** Adds a scripted hostile peer. The tracker knows it at once. */
  hostile(kind: HostileKind, address = this.address(), line: HostLine = FIBRE): void {
    const host = this.net.host(address, line);
    makeHostile(this.net, host, this.content, kind, this.random);
    this.liars.add(address.host);
    this.tracker.know([address]);
  }

  /** Plays the whole content, or a part, at `bytesPerSecond`, starting with a second of media. */
  play(
    node: SwarmNode,
    bytesPerSecond: number,
    range = { start: 0, end: this.content.layout.length },
  ): Playback {
    return node.play({
      range,
      bytesPerSecond,
      startMs: 1_000,
      readAheadBytes: 30 * bytesPerSecond,
      urgentBytes: 2 * bytesPerSecond,
    });
  }

  /** Runs until all playbacks are complete, or until `limitMs`. */
  run(limitMs: number, isDone: () => boolean = () => this.isPlayed): void {
    this.events.run(limitMs, isDone);
  }

  get isPlayed(): boolean {
    return this.nodes.every((node) => node.playbacks.every((playback) => playback.report.isComplete));
  }

  /** Summarizes what all players experienced and what the playing nodes wasted. */
  report(): Report {
    const players = this.nodes.filter((node) => node.playbacks.length > 0);
    const reports = players.flatMap((node) => node.playbacks.map((playback) => playback.report));
    const bans = players.flatMap((node) => node.banned.map((ban) => ban.address.host));
    const figures = players.map((node) => node.swarm.figures(this.events.now));
    const kept = players.reduce((sum, node) => sum + node.held.size, 0) * this.content.layout.pieceLength;
    const worst = (pick: (report: (typeof reports)[number]) => number | undefined) =>
      reports.some((report) => pick(report) === undefined)
        ? undefined
        : Math.max(...reports.map((r) => pick(r)!));
    return {
      seed: this.seed,
      firstByteMs: worst((report) => report.firstByteMs),
      startMs: worst((report) => report.startMs),
      stalls: reports.reduce((sum, report) => sum + report.stalls, 0),
      stalledMs: reports.reduce((sum, report) => sum + report.stalledMs, 0),
      longestStallMs: Math.max(0, ...reports.map((report) => report.longestStallMs)),
      isComplete: reports.every((report) => report.isComplete),
      wastePercent: (100 * figures.reduce((sum, each) => sum + each.wasted, 0)) / Math.max(1, kept),
      bans: bans.length,
      innocentBans: bans.filter((address) => !this.liars.has(address)).length,
      wrongPieces: this.nodes.reduce((sum, node) => sum + node.wrongPieces, 0),
      unwantedPieces: this.nodes.reduce((sum, node) => sum + node.unwantedPieces, 0),
      seedCopies:
        (this.nodes.find((node) => node.isSeeder)?.host.sentBytes ?? 0) / this.content.layout.length,
      seconds: this.events.now / 1000,
      events: this.events.ran,
    };
  }

  #node(
    line: HostLine,
    options: Partial<SwarmNodeOptions> & Pick<SwarmNodeOptions, "held">,
    address: PeerAddress,
  ) {
    const host = this.net.host(address, line);
    const trackers = new Map([[TRACKER, this.tracker]]);
    const random = seededRandom(this.seed * 1000 + this.#hosts);
    const node = new SwarmNode(this.net, host, random, { content: this.content, trackers, ...options });
    this.nodes.push(node);
    return node;
  }
}
