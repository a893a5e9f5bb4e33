import type { PeerAddress } from "../../../src/base/address.ts";
import type { Random } from "../../../src/base/random.ts";
import { instant } from "../../../src/base/time.ts";
import type { LiveOutput, LiveSetup } from "../../../src/swarm/live/contract.ts";
import { LiveSwarm } from "../../../src/swarm/live/live-swarm.ts";
import type { LiveWord } from "../../../src/swarm/live/messages.ts";
import type { ChunkName } from "../../../src/wire/live-request.ts";
import type { EventHeap } from "./event-heap.ts";
import { Uplink } from "./uplink.ts";

const NEAREST_MS = 6;
/** With places spread over a unit square: 6 to 129 ms one way, 51 on average. */
const ACROSS_MS = 87;
const DEAD_MS = 3_000;
const WIRE_BYTES = 40;
/** Processes of one machine: whoever is not there is refused at once, and bytes take no time. */
const LOOPBACK_US = 100;
const LOOPBACK_BYTES_PER_SECOND = 1e9;

/** What becomes of a node's outputs that are not for the network. */
export interface Watcher {
  output(node: LiveNode, output: LiveOutput): void;
}

/** How a node behaves besides its machine. */
export interface NodeOptions {
  readonly isReachable: boolean;
  /** Says all the right things and never sends a chunk. */
  readonly isBlackHole?: boolean;
  /** Changes what it sends: a liar. */
  readonly tamper?: (message: LiveWord) => LiveWord;
}

/** One engine of the simulation: its machine, its line, its links. */
export class LiveNode {
  readonly net: LiveNet;
  readonly address: PeerAddress;
  readonly setup: LiveSetup;
  readonly options: NodeOptions;
  readonly swarm: LiveSwarm;
  readonly uplink: Uplink;
  readonly joinedMs: number;
  readonly x: number;
  readonly y: number;
  isAlive = true;
  /** By connection: the other end and its number for it. */
  readonly links = new Map<
    number,
    { readonly node: LiveNode; readonly connection: number; readonly delayUs: number }
  >();
  #incoming = 1;
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
    this.uplink = new Uplink(net.events, net.isLoopback ? LOOPBACK_BYTES_PER_SECOND : uploadBytesPerSecond);
    this.swarm = new LiveSwarm(setup, instant(this.joinedMs));
    this.drain();
  }

  nextIncoming(): number {
    this.#incoming += 2;
    return this.#incoming;
  }

  /** Gives the machine one input and does what it asks for. */
  handle(input: Parameters<LiveSwarm["handle"]>[0]): void {
    if (!this.isAlive) return;
    this.swarm.handle(input, instant(this.net.events.nowMs));
    this.drain();
  }

  /** Gone without a word: nobody is told, but by the system where that is the same. */
  vanish(): void {
    this.isAlive = false;
    if (this.net.isLoopback) this.net.cutOff(this);
    this.links.clear();
    this.net.nodes.delete(this.address.host);
  }

  drain(): void {
    for (let output = this.swarm.poll(); output; output = this.swarm.poll()) this.net.carry(this, output);
    const next = this.swarm.nextWake();
    if (next === undefined || next >= this.#wakeAt) return;
    this.#wakeAt = next;
    this.net.events.at(Math.ceil(next * 1_000), () => this.#wake(next));
  }

  #wake(at: number): void {
    if (!this.isAlive || at !== this.#wakeAt) return;
    this.#wakeAt = Number.POSITIVE_INFINITY;
    const waitMs = this.uplink.liveWaitMs;
    // A thousandth of whole microseconds may be less than what was asked for by a last digit, and would never reach it.
    const now = instant(Math.max(this.net.events.nowMs, at));
    if (waitMs > 200) {
      const worst = [...this.links.keys()].pop();
      if (worst !== undefined) this.swarm.handle({ kind: "backlog", connection: worst, waitMs }, now);
    }
    this.swarm.wake(now);
    this.drain();
  }
}

/** The network between nodes: delays, uplinks, who can be reached. Everything from one seed. */
export class LiveNet {
  readonly events: EventHeap;
  readonly nodes = new Map<string, LiveNode>();
  /** All nodes are processes of one machine. */
  readonly isLoopback: boolean;
  readonly #watcher: Watcher;
  /** Whether a call to one who cannot be called gets through, with the help of others. */
  readonly #isPunched: () => boolean;
  /** A hash of all that was delivered, when and to whom: the same for the same seed. */
  traceHash = 0x811c9dc5;
  controlBytes = 0;

  constructor(events: EventHeap, watcher: Watcher, isLoopback: boolean, isPunched: () => boolean) {
    this.events = events;
    this.isLoopback = isLoopback;
    this.#watcher = watcher;
    this.#isPunched = isPunched;
  }

  /** Closes all connections of a node that is no more. */
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
      this.controlBytes += sizeOf(message);
      events.at(events.nowUs + link.delayUs, () => this.#deliver(link.node, link.connection, message));
      return;
    }
    if (from.options.isBlackHole) return;
    const name = nameOf(message);
    from.uplink.send(output.priority, message.bytes.length + WIRE_BYTES, output.expiresAt, link, name, () => {
      if (!from.isAlive) return;
      events.at(events.nowUs + link.delayUs, () => this.#deliver(link.node, link.connection, message));
    });
  }

  #deliver(node: LiveNode, connection: number, message: LiveWord): void {
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
    // TCP, then the handshakes of both: two round trips for the one who calls.
    events.at(events.nowUs + 3 * delayUs, () => {
      if (!to.isAlive || !from.isAlive) {
        events.at(events.nowUs + DEAD_MS * 1_000, () => from.handle({ kind: "closed", connection }));
        return;
      }
      const other = to.nextIncoming();
      from.links.set(connection, { node: to, connection: other, delayUs });
      to.links.set(other, { node: from, connection, delayUs });
      const { about } = from.setup;
      const { isReachable } = from.options;
      events.at(events.nowUs + delayUs, () => {
        if (from.links.has(connection))
          from.handle({ kind: "opened", connection, about: to.setup.about, rttMs });
      });
      to.handle({ kind: "accepted", connection: other, about, rttMs, address: from.address, isReachable });
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

/** Stands for a chunk among those of a few seconds. */
function nameOf({ seq, stripe }: ChunkName): number {
  return seq * 16 + stripe;
}

function sizeOf(message: LiveWord): number {
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
