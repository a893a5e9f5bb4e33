import { messageOf } from "../base/errors.ts";
import type { Infohash } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import { after } from "../base/time.ts";
import type { Clock } from "../runtime/contract.ts";
import type { AnnounceReply, AnnounceRequest, SwarmCounts } from "../wire/tracker/announce.ts";

/** Announces a swarm to trackers. Never rejects: an error is a reply with `ok: false`. */
export interface SwarmAnnouncer {
  announce(request: AnnounceRequest, signal?: AbortSignal): Promise<AnnounceReply>;
  /** Asks for the size of a swarm; undefined if the tracker does not report it. */
  scrape(url: string, infohash: Infohash, signal?: AbortSignal): Promise<SwarmCounts | undefined>;
}

export interface PendingAnnouncesDependencies {
  readonly infohash: Infohash;
  readonly announcer: SwarmAnnouncer;
  readonly clock: Clock;
  readonly log: Log;
  /** Reports every finished announce, including failed ones. */
  announced(request: AnnounceRequest, reply: AnnounceReply): void;
  /** Reports every successful scrape. */
  scraped(url: string, counts: SwarmCounts): void;
}

/** Timeout of the `stopped` announces at the end of a swarm. */
export const STOPPED_TIMEOUT_MS = 2_000;

/** The unanswered announces of one swarm. */
export class PendingAnnounces {
  readonly #dependencies: PendingAnnouncesDependencies;
  readonly #running = new Set<Promise<unknown>>();
  readonly #aborted = new AbortController();

  constructor(dependencies: PendingAnnouncesDependencies) {
    this.#dependencies = dependencies;
  }

  announce(request: AnnounceRequest): void {
    const { announcer, log } = this.#dependencies;
    const announce = announcer.announce(request, this.#aborted.signal).then(
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
    const { announcer, infohash, scraped } = this.#dependencies;
    const counts = await announcer.scrape(url, infohash, this.#aborted.signal);
    if (counts) scraped(url, counts);
  }

  /** Resolves when all announces have ended; aborts them after {@link STOPPED_TIMEOUT_MS}. */
  async settle(): Promise<void> {
    const { clock } = this.#dependencies;
    const cancel = clock.at(after(clock.now(), STOPPED_TIMEOUT_MS), () => this.#aborted.abort());
    await Promise.all(this.#running);
    cancel();
  }

  #announced(request: AnnounceRequest, reply: AnnounceReply): void {
    const { log, announced } = this.#dependencies;
    if (!reply.ok) log.debug("announce failed", { event: request.event, reason: reply.reason });
    announced(request, reply);
  }
}
