import { createHash } from "node:crypto";
import { addressText, type PeerAddress } from "../../../src/base/address.ts";
import { type Random, randomBelow, seededRandom } from "../../../src/base/random.ts";
import { instant } from "../../../src/base/time.ts";
import { ed25519Verifier } from "../../../src/runtime/crypto.ts";
import type { DhtInput, DhtOutput, DhtTaskId } from "../../../src/swarm/dht/contract.ts";
import { DhtNode } from "../../../src/swarm/dht/dht-node.ts";
import { nodeIdFor } from "../../../src/wire/dht-id.ts";
import type { DhtState } from "../../../src/wire/dht-state.ts";
import type { DhtItem, NodeContact } from "../../../src/wire/krpc.ts";
import { EventQueue } from "../event-queue.ts";

export const sha1 = (bytes: Uint8Array) => new Uint8Array(createHash("sha1").update(bytes).digest());

/** Whoever has an address: a node of ours, or somebody else. */
export interface Inhabitant {
  received(bytes: Uint8Array, from: PeerAddress): void;
}

/** Every datagram takes `latencyMs` one way; a share is lost. */
export class DhtNetwork {
  readonly events = new EventQueue();
  readonly random: Random;
  readonly inhabitants = new Map<string, Inhabitant>();
  readonly members: SimulatedNode[] = [];
  readonly #latencyMs: number;
  readonly #loss: number;
  datagrams = 0;

  constructor(seed: number, { latencyMs = 50, loss = 0 } = {}) {
    this.random = seededRandom(seed);
    this.#latencyMs = latencyMs;
    this.#loss = loss;
  }

  send(bytes: Uint8Array, from: PeerAddress, to: PeerAddress): void {
    this.datagrams++;
    if (this.#loss > 0 && this.random() < this.#loss) return;
    const jitter = 0.9 + 0.2 * this.random();
    this.events.after(this.#latencyMs * jitter, () =>
      this.inhabitants.get(addressText(to))?.received(bytes, from),
    );
  }

  /** A public address that nobody has, in a network of its own as a rule. */
  freeAddress(): PeerAddress {
    for (;;) {
      const host = [
        20 + randomBelow(this.random, 80),
        ...Array.from({ length: 3 }, () => randomBelow(this.random, 256)),
      ];
      const address = { host: host.join("."), port: 1024 + randomBelow(this.random, 60_000) };
      if (!this.inhabitants.has(addressText(address))) return address;
    }
  }

  /** Lets a node join; `knows` are nodes that it remembers, `told` addresses that it was given. */
  join(
    {
      knows = [],
      told = [],
      address = this.freeAddress(),
      id = undefined as Uint8Array | undefined,
    } = {} as {
      knows?: readonly NodeContact[];
      told?: readonly PeerAddress[];
      address?: PeerAddress;
      id?: Uint8Array | undefined;
    },
  ): SimulatedNode {
    const saved: DhtState | undefined = id && { families: [{ family: 4, id, nodes: knows }] };
    const node = new SimulatedNode(this, address, saved);
    this.inhabitants.set(addressText(address), node);
    this.members.push(node);
    if (told.length > 0) node.input({ kind: "nodes", addresses: told });
    else node.wake();
    return node;
  }

  /** A network of `count` nodes that have known each other for a while: each remembers some others by chance. */
  populate(count: number, remembered: number): void {
    const contacts: NodeContact[] = Array.from({ length: count }, () => {
      const address = this.freeAddress();
      return { id: nodeIdFor(address.host, this.random), address };
    });
    for (const { id, address } of contacts) {
      const knows = Array.from({ length: remembered }, () => contacts[randomBelow(this.random, count)]!);
      // Not all at once: real ones did not start in one instant.
      this.events.after(this.random() * 5_000, () => void this.join({ id, address, knows }));
    }
  }

  /** Lets `ms` pass. */
  run(ms: number, isDone?: () => boolean): void {
    this.events.run(this.events.now + ms, isDone);
  }
}

/** A node of ours on the simulated network. */
export class SimulatedNode implements Inhabitant {
  readonly address: PeerAddress;
  readonly node: DhtNode;
  readonly outputs: { at: number; output: Exclude<DhtOutput, { kind: "send" }> }[] = [];
  readonly #network: DhtNetwork;
  #isUp = true;
  #wakeAt = Number.POSITIVE_INFINITY;
  #cancelWake: () => void = () => {};
  #task: DhtTaskId = 0;
  sentBytes = 0;

  constructor(network: DhtNetwork, address: PeerAddress, saved: DhtState | undefined) {
    this.#network = network;
    this.address = address;
    const setup = {
      families: [4] as const,
      sha1,
      verifierOf: ed25519Verifier,
      random: network.random,
      isReadOnly: false,
    };
    this.node = new DhtNode({ ...setup, ...(saved && { saved }) }, network.events.now);
  }

  get contact(): NodeContact {
    return { id: this.node.state().families[0]!.id, address: this.address };
  }

  /** The number of a task. */
  nextTask(): DhtTaskId {
    return ++this.#task;
  }

  /** What came of a task so far. */
  of(task: DhtTaskId) {
    return this.outputs.filter(({ output }) => "task" in output && output.task === task);
  }

  /** Runs the network until a task is done; its report. */
  finish(task: DhtTaskId, withinMs = 30_000) {
    const done = () => this.of(task).find(({ output }) => output.kind === "done");
    this.#network.run(withinMs, () => done() !== undefined);
    const output = done()?.output;
    return output?.kind === "done" ? output.report : undefined;
  }

  /** Puts an item; the number of the task. */
  put(item: DhtItem): DhtTaskId {
    const task = this.nextTask();
    this.input({ kind: "put", task, item });
    return task;
  }

  /** Looks for an item: the last that came. */
  find(wish: { target: Uint8Array; signedBy?: { key: Uint8Array; salt: Uint8Array } }): DhtItem | undefined {
    const task = this.nextTask();
    this.input({ kind: "get", task, target: wish.target, signedBy: wish.signedBy });
    this.finish(task);
    const items = this.of(task).flatMap(({ output }) => (output.kind === "item" ? [output.item] : []));
    return items.at(-1);
  }

  received(bytes: Uint8Array, from: PeerAddress): void {
    this.input({ kind: "received", bytes, from });
  }

  input(input: DhtInput): void {
    if (!this.#isUp) return;
    this.node.handle(input, this.#network.events.now);
    this.#drain();
  }

  wake(): void {
    if (!this.#isUp) return;
    this.#wakeAt = Number.POSITIVE_INFINITY;
    this.node.wake(this.#network.events.now);
    this.#drain();
  }

  /** Goes without a word. */
  leave(): void {
    this.#isUp = false;
    this.#cancelWake();
    this.#network.inhabitants.delete(addressText(this.address));
  }

  #drain(): void {
    for (let output = this.node.poll(); output; output = this.node.poll()) {
      if (output.kind === "send") {
        this.sentBytes += output.bytes.length;
        this.#network.send(output.bytes, this.address, output.to);
      } else this.outputs.push({ at: this.#network.events.now, output });
    }
    const next = this.node.nextWake() ?? instant(Number.POSITIVE_INFINITY);
    if (next >= this.#wakeAt) return;
    this.#cancelWake();
    this.#wakeAt = next;
    this.#cancelWake = this.#network.events.at(next, () => this.wake());
  }
}
