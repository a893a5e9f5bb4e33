import type { AddressScope } from "../base/address.ts";
import type { CandidateOrigin } from "./contract.ts";

/** How credible and useful an origin is; higher is better. */
export const ORIGIN_WORTH: Record<CandidateOrigin, number> = {
  magnet: 50,
  lsd: 40,
  tracker: 30,
  dht: 20,
  incoming: 15,
  pex: 10,
};

/**
 * Whether private content has peers of this origin (BEP 27): those of its trackers and of its link, and who calls us. The
 * others are hearsay: whoever told of them is not asked by the tracker who may.
 */
export function isPrivateOrigin(origin: CandidateOrigin): boolean {
  return origin !== "pex" && origin !== "dht" && origin !== "lsd";
}

/** 0: never connect; a sender may tell of its own rank and lower ones. */
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
