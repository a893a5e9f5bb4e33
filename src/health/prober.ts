import { onAbort } from "../async/abort.ts";
import { sleep } from "../async/sleep.ts";
import { messageOf, SluiceError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Lease, Leases } from "../cluster/cluster-contract.ts";
import type { Clock } from "../runtime/contract.ts";
import type { ChannelHealth, ProbeTarget } from "./health-contract.ts";
import { visit } from "./visit.ts";

/** Average rate of all visits together: 2 Mbit/s in bytes per second. After a visit, the next one waits until it is paid for. */
const RATE_BYTES = 250_000;
/** The engine's own start comes first. */
const FIRST_MS = 120_000;
/** Pause between two passes through the list. */
const PASS_MS = 600_000;
/** An engine that does not visit the channels looks this often whether the one that does has died. */
const TAKE_MS = 2_000;
/** A failure is confirmed by a second visit after this time. */
const CONFIRM_SECONDS = 600;
/** Pause after a player has left, which may only have switched the channel, and after an interruption. */
const QUIET_MS = 30_000;

export interface ProberDependencies {
  readonly clock: Clock;
  readonly records: ChannelHealth;
  /** Of several engines one visits the channels. */
  readonly leases: Leases;
  readonly log: Log;
  /** How long a result is valid, in seconds. */
  readonly intervalSeconds: number;
  /** Lists the channels to visit. */
  readonly targets: () => AsyncIterable<ProbeTarget>;
  /** Number of sessions of players; those of visits, recordings and catch-up are none. */
  readonly players: () => number;
  /** Calls `started` at once when a player, a recording or catch-up starts a channel; returns a function that ends this. */
  readonly onStart: (started: (isBackground: boolean) => void) => () => void;
}

/**
 * Visits the channels in the background, one after another, and records how they play. It visits only while no player has a session, and
 * leaves a channel at once when one starts. If a recording or catch-up starts a channel, it leaves its own channel once: failing
 * channels are started again and again, and must not prevent the visits.
 */
export class Prober {
  readonly #parts: ProberDependencies;
  readonly #stop = new AbortController();
  readonly #ended: Promise<void>;
  #held: Lease | undefined;

  /** Begins after two minutes. */
  constructor(parts: ProberDependencies) {
    this.#parts = parts;
    this.#ended = this.#run().catch((error: unknown) => {
      if (!this.#stop.signal.aborted)
        parts.log.error("the channels are not visited any more", { reason: messageOf(error) });
    });
  }

  async close(): Promise<void> {
    this.#stop.abort(new SluiceError("cancelled", "the engine is stopping"));
    await this.#ended;
    await this.#held?.release().catch(() => {}); // It ends with the engine.
  }

  async #run(): Promise<void> {
    const { clock, targets } = this.#parts;
    const { signal } = this.#stop;
    for (let pauseMs = FIRST_MS; ; pauseMs = PASS_MS) {
      await sleep(clock, pauseMs, signal);
      const lease = await this.#lease();
      if (lease === undefined) return;
      const visited = new Set<string>();
      for await (const target of targets()) {
        if (signal.aborted || lease.lost.aborted) break;
        if (visited.has(target.content) || !this.#isDue(target.content)) continue;
        visited.add(target.content);
        await this.#visit(target);
      }
      if (signal.aborted) return;
    }
  }

  /** Takes the job, or keeps it from the pass before; undefined if the engine stops before. */
  async #lease(): Promise<Lease | undefined> {
    const { clock, leases } = this.#parts;
    const { signal } = this.#stop;
    while (!signal.aborted) {
      if (this.#held === undefined || this.#held.lost.aborted)
        this.#held = await leases.take("probe").catch(() => undefined); // The store cannot be reached.
      if (this.#held) return this.#held;
      await sleep(clock, TAKE_MS, signal);
    }
    return undefined;
  }

  #isDue(content: string): boolean {
    const { records, clock, intervalSeconds } = this.#parts;
    const known = records.get(content);
    if (known === undefined) return true;
    const isUnconfirmed = known.problem !== undefined && known.status !== "dead";
    const age = clock.unixSeconds() - known.checkedAt;
    // The wall clock may be set back.
    return age < 0 || age >= (isUnconfirmed ? Math.min(CONFIRM_SECONDS, intervalSeconds) : intervalSeconds);
  }

  /** Visits a channel; again if a start interrupts the visit. */
  async #visit(target: ProbeTarget): Promise<void> {
    const { clock, records, log, onStart } = this.#parts;
    const { signal } = this.#stop;
    for (let hasYielded = false; ; ) {
      await this.#untilQuiet();
      if (signal.aborted) return;
      const startAt = clock.now();
      const yielding = new AbortController();
      const release = onAbort(signal, () => yielding.abort(signal.reason));
      const leave = onStart((isBackground) => {
        if (isBackground && hasYielded) return;
        hasYielded ||= isBackground;
        yielding.abort(new SluiceError("cancelled", "another channel has started"));
      });
      try {
        const result = await visit(clock, (stop) => target.open(stop), yielding.signal);
        log.debug("visited a channel", { content: target.content, alive: `${result?.isAlive}` });
        if (result) await records.add(target.content, clock.unixSeconds(), result);
      } catch (error) {
        if (!yielding.signal.aborted) throw error;
      } finally {
        leave();
        release();
      }
      await this.#pay(startAt, () => target.downloaded());
      if (!yielding.signal.aborted) return;
      await sleep(clock, QUIET_MS, signal);
    }
  }

  /** Waits until the visit that began at `startAt` is within the rate. Its transfer may go on receiving for a moment. */
  async #pay(startAt: number, bytes: () => number): Promise<void> {
    const { clock } = this.#parts;
    for (;;) {
      const dueMs = (1000 * bytes()) / RATE_BYTES - (clock.now() - startAt);
      if (dueMs <= 0 || this.#stop.signal.aborted) return;
      // Whole milliseconds: a wait of a fraction would not advance the clock.
      await sleep(clock, Math.ceil(dueMs), this.#stop.signal);
    }
  }

  async #untilQuiet(): Promise<void> {
    const { clock, players } = this.#parts;
    const { signal } = this.#stop;
    for (let wasBusy = false; !signal.aborted; wasBusy = true) {
      if (players() === 0) {
        if (!wasBusy) return;
        await sleep(clock, QUIET_MS, signal);
        if (players() === 0) return;
      }
      await sleep(clock, QUIET_MS, signal);
    }
  }
}
