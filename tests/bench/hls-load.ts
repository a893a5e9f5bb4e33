// `bun tests/bench/hls-load.ts VIEWERS URL…`: viewers that read live HLS as hls.js does, each with a connection of its own, spread over the
// manifests at the URLs. Prints `watching` once all of them have a segment; after SIGTERM a `LoadReport` as JSON.
import { createHash } from "node:crypto";
import { connect, type Socket } from "node:net";

/** What all viewers saw together. */
export interface LoadReport {
  readonly segments: number;
  /** Sequence numbers that a viewer skipped. */
  readonly missed: number;
  /** Answers other than 200, and bytes that differ from those of another viewer. */
  readonly errors: readonly string[];
  readonly errorCount: number;
  /** Connections that broke and were made again. */
  readonly reconnects: number;
  /** Time from the request of a segment to its last byte, in ms. */
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

/** hls.js starts this many target durations behind the edge. */
const BEHIND_EDGE = 3;
const RETRY_MS = 500;
/** Viewers start at this rate, so that the start is no attack. */
const STARTS_PER_SECOND = 250;
const MAX_ERRORS = 10;
/** Of this share of segments the bytes are compared, not only the length. */
const HASHED_SHARE = 0.02;

const [count = "1", ...urls] = process.argv.slice(2);
const times: number[] = [];
const errors: string[] = [];
const seen = new Map<string, string>();
let [segments, missed, errorCount, reconnects, watching] = [0, 0, 0, 0, 0];

function fail(error: string): void {
  errorCount++;
  if (errors.length < MAX_ERRORS) errors.push(error);
}

/** A connection that sends one request after another. HTTP/1.0 answers have a length and no chunks. */
class Connection {
  readonly #host: URL;
  #socket: Socket | undefined;
  #parts: Buffer[] = [];
  #bytes = 0;
  /** Length of the whole answer, once its head is there. */
  #expected = 0;
  #head = 0;
  #done: ((answer: Buffer | Error) => void) | undefined;

  constructor(host: URL) {
    this.#host = host;
  }

  /** Returns the body; rejects unless the answer is 200. */
  async get(path: string): Promise<Buffer> {
    const answer = await new Promise<Buffer | Error>((resolve) => {
      this.#done = resolve;
      [this.#parts, this.#bytes, this.#expected] = [[], 0, 0];
      this.#socket ??= this.#connected();
      this.#socket.write(
        `GET ${path} HTTP/1.0\r\nHost: ${this.#host.host}\r\nConnection: keep-alive\r\n\r\n`,
      );
    });
    if (answer instanceof Error) throw answer;
    return answer;
  }

  #connected(): Socket {
    const socket = connect(Number(this.#host.port), this.#host.hostname);
    socket.setNoDelay(true);
    socket.on("data", (bytes: Buffer) => this.#received(bytes));
    socket.on("error", () => {});
    socket.on("close", () => {
      this.#socket = undefined;
      reconnects++;
      this.#end(new Error("the connection was closed"));
    });
    return socket;
  }

  #received(bytes: Buffer): void {
    this.#parts.push(bytes);
    this.#bytes += bytes.length;
    if (this.#expected === 0) {
      const start = this.#parts.length === 1 ? bytes : Buffer.concat(this.#parts);
      const end = start.indexOf("\r\n\r\n");
      if (end < 0) return;
      const head = start.toString("latin1", 0, end);
      this.#head = end + 4;
      this.#expected = this.#head + Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? Number.NaN);
      const [, status] = /^HTTP\/1\.[01] (\d+)/.exec(head) ?? [];
      if (status !== "200" || Number.isNaN(this.#expected)) {
        this.#socket?.destroy();
        this.#end(new Error(head.slice(0, 300)));
        return;
      }
    }
    if (this.#bytes >= this.#expected) this.#end(Buffer.concat(this.#parts).subarray(this.#head));
  }

  #end(answer: Buffer | Error): void {
    this.#done?.(answer);
    this.#done = undefined;
  }
}

async function watch(url: URL): Promise<void> {
  const connection = new Connection(url);
  const folder = url.pathname.slice(0, url.pathname.lastIndexOf("/") + 1);
  const get = async (path: string) => {
    try {
      return await connection.get(path);
    } catch (error) {
      fail(`${path}: ${error instanceof Error ? error.message : error}`);
      await pause(RETRY_MS);
      return undefined;
    }
  };
  let next: number | undefined;
  for (let isWatching = false; ; ) {
    const text = (await get(url.pathname))?.toString("latin1");
    if (text === undefined) continue;
    const first = Number(/#EXT-X-MEDIA-SEQUENCE:(\d+)/.exec(text)?.[1]);
    const names = text.split("\n").filter((line) => /^\d+\.ts$/.test(line));
    next ??= first + Math.max(0, names.length - BEHIND_EDGE);
    if (next < first) {
      missed += first - next;
      next = first;
    }
    const before = next;
    while (next < first + names.length) {
      const begun = performance.now();
      const body = await get(folder + names[next - first]);
      if (body === undefined) continue;
      times.push(performance.now() - begun);
      compare(folder + names[next - first], body);
      segments++;
      next++;
      if (!isWatching && ++watching === Number(count)) console.log("watching");
      isWatching = true;
    }
    const targetMs = 1_000 * Number(/#EXT-X-TARGETDURATION:(\d+)/.exec(text)?.[1] ?? 2);
    // RFC 8216 6.3.4: a target duration after a change, half of it without one.
    await pause(next > before ? targetMs : targetMs / 2);
  }
}

/** Checks that all viewers get the same bytes of a segment. */
function compare(path: string, body: Buffer): void {
  const isHashed = Math.random() < HASHED_SHARE;
  for (const [key, value] of [
    [`length ${path}`, String(body.length)],
    ...(isHashed ? [[`hash ${path}`, createHash("sha1").update(body).digest("hex")]] : []),
  ] as [string, string][]) {
    const known = seen.get(key);
    if (known === undefined) seen.set(key, value);
    else if (known !== value) fail(`${key}: ${value}, and ${known} for another viewer`);
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

process.on("SIGTERM", () => {
  const sorted = times.sort((a, b) => a - b);
  const at = (share: number) => Math.round(sorted[Math.floor(share * (sorted.length - 1))] ?? 0);
  const [p50, p99, max] = [at(0.5), at(0.99), at(1)];
  const report: LoadReport = { segments, missed, errors, errorCount, reconnects, p50, p99, max };
  console.log(JSON.stringify(report));
  process.exit(0);
});
process.on("SIGUSR2", () => {
  // The start is over: what follows is measured.
  times.length = 0;
});
for (let n = 0; n < Number(count); n++) {
  void watch(new URL(urls[n % urls.length]!));
  if (n % 25 === 24) await pause(25_000 / STARTS_PER_SECOND);
}
