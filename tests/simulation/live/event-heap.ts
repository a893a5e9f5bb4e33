/** Simulated time in whole microseconds: runs events in order of time, then of creation. */
export class EventHeap {
  #at = new Float64Array(1 << 16);
  #order = new Float64Array(1 << 16);
  #run: (() => void)[] = [];
  #size = 0;
  #made = 0;
  #nowUs = 0;
  ran = 0;

  /** The present time, in microseconds and in milliseconds. */
  get nowUs(): number {
    return this.#nowUs;
  }

  get nowMs(): number {
    return this.#nowUs / 1_000;
  }

  /** Runs `run` at `us`, or now if that has passed. */
  at(us: number, run: () => void): void {
    if (this.#size === this.#at.length) this.#grow();
    const at = Math.max(Math.round(us), this.#nowUs);
    const order = this.#made++;
    let i = this.#size++;
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (this.#at[parent]! < at || (this.#at[parent]! === at && this.#order[parent]! < order)) break;
      this.#move(parent, i);
      i = parent;
    }
    this.#at[i] = at;
    this.#order[i] = order;
    this.#run[i] = run;
  }

  /** Runs all events up to `us`. */
  runTo(us: number): void {
    while (this.#size > 0 && this.#at[0]! <= us) {
      this.#nowUs = this.#at[0]!;
      const run = this.#run[0]!;
      this.#pop();
      this.ran++;
      run();
    }
    this.#nowUs = Math.max(this.#nowUs, us);
  }

  #pop(): void {
    const last = --this.#size;
    const at = this.#at[last]!;
    const order = this.#order[last]!;
    const run = this.#run[last]!;
    this.#run.length = last;
    if (last === 0) return;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= last) break;
      if (child + 1 < last && this.#isBefore(child + 1, child)) child++;
      if (at < this.#at[child]! || (at === this.#at[child]! && order < this.#order[child]!)) break;
      this.#move(child, i);
      i = child;
    }
    this.#at[i] = at;
    this.#order[i] = order;
    this.#run[i] = run;
  }

  #isBefore(a: number, b: number): boolean {
    return (
      this.#at[a]! < this.#at[b]! || (this.#at[a]! === this.#at[b]! && this.#order[a]! < this.#order[b]!)
    );
  }

  #move(from: number, to: number): void {
    this.#at[to] = this.#at[from]!;
    this.#order[to] = this.#order[from]!;
    this.#run[to] = this.#run[from]!;
  }

  #grow(): void {
    const at = new Float64Array(2 * this.#at.length);
    const order = new Float64Array(2 * this.#at.length);
    at.set(this.#at);
    order.set(this.#order);
    this.#at = at;
    this.#order = order;
  }
}
