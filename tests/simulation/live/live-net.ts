import type { PeerAddress } from "../../../src/base/address.ts";
import type { Machine } from "../../../src/base/machine.ts";
import type { Random } from "../../../src/base/random.ts";
import { RateMeter } from "../../../src/base/rate.ts";
import { type Instant, instant } from "../../../src/base/time.ts";
import type { LiveInput, LiveOutput, LiveSetup } from "../../../src/protocol/live/contract.ts";
import { MAX_CHILD_BACKLOG_MS } from "../../../src/protocol/live/limits.ts";
import { LiveSwarm } from "../../../src/protocol/live/live-swarm.ts";
import type { LiveMessage } from "../../../src/protocol/live/messages.ts";
import type { ChunkName } from "../../../src/wire/live/request.ts";
import type { EventHeap } from "./event-heap.ts";
import { Line, TcpPipe } from "./tcp.ts";
import { Uplink } from "./uplink.ts";

const NEAREST_MS = 6;
/** Positions in a unit square give delays of 6 to 129 ms one way, 51 on average. */
const ACROSS_MS = 87;
const DEAD_MS = 3_000;
const WIRE_BYTES = 40;
/** Processes of one machine: connections to a missing process are refused at once, and bytes take no time. */
const LOOPBACK_US = 100;
const LOOPBACK_BYTES_PER_SECOND = 1e9;

/** With TCP: the engine's upload limit is at most 80 % of what the line carries (docs/live-protocol.md), and
 * everyone's line carries this share of the bitrate. */
const LINE_UPLOAD = 1.25;
const MIN_LINE_UPLOAD = 0.25;
/** The line into the house, in multiples of the bitrate, unless the scenario says otherwise. */
const LINE_DOWNLOAD = 4;
/** As the driver: how often it looks for children that fall behind, and the time until the next complaint. */
const BACKLOG_ROUND_MS = 100;
const BACKLOG_MUTE_MS = 300;

/** One end of a connection: the other node and its number of the connection. */
interface Link {
  readonly node: LiveNode;
  readonly connection: number;
  readonly delayUs: number;
  /** The way to the other node, with TCP. */
  pipe?: TcpPipe;
  readonly sent: RateMeter;
  mutedUntilMs: number;
}

/** Receives the outputs of a node that are not for the network. */
export interface Watcher {
  output(node: LiveNode, output: LiveOutput): void;
}

/** How a node is connected and behaves. */
export interface NodeOptions {
  readonly isReachable: boolean;
  /** A black hole: sends all messages except chunks. */
  readonly isBlackHole?: boolean;
  /** Changes what it sends: a liar. */
  readonly tamper?: (message: LiveMessage) => LiveMessage;
  /** What its line really uploads, if that differs from what it offers; not with TCP. */
  readonly uplinkBytesPerSecond?: number | undefined;
  /** A page: its messages count, and nothing but the engine's addresses reaches it without an introduction. */
  readonly isPage?: boolean;
  /** The rate of its line into the network; absent: no limit. */
  readonly downloadBytesPerSecond?: number | undefined;
  /** A hostile program in place of the swarm. */
  readonly hostile?: (now: Instant) => Machine<LiveInput, LiveOutput>;
}

/** One engine of the simulation: its swarm, its uplink, its connections. */
export class LiveNode {
  readonly net: LiveNet;
  readonly address: PeerAddress;
  readonly setup: LiveSetup;
  readonly options: NodeOptions;
  readonly #machine: Machine<LiveInput, LiveOutput>;
  readonly uplink: Uplink;
  readonly joinedMs: number;
  readonly x: number;
  readonly y: number;
  isAlive = true;
  /** Bytes of all messages but chunks that it has sent. */
  controlBytes = 0;
  /** By connection. */
  readonly links = new Map<number, Link>();
  /** The line of the house, with TCP. */
  readonly up: Line;
  readonly down: Line;
  #incoming = 1;
  #lineFreeUs = 0;
  #backlogAtMs = 0;
  #wakeAt = Number.POSITIVE_INFINITY;

