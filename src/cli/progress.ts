import { printable } from "./log.ts";
import { StatusLine, type StatusOutput } from "./status-line.ts";
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
  /** How far behind live, in ms, where it is a live stream whose edge is known. */
  readonly behindMs?: number | undefined;
}

/** Nobody is so far behind live (the longest lag of viewers is 8 s): the source is silent, or there is no way to it. */
export const STILL_MS = 10_000;
/** Plain lines (no terminal) come at most so often. */
const PLAIN_LINE_MS = 5000;

/** A {@link StatusLine} of a download. */
export class ProgressLine {
  readonly #line: StatusLine;

  constructor(output: Omit<StatusOutput, "plainLineMs">) {
    this.#line = new StatusLine({ ...output, plainLineMs: PLAIN_LINE_MS });
  }

  /** Shows the figures at `nowMs` (any clock that goes forward). */
  show(figures: ProgressFigures, nowMs: number): void {
    this.#line.show(progressText(figures), nowMs);
  }

  /** Leaves the terminal line, so that other text can follow. */
  end(): void {
    this.#line.end();
  }
}

/** `playing film.mkv · 12 peers · 3.4 MB/s · 41 % of 1.4 GB · 4:02 left`, `News · 2.1 s behind live · 12 peers · 1.0 MB/s`. */
export function progressText(figures: ProgressFigures): string {
  const parts = [printable(figures.doing)];
  if (figures.behindMs !== undefined) parts.push(edgeText(figures.behindMs));
  parts.push(`${figures.peers} ${figures.peers === 1 ? "peer" : "peers"}`);
  parts.push(`${bytesText(figures.bytesPerSecond)}/s`);
  const { done, size } = figures;
  if (done !== undefined && size !== undefined && size > 0) {
    parts.push(`${Math.floor((100 * done) / size)} % of ${bytesText(size)}`);
    if (done < size) parts.push(`${secondsText((size - done) / figures.bytesPerSecond)} left`);
  }
  return parts.join(" · ");
}

function edgeText(behindMs: number): string {
  const seconds = behindMs / 1000;
  return behindMs > STILL_MS
    ? `nothing new for ${seconds.toFixed(0)} s`
    : `${seconds.toFixed(1)} s behind live`;
}
