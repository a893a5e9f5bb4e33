/**
 * What one record and one commit may hold, so that every implementation of the store can keep its promise: Deno KV takes
 * values of 64 KiB, a thousand mutations and 800 KiB at once.
 */
export const MAX_VALUE_BYTES = 60 * 1024;
export const MAX_COMMIT_KEYS = 500;
export const MAX_COMMIT_BYTES = 512 * 1024;
