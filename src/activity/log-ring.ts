import type { LogLine } from "../base/log.ts";

/** Lines are about 100 characters long, so the ring takes less than 1 MB. */
const MAX_LINES = 2_000;
/** A longer line, such as one with a list of peers, is cut. */
const MAX_CHARACTERS = 1_000;

/** The latest lines of the log. */
export class LogRing {
  readonly #lines: LogLine[] = [];
  #count = 0;

  /** Adds a line; the oldest one beyond the limit is dropped. */
  add(line: Omit<LogLine, "number">): void {
    this.#count++;
    this.#lines.push({ ...line, number: this.#count, text: line.text.slice(0, MAX_CHARACTERS) });
    // Removes many at once, because each removal moves the other lines.
    if (this.#lines.length >= 2 * MAX_LINES) this.#lines.splice(0, MAX_LINES);
  }

  /** Returns the lines after number `after`, oldest first; at most the latest 2,000. */
  after(after: number): readonly LogLine[] {
    const first = this.#count - this.#lines.length;
    return this.#lines.slice(Math.max(0, after - first)).slice(-MAX_LINES);
  }
}
