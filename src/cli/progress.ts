import { printable } from "./log.ts";
import { StatusLine, type StatusOutput } from "./status-line.ts";
import { bytesText, secondsText } from "./units.ts";

/** Values of a progress line. */
export interface ProgressFigures {
  /** The current activity, such as `opening`, or the name of the content. */
  readonly doing: string;
  readonly peers: number;
  readonly bytesPerSecond: number;
  /** Bytes that are available, of `size`; undefined until the size is known. */
  readonly done: number | undefined;
  readonly size: number | undefined;
  /** How far playback is behind the live edge, in ms; only for live streams whose edge is known. */
  readonly behindMs?: number | undefined;
}

/** Viewers lag at most 8 s. Beyond this, the source is silent or unreachable. */
export const STILL_MS = 10_000;
/** Minimum interval of lines if standard error is not a terminal. */
const PLAIN_LINE_MS = 5000;

/** A {@link StatusLine} of a download. */
export class ProgressLine {
  readonly #line: StatusLine;
  readonly #isJson: boolean;

  /** `isJson`: lines are JSON objects instead of text. */
  constructor(output: Omit<StatusOutput, "plainLineMs">, isJson = false) {
    this.#line = new StatusLine({ ...output, plainLineMs: PLAIN_LINE_MS });
    this.#isJson = isJson;
  }

  /** Shows the figures. `nowMs` is the time of any monotonic clock. */
  show(figures: ProgressFigures, nowMs: number): void {
    this.#line.show(progressText(figures, this.#isJson), nowMs);
  }

  /** Clears the line, so that other text can follow. */
  end(): void {
    this.#line.end();
  }
}

/** One line of progress, or one JSON object: `playing film.mkv · 12 peers · 3.4 MB/s · 41 % of 1.4 GB · 4:02 left`, `News · 2.1 s behind live · 12 peers · 1.0 MB/s`. */
export function progressText(figures: ProgressFigures, isJson = false): string {
  if (isJson) return progressJson(figures);
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

function progressJson({ doing, peers, bytesPerSecond, done, size, behindMs }: ProgressFigures): string {
  return JSON.stringify({
    doing,
    peers,
    bytes_per_second: Math.round(bytesPerSecond),
    done_bytes: done === undefined ? null : Math.round(done),
    size_bytes: size ?? null,
    behind_live_ms: behindMs ?? null,
  });
}

function edgeText(behindMs: number): string {
  const seconds = behindMs / 1000;
  return behindMs > STILL_MS
    ? `no new data for ${seconds.toFixed(0)} s`
    : `${seconds.toFixed(1)} s behind live`;
}
