import type { Instant } from "../../base/time.ts";
import type { PieceHeader } from "../../wire/live/header.ts";
import { comparePieces } from "../../wire/live/trust.ts";

/** What a standby observes at one moment. */
export interface StandbyObservation {
  /** The newest genuine header of its stream. */
  readonly newest: PieceHeader | undefined;
  /** When a peer that has been connected for a while last sent a message. */
  readonly heardAt: Instant | undefined;
  /** Its own source delivers data; otherwise it must not take over. */
  readonly isReady: boolean;
}

/** The timeouts of a standby, in ms. */
export interface StandbyTimeouts {
  /** Without a new header for this long, the source is gone. */
  readonly silenceMs: number;
  /** Without a header at its start for this long, no source is on air. */
  readonly startMs: number;
}

/** `start`: no source found yet; `follow`: another source is on air; `silent`: peers have no new header; `alone`: no
 * peer sends anything, so our own network may be down. */
export type StandbyState = "start" | "follow" | "silent" | "alone";

/** A source without input still makes one piece a second (live protocol: Pieces and chunks); two may be late. */
export const SILENCE_MS = 2000;
/** Long enough for trackers and the DHT to return peers, and for these to send headers. */
export const START_MS = 10_000;
/** If no peer sends anything, our own network may be down while the stream continues. A standby has no viewers then,
 * so it waits; a router that restarts is back within this time. */
export const ALONE_MS = 30_000;
/** A peer that sent a message this long after the last header, and this recently, would have forwarded a newer one. */
const CONFIRM_AFTER_MS = 1000;
const CONFIRM_FRESH_MS = 1500;

/** Decides when a standby goes on air. Only headers count, because they cannot be forged without the key; an old
 * header is not a sign of life, because any peer can repeat it. */
export class StandbyWatch {
  readonly #timeouts: StandbyTimeouts;
  readonly #startedAt: Instant;
  #seen: PieceHeader | undefined;
  #newHeaderAt: Instant | undefined;
  #state: StandbyState = "start";

  constructor(timeouts: StandbyTimeouts, now: Instant) {
    this.#timeouts = timeouts;
    this.#startedAt = now;
  }

  /** The newest header received. */
  get seen(): PieceHeader | undefined {
    return this.#seen;
  }

  get state(): StandbyState {
    return this.#state;
  }

  /** Time since the last new header, or since the start. */
  silentMs(now: Instant): number {
    return now - (this.#newHeaderAt ?? this.#startedAt);
  }

  /** Updates the state. Call this several times a second. `over`: the source has ended the stream. */
  update(observation: StandbyObservation, now: Instant): "wait" | "take over" | "over" {
    this.#noteHeader(observation.newest, now);
    const silentMs = this.silentMs(now);
    if (this.#newHeaderAt === undefined)
      return observation.isReady && silentMs >= this.#timeouts.startMs ? "take over" : "wait";
    if (this.#seen?.isEnd) return "over";
    const isConfirmed = this.#isConfirmed(observation.heardAt, this.#newHeaderAt, now);
    this.#state = silentMs < CONFIRM_AFTER_MS ? "follow" : isConfirmed ? "silent" : "alone";
    const limitMs = isConfirmed ? this.#timeouts.silenceMs : ALONE_MS;
    return observation.isReady && silentMs >= limitMs ? "take over" : "wait";
  }

  #noteHeader(newest: PieceHeader | undefined, now: Instant): void {
    if (!newest || (this.#seen && comparePieces(newest, this.#seen) <= 0)) return;
    // The first header shows where the stream was, not that it continues.
    if (this.#seen) this.#newHeaderAt = now;
    this.#seen = newest;
  }

  #isConfirmed(heardAt: Instant | undefined, newHeaderAt: Instant, now: Instant): boolean {
    if (heardAt === undefined) return false;
    return heardAt - newHeaderAt > CONFIRM_AFTER_MS && now - heardAt <= CONFIRM_FRESH_MS;
  }
}
