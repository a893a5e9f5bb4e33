/** Deletes the oldest entries of a map or a set, in insertion order, until at most `limit` are left. */
export function trimOldest<K>(entries: Map<K, unknown> | Set<K>, limit: number): void {
  for (const oldest of entries.keys()) {
    if (entries.size <= limit) return;
    entries.delete(oldest);
  }
}
