import { MarkReader } from "./timed-stream.ts";

/** What a viewer saw of a {@link TimedStream}. Milliseconds. */
export interface Watched {
  /** From the request to the first media byte, and to one second of media. */
  readonly firstByteMs: number;
  readonly secondMs: number;
  /** Delay of marks received at the live edge (3 s after the start and later), sorted. */
  readonly delaysMs: readonly number[];
  readonly marks: number;
  /** Marks missing between the first and the last received. */
  readonly missing: number;
  /** The longest time without any byte, and how many were longer than half a second. */
  readonly longestPauseMs: number;
  readonly stalls: number;
  /** Why the stream ended early; undefined if it did not. */
  readonly problem: string | undefined;
}

const SETTLE_MS = 3_000;
/** A player without a byte for this long would stall. */
const STALL_MS = 500;

export interface WatchOptions {
  /** Delays are stored of each nth mark only (default: 1). */
  readonly sampleEvery?: number;
  /** Pauses, missing marks and delays before this time are not counted. */
  readonly settleMs?: number;
  /** Receives each stall and gap that is counted. */
  readonly noticed?: (event: string) => void;
}

/** Reads the MPEG-TS at `url` for `forMs`, as a player at the live edge would. */
export async function watchLive(
  url: string,
  forMs: number,
  { sampleEvery = 1, settleMs = 0, noticed }: WatchOptions = {},
): Promise<Watched> {
  const began = performance.now();
  const abort = new AbortController();
  const timer = setTimeout(() => abort.abort(), forMs);
  const reader = new MarkReader();
  const delaysMs: number[] = [];
  let stalls = 0;
  let [firstByteMs, secondMs, marks, missing, longestPauseMs] = [Number.NaN, Number.NaN, 0, 0, 0];
  let first: number | undefined;
  let last = -1;
  let lastByteAt: number | undefined;
  let problem: string | undefined;
  try {
    const response = await fetch(url, { signal: abort.signal });
    if (!response.ok || !response.body) throw new Error(`${response.status} ${await response.text()}`);
    for await (const bytes of response.body) {
      const now = performance.now();
      if (lastByteAt === undefined) firstByteMs = now - began;
      else if (now - began > settleMs) {
        const pauseMs = now - lastByteAt;
        longestPauseMs = Math.max(longestPauseMs, pauseMs);
        if (pauseMs > STALL_MS) {
          stalls++;
          noticed?.(`no byte for ${Math.round(pauseMs)} ms`);
        }
      }
      lastByteAt = now;
      for (const mark of reader.push(bytes)) {
        first ??= mark.sentAtMs;
        if (Number.isNaN(secondMs) && mark.sentAtMs - first >= 1000) secondMs = now - began;
        if (last >= 0 && mark.index > last + 1 && now - began > settleMs) {
          missing += mark.index - last - 1;
          noticed?.(`${mark.index - last - 1} marks missing after ${last}`);
        }
        last = mark.index;
        marks++;
        if (now - began > Math.max(SETTLE_MS, settleMs) && mark.index % sampleEvery === 0)
          delaysMs.push(Date.now() - mark.sentAtMs);
      }
    }
    problem = "the stream ended";
  } catch (thrown) {
    if (!abort.signal.aborted) problem = String(thrown);
  } finally {
    clearTimeout(timer);
  }
  delaysMs.sort((a, b) => a - b);
  return { firstByteMs, secondMs, delaysMs, marks, missing, longestPauseMs, stalls, problem };
}

/** The value that the share `q` (0 to 1) of sorted values does not exceed. */
export function quantile(sorted: readonly number[], q: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? Number.NaN;
}

// As a program: `live-watch.ts SECONDS URL…` prints one line of JSON for each URL.
if (process.argv[1]?.endsWith("live-watch.ts")) {
  const [seconds, ...urls] = process.argv.slice(2);
  await Promise.all(
    urls.map(async (url) => {
      const { delaysMs, ...seen } = await watchLive(url, 1000 * Number(seconds));
      const [p50, p95, p999] = [0.5, 0.95, 0.999].map((q) => quantile(delaysMs, q));
      console.log(JSON.stringify({ url, ...seen, p50, p95, p999 }));
    }),
  );
}
