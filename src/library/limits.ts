/** Items at once, trash included: three times the largest real lists. Each costs some 250 bytes of memory. */
export const MAX_ITEMS = 300_000;

/** What the user deleted for good and a source still lists; beyond that, such items come back. */
export const MAX_TOMBSTONES = 300_000;

/**
 * What all texts of an item may hold together, in UTF-16 units: a unit is three bytes at most, a record may hold the texts
 * twice (what the user made of them, and what their source says), and a record has 60 KiB.
 */
export const MAX_TEXTS = 9_000;
/** And each of them. */
export const MAX_TITLE = 300;
export const MAX_DESCRIPTION = 4_000;
export const MAX_NAME = 128;
export const MAX_URL = 4_096;
export const MAX_SOURCE_KEY = 1_024;
export const MAX_TAGS = 32;
export const MAX_CODES = 16;

/** How many records are read or changed before others have their turn: 10 ms of work. */
export const BATCH_ITEMS = 250;

/** How many sources of one channel are looked at for the best of them. */
export const MAX_SOURCES = 1_000;
