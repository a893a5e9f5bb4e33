/** Where the line is written. */
export interface StatusOutput {
  readonly isTerminal: boolean;
  readonly columns: number;
  readonly write: (text: string) => void;
  /** Minimum interval of lines if the output is not a terminal, so that log files stay readable. */
  readonly plainLineMs: number;
}

/** Minimum interval after a change of state. */
const CHANGE_MS = 5000;

/** A line that is rewritten on a terminal, or appended at intervals elsewhere. */
export class StatusLine {
  readonly #output: StatusOutput;
  #shown = "";
  #lastPlainMs = Number.NEGATIVE_INFINITY;
  #state = "";

  constructor(output: StatusOutput) {
    this.#output = output;
  }

  /**
   * Shows a text without control characters. `nowMs` is the time of any monotonic clock. A change of `state` is written sooner
   * than other changes if the output is not a terminal.
   */
  show(line: string, nowMs: number, state = ""): void {
    if (this.#output.isTerminal) {
      const fitting = [...line].slice(0, Math.max(20, this.#output.columns - 1)).join("");
      if (fitting !== this.#shown) this.#output.write(`\r\x1b[2K${fitting}`);
      this.#shown = fitting;
      return;
    }
    const leastMs =
      state === this.#state ? this.#output.plainLineMs : Math.min(CHANGE_MS, this.#output.plainLineMs);
    if (nowMs - this.#lastPlainMs < leastMs || line === this.#shown) return;
    this.#lastPlainMs = nowMs;
    this.#state = state;
    this.#shown = line;
    this.#output.write(`${line}\n`);
  }

  /** Clears the line, so that other text can follow. */
  end(): void {
    if (this.#output.isTerminal && this.#shown !== "") this.#output.write("\r\x1b[2K");
    this.#shown = "";
  }
}

/** Returns the status line of a command, on standard error. */
export function statusLineOf(stderr: NodeJS.WriteStream, plainLineMs: number): StatusLine {
  return new StatusLine({
    isTerminal: stderr.isTTY === true,
    // A terminal of unknown width reports 0.
    columns: stderr.columns || 80,
    write: (text) => void stderr.write(text),
    plainLineMs,
  });
}
