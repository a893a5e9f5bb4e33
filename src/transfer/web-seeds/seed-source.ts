import type { AddressScope } from "../../base/address.ts";
import { trimOldest } from "../../base/trim-oldest.ts";
import type { Outbound } from "../../outbound/outbound.ts";
import type { OutboundStream } from "../../outbound/request.ts";
import { fetchFault, SeedFault, statusFault } from "./seed-fault.ts";
import type { SeedLayout, Stretch } from "./seed-map.ts";
import type { ServerSlots } from "./server-slots.ts";

/** A server that sends no response headers within this time counts as down. */
const HEAD_TIMEOUT_MS = 10_000;
/** A connection without data for this time, while data is expected, counts as dead. */
const IDLE_TIMEOUT_MS = 15_000;
/** Size of the first request at a new position. It shrinks to the minimum while responses are aborted early, as happens if peers
 * send the pieces in between. */
const FIRST_BYTES = 1024 * 1024;
const MIN_FIRST_BYTES = 256 * 1024;
/** Remembered redirects, one for each file; the oldest are dropped. */
const MAX_REDIRECTS = 64;

/** An open response with bytes of the content. */
export interface SeedResponse {
  readonly reader: ReadableStreamDefaultReader<Uint8Array>;
  /** End of its bytes in the content. */
  readonly end: number;
  /** Closes the connection. */
  close(): void;
}

/** Dependencies of {@link SeedSource}. */
export interface SeedSourceDependencies {
  readonly outbound: Pick<Outbound, "open">;
  readonly slots: ServerSlots;
  readonly map: SeedLayout;
  /** True if the web seed may have a loopback or private address. */
  readonly allowPrivate: boolean;
  /** Returns the headers that authenticate a request for the URL. */
  readonly sign?: SignUrl | undefined;
}

export type SignUrl = (url: string) => Promise<Readonly<Record<string, string>>>;

/** The location of a file. */
interface FileLocation {
  readonly url: string;
  readonly allowPrivate: boolean;
}

/** Fetches bytes of the content from one web seed and checks each response against its request. */
export class SeedSource {
  readonly #dependencies: SeedSourceDependencies;
  readonly #server: string;
  /** By file index: the target of the server's redirects, so that later requests need not follow them. */
  readonly #redirects = new Map<number, FileLocation>();

  #firstBytes = FIRST_BYTES;

  constructor(dependencies: SeedSourceDependencies) {
    this.#dependencies = dependencies;
    this.#server = new URL(dependencies.map.seed.url).host;
  }

  /** How many bytes to request at a new position. */
  get firstBytes(): number {
    return this.#firstBytes;
  }

  /** Records that a response was aborted. */
  aborted(): void {
    this.#firstBytes = Math.max(MIN_FIRST_BYTES, this.#firstBytes / 2);
  }

  /** Records that a response was read to its end. */
  completed(): void {
    this.#firstBytes = Math.min(FIRST_BYTES, 2 * this.#firstBytes);
  }

  /** Requests the bytes `[start, end)` of one stretch; the response may end earlier. Rejects with `SeedFault`. */
  async open(stretch: Stretch, start: number, end: number, signal: AbortSignal): Promise<SeedResponse> {
    const release = await this.#dependencies.slots.take(this.#server, signal);
    try {
      const { stream, length } = await this.#request(stretch, start, end, signal);
      const reader = stream.body.getReader();
      const close = () => {
        release();
        reader.cancel().catch(() => {}); // The rest of the response is not needed.
      };
      return { reader, end: start + length, close };
    } catch (thrown) {
      release();
      signal.throwIfAborted();
      throw fetchFault(thrown);
    }
  }

