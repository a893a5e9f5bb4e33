import { sleep } from "../../async/sleep.ts";
import { PATTERN_SOUND_CONFIG } from "../../media/test-pattern/sound.ts";
import { TestPattern } from "../../media/test-pattern/test-pattern.ts";
import { deltaTicks, TICKS_PER_SECOND } from "../../media/timestamps.ts";
import { type ClockRun, ClockSplitter } from "../../media/ts-clock.ts";
import { TsMuxer } from "../../remux/ts-muxer.ts";
import type { Clock } from "../../runtime/contract.ts";
import type { LiveFeed, LiveInputFacts } from "./source-feed.ts";

/** What the test pattern depends on. */
export interface PatternDependencies {
  readonly clock: Clock;
  /** The time of day in UNIX ms. */
  unixMs(): number;
}

/** If the next second is further than this from the clock, the clock was set or the machine slept: the pattern
 * continues at the current time. */
const MAX_OFF_SECONDS = 2;

/** The packets of the test pattern, each frame at its time. One second is made at a time, because its content is known
 * in advance; the first is delivered from its start at once, so that viewers get a keyframe. */
export class PatternFeed implements LiveFeed {
  readonly #dependencies: PatternDependencies;
  readonly #facts: LiveInputFacts;
  readonly #pattern: TestPattern;
  readonly #muxer = new TsMuxer([
    { codec: "h264", language: "und" },
    { codec: "aac", language: "und", config: PATTERN_SOUND_CONFIG },
  ]);
  readonly #closed = new AbortController();
  /** The second that is made next. */
  #second: number | undefined;
  #runs: { readonly dueMs: number; readonly packets: Uint8Array }[] = [];

  /** @param message shown in the picture; default: none */
  constructor(dependencies: PatternDependencies, facts: LiveInputFacts, message?: string) {
    this.#dependencies = dependencies;
    this.#facts = facts;
    this.#pattern = new TestPattern(message);
  }

  async next(): Promise<Uint8Array | undefined> {
    // If the clock was set back, the rest of the second would be due much later.
    if (this.#runs.length === 0 || this.#waitMs > 1000 * MAX_OFF_SECONDS) this.#make();
    const waitMs = this.#waitMs;
    const { packets } = this.#runs.shift()!;
    if (waitMs > 0) await sleep(this.#dependencies.clock, waitMs, this.#closed.signal);
    return this.#closed.signal.aborted ? undefined : packets;
  }

  close(): void {
    this.#closed.abort();
  }

  /** Time until the next packets are due. */
  get #waitMs(): number {
    return this.#runs[0]!.dueMs - this.#dependencies.unixMs();
  }

  #make(): void {
    const now = Math.floor(this.#dependencies.unixMs() / 1000);
    if (this.#second === undefined || Math.abs(this.#second - now) > MAX_OFF_SECONDS) {
      this.#second = now;
      this.#facts.starts++;
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
