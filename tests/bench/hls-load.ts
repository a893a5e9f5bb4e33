// `bun tests/bench/hls-load.ts VIEWERS URL…`: viewers that read live HLS as hls.js does, each with a connection of its own, spread over the
// manifests at the URLs. Prints `watching` once all of them have a segment; after SIGTERM a `LoadReport` as JSON.
import { createHash, type Hash } from "node:crypto";
import { connect, type Socket } from "bun";

/** What all viewers saw together since SIGUSR2. */
export interface LoadReport {
  readonly segments: number;
  /** Bytes of all segments. */
  readonly bytes: number;
  /** Sequence numbers that a viewer skipped: they had left the manifest, or are a gap in it. */
  readonly missed: number;
  /** Segments of which only the rest was there, because an engine has joined in their middle. */
  readonly cut: number;
  /** Answers other than 200, and bytes that differ from those of another viewer. */
  readonly errors: readonly string[];
  readonly errorCount: number;
  /** Time from the request of a segment to its last byte, in ms. */
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

/** A manifest, parsed once for all viewers. */
interface Manifest {
  readonly first: number;
  /** Undefined for a segment that the engine does not have (`EXT-X-GAP`). */
  readonly names: readonly (string | undefined)[];
  readonly targetMs: number;
}

/** hls.js starts this many segments behind the edge. */
const BEHIND_EDGE = 3;
const RETRY_MS = 500;
/** Viewers start at this rate, so that the start is no attack. */
const STARTS_PER_SECOND = 400;
const START_MS = 50;
const MAX_ERRORS = 10;
/** Of this share of segments the bytes are compared, not only the length. */
const HASHED_SHARE = 0.02;
const MAX_KNOWN = 10_000;

const [count = "1", ...urls] = process.argv.slice(2);
const times: number[] = [];
const errors: string[] = [];
/** By entity tag. */
const manifests = new Map<string, Manifest>();
const seen = new Map<string, string>();
let [segments, bytesRead, missed, cut, errorCount, watching] = [0, 0, 0, 0, 0, 0];

function fail(error: string): void {
  errorCount++;
  if (errors.length < MAX_ERRORS) errors.push(error);
}

/** Adds to a map that forgets the oldest entries. */
function remember<T>(map: Map<string, T>, key: string, value: T): void {
  map.set(key, value);
  if (map.size > MAX_KNOWN) map.delete(map.keys().next().value!);
}

/** A viewer: one request after another on one connection, without promises, because there are ten thousand. */
class Viewer {
  readonly #url: URL;
  readonly #folder: string;
  #socket: Socket | undefined;
  /** The path that was requested; undefined between requests. */
  #path: string | undefined;
  #begunAt = 0;
  /** The head of the answer, until it is complete. */
  #head: string | undefined;
  #remaining = 0;
  #length = 0;
  #isCut = false;
  /** The entity tag of a manifest that has not been parsed yet, and its text. */
  #newTag = "";
  #text = "";
  #manifest: Manifest | undefined;
  #hash: Hash | undefined;
  #next: number | undefined;
  #hadNews = false;
  #isWatching = false;

  constructor(url: URL) {
    this.#url = url;
    this.#folder = url.pathname.slice(0, url.pathname.lastIndexOf("/") + 1);
  }

  reload(): void {
    this.#request(this.#url.pathname);
  }

  #request(path: string): void {
    [this.#path, this.#head, this.#begunAt] = [path, "", performance.now()];
    if (this.#socket) this.#send();
    else this.#connect();
  }

  #send(): void {
    this.#socket!.write(`GET ${this.#path} HTTP/1.1\r\nHost: ${this.#url.host}\r\n\r\n`);
  }

  #connect(): void {
    const broken = (error: string) => {
      this.#socket = undefined;
      if (this.#path !== undefined) this.#failed(error);
    };
    connect({
      hostname: this.#url.hostname,
      port: Number(this.#url.port),
      socket: {
        open: (socket) => {
          this.#socket = socket;
          this.#send();
        },
        data: (_, bytes) => this.#received(bytes),
        close: () => broken("the connection was closed"),
        error: (_, error) => broken(String(error)),
      },
    }).catch((error: unknown) => broken(String(error)));
  }

  #failed(error: string): void {
    fail(`${this.#path}: ${error}`);
    this.#path = undefined;
    setTimeout(() => this.reload(), RETRY_MS);
  }

