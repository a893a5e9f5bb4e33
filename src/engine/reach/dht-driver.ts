import type { PeerAddress } from "../../base/address.ts";
import type { Clock } from "../../runtime/contract.ts";
import type { DhtInput, DhtOutput, DhtTaskId, TaskReport } from "../../swarm/dht/contract.ts";
import type { DhtNode } from "../../swarm/dht/dht-node.ts";
import type { DhtItem } from "../../wire/krpc.ts";
import { WakeTimer } from "../wake-timer.ts";
import type { SharedUdp } from "./contract.ts";

/** What a task brings. */
export interface TaskEvents {
  peers?(addresses: readonly PeerAddress[]): void;
  item?(item: DhtItem): void;
  done(report: TaskReport): void;
}

/** A task, before it has its number. */
export type TaskWish = WithoutTask<Extract<DhtInput, { kind: "peers" | "get" | "put" }>>;

type WithoutTask<T> = T extends unknown ? Omit<T, "task"> : never;

/** What drives a node. */
export interface DhtDriverParts {
  readonly node: DhtNode;
  readonly udp: Pick<SharedUdp, "send" | "listen">;
  readonly clock: Clock;
  /** Others agree on where they see us. */
  readonly addressSeen: (host: string) => void;
}

/** Drives a node with the real socket and the real clock, and hands what tasks bring to those who gave them. */
export class DhtDriver {
  readonly #parts: DhtDriverParts;
  readonly #tasks = new Map<DhtTaskId, TaskEvents>();
  #nextTask: DhtTaskId = 1;
  #isBusy = false;
  #isStopped = false;
  readonly #timer: WakeTimer;

  constructor(parts: DhtDriverParts) {
    this.#parts = parts;
    this.#timer = new WakeTimer(parts.clock, () => this.#run());
    parts.udp.listen("dht", (bytes, from) => this.#run({ kind: "received", bytes, from }));
    this.#run();
  }

  /** Addresses that are said to have nodes. */
  addNodes(addresses: readonly PeerAddress[]): void {
    if (addresses.length > 0) this.#run({ kind: "nodes", addresses });
  }

  /** Begins a task; the returned function ends it, without a word to `events`. */
  begin(wish: TaskWish, events: TaskEvents): () => void {
    const task = this.#nextTask++;
    this.#tasks.set(task, events);
    this.#run({ ...wish, task } as DhtInput);
    return () => {
      if (this.#tasks.delete(task)) this.#run({ kind: "cancel", task });
    };
  }

  /** Ends everything: nothing more is sent, and no task ends. */
  stop(): void {
    this.#isStopped = true;
    this.#timer.stop();
    this.#tasks.clear();
  }

  /** Lets the node work (for `input`, or for time where there is none), then does all that it puts out. */
  #run(input?: DhtInput): void {
    if (this.#isStopped) return;
    const { node, clock } = this.#parts;
    if (input) node.handle(input, clock.now());
    else node.wake(clock.now());
    // What an output sets off may be a new input: its outputs join the queue of which the outer loop takes them.
    if (this.#isBusy) return;
    this.#isBusy = true;
    try {
      for (let output = node.poll(); output; output = node.poll()) this.#carryOut(output);
    } finally {
      this.#isBusy = false;
    }
    this.#timer.want(node.nextWake());
  }

  #carryOut(output: DhtOutput): void {
    switch (output.kind) {
      case "send":
        this.#parts.udp.send(output.bytes, output.to);
        break;
      case "peers":
        this.#tasks.get(output.task)?.peers?.(output.addresses);
        break;
      case "item":
        this.#tasks.get(output.task)?.item?.(output.item);
        break;
      case "done": {
        const events = this.#tasks.get(output.task);
        this.#tasks.delete(output.task);
        events?.done(output.report);
        break;
      }
      case "address":
        this.#parts.addressSeen(output.host);
        break;
    }
  }
}
