/** Runs a generator to its end and returns its result. */
export function allOf<T>(steps: Generator<void, T, void>): T {
  for (let next = steps.next(); ; next = steps.next()) if (next.done) return next.value;
}
