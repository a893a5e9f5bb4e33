/** A segment as a viewer received it. */
export interface ReceivedSegment {
  readonly bytes: Uint8Array;
  readonly cacheControl: string | null;
  /** What nginx reports: `HIT`, `MISS` … */
  readonly cache: string | null;
  /** The address of the engine that nginx asked last; empty if it asked none. */
  readonly engine: string;
}

/** hls.js starts this many target durations behind the edge. */
const BEHIND_EDGE = 3;
/** An attempt that failed is repeated after this time; hls.js begins with a second. */
const RETRY_MS = 500;

/** Reads a live stream as hls.js does: reloads the manifest twice per segment, and requests the segments in order. */
export class HlsViewer {
  /** By sequence number, in order of arrival. */
  readonly segments = new Map<number, ReceivedSegment>();
  /** Requests that failed or were answered with an error; they are repeated. */
  readonly failures: string[] = [];
  readonly #url: string;
  readonly #stopped = new AbortController();
  #waiting: (() => void)[] = [];

  constructor(url: string) {
    this.#url = url;
  }

  start(): void {
    void this.#run();
  }

  stop(): void {
    this.#stopped.abort();
    for (const wake of this.#waiting.splice(0)) wake();
  }

  /** Waits until this many segments have arrived. */
  async until(count: number): Promise<void> {
    while (this.segments.size < count && !this.#stopped.signal.aborted)
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  async #run(): Promise<void> {
    let next: number | undefined;
    while (!this.#stopped.signal.aborted) {
      const manifest = await this.#get(this.#url);
      const text = manifest ? new TextDecoder().decode(manifest.bytes) : "";
      const first = Number(/#EXT-X-MEDIA-SEQUENCE:(\d+)/.exec(text)?.[1]);
      const names = text.split("\n").filter((line) => /^\d+\.ts$/.test(line));
      if (!manifest || names.length === 0) {
        await this.#pause(RETRY_MS);
        continue;
      }
      next ??= first + Math.max(0, names.length - BEHIND_EDGE);
      if (next < first) next = first;
      for (; next < first + names.length && !this.#stopped.signal.aborted; next++) {
        const segment = await this.#get(new URL(names[next - first]!, this.#url).href);
        if (!segment) break;
        this.segments.set(next, segment);
        for (const wake of this.#waiting.splice(0)) wake();
      }
      const targetSeconds = Number(/#EXT-X-TARGETDURATION:(\d+)/.exec(text)?.[1] ?? 2);
      await this.#pause(500 * targetSeconds);
    }
  }

  async #get(url: string): Promise<ReceivedSegment | undefined> {
    try {
      const response = await fetch(url, { signal: this.#stopped.signal });
      const bytes = new Uint8Array(await response.arrayBuffer());
      if (!response.ok) throw new Error(`${response.status} ${new TextDecoder().decode(bytes)}`);
      const header = (name: string) => response.headers.get(name);
      return {
        bytes,
        cacheControl: header("cache-control"),
        cache: header("x-cache"),
        engine: (header("x-engine") ?? "").split(", ").at(-1)!,
      };
    } catch (error) {
      if (!this.#stopped.signal.aborted) this.failures.push(`${url}: ${error}`);
      return undefined;
    }
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#stopped.signal.addEventListener("abort", () => {
        clearTimeout(timer);
        resolve();
      });
    });
  }
}
