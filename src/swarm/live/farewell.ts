import { MAX_CANDIDATES_TOLD } from "../../wire/live-limits.ts";
import type { Conduct } from "./conduct.ts";
import type { LiveState } from "./state.ts";

/** Leaves all neighbours, and tells them who may take our place. */
export function sayGoodbye(state: LiveState, conduct: Conduct): void {
  const candidates = [...state.peers.values()]
    .filter((peer) => peer.parentOf !== 0 && peer.isReachable)
    .slice(0, MAX_CANDIDATES_TOLD)
    .map(({ address, window }) => ({
      address,
      freeSlots: window?.freeSlots ?? 0,
      lagMs: window?.lagMs ?? 0,
    }));
  for (const peer of [...state.peers.values()]) {
    state.send(peer, { kind: "bye", reason: "leaving", candidates });
    conduct.close(peer, "stopped");
  }
}
