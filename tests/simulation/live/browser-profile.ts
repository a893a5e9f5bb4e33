/** Viewers that are pages of browsers: their lines, and what they do. Rates in multiples of the bitrate. */

/** What a page offers, whatever its line carries (src/web/page/viewer/swarm-peer.ts). */
export const PAGE_OFFER = 2;
/** An assumption about the uplinks of homes and phones. At 2 Mbit/s these are 1, 2, 4 and 8 Mbit/s. */
export const PAGE_UPLINKS = [
  [0.1, 0.5],
  [0.15, 1],
  [0.25, 2],
  [0.5, 4],
] as const;
/** Per cent of the pages that no other page can call. */
export const UNCALLABLE_PERCENT = 30;
/** Per cent of the pages that are in the background: they play and do not upload. Each page is there for this time, on average. */
export const ASLEEP_PERCENT = 20;
export const ASLEEP_MS = 20_000;
/** Pieces are kept for others this long. */
export const PAGE_KEEP_MS = 15_000;
/** Pages that the engine lists, and when it is asked again: with few and with enough connected pages. */
export const LISTED_PAGES = 24;
export const ENOUGH_PAGES = 8;
export const FIND_MS = 2_000;
export const RARE_FIND_MS = 15_000;
