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
