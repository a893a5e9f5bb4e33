import { after } from "../base/time.ts";
import type { Clock } from "../runtime/contract.ts";
import type { AnnounceReply, AnnounceRequest } from "../wire/tracker.ts";
import type { Announcer, TrackerOptions } from "./announcer.ts";
import { GOODBYE_MS } from "./running-announces.ts";

/** The announcer of a swarm that another swarm of the same infohash takes over from. */
type Announces = Pick<Announcer, "announce" | "scrape">;

/**
 * Keeps back what the first swarm of two says to trackers when it ends. Both are at the same address and port: a tracker
 * that goes by those would forget the second one, which it may have heard of already. The goodbyes are said when the second
 * one has ended too, since trackers that go by peer ids would tell of the first for half an hour else.
 */
export class HeldGoodbyes implements Announces {
  readonly #announcer: Announces;
  readonly #clock: Clock;
  /** At most one for each tracker of the swarm. */
  readonly #held: { readonly request: AnnounceRequest; readonly options: TrackerOptions }[] = [];
  #isHolding = false;

  constructor(announcer: Announces, clock: Clock) {
    this.#announcer = announcer;
    this.#clock = clock;
  }

  /** From now on goodbyes are kept back. */
  hold(): void {
    this.#isHolding = true;
  }

  /** Says the goodbyes that were kept back; resolves when that is done, within seconds. */
  async say(): Promise<void> {
    this.#isHolding = false;
    if (this.#held.length === 0) return;
    const giveUp = new AbortController();
    const cancel = this.#clock.at(after(this.#clock.now(), GOODBYE_MS), () => giveUp.abort());
    const { signal } = giveUp;
    const said = this.#held
      .splice(0)
      .map(({ request, options }) => this.#announcer.announce(request, { ...options, signal }));
    await Promise.all(said);
    cancel();
  }

  async announce(request: AnnounceRequest, options: TrackerOptions = {}): Promise<AnnounceReply> {
    if (!this.#isHolding || request.event !== "stopped") return this.#announcer.announce(request, options);
    this.#held.push({ request, options });
    return { ok: false, reason: "said later" };
  }

  scrape(...asked: Parameters<Announces["scrape"]>): ReturnType<Announces["scrape"]> {
    return this.#announcer.scrape(...asked);
  }
}
