/** Where the line goes. */
export interface StatusOutput {
  readonly isTerminal: boolean;
  readonly columns: number;
  readonly write: (text: string) => void;
  /** Without a terminal, lines come at most so often: a log file should stay readable. */
  readonly plainLineMs: number;
}

/** What has changed is told sooner than that, but not more often than so. */
const CHANGE_MS = 5000;

/** One line that is rewritten on a terminal, plain lines now and then elsewhere. */
export class StatusLine {
  readonly #output: StatusOutput;
  #shown = "";
  #lastPlainMs = Number.NEGATIVE_INFINITY;
  #state = "";

  constructor(output: StatusOutput) {
    this.#output = output;
  }

  /**
   * Shows a text without control characters at `nowMs` (any clock that goes forward). `state` is the word in it that should not be told late:
   * a log has a line soon after it changed.
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

  /** Leaves the terminal line, so that other text can follow. */
  end(): void {
    if (this.#output.isTerminal && this.#shown !== "") this.#output.write("\r\x1b[2K");
    this.#shown = "";
  }
}

/** The status line of a command, on standard error. */
export function statusLineOf(stderr: NodeJS.WriteStream, plainLineMs: number): StatusLine {
  return new StatusLine({
    isTerminal: stderr.isTTY === true,
    // A terminal that does not know its width says 0.
    columns: stderr.columns || 80,
    write: (text) => void stderr.write(text),
    plainLineMs,
  });
}
