/** Returns a random number in [0, 1). Pure code takes it as an argument, so that a run can be replayed from its seed. */
export type Random = () => number;

/** Returns a random integer in [0, limit). */
export function randomBelow(random: Random, limit: number): number {
  return Math.floor(random() * limit);
}

/** Shuffles `items` in place (Fisher–Yates) and returns them. */
export function shuffle<T>(items: T[], random: Random): T[] {
  for (let i = items.length - 1; i > 0; i--) {
    const j = randomBelow(random, i + 1);
    [items[i], items[j]] = [items[j]!, items[i]!];
  }
  return items;
}
