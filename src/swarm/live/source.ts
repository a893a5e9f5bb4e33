import type { Answers } from "./answers.ts";
import type { Children } from "./children.ts";
import { MAX_SOURCE_CHILDREN, SOURCE_CHILDREN, SOURCE_REVIEW_MS } from "./limits.ts";
import type { LiveState } from "./state.ts";

/** Peers that have used up so much of the lag starve; half of it is what a deep tree takes. */
const STARVING_LAG = 0.66;
/** The part of the neighbours that must starve for the source to give more. */
const STARVING_SHARE = 0.2;
/** Calm reviews before it gives less again. */
const CALM_REVIEWS = 1;

/** The source's only judgement: how many children a stripe has. */
export class Source {
  readonly #state: LiveState;
  readonly #children: Children;
  readonly #answers: Answers;
  #reviewAt = 0;
  #answered = 0;
  #calm = 0;

  constructor(state: LiveState, children: Children, answers: Answers) {
    this.#state = state;
    this.#children = children;
    this.#answers = answers;
  }

  /** Gives more while its neighbours starve, and slowly less when they do not. */
  round(): void {
    const { now, peers, setup } = this.#state;
    if (!this.#state.isSource || now < this.#reviewAt) return;
    this.#reviewAt = now + SOURCE_REVIEW_MS;
    const told = [...peers.values()].filter(({ window }) => window !== undefined);
    const starving = told.filter(({ window }) => window!.lagMs > STARVING_LAG * setup.lagMs).length;
    const pulled = this.#answers.answered - this.#answered;
    this.#answered = this.#answers.answered;
    const perReview = (setup.layout.stripes * SOURCE_REVIEW_MS) / setup.layout.pieceMs;
    const isStarving = starving > STARVING_SHARE * told.length || pulled > 0.1 * perReview;
    if (isStarving) {
      this.#calm = 0;
      this.#children.perStripe = Math.min(MAX_SOURCE_CHILDREN, this.#children.perStripe + 1);
    } else if (++this.#calm >= CALM_REVIEWS) {
      this.#calm = 0;
      this.#children.perStripe = Math.max(SOURCE_CHILDREN, this.#children.perStripe - 1);
    }
    this.#children.trim();
  }
}
