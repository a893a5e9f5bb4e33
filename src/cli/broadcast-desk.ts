import { isAbsolute } from "node:path";
import type { BroadcastEntry, BroadcastService } from "../../routes/http/dependencies.ts";
import { orAborted } from "../async/abort.ts";
import { messageOf, SluiceError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { after } from "../base/time.ts";
import type { BroadcastOptions, BroadcastRecords } from "../library/contract.ts";
import type { Broadcast, BroadcastRequest, Broadcasts } from "../live/broadcast/broadcast-contract.ts";
import type { BroadcastLists } from "../live/broadcast/broadcast-lists.ts";
import { checkedBroadcastName } from "../live/broadcast/broadcast-name.ts";
import { readLivePlace } from "../live/input/source-place.ts";
import type { Clock } from "../runtime/contract.ts";
import { defaultName } from "./broadcast-request.ts";

/** Maximum number of broadcasts; more would exceed the upload of a usual line. */
const MAX_KEPT = 16;
/** Retry interval of a broadcast that cannot start; it doubles up to the maximum. */
const FIRST_RETRY_MS = 10_000;
const MOST_RETRY_MS = 5 * 60_000;

/** What {@link KeptBroadcasts} needs. */
export interface KeptBroadcastsDependencies {
  readonly broadcasts: Broadcasts;
  readonly records: BroadcastRecords;
  readonly clock: Clock;
  readonly log: Log;
  /** Makes a pass for a relay of the stream. */
  relayPass(name: string): Promise<string>;
  /** Validates options and converts them to a request for the engine. */
  requestOf(options: BroadcastOptions): Promise<BroadcastRequest>;
}

/** A broadcast that is kept on air. */
interface Kept {
  readonly options: BroadcastOptions;
  broadcast: Broadcast | undefined;
  problem: string | undefined;
  retryMs: number;
  cancelRetry: (() => void) | undefined;
}

/** Keeps the broadcasts of the control methods on air, also after restarts and failures. */
export class KeptBroadcasts implements BroadcastService {
  readonly #dependencies: KeptBroadcastsDependencies;
  readonly #kept = new Map<string, Kept>();
  /** Broadcasts that are being started, with the controller that cancels the start. */
  readonly #starting = new Map<string, AbortController>();
  readonly #stopping = new AbortController();

  constructor(dependencies: KeptBroadcastsDependencies) {
    this.#dependencies = dependencies;
  }

  /** Starts the broadcasts of the last run. Resolves when their records are read, before they are on air. */
  async restore(): Promise<void> {
    for (const options of await this.#dependencies.records.list()) {
      const kept = keptOf(options);
      this.#kept.set(options.name, kept);
      void this.#try(kept);
    }
  }

  async start(asked: BroadcastOptions): Promise<BroadcastEntry> {
    const options = { ...asked, name: checkedBroadcastName(asked.name || defaultName(asked.source)) };
    requireReadableSource(options.source);
    const { name } = options;
    const before = this.#kept.get(name);
    if (this.#starting.has(name) || before?.broadcast)
      throw new SluiceError(
        "bad_parameter",
        `name: ${name} is already on air; stop it first, or choose another name`,
      );
    const names = new Set([...this.#kept.keys(), ...this.#starting.keys()]);
    if (!before && names.size >= MAX_KEPT)
      throw new SluiceError("too_many", `broadcasts: at most ${MAX_KEPT}`);
    try {
      before?.cancelRetry?.();
      const broadcast = await this.#begin(options);
      const { isRotated: _, ...record } = options;
      await this.#dependencies.records.keep(record).catch(async (error) => {
        await broadcast.stop();
        throw error;
      });
      const kept = keptOf(record);
      this.#kept.set(name, kept);
      this.#watch(kept, broadcast);
      return onAir(name, kept);
    } catch (error) {
      if (before && this.#kept.get(name) === before) this.#retryLater(before);
      throw error;
    } finally {
      this.#starting.delete(name);
    }
  }

  async stop(name: string): Promise<void> {
    const kept = this.#kept.get(name);
    const broadcast = kept?.broadcast ?? this.#dependencies.broadcasts.get(name);
    const starting = this.#starting.get(name);
    if (!kept && !broadcast && !starting)
      throw new SluiceError("unknown_broadcast", `${name.slice(0, 60)}; see broadcast_list`);
    // Remove the record first, because it would start the broadcast again.
    await this.#dependencies.records.forget(name);
    starting?.abort();
    if (kept) this.#drop(kept);
    await broadcast?.stop();
  }

  relayPass(name: string): Promise<string> {
    return this.#dependencies.relayPass(name);
  }

  list(): readonly BroadcastEntry[] {
    const others = this.#dependencies.broadcasts
      .all()
      .filter(({ request }) => !this.#kept.get(request.name)?.broadcast);
    return [
      ...[...this.#kept].map(([name, kept]) => onAir(name, kept)),
      ...others
        .filter(({ request }) => !this.#kept.has(request.name))
        .map((broadcast) => ({
          name: broadcast.request.name,
          options: undefined,
          broadcast,
          problem: undefined,
        })),
    ];
  }

  /** Stops retries. The engine ends the running broadcasts; the next start restores them. */
  close(): void {
    this.#stopping.abort();
    for (const kept of this.#kept.values()) kept.cancelRetry?.();
  }

  async #begin(options: BroadcastOptions): Promise<Broadcast> {
    const given = new AbortController();
    this.#starting.set(options.name, given);
    const signal = AbortSignal.any([this.#stopping.signal, given.signal]);
    return this.#dependencies.broadcasts.start(await this.#dependencies.requestOf(options), signal);
  }

  async #try(kept: Kept): Promise<void> {
    const { name } = kept.options;
    kept.cancelRetry = undefined;
    try {
      const broadcast = await this.#begin(kept.options);
      if (this.#kept.get(name) === kept) this.#watch(kept, broadcast);
      else await broadcast.stop();
    } catch (error) {
      this.#failed(kept, error);
    } finally {
      this.#starting.delete(name);
    }
  }

  #watch(kept: Kept, broadcast: Broadcast): void {
    Object.assign(kept, { broadcast, problem: undefined, retryMs: FIRST_RETRY_MS });
    this.#dependencies.log.info("on air", { name: kept.options.name, infohash: broadcast.infohash });
    broadcast.ended.then(
      () => void this.#ended(kept),
      (error) => this.#failed(kept, error),
    );
  }

  /** A file that was broadcast to its end must not start again at the next start of the engine. */
  async #ended(kept: Kept): Promise<void> {
    const { name } = kept.options;
    if (this.#stopping.signal.aborted || this.#kept.get(name) !== kept) return;
    this.#drop(kept);
    this.#dependencies.log.info("broadcast ended: the source has ended", { name });
    await this.#dependencies.records.forget(name).catch((error) =>
      this.#dependencies.log.error("cannot remove the record of an ended broadcast", {
        name,
        error: messageOf(error),
      }),
    );
  }

  #failed(kept: Kept, error: unknown): void {
    if (this.#stopping.signal.aborted || this.#kept.get(kept.options.name) !== kept) return;
    Object.assign(kept, { broadcast: undefined, problem: messageOf(error) });
    this.#dependencies.log.warn("broadcast failed; retrying", {
      name: kept.options.name,
      error: messageOf(error),
      seconds: kept.retryMs / 1000,
    });
    this.#retryLater(kept);
  }

  #retryLater(kept: Kept): void {
    const { clock } = this.#dependencies;
    if (this.#stopping.signal.aborted) return;
    kept.cancelRetry = clock.at(after(clock.now(), kept.retryMs), () => void this.#try(kept));
    kept.retryMs = Math.min(2 * kept.retryMs, MOST_RETRY_MS);
  }

  #drop(kept: Kept): void {
    kept.cancelRetry?.();
    this.#kept.delete(kept.options.name);
  }
}

function keptOf(options: BroadcastOptions): Kept {
  return {
    options,
    broadcast: undefined,
    problem: undefined,
    retryMs: FIRST_RETRY_MS,
    cancelRetry: undefined,
  };
}

function onAir(name: string, { options, broadcast, problem }: Kept): BroadcastEntry {
  return { name, options, broadcast, problem };
}

/** Throws for sources that a running engine cannot read. */
function requireReadableSource(source: string | null): void {
  if (source === null) return;
  const place = readLivePlace(source);
  if (place.kind === "pipe")
    throw new SluiceError(
      "bad_parameter",
      "source: the engine has no standard input; use sluice broadcast -",
    );
  if (place.kind === "file" && !isAbsolute(place.path))
    throw new SluiceError(
      "bad_parameter",
      `source: expected a URL, udp://… or an absolute path, got "${source.slice(0, 200)}"`,
    );
}

/** The broadcast lists of the library, which opens before the engine that broadcasts: calls wait until `bind`. */
export class LateLists implements BroadcastLists {
  readonly #lists: Promise<BroadcastLists>;
  #resolve: (lists: BroadcastLists) => void = () => {};
  #bound: BroadcastLists | undefined;

  constructor() {
    this.#lists = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  bind(lists: BroadcastLists): void {
    this.#bound = lists;
    this.#resolve(lists);
  }

  async refresh(...[list, progress]: Parameters<BroadcastLists["refresh"]>): Promise<string> {
    const lists = await orAborted(this.#lists, progress.signal);
    return lists.refresh(list, progress);
  }

  /** Before `bind` no list has broadcasts. */
  async forget(id: number): Promise<void> {
    await this.#bound?.forget(id);
  }
}
