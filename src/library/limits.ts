/** Items including the trash: three times the largest real lists. Each takes about 250 bytes of memory. */
export const MAX_ITEMS = 300_000;

/** Tombstones; beyond this limit, permanently deleted items are added again. */
export const MAX_TOMBSTONES = 300_000;

/**
 * Limit of all texts of an item together, in UTF-16 units. A record of 60 KiB may hold them twice (edited and as listed),
 * and a unit takes up to three bytes.
 */
export const MAX_TEXTS = 9_000;
/** Limits of single texts and lists. */
export const MAX_TITLE = 300;
export const MAX_DESCRIPTION = 4_000;
export const MAX_NAME = 128;
export const MAX_URL = 4_096;
export const MAX_SOURCE_KEY = 1_024;
export const MAX_TAGS = 32;
export const MAX_CODES = 16;
export const MAX_EXTRA = 8;
export const MAX_EXTRA_TEXT = 1_024;

/** Records read or changed before yielding to the event loop: about 10 ms of work. */
export const BATCH_ITEMS = 250;

/** Sources of one channel that are compared to find the best one. */
export const MAX_SOURCES = 1_000;
