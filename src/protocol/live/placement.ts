import type { Children } from "./children.ts";
import { CLIMB_MS, HOME_PARENT_MS, MAX_CLIMB_MS, MAX_HOME_PARENT_MS } from "./limits.ts";
import { NO_DEPTH } from "./messages.ts";
import { isHome } from "./parent-choice.ts";
import type { Parents } from "./parents.ts";
import type { LiveState } from "./state.ts";

/** After a refusal that named candidates, the next attempt is this early, because a connection may be open
 * by then. */
const FOLLOW_MS = 500;

/** Finds better places in trees that we are already in, so that trees stay flat. A relay does so in all
 * trees. */
export class Placement {
  readonly #state: LiveState;
  readonly #parents: Parents;
  readonly #children: Children;
  #climbAt: number;
  #climbMs = CLIMB_MS;
  #lastDepth = NO_DEPTH;
  #tidyAt = 0;
  #tidyMs = HOME_PARENT_MS;
  #lastHelped = 0;
  #tidyStripe = 0;

  constructor(state: LiveState, parents: Parents, children: Children) {
    this.#state = state;
    this.#parents = parents;
    this.#children = children;
    this.#climbAt = state.now + (1 + state.setup.random()) * CLIMB_MS;
  }

  /** Looks for a better place if it is time. */
  round(): void {
    this.#climb();
    this.#tidy();
  }

  /** A SUBNO for `stripes` arrived. If it named candidates, which are nearer to the source, the next
   * attempt is early. */
  refused(stripes: number, hasNamed: boolean): void {
    const { homeStripe } = this.#state.setup.about;
    if (!hasNamed || ((stripes >>> homeStripe) & 1) === 0 || this.#climbMs >= MAX_CLIMB_MS) return;
    this.#climbAt = Math.min(this.#climbAt, this.#state.now + FOLLOW_MS);
  }

  /** Looks for a place nearer to the source in the home stripe, at growing intervals if there is none. */
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

  /** A relay asks the source itself for each stripe. */
  #approach(): void {
    const { peers, now, setup } = this.#state;
    const source = [...peers.values()].find(({ about }) => about.role === "source");
    if (!source || source.retryAt > now) return;
    for (let stripe = 0; stripe < setup.layout.stripes; stripe++) {
      if (this.#parents.parentOf(stripe) !== source) this.#parents.seek(stripe, {}, source);
    }
  }

  /** The number of stripes whose parent is only a helper. */
  get #helped(): number {
    let count = 0;
    for (let stripe = 0; stripe < this.#state.setup.layout.stripes; stripe++) {
      const parent = this.#parents.parentOf(stripe);
      if (parent && !isHome(parent, stripe)) count++;
    }
    return count;
  }

  /** Replaces one parent that is only a helper by a peer with that home stripe. */
  #tidy(): void {
    const { now, setup } = this.#state;
    if (now < this.#tidyAt) return;
    this.#tidyMs =
      this.#helped < this.#lastHelped ? HOME_PARENT_MS : Math.min(MAX_HOME_PARENT_MS, 1.5 * this.#tidyMs);
    this.#lastHelped = this.#helped;
    this.#tidyAt = now + this.#tidyMs * (0.5 + setup.random());
    for (let i = 0; i < setup.layout.stripes; i++) {
      this.#tidyStripe = (this.#tidyStripe + 1) % setup.layout.stripes;
      const stripe = this.#tidyStripe;
      const parent = this.#parents.parentOf(stripe);
      if (!parent || isHome(parent, stripe) || !this.#parents.isSettled(stripe)) continue;
      // If no such peer is known, a parent above us refers to one in its refusal.
      const isRequested =
        this.#parents.seek(stripe, { onlyHome: true }) ||
        this.#parents.seek(stripe, {
          belowDepth: this.#parents.pathOf(stripe).depth,
        });
      if (isRequested) return;
    }
  }
}
