import { MAX_PIXELS, type PictureState, type SecondsRange } from "./picture-subtitles.ts";

/** How far before a time PGS subtitles are decoded, because a picture can consist of objects that came with earlier ones. */
export const PGS_EPOCH_SECONDS = 10;
/** Limit of the data of one picture, and of the expanded one. */
export const PICTURE_LIMIT_BYTES = 4 * 1024 * 1024;
/** Limits of one request: pictures that fade change with each frame. */
const STATES_LIMIT = 300;
const RUNS_LIMIT_BYTES = 16 * 1024 * 1024;
/** Limit of the pixels of VobSub packets, which take ten times as long as those of PGS: 80 full pictures of a DVD. */
const VOBSUB_LIMIT_PIXELS = 4 * MAX_PIXELS;

/** Collects the states of a range of time, within limits. */
export class PictureStates {
  readonly states: PictureState[] = [];
  readonly #seconds: SecondsRange;
  #bytes = 0;
  /** Pixels of VobSub packets, also of those outside of the range. */
  #drawn = 0;

  constructor(seconds: SecondsRange) {
    this.#seconds = seconds;
  }

  /** Adds a state if it is in the range. Returns false when no more are accepted. */
  add(state: PictureState): boolean {
    const { from, to } = this.#seconds;
    return state.seconds < from || state.seconds >= to || this.#push(state);
  }

  #push(state: PictureState): boolean {
    for (const { runs } of state.parts) this.#bytes += runs.length;
    if (this.#bytes > RUNS_LIMIT_BYTES || this.states.length >= STATES_LIMIT) return false;
    this.states.push(state);
    return true;
  }

  /** Adds the states of a VobSub packet, which is hidden after `durationSeconds` if it does not say when. */
  addVobsub(states: readonly PictureState[], durationSeconds: number | undefined): boolean {
    for (const { parts } of states) for (const { width, height } of parts) this.#drawn += width * height;
    if (this.#drawn > VOBSUB_LIMIT_PIXELS) return false;
    const last = states.at(-1);
    const isHidden = !last || last.parts.length === 0 || durationSeconds === undefined;
    const all = isHidden
      ? states
      : [...states, { ...last, seconds: states[0]!.seconds + durationSeconds, parts: [] }];
    // What hides a picture can be in the next range, but its packet is in this one.
    const [first] = all;
    if (!first || first.seconds < this.#seconds.from || first.seconds >= this.#seconds.to) return true;
    // A packet replaces the one before it, also if that would be hidden later.
    while ((this.states.at(-1)?.seconds ?? -1) >= first.seconds) this.states.pop();
    return all.every((state) => this.#push(state));
  }
}
