import { WakeTimer } from "../async/wake-timer.ts";
import type { PeerAddress } from "../base/address.ts";
import type { DhtInput, DhtOutput, DhtTaskId, TaskReport } from "../protocol/dht/contract.ts";
import type { DhtNode } from "../protocol/dht/dht-node.ts";
import type { Clock } from "../runtime/contract.ts";
import type { DhtItem } from "../wire/dht/krpc.ts";
import type { SharedUdp } from "./contract.ts";

/** Callbacks of a DHT task. */
export interface TaskEvents {
  peers?(addresses: readonly PeerAddress[]): void;
  item?(item: DhtItem): void;
  done(report: TaskReport): void;
}

/** A task without its number. */
export type TaskRequest = WithoutTask<Extract<DhtInput, { kind: "peers" | "get" | "put" }>>;

type WithoutTask<T> = T extends unknown ? Omit<T, "task"> : never;

export interface DhtDriverDependencies {
  readonly node: DhtNode;
  readonly udp: Pick<SharedUdp, "send" | "listen">;
  readonly clock: Clock;
  /** Nodes agree on the public address of this machine (BEP 42). */
  readonly addressSeen: (host: string) => void;
}

/** Drives a DHT node with the real socket and clock, and passes task results to the callers. */
export class DhtDriver {
  readonly #dependencies: DhtDriverDependencies;
  readonly #tasks = new Map<DhtTaskId, TaskEvents>();
  #nextTask: DhtTaskId = 1;
  #isBusy = false;
  #isStopped = false;
  readonly #timer: WakeTimer;

  constructor(dependencies: DhtDriverDependencies) {
    this.#dependencies = dependencies;
    this.#timer = new WakeTimer(dependencies.clock, () => this.#run());
    dependencies.udp.listen("dht", (bytes, from) => this.#run({ kind: "received", bytes, from }));
    this.#run();
  }

  /** Adds unverified node addresses. */
  addNodes(addresses: readonly PeerAddress[]): void {
    if (addresses.length > 0) this.#run({ kind: "nodes", addresses });
  }

  /** Starts a task. The returned function cancels it without a further event. */
  begin(request: TaskRequest, events: TaskEvents): () => void {
    const task = this.#nextTask++;
    this.#tasks.set(task, events);
    this.#run({ ...request, task } as DhtInput);
    return () => {
      if (this.#tasks.delete(task)) this.#run({ kind: "cancel", task });
    };
  }

  /** Stops sending and drops all tasks without `done`. */
  stop(): void {
    this.#isStopped = true;
    this.#timer.stop();
    this.#tasks.clear();
  }

  /** Passes `input`, or a wake-up without one, to the node, then carries out its outputs. */
  #run(input?: DhtInput): void {
    if (this.#isStopped) return;
    const { node, clock } = this.#dependencies;
    if (input) node.handle(input, clock.now());
    else node.wake(clock.now());
    // A callback may add an input; the outer loop takes its outputs from the queue.
    if (this.#isBusy) return;
    this.#isBusy = true;
    try {
      for (let output = node.poll(); output; output = node.poll()) this.#execute(output);
    } finally {
      this.#isBusy = false;
    }
    this.#timer.want(node.nextWake());
  }

  #execute(output: DhtOutput): void {
    switch (output.kind) {
      case "send":
        this.#dependencies.udp.send(output.bytes, output.to);
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
        this.#dependencies.addressSeen(output.host);
        break;
    }
  }
}
