import type { Children } from "./children.ts";
import { CLIMB_MS } from "./limits.ts";
import { NO_DEPTH } from "./messages.ts";
import type { Parents } from "./parents.ts";
import type { LiveState } from "./state.ts";

/** Seeks places nearer to the source, so that trees stay flat: in the stripe that we hand on, or as a relay in all. */
export class Climbing {
  readonly #state: LiveState;
  readonly #children: Children;
  readonly #parents: Parents;
  #at: number;

  constructor(state: LiveState, children: Children, parents: Parents) {
    this.#state = state;
    this.#children = children;
    this.#parents = parents;
    this.#at = state.now + (1 + state.setup.random()) * CLIMB_MS;
  }

  /** When it is time. */
  round(): void {
    const { now, setup } = this.#state;
    if (now < this.#at) return;
    this.#at = now + (0.5 + setup.random()) * CLIMB_MS;
    if (setup.about.role === "relay") this.#approach();
    const { homeStripe } = setup.about;
    const { depth } = this.#parents.pathOf(homeStripe);
    if (this.#children.slots < 2 || depth === NO_DEPTH || depth <= 1) return;
    this.#parents.seek(homeStripe, undefined, depth - 1);
  }

  /** A relay gets each stripe from the source itself. */
  #approach(): void {
    const { peers, now, setup } = this.#state;
    const source = [...peers.values()].find(({ about }) => about.role === "source");
    if (!source || source.retryAt > now) return;
    for (let stripe = 0; stripe < setup.layout.stripes; stripe++) {
      if (this.#parents.parentOf(stripe) !== source) this.#parents.seek(stripe, source);
    }
  }
}
