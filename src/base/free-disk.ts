/** The disk keeps this much free space, because a full disk stops everything else of the machine. */
export const MIN_FREE_BYTES = 512 * 1024 * 1024;