  #received(received: Buffer): void {
    let bytes = received;
    if (this.#path === undefined) return;
    if (this.#head !== undefined) {
      const before = this.#head.length;
      this.#head += bytes.toString("latin1");
      const end = this.#head.indexOf("\r\n\r\n");
      if (end < 0) return;
      bytes = bytes.subarray(end + 4 - before);
      if (!this.#begin(this.#head.slice(0, end))) return;
      this.#head = undefined;
    }
    this.#remaining -= bytes.length;
    if (this.#newTag !== "") this.#text += bytes.toString("latin1");
    this.#hash?.update(bytes);
    if (this.#remaining > 0) return;
    const path = this.#path;
    this.#path = undefined;
    if (path === this.#url.pathname) this.#manifestEnded();
    else this.#segmentEnded(path);
  }

  /** Reads the head of an answer. Returns false if the answer is an error. */
  #begin(head: string): boolean {
    const length = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? Number.NaN);
    if (!/^HTTP\/1\.[01] 200/.test(head) || Number.isNaN(length)) {
      this.#failed(head.slice(0, 300));
      this.#socket?.end();
      return false;
    }
    this.#remaining = this.#length = length;
    if (this.#path === this.#url.pathname) {
      const tag = this.#folder + (/\r\netag: (.*)/i.exec(head)?.[1] ?? "");
      this.#manifest = manifests.get(tag);
      [this.#newTag, this.#text] = [this.#manifest ? "" : tag, ""];
    } else {
      this.#isCut = !/\r\ncache-control: .*max-age=60/i.test(head);
      if (Math.random() < HASHED_SHARE) this.#hash = createHash("sha1");
    }
    return true;
  }

  #manifestEnded(): void {
    if (this.#newTag !== "") {
      this.#manifest = parsed(this.#text);
      remember(manifests, this.#newTag, this.#manifest);
      this.#newTag = "";
    }
    const { first, names } = this.#manifest!;
    this.#next ??= first + Math.max(0, names.length - BEHIND_EDGE);
    if (this.#next < first) {
      missed += first - this.#next;
      this.#next = first;
    }
    this.#hadNews = this.#next < first + names.length;
    this.#continue();
  }

  #segmentEnded(path: string): void {
    times.push(performance.now() - this.#begunAt);
    compare(`length ${path}`, String(this.#length));
    if (this.#hash) compare(`hash ${path}`, this.#hash.digest("hex"));
    this.#hash = undefined;
    segments++;
    bytesRead += this.#length;
    if (this.#isCut) cut++;
    this.#next!++;
    if (!this.#isWatching && ++watching === Number(count)) console.log("watching");
    this.#isWatching = true;
    this.#continue();
  }

  /** Requests the next segment of the manifest; if there is none, the manifest again (RFC 8216 6.3.4: a target duration after a change,
   * half of it without one). */
  #continue(): void {
    const { first, names, targetMs } = this.#manifest!;
    while (this.#next! < first + names.length && names[this.#next! - first] === undefined) {
      missed++;
      this.#next!++;
    }
    const name = names[this.#next! - first];
    if (name !== undefined) this.#request(this.#folder + name);
    else setTimeout(() => this.reload(), this.#hadNews ? targetMs : targetMs / 2);
  }
}

function parsed(text: string): Manifest {
  return {
    first: Number(/#EXT-X-MEDIA-SEQUENCE:(\d+)/.exec(text)?.[1]),
    names: [...text.matchAll(/(#EXT-X-GAP\n(?:#.*\n)*)?^(\d+\.ts)$/gm)].map(([, gap, name]) =>
      gap === undefined ? name : undefined,
    ),
    targetMs: 1_000 * Number(/#EXT-X-TARGETDURATION:(\d+)/.exec(text)?.[1] ?? 2),
  };
}

/** Checks that all viewers get the same bytes of a segment. */
function compare(key: string, value: string): void {
  const known = seen.get(key);
  if (known === undefined) remember(seen, key, value);
  else if (known !== value) fail(`${key}: ${value}, and ${known} for another viewer`);
}

process.on("SIGTERM", () => {
  const sorted = times.sort((a, b) => a - b);
  const at = (share: number) => Math.round(sorted[Math.floor(share * (sorted.length - 1))] ?? 0);
  const [p50, p99, max] = [at(0.5), at(0.99), at(1)];
  const counts = { segments, bytes: bytesRead, missed, cut, errorCount };
  const report: LoadReport = { ...counts, errors, p50, p99, max };
  console.log(JSON.stringify(report));
  process.exit(0);
});
process.on("SIGUSR2", () => {
  // The start is over: what follows is measured.
  times.length = 0;
  errors.length = 0;
  [segments, bytesRead, missed, cut, errorCount] = [0, 0, 0, 0, 0];
});
let started = 0;
const starting = setInterval(() => {
  for (let n = 0; n < (STARTS_PER_SECOND * START_MS) / 1000 && started < Number(count); n++)
    new Viewer(new URL(urls[started++ % urls.length]!)).reload();
  if (started === Number(count)) clearInterval(starting);
}, START_MS);
