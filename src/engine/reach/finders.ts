import type { PeerFinder } from "./contract.ts";

/** Several ways to find peers as one. */
export function allFinders(finders: readonly PeerFinder[]): PeerFinder {
  return {
    join(wish) {
      const leaves = finders.map((finder) => finder.join(wish));
      return () => {
        for (const leave of leaves) leave();
      };
    },
  };
}
