/** Packet numbers have 16 bits and begin anew after the last (BEP 29). */
const NUMBERS = 0x1_0000;

/** The packet number `steps` after `sequence`. */
export function sequenceAfter(sequence: number, steps = 1): number {
  return (sequence + steps) & (NUMBERS - 1);
}

/** How many steps lead from `from` to `to`, the shorter way round: negative where `to` is the earlier one. */
export function stepsBetween(from: number, to: number): number {
  const steps = (to - from) & (NUMBERS - 1);
  return steps < NUMBERS / 2 ? steps : steps - NUMBERS;
}
