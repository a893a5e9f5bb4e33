import type { AddressScope } from "../../base/address.ts";
import type { CandidateOrigin } from "./contract.ts";

/** Credibility and usefulness of an origin; higher is better. */
export const ORIGIN_SCORE: Record<CandidateOrigin, number> = {
  magnet: 50,
  lsd: 40,
  tracker: 30,
  dht: 20,
  incoming: 15,
  pex: 10,
};

/** Whether private content may use peers of this origin (BEP 27): its trackers, its link, and incoming connections. */
export function isPrivateOrigin(origin: CandidateOrigin): boolean {
  return origin !== "pex" && origin !== "dht" && origin !== "lsd";
}

/** Ranks how local an address is; 0: never connect. A sender may report addresses of its own rank and lower ones. */
export function scopeRank(scope: AddressScope): number {
  switch (scope) {
    case "loopback":
      return 3;
    case "private":
    case "link-local":
      return 2;
    case "global":
      return 1;
    case "multicast":
    case "unspecified":
      return 0;
  }
}
