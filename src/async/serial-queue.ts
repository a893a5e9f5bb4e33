/** Runs asynchronous work one after another, in the order of the calls. */
export class SerialQueue {
  #last: Promise<unknown> = Promise.resolve();

  /** Runs `work` after all earlier work has settled. Settles like `work`; a failure does not affect later work. */
  run<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => {});
    return done;
  }
}
