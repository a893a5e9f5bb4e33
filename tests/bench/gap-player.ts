import { isStuffing } from "../../src/catch-up/stream-chunks.ts";
import { quantile } from "../parts/live-watch.ts";

/** Reads a stream without end, and measures the times without media. Opens it again if it ends. */
export class GapPlayer {
  /** How often the stream ended. */
  ends = -1;
  #gapsMs: number[] = [];
  #lastAt = performance.now();
  readonly #stop = new AbortController();

  constructor(url: string) {
    void this.#read(url);
  }

  /** The longest gap since the last call, in ms. */
  takeGapMs(): number {
    return Math.round(this.takeGapsMs().reduce((most, gap) => Math.max(most, gap), 0));
  }

  /** The gaps between reads since the last call, in ms, including the present one. */
  takeGapsMs(): number[] {
    const gaps = [...this.#gapsMs, performance.now() - this.#lastAt];
    this.#gapsMs = [];
    return gaps;
  }

  stop(): void {
    this.#stop.abort();
  }

  async #read(url: string): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      this.ends++;
      try {
        for await (const bytes of (await fetch(url, { signal })).body!) {
          if (isStuffing(bytes)) continue;
          const now = performance.now();
          this.#gapsMs.push(now - this.#lastAt);
          this.#lastAt = now;
        }
      } catch {
        await new Promise((resolve) => setTimeout(resolve, 250));
      }
    }
  }
}

/** Describes gaps: their quantiles in ms, and their number. */
export function gapsText(gapsMs: readonly number[]): string {
  const sorted = [...gapsMs].sort((a, b) => a - b);
  const [p50, p99, most] = [0.5, 0.99, 1].map((share) => quantile(sorted, share).toFixed(0));
  return `gaps p50 ${p50}, p99 ${p99}, longest ${most} ms (${sorted.length})`;
}
