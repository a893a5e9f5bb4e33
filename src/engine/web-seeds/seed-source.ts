import type { Outbound, OutboundStream } from "../../outbound/outbound.ts";
import { fetchFault, SeedFault, statusFault } from "./seed-fault.ts";
import type { SeedMap, Stretch } from "./seed-map.ts";
import type { ServerSlots } from "./server-slots.ts";

/** A server that has not begun to answer by then is as good as down. */
const HEAD_TIMEOUT_MS = 10_000;
/** No bytes for so long while we wait for some: the connection is dead. */
const IDLE_TIMEOUT_MS = 15_000;
/** What is asked for at a new place, so that what follows a jump costs no further round trip: so much at first, and down to
 * the least where that is broken off again and again, as it is where peers give the pieces between. */
const FIRST_BYTES = 1024 * 1024;
const LEAST_BYTES = 256 * 1024;
/** Redirects that are remembered: one for each file, of those read last. */
const MAX_REDIRECTS = 64;

/** What of the content a connection brings. */
export interface SeedAnswer {
  readonly reader: ReadableStreamDefaultReader<Uint8Array>;
  /** Where in the content it ends. */
  readonly end: number;
  /** Ends the connection. */
  close(): void;
}

/** What fetching from web seeds takes. */
export interface SeedSourceParts {
  readonly outbound: Pick<Outbound, "open">;
  readonly slots: ServerSlots;
  readonly map: SeedMap;
  /** Whether it may be at loopback or private addresses. */
  readonly mayLeadHome: boolean;
}

/** Where a file was found last. */
interface Found {
  readonly url: string;
  readonly allowPrivate: boolean;
}

/** Fetches bytes of the content from one web seed, each answer held against what was asked for. */
export class SeedSource {
  readonly #parts: SeedSourceParts;
  readonly #server: string;
  /** By file: where the server's redirects led to, so that each range need not follow them again. */
  readonly #redirects = new Map<number, Found>();

  #firstBytes = FIRST_BYTES;

  constructor(parts: SeedSourceParts) {
    this.#parts = parts;
    this.#server = new URL(parts.map.seed.url).host;
  }

  /** How much to ask for at a new place. */
  get firstBytes(): number {
    return this.#firstBytes;
  }

  /** Of an answer not all was wanted. */
  brokeOff(): void {
    this.#firstBytes = Math.max(LEAST_BYTES, this.#firstBytes / 2);
  }

  /** An answer was read to its end. */
  wentThrough(): void {
    this.#firstBytes = Math.min(FIRST_BYTES, 2 * this.#firstBytes);
  }

  /** Opens the bytes from `start` to at most `end`, within one stretch that is none of zeros. Rejects with `SeedFault`. */
  async open(stretch: Stretch, start: number, end: number, signal: AbortSignal): Promise<SeedAnswer> {
    const give = await this.#parts.slots.take(this.#server, signal);
    try {
      const { stream, length } = await this.#ask(stretch, start, end, signal);
      const reader = stream.body.getReader();
      const close = () => {
        give();
        reader.cancel().catch(() => {}); // Nobody reads it any more, however it ends.
      };
      return { reader, end: start + length, close };
    } catch (thrown) {
      give();
      signal.throwIfAborted();
      throw fetchFault(thrown);
    }
  }

  async #ask(stretch: Stretch, start: number, end: number, signal: AbortSignal) {
    const { map, mayLeadHome } = this.#parts;
    const found = this.#redirects.get(stretch.fileIndex);
    if (found && stretch.kind === "file") {
      try {
        return await this.#fetch(found, stretch, start, end, signal);
      } catch (thrown) {
        // What a redirect named may be good for some minutes only: the server itself knows better.
        this.#redirects.delete(stretch.fileIndex);
        signal.throwIfAborted();
        if (!(thrown instanceof Error)) throw thrown;
      }
    }
    const named = { url: map.url(stretch, start, end), allowPrivate: mayLeadHome };
    const answer = await this.#fetch(named, stretch, start, end, signal);
    this.#remember(stretch, named, answer.stream);
    return answer;
  }

  async #fetch(from: Found, stretch: Stretch, start: number, end: number, signal: AbortSignal) {
    const isRange = stretch.kind === "file";
    const size = stretch.end - stretch.start;
    const [first, last] = [start - stretch.start, end - stretch.start];
    const stream = await this.#parts.outbound.open(from.url, {
      allowPrivate: from.allowPrivate,
      limitBytes: isRange ? size : end - start,
      headTimeoutMs: HEAD_TIMEOUT_MS,
      idleTimeoutMs: IDLE_TIMEOUT_MS,
      ...(isRange && { range: { start: first, end: last } }),
      decode: false,
      purpose: "content of a web seed",
      signal,
    });
    try {
      const length = isRange ? rangeLength(stream, first, last, size) : partLength(stream, end - start);
      return { stream, length };
    } catch (thrown) {
      await stream.body.cancel().catch(() => {}); // The fault at hand says more.
      throw thrown;
    }
  }

  #remember({ kind, fileIndex }: Stretch, asked: Found, { finalUrl, allowPrivate = false }: OutboundStream) {
    if (kind !== "file" || new URL(finalUrl).origin === new URL(asked.url).origin) return;
    this.#redirects.set(fileIndex, { url: finalUrl, allowPrivate });
    const [oldest] = this.#redirects.keys();
    if (this.#redirects.size > MAX_REDIRECTS) this.#redirects.delete(oldest!);
  }
}

/** How many bytes of what was asked for come (RFC 9110 14.4). A server without ranges is of use only where all was asked for
 * that it has. */
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
  const said = headers.get("content-range")?.trim() ?? "";
  const [, first, last, whole] = /^bytes (\d{1,16})-(\d{1,16})\/(\d{1,16}|\*)$/.exec(said) ?? [];
  if (first === undefined || Number(first) !== start || Number(last) < start || Number(last) >= end)
    throw new SeedFault("never", `the server sent another range than was asked for (${said.slice(0, 60)})`);
  if (whole !== "*" && Number(whole) !== size)
    throw new SeedFault("never", `the server has a file of ${whole} bytes, not ${size}`);
  return Number(last) + 1 - start;
}

/** The same for a part of a piece (BEP 17), which must come whole. */
function partLength({ status, headers }: OutboundStream, length: number): number {
  // Its pieces have no names of their own that could be missing.
  if (status === 404 || status === 410) throw new SeedFault("never", `the server answered ${status}`);
  if (status !== 200) throw statusFault(status, headers);
  const said = headers.get("content-length");
  if (said !== null && Number(said) !== length)
    throw new SeedFault("never", `the server sent ${said} bytes of a piece, not ${length}`);
  return length;
}
