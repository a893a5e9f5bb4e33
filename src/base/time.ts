/** Monotonic milliseconds since an arbitrary start; never compared with a wall clock. */
export type Instant = number & { readonly __brand: "Instant" };

/** Wall-clock seconds since 1970-01-01T00:00:00Z. */
export type UnixSeconds = number & { readonly __brand: "UnixSeconds" };

/** Marks `ms` as an instant of the monotonic clock. */
export function instant(ms: number): Instant {
  return ms as Instant;
}

/** Returns the instant `ms` milliseconds after `at`. */
export function after(at: Instant, ms: number): Instant {
  return (at + ms) as Instant;
}

/** Returns the earlier of two instants; undefined counts as never. */
export function earliest(a: Instant | undefined, b: Instant | undefined): Instant | undefined {
  if (a === undefined) return b;
  if (b === undefined) return a;
  return a < b ? a : b;
}
