import type { Infohash } from "../base/ids.ts";
import type { Announcer } from "../net/announcer.ts";
import type { SwarmAnnouncer } from "../net/pending-announces.ts";
import type { AnnounceReply, AnnounceRequest, SwarmCounts } from "../wire/tracker/announce.ts";

/** The trackers of several links, as many as a swarm accepts. */
const MAX_LOCAL_TRACKERS = 500;

/**
 * The announcer of one swarm. CHOICE(local-trackers): a tracker may have a loopback or private address only if a client on this
 * host named it, in a link or a transport file, or a server at such an address sent the transport file. Otherwise every
 * client that may play, and every public server, could make the engine connect to any device of the local network.
 */
export class LocalTrackers implements SwarmAnnouncer {
  readonly #announcer: Pick<Announcer, "announce" | "scrape">;
  readonly #urls = new Set<string>();

  constructor(announcer: Pick<Announcer, "announce" | "scrape">) {
    this.#announcer = announcer;
  }

  /** Adds announce URLs that may have loopback or private addresses. */
  add(urls: readonly string[]): void {
    for (const url of urls) if (this.#urls.size < MAX_LOCAL_TRACKERS) this.#urls.add(url);
  }

  announce(request: AnnounceRequest, signal?: AbortSignal): Promise<AnnounceReply> {
    return this.#announcer.announce(request, { signal, allowPrivate: this.#urls.has(request.url) });
  }

  scrape(url: string, infohash: Infohash, signal?: AbortSignal): Promise<SwarmCounts | undefined> {
    return this.#announcer.scrape(url, infohash, { signal, allowPrivate: this.#urls.has(url) });
  }
}
