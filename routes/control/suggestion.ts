/** Two letters in a row, as the words of a name share them. */
function pairs(name: string): Set<string> {
  const text = name.toLowerCase();
  return new Set(Array.from({ length: Math.max(0, text.length - 1) }, (_, i) => text.slice(i, i + 2)));
}

/** Names that share less than this part of their pairs of letters are not alike. */
const LEAST_LIKENESS = 0.55;

/** The name that was probably meant: the one that shares most pairs of letters (Dice's coefficient), or undefined. */
export function suggestion(name: string, names: readonly string[]): string | undefined {
  const wanted = pairs(name.slice(0, 60));
  let best: string | undefined;
  let bestLikeness = LEAST_LIKENESS;
  for (const candidate of names) {
    const offered = pairs(candidate);
    const shared = [...offered].filter((pair) => wanted.has(pair)).length;
    const likeness = (2 * shared) / (wanted.size + offered.size);
    if (likeness <= bestLikeness) continue;
    best = candidate;
    bestLikeness = likeness;
  }
  return best;
}
