/**
 * Limits of one record and one commit that every implementation of the key-value store can meet. Deno KV accepts values of
 * 64 KiB, and 1,000 mutations or 800 KiB per commit.
 */
export const MAX_VALUE_BYTES = 60 * 1024;
export const MAX_COMMIT_KEYS = 500;
export const MAX_COMMIT_BYTES = 512 * 1024;
