/** Changes happen one after another, in the order in which they were asked for. */
export class Turns {
  #last: Promise<unknown> = Promise.resolve();

  /** Runs `change` when all earlier ones are over, however they ended. */
  run<T>(change: () => Promise<T>): Promise<T> {
    const done = this.#last.then(change);
    // The next change must not fail because this one did.
    this.#last = done.catch(() => {});
    return done;
  }
}
