/** Lets whatever waits for the loop (sockets, timers) have its turn. A settled promise alone does not. */
export function pause(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
