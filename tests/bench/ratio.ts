import { median } from "./table.ts";

/** The median of a ratio's rounds and their range. */
export interface RecordedRatio {
  readonly ratio: number;
  readonly lowest: number;
  readonly highest: number;
}

/** Another machine or another load changes a ratio by this share even if its rounds agree. */
const MACHINE_NOISE = 0.25;

/**
 * Compares the rounds of a ratio with the recorded one; lower is better. It is worse if even its best round is above the limit:
 * the highest recorded round, or the recorded median and the noise of machines, whichever is higher.
 */
export function compareRatio(
  rounds: readonly number[],
  recorded: RecordedRatio | undefined,
): RecordedRatio & { readonly limit: number; readonly isWorse: boolean } {
  const [lowest, highest] = [Math.min(...rounds), Math.max(...rounds)];
  const limit = recorded
    ? Math.max(recorded.highest, recorded.ratio * (1 + MACHINE_NOISE))
    : Number.POSITIVE_INFINITY;
  return { ratio: median(rounds), lowest, highest, limit, isWorse: lowest > limit };
}
