import { MAX_ANCESTORS } from "../../wire/live/limits.ts";
import type { StripePath } from "../../wire/live/paths.ts";
import { NO_DEPTH } from "./messages.ts";
import type { LivePeer } from "./peer.ts";
import type { LiveState } from "./state.ts";

/** The paths by which the stripes reach this peer: its places in the trees (live protocol: PATHS). */
export class OwnPaths {
  readonly #state: LiveState;
  readonly #paths: StripePath[];

  constructor(state: LiveState) {
    this.#state = state;
    const depth = state.isSource ? 0 : NO_DEPTH;
    this.#paths = Array.from({ length: state.setup.layout.stripes }, (_, stripe) => ({
      ...{ stripe, depth, ancestors: [] },
    }));
  }

  /** The path of one stripe. */
  of(stripe: number): StripePath {
    return this.#paths[stripe]!;
  }

  /** The paths of a set of stripes. */
  all(stripes: number): StripePath[] {
    return this.#paths.filter(({ stripe }) => ((stripes >>> stripe) & 1) === 1);
  }

  /** Derives a path from that of the parent, and marks it as unsent if it changed. */
  follow(stripe: number, parent: LivePeer | undefined): void {
    const above = parent?.depthOf(stripe) ?? NO_DEPTH;
    const isFed = parent !== undefined && above !== NO_DEPTH;
    const depth = isFed ? above + 1 : NO_DEPTH;
    const ancestors = isFed
      ? [parent.about.digest, ...(parent.paths[stripe]?.ancestors ?? [])].slice(0, MAX_ANCESTORS)
      : [];
    const old = this.#paths[stripe]!;
    if (old.depth === depth && areSame(old.ancestors, ancestors)) return;
    this.#paths[stripe] = { stripe, depth, ancestors };
    for (const peer of this.#state.peers.values()) peer.unsentPaths |= 1 << stripe;
  }
}

function areSame(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((value, i) => value === b[i]);
}
