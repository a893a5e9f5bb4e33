import { createHash } from "node:crypto";
import type { PeerAddress } from "../../../src/base/address.ts";
import { addressText } from "../../../src/base/address.ts";
import { concatBytes } from "../../../src/base/bytes.ts";
import type { Random } from "../../../src/base/random.ts";
import { type Instant, instant } from "../../../src/base/time.ts";
import type { UtpId, UtpOutput } from "../../../src/protocol/utp/contract.ts";
import { UtpTable } from "../../../src/protocol/utp/table.ts";
import { seededRandom } from "../../seeded-random.ts";
import { EventQueue } from "../../simulation/event-queue.ts";

/** Properties of one direction of a path. Packets that do not fit the queue are lost. */
export interface PathShape {
  readonly delayMs: number;
  /** Bits a second; absent if unlimited. */
  readonly bitsPerSecond?: number;
  readonly queueBytes?: number;
  /** Shares of all packets. */
  readonly loss?: number;
  readonly duplicates?: number;
  readonly reordered?: number;
  /** Longer packets are dropped. */
  readonly maxBytes?: number;
}

/** A path in simulated time, shared by all connections that use it. */
export class Path {
  readonly #queue: EventQueue;
  readonly #random: Random;
  shape: PathShape;
  #freeAt = 0;
  carriedBytes = 0;
  droppedPackets = 0;

  constructor(queue: EventQueue, random: Random, shape: PathShape) {
    this.#queue = queue;
    this.#random = random;
    this.shape = shape;
  }

