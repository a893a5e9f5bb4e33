import { isStuffing } from "../../src/catch-up/stream-chunks.ts";

/** Reads a stream without end, and measures the longest time without media. Opens it again if it ends. */
export class GapPlayer {
  /** How often the stream ended. */
  ends = -1;
  #gapMs = 0;
  #lastAt = performance.now();

  constructor(url: string) {
    void this.#read(url);
  }

  /** The longest gap since the last call, in ms, including the present one. */
  takeGapMs(): number {
    const gapMs = Math.max(this.#gapMs, performance.now() - this.#lastAt);
    this.#gapMs = 0;
    return Math.round(gapMs);
  }

  async #read(url: string): Promise<void> {
    for (;;) {
      this.ends++;
      try {
        for await (const bytes of (await fetch(url)).body!) {
          if (isStuffing(bytes)) continue;
          const now = performance.now();
          this.#gapMs = Math.max(this.#gapMs, now - this.#lastAt);
          this.#lastAt = now;
        }
      } catch {
        await new Promise((resolve) => setTimeout(resolve, 250));
      }
    }
  }
}
