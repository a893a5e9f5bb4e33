import { deltaTicks, TICKS_PER_SECOND } from "./timestamps.ts";

/** Steps of decode times outside these are jumps. */
const MAX_BACK_TICKS = 0.1 * TICKS_PER_SECOND;
const MAX_STEP_TICKS = 3 * TICKS_PER_SECOND;

/**
 * Says at which keyframes segments of HLS begin, and numbers them. It runs at the source alone: all engines then cut at the same
 * places, whenever they joined.
 */
export class LiveSegments {
  readonly #segmentTicks: number;
  readonly #segmentMs: number;
  readonly #first: number | undefined;
  /** The number of the segment under way; undefined before the first. */
  #number: number | undefined;
  #ticks = 0;
  #lastDts: number | undefined;
  #frameTicks = TICKS_PER_SECOND / 25;
  #isBroken = false;

  /** `first` is the number of the first one, for a source that goes on after an end; else the clock gives it. */
  constructor(segmentMs: number, first: number | undefined) {
    this.#segmentMs = segmentMs;
    this.#segmentTicks = (segmentMs * TICKS_PER_SECOND) / 1000;
    this.#first = first;
  }

  /** What the pieces say that are closed now. */
  numberAt(nowMs: number): number {
    return this.#number ?? this.#first ?? Math.floor(nowMs / this.#segmentMs);
  }

  /** What came before and what comes next do not belong together: the next keyframe begins a segment. */
  break(): void {
    this.#isBroken = true;
    this.#lastDts = undefined;
  }

  /** A unit of the leading stream; true where a segment begins with it. */
  meet(dts: number, isKey: boolean, nowMs: number): boolean {
    const step = this.#lastDts === undefined ? 0 : deltaTicks(dts, this.#lastDts);
    this.#lastDts = dts;
    if (step > 0 && step <= MAX_STEP_TICKS) this.#frameTicks = step;
    const isJump = step < -MAX_BACK_TICKS || step > MAX_STEP_TICKS;
    this.#ticks += isJump ? this.#frameTicks : step;
    if (isJump) this.#isBroken = true;
    const isDue =
      this.#number === undefined ||
      this.#isBroken ||
      this.#ticks >= this.#segmentTicks - Math.min(this.#frameTicks / 2, this.#segmentTicks / 10);
    if (!isKey || !isDue) return false;
    this.#number = this.#number === undefined ? this.numberAt(nowMs) : this.#number + 1;
    this.#ticks = 0;
    this.#isBroken = false;
    return true;
  }
}
