import { createHash } from "node:crypto";
import { addressText, type PeerAddress } from "../../../src/base/address.ts";
import { type Random, randomBelow } from "../../../src/base/random.ts";
import { instant } from "../../../src/base/time.ts";
import type { DhtInput, DhtOutput, DhtTaskId } from "../../../src/protocol/dht/contract.ts";
import { DhtNode } from "../../../src/protocol/dht/dht-node.ts";
import { ed25519Verifier } from "../../../src/runtime/crypto.ts";
import type { DhtItem, NodeContact } from "../../../src/wire/dht/krpc.ts";
import { nodeIdFor } from "../../../src/wire/dht/node-id.ts";
import type { DhtState } from "../../../src/wire/dht/saved-nodes.ts";
import { seededRandom } from "../../seeded-random.ts";
import { EventQueue } from "../event-queue.ts";

export const sha1 = (bytes: Uint8Array) => new Uint8Array(createHash("sha1").update(bytes).digest());

/** A host with an address: an engine's node or another one. */
export interface Inhabitant {
  received(bytes: Uint8Array, from: PeerAddress): void;
}

/** Every datagram takes `latencyMs` one way; a share of them is lost. */
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

  /** A new public address, by default in a network of its own. */
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

  /** Adds a node. `knows` are nodes that it remembers, `found` addresses that it was given. */
  join(
    {
      knows = [],
      found = [],
      address = this.freeAddress(),
      id = undefined as Uint8Array | undefined,
    } = {} as {
      knows?: readonly NodeContact[];
      found?: readonly PeerAddress[];
      address?: PeerAddress;
      id?: Uint8Array | undefined;
    },
  ): SimulatedNode {
    const saved: DhtState | undefined = id && { families: [{ family: 4, id, nodes: knows }] };
    const node = new SimulatedNode(this, address, saved);
    this.inhabitants.set(addressText(address), node);
    this.members.push(node);
    if (found.length > 0) node.input({ kind: "nodes", addresses: found });
    else node.wake();
    return node;
  }

  /** A network of `count` nodes that have run for a while: each remembers some others at random. */
  populate(count: number, remembered: number): void {
    const contacts: NodeContact[] = Array.from({ length: count }, () => {
      const address = this.freeAddress();
      return { id: nodeIdFor(address.host, this.random), address };
    });
    for (const { id, address } of contacts) {
      const knows = Array.from({ length: remembered }, () => contacts[randomBelow(this.random, count)]!);
      // At different times, like real nodes.
      this.events.after(this.random() * 5_000, () => void this.join({ id, address, knows }));
    }
  }

  /** Advances the time by `ms`. */
  run(ms: number, isDone?: () => boolean): void {
    this.events.run(this.events.now + ms, isDone);
  }
}

/** An engine's node on the simulated network. */
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

  /** Returns the number of a task. */
  nextTask(): DhtTaskId {
    return ++this.#task;
  }

  /** The results of a task so far. */
  of(task: DhtTaskId) {
    return this.outputs.filter(({ output }) => "task" in output && output.task === task);
  }

  /** Runs the network until a task is done; returns its report. */
  finish(task: DhtTaskId, withinMs = 30_000) {
    const done = () => this.of(task).find(({ output }) => output.kind === "done");
    this.#network.run(withinMs, () => done() !== undefined);
    const output = done()?.output;
    return output?.kind === "done" ? output.report : undefined;
  }

  /** Puts an item; returns the number of the task. */
  put(item: DhtItem): DhtTaskId {
    const task = this.nextTask();
    this.input({ kind: "put", task, item });
    return task;
  }

  /** Gets an item; returns the last result. */
  find(query: { target: Uint8Array; signedBy?: { key: Uint8Array; salt: Uint8Array } }): DhtItem | undefined {
    const task = this.nextTask();
    this.input({ kind: "get", task, target: query.target, signedBy: query.signedBy });
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

  /** Leaves without notice. */
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
