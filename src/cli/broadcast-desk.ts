import { isAbsolute } from "node:path";
import type { BroadcastDesk, OnAir } from "../../routes/house.ts";
import { messageOf, SluiceError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { after } from "../base/time.ts";
import type { Broadcast, BroadcastRequest, Broadcasts } from "../engine/live/broadcast-contract.ts";
import { checkedBroadcastName } from "../engine/live/broadcast-name.ts";
import { readLivePlace } from "../engine/live/source-place.ts";
import type { BroadcastRecords, BroadcastWish } from "../library/contract.ts";
import type { Clock } from "../runtime/contract.ts";
import { defaultName } from "./broadcast-request.ts";

/** More would need more upload than a home has. */
const MAX_KEPT = 16;
/** What cannot be on air now is tried again: soon, then ever more seldom. */
const FIRST_RETRY_MS = 10_000;
const MOST_RETRY_MS = 5 * 60_000;

/** What a desk works with. */
export interface BroadcastDeskParts {
  readonly broadcasts: Broadcasts;
  readonly records: BroadcastRecords;
  readonly clock: Clock;
  readonly log: Log;
  /** What the engine shall do for a wish. */
  requestOf(wish: BroadcastWish): Promise<BroadcastRequest>;
}

/** One that is kept. */
interface Kept {
  readonly wish: BroadcastWish;
  broadcast: Broadcast | undefined;
  problem: string | undefined;
  retryMs: number;
  cancelRetry: (() => void) | undefined;
}

/** Keeps on air what was asked for by control methods: after a restart too, and after failures. */
export class KeptBroadcasts implements BroadcastDesk {
  readonly #parts: BroadcastDeskParts;
  readonly #kept = new Map<string, Kept>();
  /** Those that are being started, and what ends that. */
  readonly #starting = new Map<string, AbortController>();
  readonly #stopping = new AbortController();

  constructor(parts: BroadcastDeskParts) {
    this.#parts = parts;
  }

  /** Puts on air what was so before; resolves as soon as it is known what that is. */
  async restore(): Promise<void> {
    for (const wish of await this.#parts.records.list()) {
      const kept = keptOf(wish);
      this.#kept.set(wish.name, kept);
      void this.#try(kept);
    }
  }

  async start(asked: BroadcastWish): Promise<OnAir> {
    const wish = { ...asked, name: checkedBroadcastName(asked.name || defaultName(asked.source)) };
    refuseHere(wish.source);
    const { name } = wish;
    const before = this.#kept.get(name);
    if (this.#starting.has(name) || before?.broadcast)
      throw new SluiceError(
        "bad_parameter",
        `name: ${name} is on air already; stop it first, or choose another name`,
      );
    const names = new Set([...this.#kept.keys(), ...this.#starting.keys()]);
    if (!before && names.size >= MAX_KEPT)
      throw new SluiceError("too_many", `broadcasts: at most ${MAX_KEPT}`);
    try {
      before?.cancelRetry?.();
      const broadcast = await this.#begin(wish);
      await this.#parts.records.keep(wish).catch(async (error) => {
        await broadcast.stop();
        throw error;
      });
      const kept = keptOf(wish);
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
    const broadcast = kept?.broadcast ?? this.#parts.broadcasts.get(name);
    const starting = this.#starting.get(name);
    if (!kept && !broadcast && !starting)
      throw new SluiceError("unknown_broadcast", `${name.slice(0, 60)}; see broadcast_list`);
    // First what would bring it back.
    await this.#parts.records.forget(name);
    starting?.abort();
    if (kept) this.#drop(kept);
    await broadcast?.stop();
  }

  list(): readonly OnAir[] {
    const others = this.#parts.broadcasts
      .all()
      .filter(({ request }) => !this.#kept.get(request.name)?.broadcast);
    return [
      ...[...this.#kept].map(([name, kept]) => onAir(name, kept)),
      ...others
        .filter(({ request }) => !this.#kept.has(request.name))
        .map((broadcast) => ({
          name: broadcast.request.name,
          wish: undefined,
          broadcast,
          problem: undefined,
        })),
    ];
  }

  /** Starts nothing more; what is on air is the engine's to end, and is on air again at the next start. */
  close(): void {
    this.#stopping.abort();
    for (const kept of this.#kept.values()) kept.cancelRetry?.();
  }

  async #begin(wish: BroadcastWish): Promise<Broadcast> {
    const given = new AbortController();
    this.#starting.set(wish.name, given);
    const signal = AbortSignal.any([this.#stopping.signal, given.signal]);
    return this.#parts.broadcasts.start(await this.#parts.requestOf(wish), signal);
  }

  async #try(kept: Kept): Promise<void> {
    const { name } = kept.wish;
    kept.cancelRetry = undefined;
    try {
      const broadcast = await this.#begin(kept.wish);
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
    this.#parts.log.info("on air", { name: kept.wish.name, infohash: broadcast.infohash });
    broadcast.ended.then(
      () => void this.#ended(kept),
      (error) => this.#failed(kept, error),
    );
  }

  /** A file that was shown to its end shall not begin again at the next start. */
  async #ended(kept: Kept): Promise<void> {
    const { name } = kept.wish;
    if (this.#stopping.signal.aborted || this.#kept.get(name) !== kept) return;
    this.#drop(kept);
    this.#parts.log.info("its source has ended, and so has the broadcast", { name });
    await this.#parts.records
      .forget(name)
      .catch((error) =>
        this.#parts.log.error("a broadcast that has ended is still kept", { name, why: messageOf(error) }),
      );
  }

  #failed(kept: Kept, error: unknown): void {
    if (this.#stopping.signal.aborted || this.#kept.get(kept.wish.name) !== kept) return;
    Object.assign(kept, { broadcast: undefined, problem: messageOf(error) });
    this.#parts.log.warn("not on air; tried again", {
      name: kept.wish.name,
      why: messageOf(error),
      seconds: kept.retryMs / 1000,
    });
    this.#retryLater(kept);
  }

  #retryLater(kept: Kept): void {
    const { clock } = this.#parts;
    if (this.#stopping.signal.aborted) return;
    kept.cancelRetry = clock.at(after(clock.now(), kept.retryMs), () => void this.#try(kept));
    kept.retryMs = Math.min(2 * kept.retryMs, MOST_RETRY_MS);
  }

  #drop(kept: Kept): void {
    kept.cancelRetry?.();
    this.#kept.delete(kept.wish.name);
  }
}

function keptOf(wish: BroadcastWish): Kept {
  return { wish, broadcast: undefined, problem: undefined, retryMs: FIRST_RETRY_MS, cancelRetry: undefined };
}

function onAir(name: string, { wish, broadcast, problem }: Kept): OnAir {
  return { name, wish, broadcast, problem };
}

/** What an engine that runs by itself cannot read. */
function refuseHere(source: string | null): void {
  if (source === null) return;
  const place = readLivePlace(source);
  if (place.kind === "pipe")
    throw new SluiceError(
      "bad_parameter",
      "source: nothing is piped into the engine; sluice broadcast - does that",
    );
  if (place.kind === "file" && !isAbsolute(place.path))
    throw new SluiceError(
      "bad_parameter",
      `source: expected a URL, udp://… or an absolute path, got "${source.slice(0, 200)}"`,
    );
}
