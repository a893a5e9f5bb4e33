import { yieldToLoop } from "../../async/event-loop.ts";

/** Entries of one block of memory: large arrays would have to be copied whenever they grow. */
const BLOCK_BITS = 15;
const BLOCK_ENTRIES = 1 << BLOCK_BITS;
const IN_BLOCK = BLOCK_ENTRIES - 1;
/** Sorting so many entries takes about 2 ms; other work runs in between. */
const SORTED_AT_ONCE = BLOCK_ENTRIES;

/**
 * Where the programmes of a guide are: the start time and the file offset of each, ordered by channel and start. Needs 10 bytes for
 * a programme until {@link sort}, and 8 afterwards.
 */
export class ProgrammeIndex {
  readonly #starts: Uint32Array[] = [];
  readonly #offsets: Uint32Array[] = [];
  /** The channel of each entry; empty when everything is sorted. */
  #channels: Uint16Array[] = [];
  /** The number of programmes of each channel until `sort`; then the index behind its last one. */
  readonly #ends: number[] = [];
  #length = 0;

  /** The number of all programmes. */
  get length(): number {
    return this.#length;
  }

  /**
   * Adds a programme, in any order. `channel`: less than 65,536. Not to be called after {@link sort}. Returns the number of programmes of the
   * channel: those of one channel are sorted at once.
   */
  push(channel: number, start: number, offset: number): number {
    const block = this.#length >> BLOCK_BITS;
    const at = this.#length & IN_BLOCK;
    if (at === 0) {
      this.#starts.push(new Uint32Array(BLOCK_ENTRIES));
      this.#offsets.push(new Uint32Array(BLOCK_ENTRIES));
      this.#channels.push(new Uint16Array(BLOCK_ENTRIES));
    }
    this.#starts[block]![at] = start;
    this.#offsets[block]![at] = offset;
    this.#channels[block]![at] = channel;
    while (this.#ends.length <= channel) this.#ends.push(0);
    this.#length++;
    return ++this.#ends[channel]!;
  }

  /** Orders everything in place. Until it resolves, nothing can be read. */
  async sort(): Promise<void> {
    const ends = this.#ends;
    let sum = 0;
    for (const [channel, count] of ends.entries()) {
      sum += count;
      ends[channel] = sum;
    }
    await this.#groupByChannel();
    this.#channels = [];
    let due = SORTED_AT_ONCE;
    for (let channel = 0; channel < ends.length; channel++) {
      const { from, to } = this.range(channel);
      this.#sortByStart(from, to);
      due -= to - from;
      if (due > 0) continue;
      await yieldToLoop();
      due = SORTED_AT_ONCE;
    }
  }

  /** The entries of a channel, as indices `[from, to)`. */
  range(channel: number): { readonly from: number; readonly to: number } {
    return { from: this.#ends[channel - 1] ?? 0, to: this.#ends[channel] ?? this.#length };
  }

  startOf(i: number): number {
    return this.#starts[i >> BLOCK_BITS]![i & IN_BLOCK]!;
  }

  offsetOf(i: number): number {
    return this.#offsets[i >> BLOCK_BITS]![i & IN_BLOCK]!;
  }

  /** The index of the first programme of a channel that starts after `time`; the end of its range if there is none. */
  firstAfter(channel: number, time: number): number {
    let { from: low, to: high } = this.range(channel);
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.startOf(middle) <= time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The first start of a channel after `time`, if there is one. */
  startAfter(channel: number, time: number): number | undefined {
    const i = this.firstAfter(channel, time);
    return i < this.range(channel).to ? this.startOf(i) : undefined;
  }

  /** Swaps each entry into the range of its channel (American flag sort); guides are mostly grouped already. */
  async #groupByChannel(): Promise<void> {
    const next = this.#ends.map((_, channel) => this.range(channel).from);
    let due = SORTED_AT_ONCE;
    for (const [channel, end] of this.#ends.entries())
      while (next[channel]! < end) {
        const i = next[channel]!;
        const other = this.#channelOf(i);
        if (other === channel) next[channel]!++;
        else this.#swap(i, next[other]!++);
        if (--due > 0) continue;
        await yieldToLoop();
        due = SORTED_AT_ONCE;
      }
  }

  #channelOf(i: number): number {
    return this.#channels[i >> BLOCK_BITS]![i & IN_BLOCK]!;
  }

  #swap(i: number, j: number): void {
    for (const blocks of [this.#starts, this.#offsets, this.#channels]) {
      const value = blocks[i >> BLOCK_BITS]![i & IN_BLOCK]!;
      blocks[i >> BLOCK_BITS]![i & IN_BLOCK] = blocks[j >> BLOCK_BITS]![j & IN_BLOCK]!;
      blocks[j >> BLOCK_BITS]![j & IN_BLOCK] = value;
    }
  }

  /** Sorts the entries `[from, to)` of one channel by start, then by their place in the file. */
  #sortByStart(from: number, to: number): void {
    const before = (i: number, j: number) =>
      this.startOf(i) - this.startOf(j) || this.offsetOf(i) - this.offsetOf(j);
    let isSorted = true;
    for (let i = from + 1; i < to && isSorted; i++) isSorted = before(i - 1, i) <= 0;
    if (isSorted) return;
    const order = Array.from({ length: to - from }, (_, i) => from + i).sort(before);
    const sorted = order.map((i) => [this.startOf(i), this.offsetOf(i)] as const);
    for (const [i, [start, offset]] of sorted.entries()) {
      this.#starts[(from + i) >> BLOCK_BITS]![(from + i) & IN_BLOCK] = start;
      this.#offsets[(from + i) >> BLOCK_BITS]![(from + i) & IN_BLOCK] = offset;
    }
  }
}
