/** A source of numbers in [0, 1). Pure rooms take it as an argument, so that a run can be replayed from its seed. */
export type Random = () => number;

/** A small seeded generator (xorshift128-like mulberry32): for simulations and for spreading load, never for secrets. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

/** A whole number in [0, limit). */
export function randomBelow(random: Random, limit: number): number {
  return Math.floor(random() * limit);
}

/** Shuffles `items` in place (Fisher and Yates). */
export function shuffle<T>(items: T[], random: Random): T[] {
  for (let i = items.length - 1; i > 0; i--) {
    const j = randomBelow(random, i + 1);
    [items[i], items[j]] = [items[j]!, items[i]!];
  }
  return items;
}
