import { onAbort } from "../async/abort.ts";
import { after } from "../base/time.ts";
import type { Clock } from "../runtime/contract.ts";
import type { ChannelState, ChannelWatch } from "../transfer/channel-contract.ts";
import type { PlaybackRequest, SessionEvent } from "./contract.ts";

/** A controller that never fetches its events loses the oldest. */
const QUEUE_LIMIT = 16;

/**
 * The event queue of one session; a controller fetches one event per long poll. CHOICE(events): `use_api_events` asks for all
 * events, `use_stop_notifications` and `use_api_stop` for `download_stopped` only.
 */
export class SessionEvents {
  readonly #clock: Clock;
  #wants: "all" | "stops" | "none" = "none";
  readonly #queue: SessionEvent[] = [];
  #respond: ((event: SessionEvent | undefined) => void) | undefined;
  readonly #leaveChannel: () => void;
  #isClosed = false;

  /** Each change of the source of `channel` is an event. */
  constructor(
    clock: Clock,
    wanted: Pick<PlaybackRequest, "wantsEvents" | "wantsStops">,
    channel?: ChannelWatch,
  ) {
    this.#clock = clock;
    this.want(wanted);
    this.#leaveChannel = channel?.onChange((state) => this.push(sourceEvent(state))) ?? (() => {});
  }

  /** Adds the events that a start asks for to those of earlier starts. */
  want({ wantsEvents, wantsStops }: Pick<PlaybackRequest, "wantsEvents" | "wantsStops">): void {
    if (wantsEvents) this.#wants = "all";
    else if (wantsStops && this.#wants === "none") this.#wants = "stops";
  }

  get isWanted(): boolean {
    return this.#wants !== "none";
  }

  /** Whether an event waits to be fetched. */
  get hasEvent(): boolean {
    return this.#queue.length > 0;
  }

  /** Adds an event, or answers the pending poll with it. Ignores events that were not asked for. */
  push(event: SessionEvent): void {
    const isStop = event.name === "download_stopped";
    if (this.#wants === "none" || (this.#wants === "stops" && !isStop)) return;
    if (this.#respond) this.#respond(event);
    else this.#queue.push(event);
    if (this.#queue.length > QUEUE_LIMIT) this.#queue.shift();
  }

  /**
   * Returns the next event, or undefined after `withinMs`. Also undefined when the signal fires, so that no event is lost to a
   * client that has disconnected. Only one call waits at a time: a second call ends the first one's wait.
   */
  nextEvent(withinMs: number, signal?: AbortSignal): Promise<SessionEvent | undefined> {
    this.#respond?.(undefined);
    if (signal?.aborted) return Promise.resolve(undefined);
    const queued = this.#queue.shift();
    if (queued || this.#isClosed) return Promise.resolve(queued);
    return new Promise((resolve) => {
      let release = () => {};
      const nothing = () => respond(undefined);
      const cancel = this.#clock.at(after(this.#clock.now(), withinMs), nothing);
      const respond = (event: SessionEvent | undefined) => {
        if (this.#respond !== respond) return;
        this.#respond = undefined;
        cancel();
        release();
        resolve(event);
      };
      this.#respond = respond;
      release = onAbort(signal, nothing);
    });
  }

  /** Answers the pending poll with undefined; later polls do not wait. */
  close(): void {
    this.#isClosed = true;
    this.#leaveChannel();
    this.#respond?.(undefined);
  }
}

/** CHOICE(channel-events): `source` counts from 1; 0 means that no source delivers and the player sees the test pattern. */
function sourceEvent({ source, sourceCount, switches, lastSwitch }: ChannelState): SessionEvent {
  const params = { source: source ? source.index + 1 : 0, sources: sourceCount, switches };
  return {
    name: "source_changed",
    params: { ...params, ...(source && { name: source.name }), reason: lastSwitch?.reason ?? "" },
  };
}
