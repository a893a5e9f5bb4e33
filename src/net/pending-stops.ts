import { after } from "../base/time.ts";
import type { Clock } from "../runtime/contract.ts";
import type { AnnounceReply, AnnounceRequest } from "../wire/tracker/announce.ts";
import type { Announcer, TrackerOptions } from "./announcer.ts";
import { STOPPED_TIMEOUT_MS } from "./pending-announces.ts";

type Announces = Pick<Announcer, "announce" | "scrape">;

/**
 * Delays the `stopped` announces of a swarm that another swarm with the same infohash replaces. Both use the same address and
 * port, and a tracker that identifies peers by those would remove the new swarm as well. The announces are sent when the new
 * swarm has ended; trackers that identify peers by peer id would otherwise list the old one for half an hour.
 */
export class PendingStops implements Announces {
  readonly #announcer: Announces;
  readonly #clock: Clock;
  /** At most one for each tracker of the swarm. */
  readonly #stops: { readonly request: AnnounceRequest; readonly options: TrackerOptions }[] = [];
  #isHolding = false;

  constructor(announcer: Announces, clock: Clock) {
    this.#announcer = announcer;
    this.#clock = clock;
  }

  /** Starts to delay `stopped` announces. */
  hold(): void {
    this.#isHolding = true;
  }

  /** Sends the delayed announces; resolves within {@link STOPPED_TIMEOUT_MS}. */
  async send(): Promise<void> {
    this.#isHolding = false;
    if (this.#stops.length === 0) return;
    const timeout = new AbortController();
    const cancel = this.#clock.at(after(this.#clock.now(), STOPPED_TIMEOUT_MS), () => timeout.abort());
    const { signal } = timeout;
    const announces = this.#stops
      .splice(0)
      .map(({ request, options }) => this.#announcer.announce(request, { ...options, signal }));
    await Promise.all(announces);
    cancel();
  }

  async announce(request: AnnounceRequest, options: TrackerOptions = {}): Promise<AnnounceReply> {
    if (!this.#isHolding || request.event !== "stopped") return this.#announcer.announce(request, options);
    this.#stops.push({ request, options });
    return { ok: false, reason: "delayed until the swarm's successor ends" };
  }

  scrape(...parameters: Parameters<Announces["scrape"]>): ReturnType<Announces["scrape"]> {
    return this.#announcer.scrape(...parameters);
  }
}
