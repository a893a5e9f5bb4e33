import type { Children } from "./children.ts";
import { CLIMB_MS, MAX_CLIMB_MS, MAX_TIDY_MS, TIDY_MS } from "./limits.ts";
import { NO_DEPTH } from "./messages.ts";
import { isHome } from "./parent-choice.ts";
import type { Parents } from "./parents.ts";
import type { LiveState } from "./state.ts";

/** Who was named as nearer to the source is asked as soon as a connection may stand. */
const FOLLOW_MS = 500;

/** Seeks better places in trees that we are in already, so that trees stay flat: as a relay, in all of them. */
export class Places {
  readonly #state: LiveState;
  readonly #parents: Parents;
  readonly #children: Children;
  #climbAt: number;
  #climbMs = CLIMB_MS;
  #lastDepth = NO_DEPTH;
  #tidyAt = 0;
  #tidyMs = TIDY_MS;
  #lastHelped = 0;
  #tidyStripe = 0;

  constructor(state: LiveState, parents: Parents, children: Children) {
    this.#state = state;
    this.#parents = parents;
    this.#children = children;
    this.#climbAt = state.now + (1 + state.setup.random()) * CLIMB_MS;
  }

  /** Looks for a better place, where it is time. */
  round(): void {
    this.#climb();
    this.#tidy();
  }

  /** SUBNO for `stripes`, naming others: those above the one that refused are next. */
  refused(stripes: number, hasNamed: boolean): void {
    const { homeStripe } = this.#state.setup.about;
    if (!hasNamed || ((stripes >>> homeStripe) & 1) === 0 || this.#climbMs >= MAX_CLIMB_MS) return;
    this.#climbAt = Math.min(this.#climbAt, this.#state.now + FOLLOW_MS);
  }

  /** Seeks a place nearer to the source in the stripe that we hand on; in vain, then less and less often. */
  #climb(): void {
    const { now, setup } = this.#state;
    if (now < this.#climbAt) return;
    const { homeStripe } = setup.about;
    const { depth } = this.#parents.pathOf(homeStripe);
    this.#climbMs = depth < this.#lastDepth ? CLIMB_MS : Math.min(MAX_CLIMB_MS, 1.5 * this.#climbMs);
    this.#lastDepth = depth;
    this.#climbAt = now + (0.5 + setup.random()) * this.#climbMs;
    if (setup.about.role === "relay") this.#approach();
    if (this.#children.slots < 2 || depth === NO_DEPTH || depth <= 1) return;
    if (this.#parents.isSettled(homeStripe)) this.#parents.seek(homeStripe, { belowDepth: depth - 1 });
  }

  /** A relay gets each stripe from the source itself. */
  #approach(): void {
    const { peers, now, setup } = this.#state;
    const source = [...peers.values()].find(({ about }) => about.role === "source");
    if (!source || source.retryAt > now) return;
    for (let stripe = 0; stripe < setup.layout.stripes; stripe++) {
      if (this.#parents.parentOf(stripe) !== source) this.#parents.seek(stripe, {}, source);
    }
  }

  /** Stripes that only a helper gives. */
  get #helped(): number {
    let count = 0;
    for (let stripe = 0; stripe < this.#state.setup.layout.stripes; stripe++) {
      const parent = this.#parents.parentOf(stripe);
      if (parent && !isHome(parent, stripe)) count++;
    }
    return count;
  }

  /** Leaves a parent that only helps out, once one is found whose home the stripe is. */
  #tidy(): void {
    const { now, setup } = this.#state;
    if (now < this.#tidyAt) return;
    this.#tidyMs = this.#helped < this.#lastHelped ? TIDY_MS : Math.min(MAX_TIDY_MS, 1.5 * this.#tidyMs);
    this.#lastHelped = this.#helped;
    this.#tidyAt = now + this.#tidyMs * (0.5 + setup.random());
    for (let i = 0; i < setup.layout.stripes; i++) {
      this.#tidyStripe = (this.#tidyStripe + 1) % setup.layout.stripes;
      const stripe = this.#tidyStripe;
      const parent = this.#parents.parentOf(stripe);
      if (!parent || isHome(parent, stripe) || !this.#parents.isSettled(stripe)) continue;
      // Where none is known, one who gets it says who gives it.
      const isAsked =
        this.#parents.seek(stripe, { isTidy: true }) ||
        this.#parents.seek(stripe, {
          belowDepth: this.#parents.pathOf(stripe).depth,
        });
      if (isAsked) return;
    }
  }
}
