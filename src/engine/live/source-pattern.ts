import { PATTERN_SOUND_CONFIG } from "../../media/test-pattern/sound.ts";
import { TestPattern } from "../../media/test-pattern/test-pattern.ts";
import { deltaTicks, TICKS_PER_SECOND } from "../../media/timestamps.ts";
import { type ClockRun, ClockSplitter } from "../../media/ts-clock.ts";
import { TsMuxer } from "../../remux/ts-muxer.ts";
import type { Clock } from "../../runtime/contract.ts";
import { type LiveFeed, type LiveInputFacts, pauseFor } from "./source-feed.ts";

/** What the pattern needs to know the time. */
export interface PatternParts {
  readonly clock: Clock;
  /** The time of day in UNIX ms. */
  unixMs(): number;
}

/** A clock that is this far from the second that is due next was set, or the machine slept: the pattern goes on at the right time. */
const MAX_OFF_SECONDS = 2;

/**
 * The packets of the test pattern, each frame when its time has come. A second is made at a time, since what it shows is known before;
 * the first comes at once from its beginning, so that there is a keyframe.
 */
export class PatternFeed implements LiveFeed {
  readonly #parts: PatternParts;
  readonly #facts: LiveInputFacts;
  readonly #pattern = new TestPattern();
  readonly #muxer = new TsMuxer([
    { codec: "h264", language: "und" },
    { codec: "aac", language: "und", config: PATTERN_SOUND_CONFIG },
  ]);
  readonly #closed = new AbortController();
  /** The second that is made next. */
  #second: number | undefined;
  #runs: { readonly dueMs: number; readonly packets: Uint8Array }[] = [];

  constructor(parts: PatternParts, facts: LiveInputFacts) {
    this.#parts = parts;
    this.#facts = facts;
  }

  async next(): Promise<Uint8Array | undefined> {
    // Where the clock was set back, what is left of the second would be due after ages.
    if (this.#runs.length === 0 || this.#waitMs > 1000 * MAX_OFF_SECONDS) this.#make();
    const waitMs = this.#waitMs;
    const { packets } = this.#runs.shift()!;
    if (waitMs > 0) await pauseFor(this.#parts.clock, waitMs, this.#closed.signal);
    return this.#closed.signal.aborted ? undefined : packets;
  }

  close(): void {
    this.#closed.abort();
  }

  /** How long until the next packets are due. */
  get #waitMs(): number {
    return this.#runs[0]!.dueMs - this.#parts.unixMs();
  }

  #make(): void {
    const now = Math.floor(this.#parts.unixMs() / 1000);
    if (this.#second === undefined || Math.abs(this.#second - now) > MAX_OFF_SECONDS) {
      this.#second = now;
      this.#facts.beginnings++;
    }
    const second = this.#second++;
    const frames = this.#pattern.second(second);
    const bytes = this.#muxer.segment(
      frames.map((frame) => ({ ...frame, track: frame.track === "video" ? 0 : 1 })),
    );
    const runs = new ClockSplitter().push(bytes);
    const first = runs.find(({ clock }) => clock !== undefined)!.clock!;
    const dueOf = ({ clock }: ClockRun) =>
      clock === undefined ? 0 : (deltaTicks(clock, first) * 1000) / TICKS_PER_SECOND;
    this.#runs = runs.map((run) => ({ dueMs: 1000 * second + dueOf(run), packets: run.packets }));
  }
}
