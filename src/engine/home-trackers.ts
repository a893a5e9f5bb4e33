import type { Infohash } from "../base/ids.ts";
import type { AnnounceReply, AnnounceRequest, SwarmCounts } from "../wire/tracker.ts";
import type { Announcer } from "./announcer.ts";
import type { DriverAnnouncer } from "./running-announces.ts";

/** As many as a swarm knows trackers, a few links over. */
const MAX_HOME_TRACKERS = 500;

/**
 * The announcer as the swarm of one content uses it. CHOICE(home-trackers): only trackers that somebody on this host has
 * named, in a link or in a transport file that they gave, may be at loopback or private addresses; all others are asked
 * at global ones, or else anybody who may play here could make us knock at every door of the network.
 */
export class HomeTrackers implements DriverAnnouncer {
  readonly #announcer: Pick<Announcer, "announce" | "scrape">;
  readonly #urls = new Set<string>();

  constructor(announcer: Pick<Announcer, "announce" | "scrape">) {
    this.#announcer = announcer;
  }

  /** More announce URLs that may be at home. */
  add(urls: readonly string[]): void {
    for (const url of urls) if (this.#urls.size < MAX_HOME_TRACKERS) this.#urls.add(url);
  }

  announce(request: AnnounceRequest, signal?: AbortSignal): Promise<AnnounceReply> {
    return this.#announcer.announce(request, { signal, allowPrivate: this.#urls.has(request.url) });
  }

  scrape(url: string, infohash: Infohash, signal?: AbortSignal): Promise<SwarmCounts | undefined> {
    return this.#announcer.scrape(url, infohash, { signal, allowPrivate: this.#urls.has(url) });
  }
}
