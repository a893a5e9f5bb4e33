import { printable } from "./log.ts";
import { bytesText, secondsText } from "./units.ts";

/** What a progress line says. */
export interface ProgressFigures {
  /** What is going on now, such as `looking for peers`. */
  readonly doing: string;
  readonly peers: number;
  readonly bytesPerSecond: number;
  /** Bytes that are there, of all; undefined until the size is known. */
  readonly done: number | undefined;
  readonly size: number | undefined;
}

/** Where the line goes. */
export interface ProgressOutput {
  readonly isTerminal: boolean;
  readonly columns: number;
  readonly write: (text: string) => void;
}

/** Plain lines (no terminal) come at most so often: a log file should stay readable. */
const PLAIN_LINE_MS = 5000;

/** One line that is rewritten on a terminal, plain lines now and then elsewhere. */
export class ProgressLine {
  readonly #output: ProgressOutput;
  #shown = "";
  #lastPlainMs = Number.NEGATIVE_INFINITY;

  constructor(output: ProgressOutput) {
    this.#output = output;
  }

  /** Shows the figures at `nowMs` (any clock that goes forward). */
  show(figures: ProgressFigures, nowMs: number): void {
    const line = progressText(figures);
    if (this.#output.isTerminal) {
      const fitting = [...line].slice(0, Math.max(20, this.#output.columns - 1)).join("");
      if (fitting !== this.#shown) this.#output.write(`\r\x1b[2K${fitting}`);
      this.#shown = fitting;
      return;
    }
    if (nowMs - this.#lastPlainMs < PLAIN_LINE_MS || line === this.#shown) return;
    this.#lastPlainMs = nowMs;
    this.#shown = line;
    this.#output.write(`${line}\n`);
  }

  /** Leaves the terminal line, so that other text can follow. */
  end(): void {
    if (this.#output.isTerminal && this.#shown !== "") this.#output.write("\r\x1b[2K");
    this.#shown = "";
  }
}

/** `playing film.mkv · 12 peers · 3.4 MB/s · 41 % of 1.4 GB · 4:02 left`. */
export function progressText(figures: ProgressFigures): string {
  const parts = [printable(figures.doing), `${figures.peers} ${figures.peers === 1 ? "peer" : "peers"}`];
  parts.push(`${bytesText(figures.bytesPerSecond)}/s`);
  const { done, size } = figures;
  if (done !== undefined && size !== undefined && size > 0) {
    parts.push(`${Math.floor((100 * done) / size)} % of ${bytesText(size)}`);
    if (done < size) parts.push(`${secondsText((size - done) / figures.bytesPerSecond)} left`);
  }
  return parts.join(" · ");
}
