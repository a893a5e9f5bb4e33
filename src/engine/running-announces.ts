import { messageOf } from "../base/errors.ts";
import type { Infohash } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import { after } from "../base/time.ts";
import type { Clock } from "../runtime/contract.ts";
import type { AnnounceReply, AnnounceRequest, SwarmCounts } from "../wire/tracker.ts";

/** Talks to trackers. Never rejects: what goes wrong is a reply with `ok: false`. */
export interface DriverAnnouncer {
  announce(request: AnnounceRequest, signal?: AbortSignal): Promise<AnnounceReply>;
  /** What a tracker knows of one swarm; undefined where it does not tell. */
  scrape(url: string, infohash: Infohash, signal?: AbortSignal): Promise<SwarmCounts | undefined>;
}

/** What these are made of. */
export interface RunningAnnouncesParts {
  readonly infohash: Infohash;
  readonly announcer: DriverAnnouncer;
  readonly clock: Clock;
  readonly log: Log;
  /** Hears of every announce, also of those that failed. */
  announced(request: AnnounceRequest, reply: AnnounceReply): void;
  /** Hears of scrapes that told something. */
  scraped(url: string, counts: SwarmCounts): void;
}

/** Goodbyes to trackers may take so long; then the process need not wait for them. */
export const GOODBYE_MS = 2_000;

/** What one swarm has asked trackers and not been told yet. */
export class RunningAnnounces {
  readonly #parts: RunningAnnouncesParts;
  readonly #running = new Set<Promise<unknown>>();
  readonly #giveUp = new AbortController();

  constructor(parts: RunningAnnouncesParts) {
    this.#parts = parts;
  }

  announce(request: AnnounceRequest): void {
    const { announcer, log } = this.#parts;
    const announce = announcer.announce(request, this.#giveUp.signal).then(
      (reply) => this.#announced(request, reply),
      (error: unknown) => {
        log.warn("announce failed", { reason: messageOf(error) });
        this.#announced(request, { ok: false, reason: messageOf(error) });
      },
    );
    this.#running.add(announce);
    void announce.finally(() => this.#running.delete(announce));
  }

  async scrape(url: string): Promise<void> {
    const { announcer, infohash, scraped } = this.#parts;
    const counts = await announcer.scrape(url, infohash, this.#giveUp.signal);
    if (counts) scraped(url, counts);
  }

  /** Resolves when all announces are answered, or given up after {@link GOODBYE_MS}. */
  async settle(): Promise<void> {
    const { clock } = this.#parts;
    const cancel = clock.at(after(clock.now(), GOODBYE_MS), () => this.#giveUp.abort());
    await Promise.all(this.#running);
    cancel();
  }

  #announced(request: AnnounceRequest, reply: AnnounceReply): void {
    const { log, announced } = this.#parts;
    if (!reply.ok) log.debug("tracker gave nothing", { event: request.event, reason: reply.reason });
    announced(request, reply);
  }
}
