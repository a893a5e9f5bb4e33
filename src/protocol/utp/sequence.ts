/** Sequence numbers have 16 bits and wrap around (BEP 29). */
const NUMBERS = 0x1_0000;

/** Returns the sequence number `steps` after `sequence`. */
export function sequenceAfter(sequence: number, steps = 1): number {
  return (sequence + steps) & (NUMBERS - 1);
}

/** Returns the steps from `from` to `to` in the shorter direction: negative if `to` is earlier. */
export function stepsBetween(from: number, to: number): number {
  const steps = (to - from) & (NUMBERS - 1);
  return steps < NUMBERS / 2 ? steps : steps - NUMBERS;
}