  constructor(net: LiveNet, address: PeerAddress, setup: LiveSetup, options: NodeOptions, random: Random) {
    this.net = net;
    this.address = address;
    this.setup = setup;
    this.options = options;
    this.joinedMs = net.events.nowMs;
    this.x = random();
    this.y = random();
    const { uploadBytesPerSecond } = setup.about;
    const { bytesPerSecond } = setup.layout;
    const upload = Math.max(LINE_UPLOAD * uploadBytesPerSecond, MIN_LINE_UPLOAD * bytesPerSecond);
    this.up = new Line(net.events, upload);
    this.down = new Line(net.events, options.downloadBytesPerSecond ?? LINE_DOWNLOAD * bytesPerSecond);
    const carried = options.uplinkBytesPerSecond ?? uploadBytesPerSecond;
    this.uplink = new Uplink(net.events, net.isLoopback ? LOOPBACK_BYTES_PER_SECOND : carried);
    const now = instant(this.joinedMs);
    this.#machine = options.hostile?.(now) ?? new LiveSwarm(setup, now);
    this.drain();
  }

  /** The swarm of an honest engine. */
  get swarm(): LiveSwarm {
    if (!(this.#machine instanceof LiveSwarm)) throw new Error("a hostile peer has no swarm");
    return this.#machine;
  }

  nextIncoming(): number {
    this.#incoming += 2;
    return this.#incoming;
  }

  /** Returns when the line has delivered `bytes` that reach it now, after those before them. */
  deliveredUs(bytes: number): number {
    const { nowUs } = this.net.events;
    const rate = this.options.downloadBytesPerSecond;
    if (rate === undefined) return nowUs;
    this.#lineFreeUs = Math.max(this.#lineFreeUs, nowUs) + (1e6 * bytes) / rate;
    return Math.ceil(this.#lineFreeUs);
  }

  /** Passes one input to the swarm and executes its outputs. */
  handle(input: LiveInput): void {
    if (!this.isAlive) return;
    this.#machine.handle(input, instant(this.net.events.nowMs));
    this.drain();
  }

  /** Vanishes without closing connections; on one machine the operating system closes them. */
  vanish(): void {
    this.isAlive = false;
    if (this.net.isLoopback) this.net.cutOff(this);
    this.links.clear();
    this.net.nodes.delete(this.address.host);
  }

  drain(): void {
    for (let output = this.#machine.poll(); output; output = this.#machine.poll())
      this.net.carry(this, output);
    const next = this.#machine.nextWake();
    if (next === undefined || next >= this.#wakeAt) return;
    this.#wakeAt = next;
    this.net.events.at(Math.ceil(next * 1_000), () => this.#wake(next));
  }

  #wake(at: number): void {
    if (!this.isAlive || at !== this.#wakeAt) return;
    this.#wakeAt = Number.POSITIVE_INFINITY;
    // Rounding to microseconds may give a time slightly before the requested one, and the wake would repeat
    // forever.
    const now = instant(Math.max(this.net.events.nowMs, at));
    for (const [connection, waitMs] of this.#backlog()) {
      const bytesPerSecond = this.links.get(connection)!.sent.bytesPerSecond(now);
      this.#machine.handle({ kind: "backlog", connection, waitMs, bytesPerSecond }, now);
    }
    this.#machine.wake(now);
    this.drain();
  }

  /** The connections whose live messages wait too long, and how long. */
  #backlog(): [connection: number, waitMs: number][] {
    const { nowMs } = this.net.events;
    if (!this.net.hasTcp && !this.options.isPage) {
      const waitMs = this.uplink.liveWaitMs;
      const worst = [...this.links.keys()].pop();
      return waitMs > MAX_CHILD_BACKLOG_MS && worst !== undefined ? [[worst, waitMs]] : [];
    }
    if (nowMs < this.#backlogAtMs) return [];
    this.#backlogAtMs = nowMs + BACKLOG_ROUND_MS;
    const waits = this.uplink.liveWaits();
    return [...this.links].flatMap(([connection, link]): [number, number][] => {
      const waitMs = Math.max(waits.get(link) ?? 0, link.pipe?.waitMs ?? 0);
      if (waitMs <= MAX_CHILD_BACKLOG_MS || nowMs < link.mutedUntilMs) return [];
      link.mutedUntilMs = nowMs + BACKLOG_MUTE_MS;
      return [[connection, waitMs]];
    });
  }
}

/** The network between nodes: delays, uplinks, reachability, all from one seed. */
export class LiveNet {
  readonly events: EventHeap;
  readonly nodes = new Map<string, LiveNode>();
  /** All nodes are processes of one machine. */
  readonly isLoopback: boolean;
  readonly #watcher: Watcher;
  /** Whether a hole punch to an unreachable node succeeds. */
  readonly #isPunched: () => boolean;
  /** Whether a packet is lost. If defined, messages travel through TCP connections and lines with a limit in each
   * direction; if not, only chunks wait, for the upload. */
  readonly #isLost: (() => boolean) | undefined;
  /** A hash of all deliveries with time and receiver: the same for the same seed. */
  traceHash = 0x811c9dc5;
  controlBytes = 0;

  constructor(
    events: EventHeap,
    watcher: Watcher,
    isLoopback: boolean,
    isPunched: () => boolean,
    isLost?: () => boolean,
  ) {
    this.events = events;
    this.isLoopback = isLoopback;
    this.#watcher = watcher;
    this.#isPunched = isPunched;
    this.#isLost = isLost;
  }

  get hasTcp(): boolean {
    return this.#isLost !== undefined;
  }

  /** Closes all connections of a node that has vanished. */
  cutOff({ links }: LiveNode): void {
    for (const { node, connection } of links.values()) {
      this.events.at(this.events.nowUs + LOOPBACK_US, () => {
        if (node.links.delete(connection)) node.handle({ kind: "closed", connection });
      });
    }
  }

  carry(from: LiveNode, output: LiveOutput): void {
    if (output.kind === "send") this.#send(from, output);
    else if (output.kind === "connect") this.#connect(from, output.connection, output.address);
    else if (output.kind === "close") this.#close(from, output.connection);
    else this.#watcher.output(from, output);
  }

  #send(from: LiveNode, output: LiveOutput & { kind: "send" }): void {
    const link = from.links.get(output.connection);
    if (!link) return;
    const message = from.options.tamper ? from.options.tamper(output.message) : output.message;
    const { events } = this;
    if (message.kind !== "chunk") {
      const bytes = sizeOf(message);
      this.controlBytes += bytes;
      from.controlBytes += bytes;
      link.sent.add(bytes, instant(events.nowMs));
      if (link.pipe) link.pipe.write(bytes, () => this.#deliver(link.node, link.connection, message));
      else events.at(events.nowUs + link.delayUs, () => this.#deliver(link.node, link.connection, message));
      return;
    }
    if (from.options.isBlackHole) return;
    const name = nameOf(message);
    from.uplink.send(output.priority, message.bytes.length + WIRE_BYTES, output.expiresAt, link, name, () => {
      if (!from.isAlive) return;
      link.sent.add(message.bytes.length + WIRE_BYTES, instant(events.nowMs));
      const deliver = () => this.#deliver(link.node, link.connection, message);
      if (link.pipe) {
        link.pipe.write(message.bytes.length + WIRE_BYTES, deliver);
        return;
      }
      events.at(events.nowUs + link.delayUs, () => {
        const deliveredUs = link.node.deliveredUs(message.bytes.length + WIRE_BYTES);
        if (deliveredUs <= events.nowUs) deliver();
        else events.at(deliveredUs, deliver);
      });
    });
  }

  #deliver(node: LiveNode, connection: number, message: LiveMessage): void {
    const link = node.links.get(connection);
    if (!node.isAlive || !link) return;
    // As the queue of a real connection does.
    if (message.kind === "cancel")
      for (const chunk of message.chunks) node.uplink.cancel(link, nameOf(chunk));
    this.#trace(node.setup.about.digest * 31 + message.kind.length);
    node.handle({ kind: "message", connection, message });
  }

  #connect(from: LiveNode, connection: number, address: PeerAddress): void {
    const { events } = this;
    const to = this.nodes.get(address.host);
    if (!to || to === from || !(to.options.isReachable || this.#isPunched())) {
      const waitMs = to === from || this.isLoopback ? 1 : DEAD_MS;
      events.at(events.nowUs + waitMs * 1_000, () => from.handle({ kind: "closed", connection }));
      return;
    }
    const acrossMs = NEAREST_MS + ACROSS_MS * Math.hypot(from.x - to.x, from.y - to.y);
    const delayUs = this.isLoopback ? LOOPBACK_US : Math.round(acrossMs * 1_000);
    const rttMs = (2 * delayUs) / 1_000;
    // TCP, then the handshakes of both sides: two round trips for the dialing side.
    events.at(events.nowUs + 3 * delayUs, () => {
      if (!to.isAlive || !from.isAlive) {
        events.at(events.nowUs + DEAD_MS * 1_000, () => from.handle({ kind: "closed", connection }));
        return;
      }
      // As the driver does, by the peer id.
      if ([...from.links.values()].some(({ node }) => node === to)) {
        events.at(events.nowUs + delayUs, () => from.handle({ kind: "closed", connection }));
        return;
      }
      const other = to.nextIncoming();
      this.#link(from, connection, to, other, delayUs);
      this.#link(to, other, from, connection, delayUs);
      const { about } = from.setup;
      const { isReachable } = from.options;
      events.at(events.nowUs + delayUs, () => {
        if (from.links.has(connection))
          from.handle({ kind: "opened", connection, about: to.setup.about, rttMs });
      });
      to.handle({ kind: "accepted", connection: other, about, rttMs, address: from.address, isReachable });
    });
  }

  #link(from: LiveNode, connection: number, node: LiveNode, other: number, delayUs: number): void {
    const link: Link = { node, connection: other, delayUs, sent: new RateMeter(), mutedUntilMs: 0 };
    from.links.set(connection, link);
    if (!this.#isLost) return;
    link.pipe = new TcpPipe({
      ...{ events: this.events, delayUs, up: from.up, down: node.down, back: node.up },
      isLost: this.#isLost,
      isSending: () => from.isAlive && from.links.get(connection) === link,
      isReceiving: () => node.isAlive,
      drained: () => from.uplink.resume(),
    });
  }

  #close(from: LiveNode, connection: number): void {
    const link = from.links.get(connection);
    if (!link) return;
    from.links.delete(connection);
    const { node, connection: other } = link;
    this.events.at(this.events.nowUs + link.delayUs, () => {
      if (node.links.delete(other)) node.handle({ kind: "closed", connection: other });
    });
  }

  #trace(value: number): void {
    this.traceHash = Math.imul(this.traceHash ^ value ^ Math.trunc(this.events.nowUs), 0x01000193) >>> 0;
  }
}

/** Identifies a chunk among those of a few seconds. */
function nameOf({ seq, stripe }: ChunkName): number {
  return seq * 16 + stripe;
}

function sizeOf(message: LiveMessage): number {
  switch (message.kind) {
    case "header":
      return WIRE_BYTES + message.header.bytes.length;
    case "window":
      return WIRE_BYTES + 24 + 3 * message.window.runs.length;
    case "paths":
      return WIRE_BYTES + message.paths.reduce((sum, { ancestors }) => sum + 2 + 2 * ancestors.length, 4);
    case "cancel":
      return WIRE_BYTES + 8 + 8 * message.chunks.length;
    case "request":
      return WIRE_BYTES + 10 * message.chunks.length;
    default:
      return WIRE_BYTES + 24;
  }
}