  async #request(stretch: Stretch, start: number, end: number, signal: AbortSignal) {
    const { map, allowPrivate } = this.#dependencies;
    const redirected = this.#redirects.get(stretch.fileIndex);
    if (redirected && stretch.kind === "file") {
      try {
        return await this.#fetch(redirected, stretch, start, end, signal);
      } catch (thrown) {
        // The target of a redirect may be valid for minutes only: ask the server itself.
        this.#redirects.delete(stretch.fileIndex);
        signal.throwIfAborted();
        if (!(thrown instanceof Error)) throw thrown;
      }
    }
    const named = { url: map.url(stretch, start, end), allowPrivate };
    const response = await this.#fetch(named, stretch, start, end, signal);
    this.#remember(stretch, named, response.stream);
    return response;
  }

  async #fetch(from: FileLocation, stretch: Stretch, start: number, end: number, signal: AbortSignal) {
    const isRange = stretch.kind === "file";
    const size = stretch.end - stretch.start;
    const ownQuery = isRange || this.#dependencies.map.seed.url.includes("?") ? "" : new URL(from.url).search;
    const [first, last] = [start - stretch.start, end - stretch.start];
    const { outbound, sign } = this.#dependencies;
    const stream = await outbound.open(from.url, {
      ...(sign && { originHeaders: await sign(from.url) }),
      allowPrivate: from.allowPrivate,
      // The text of an error may be longer than a short file.
      limitBytes: Math.max(MIN_FIRST_BYTES, isRange ? size : end - start),
      headTimeoutMs: HEAD_TIMEOUT_MS,
      idleTimeoutMs: IDLE_TIMEOUT_MS,
      ...(isRange && { range: { start: first, end: last } }),
      check: (url, scope) => localProblem(url, scope, ownQuery),
      decode: false,
      purpose: "content of a web seed",
      signal,
    });
    try {
      const length = isRange ? rangeLength(stream, first, last, size) : partLength(stream, end - start);
      return { stream, length };
    } catch (thrown) {
      await stream.body.cancel().catch(() => {}); // The first error is reported.
      throw thrown;
    }
  }

  #remember(
    { kind, fileIndex }: Stretch,
    requested: FileLocation,
    { finalUrl, allowPrivate = false }: OutboundStream,
  ) {
    if (kind !== "file" || new URL(finalUrl).origin === new URL(requested.url).origin) return;
    this.#redirects.set(fileIndex, { url: finalUrl, allowPrivate });
    trimOldest(this.#redirects, MAX_REDIRECTS);
  }
}

/** Protects services of this machine and its network from URLs in untrusted links, as libtorrent does: there, a web seed has no query
 * except `ownQuery`, the one of BEP 17. */
function localProblem({ search }: URL, scope: AddressScope, ownQuery: string): string | undefined {
  if (scope === "global" || search === "" || search === ownQuery) return undefined;
  return "a web seed on this machine or in its network must not have a query string";
}

/** Returns how many bytes of the requested range the response contains (RFC 9110 14.4). A response without a range is valid only
 * if the whole file was requested. Throws `SeedFault`. */
function rangeLength({ status, headers }: OutboundStream, start: number, end: number, size: number): number {
  if (status === 200) {
    const length = headers.get("content-length");
    if (start === 0 && length !== null && Number(length) === size) return size;
    const what =
      length !== null && Number(length) !== size ? `has a file of ${length} bytes, not ${size}` : "";
    throw new SeedFault(
      "never",
      what === "" ? "the server refuses ranges (200, not 206)" : `the server ${what}`,
    );
  }
  if (status !== 206) throw statusFault(status, headers);
  const contentRange = headers.get("content-range")?.trim() ?? "";
  const [, first, last, whole] = /^bytes (\d{1,16})-(\d{1,16})\/(\d{1,16}|\*)$/.exec(contentRange) ?? [];
  if (first === undefined || Number(first) !== start || Number(last) < start || Number(last) >= end)
    throw new SeedFault(
      "never",
      `the server sent another range than requested (${contentRange.slice(0, 60)})`,
    );
  if (whole !== "*" && Number(whole) !== size)
    throw new SeedFault("never", `the server has a file of ${whole} bytes, not ${size}`);
  return Number(last) + 1 - start;
}

/** The same for a part of a piece (BEP 17), which must be complete. */
function partLength({ status, headers }: OutboundStream, length: number): number {
  // There are no files that could be missing.
  if (status === 404 || status === 410) throw new SeedFault("never", `the server answered ${status}`);
  if (status !== 200) throw statusFault(status, headers);
  const contentLength = headers.get("content-length");
  if (contentLength !== null && Number(contentLength) !== length)
    throw new SeedFault("never", `the server sent ${contentLength} bytes of a piece, not ${length}`);
  return length;
}
