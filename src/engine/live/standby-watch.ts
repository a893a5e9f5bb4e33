import type { Instant } from "../../base/time.ts";
import type { PieceHeader } from "../../wire/live-header.ts";
import { comparePieces } from "../../wire/live-trust.ts";

/** What a standby sees at a moment. */
export interface StandbySight {
  /** The newest genuine header of its stream. */
  readonly newest: PieceHeader | undefined;
  /** When a peer that has been there for a while said something last. */
  readonly heardAt: Instant | undefined;
  /** Its own source gives something: who has nothing to show takes over from nobody. */
  readonly isReady: boolean;
}

/** How patient a standby is; in ms. */
export interface StandbyPatience {
  /** Without a new header for so long, the stream's source is gone. */
  readonly silenceMs: number;
  /** Nobody who was on air at the start has been heard for so long: nobody is. */
  readonly startMs: number;
}

/** `follow`: another is on air; `alone`: nobody is heard, and the network may be what has gone; `start`: nobody was heard of yet. */
export type StandbyState = "start" | "follow" | "silent" | "alone";

/** Even a source without input makes a piece each second (live protocol: Pieces and chunks); two may be late. */
export const SILENCE_MS = 2000;
/** Long enough for trackers and the DHT to name peers, and for these to tell what is on air. */
export const START_MS = 10_000;
/**
 * Where no peer says anything, our own network may be what has gone, and the stream may go on without us. There is nobody to
 * serve either, so waiting costs little; a router that starts again is back by then.
 */
export const ALONE_MS = 30_000;
/** A peer that has spoken so long after the last header, and so short a time ago, would have passed on a newer one. */
const WITNESS_AFTER_MS = 1000;
const WITNESS_FRESH_MS = 1500;

/**
 * Tells when somebody who stands by has to go on air. Only headers count, since nobody can make one without the key; one that does
 * not follow after others have been seen is no sign of life, since it may be told again from long ago.
 */
export class StandbyWatch {
  readonly #patience: StandbyPatience;
  readonly #startedAt: Instant;
  #seen: PieceHeader | undefined;
  #newsAt: Instant | undefined;
  #state: StandbyState = "start";

  constructor(patience: StandbyPatience, now: Instant) {
    this.#patience = patience;
    this.#startedAt = now;
  }

  /** The newest header that was seen. */
  get seen(): PieceHeader | undefined {
    return this.#seen;
  }

  get state(): StandbyState {
    return this.#state;
  }

  /** How long there has been no new header; since the start where there was none. */
  silentMs(now: Instant): number {
    return now - (this.#newsAt ?? this.#startedAt);
  }

  /** To be asked some times a second. `over`: the source has ended the stream for good. */
  look(sight: StandbySight, now: Instant): "wait" | "take over" | "over" {
    this.#hear(sight.newest, now);
    const silentMs = this.silentMs(now);
    if (this.#newsAt === undefined)
      return sight.isReady && silentMs >= this.#patience.startMs ? "take over" : "wait";
    if (this.#seen?.isEnd) return "over";
    const isWitnessed = this.#isWitnessed(sight.heardAt, this.#newsAt, now);
    this.#state = silentMs < WITNESS_AFTER_MS ? "follow" : isWitnessed ? "silent" : "alone";
    const limitMs = isWitnessed ? this.#patience.silenceMs : ALONE_MS;
    return sight.isReady && silentMs >= limitMs ? "take over" : "wait";
  }

  #hear(newest: PieceHeader | undefined, now: Instant): void {
    if (!newest || (this.#seen && comparePieces(newest, this.#seen) <= 0)) return;
    // The first one says where the stream was, not that it goes on.
    if (this.#seen) this.#newsAt = now;
    this.#seen = newest;
  }

  #isWitnessed(heardAt: Instant | undefined, newsAt: Instant, now: Instant): boolean {
    if (heardAt === undefined) return false;
    return heardAt - newsAt > WITNESS_AFTER_MS && now - heardAt <= WITNESS_FRESH_MS;
  }
}