  /** Queueing delay of a packet sent now. */
  get waitMs(): number {
    return Math.max(0, this.#freeAt - this.#queue.now);
  }

  carry(bytes: Uint8Array, arrive: (bytes: Uint8Array) => void): void {
    const { delayMs, bitsPerSecond, loss = 0, duplicates = 0, reordered = 0, maxBytes } = this.shape;
    if (this.#random() < loss || (maxBytes !== undefined && bytes.length > maxBytes)) return;
    let waitMs = 0;
    if (bitsPerSecond !== undefined) {
      const bytesPerMs = bitsPerSecond / 8000;
      if (this.waitMs * bytesPerMs > (this.shape.queueBytes ?? 64 * 1024)) {
        this.droppedPackets++;
        return;
      }
      // IP and UDP headers use bandwidth, too.
      this.#freeAt = Math.max(this.#freeAt, this.#queue.now) + (bytes.length + 28) / bytesPerMs;
      waitMs = this.waitMs;
    }
    this.carriedBytes += bytes.length;
    const lateMs = this.#random() < reordered ? 1 + this.#random() * 20 : 0;
    // The sender may change the buffer when it retransmits.
    const copy = bytes.slice();
    this.#queue.after(waitMs + delayMs + lateMs, () => arrive(copy));
    if (this.#random() < duplicates) this.#queue.after(waitMs + delayMs + 3, () => arrive(copy));
  }
}

/** Callbacks for the events of one connection. */
export interface UtpEvents {
  opened(): void;
  received(bytes: Uint8Array): void;
  drained(): void;
  closed(reason: string): void;
}

/** Engines that exchange uTP packets in simulated time. */
export class UtpWorld {
  readonly queue = new EventQueue();
  readonly random: Random;
  readonly #hosts = new Map<string, UtpHost>();
  /** Returns the path from one address to another. */
  pathOf: (from: PeerAddress, to: PeerAddress) => Path;

  constructor(seed: number, pathOf?: (from: PeerAddress, to: PeerAddress) => Path) {
    this.random = seededRandom(seed);
    this.pathOf = pathOf ?? (() => this.path({ delayMs: 5 }));
  }

  path(shape: PathShape): Path {
    return new Path(this.queue, this.random, shape);
  }

  host(address: PeerAddress, clockMs = 0, drift = 0): UtpHost {
    const host = new UtpHost(this, address, clockMs, drift);
    this.#hosts.set(addressText(address), host);
    return host;
  }

  send(bytes: Uint8Array, from: PeerAddress, to: PeerAddress): void {
    this.pathOf(from, to).carry(bytes, (copy) => this.#hosts.get(addressText(to))?.datagram(copy, from));
  }
}

const NO_ENDS: UtpEvents = { opened: () => {}, received: () => {}, drained: () => {}, closed: () => {} };

/** The uTP table of one engine, with its own clock. */
export class UtpHost {
  readonly table: UtpTable;
  readonly address: PeerAddress;
  readonly #world: UtpWorld;
  readonly #clockMs: number;
  readonly #drift: number;
  readonly #ends = new Map<UtpId, UtpEvents>();
  accept: (id: UtpId, remote: PeerAddress) => UtpEvents = () => NO_ENDS;
  #nextId: UtpId = 2;
  #cancelWake = () => {};
  #isBusy = false;
  sentPackets = 0;

  constructor(world: UtpWorld, address: PeerAddress, clockMs: number, drift: number) {
    this.#world = world;
    this.address = address;
    this.#clockMs = clockMs;
    this.#drift = drift;
    const sha1 = (bytes: Uint8Array) => createHash("sha1").update(bytes).digest();
    const secret = Uint8Array.from({ length: 20 }, () => Math.floor(world.random() * 256));
    this.table = new UtpTable({ random: world.random, sha1, secret, acceptsIncoming: true }, this.now);
  }

  /** The time by this host's clock. */
  get now(): Instant {
    return instant(this.#clockMs + this.#world.queue.now * (1 + this.#drift));
  }

  connect(address: PeerAddress, ends: UtpEvents, timeoutMs = 7_000): UtpId {
    const id = this.#nextId;
    this.#nextId += 2;
    this.#ends.set(id, ends);
    this.table.handle({ kind: "connect", id, address, timeoutMs }, this.now);
    this.run();
    return id;
  }

  write(id: UtpId, bytes: Uint8Array): void {
    this.table.handle({ kind: "write", id, bytes }, this.now);
    this.run();
  }

  control(id: UtpId, kind: "pause" | "resume" | "close"): void {
    this.table.handle({ kind, id }, this.now);
    this.run();
  }

  datagram(bytes: Uint8Array, from: PeerAddress): void {
    this.table.handle({ kind: "datagram", bytes, from }, this.now);
    this.run();
  }

  run(): void {
    if (this.#isBusy) return;
    this.#isBusy = true;
    for (let output = this.table.poll(); output; output = this.table.poll()) this.#handleOutput(output);
    this.#isBusy = false;
    this.#cancelWake();
    const next = this.table.nextWake();
    if (next === undefined) return;
    const at = (next - this.#clockMs) / (1 + this.#drift);
    this.#cancelWake = this.#world.queue.at(at + 0.01, () => {
      this.table.wake(this.now);
      this.run();
    });
  }

  #handleOutput(output: UtpOutput): void {
    if (output.kind === "send") {
      this.sentPackets++;
      this.#world.send(output.bytes, this.address, output.to);
      return;
    }
    if (output.kind === "accepted") {
      this.#ends.set(output.id, this.accept(output.id, output.remote));
      return;
    }
    const ends = this.#ends.get(output.id);
    if (output.kind === "opened") ends?.opened();
    else if (output.kind === "received") ends?.received(output.bytes);
    else if (output.kind === "drained") ends?.drained();
    else {
      this.#ends.delete(output.id);
      ends?.closed(output.reason);
    }
  }
}

/** Pseudo-random bytes of prime length: moved, duplicated or missing bytes break the pattern. */
const PATTERN = (() => {
  const random = seededRandom(99);
  return Uint8Array.from({ length: 65_521 }, () => random() * 256);
})();

/** Counts received bytes, and checks that they match {@link patternBytes}. */
export class PatternReader {
  bytes = 0;
  isRight = true;

  take(bytes: Uint8Array): void {
    let at = this.bytes % PATTERN.length;
    for (let i = 0; i < bytes.length; i++) {
      if (bytes[i] !== PATTERN[at]) this.isRight = false;
      if (++at === PATTERN.length) at = 0;
    }
    this.bytes += bytes.length;
  }
}

/** Returns `length` bytes of the repeated pattern from `at` on; `length` is less than the pattern's. */
export function patternBytes(at: number, length: number): Uint8Array {
  const from = at % PATTERN.length;
  const bytes = PATTERN.slice(from, from + length);
  return bytes.length === length ? bytes : concatBytes([bytes, PATTERN.slice(0, length - bytes.length)]);
}
