import type { AddressScope } from "../base/address.ts";
import { concatBytes } from "../base/bytes.ts";
import { messageOf, SluiceError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { FetchRuntime } from "./ask.ts";
import { type Deadline, startDeadline } from "./deadline.ts";
import { follow } from "./follow.ts";
import { guardedBody } from "./guarded-body.ts";
import { decodedBody } from "./outbound-body.ts";

/** The one client for every URL that comes from outside: transport files, trackers, playlists, media. */
export interface Outbound {
  /** Fetches a URL whole, redirects followed. Any status is an answer; rejects with `SluiceError`: `url_refused` (scheme,
   * address, size), `url_unreachable` (network, time, broken body), `cancelled` (the signal). */
  get(url: string, options: OutboundOptions): Promise<OutboundAnswer>;
  /** The same with the body as a stream that the reader's pull drives; it errors with the same codes. Whoever does not
   * read it to its end must cancel it: that closes the connection. */
  open(url: string, options: OpenOptions): Promise<OutboundStream>;
}

/** How a URL is asked. */
interface AskOptions {
  /** The longest body, after decompression, in bytes; `Infinity` where the reader has a limit of its own. */
  readonly limitBytes: number;
  /** Whether loopback, private and link-local addresses may be asked. Others than those and global ones never are. */
  readonly allowPrivate: boolean;
  /** Only addresses of this IP version are asked. */
  readonly family?: 4 | 6;
  readonly headers?: Readonly<Record<string, string>>;
  /** For the origin of the URL alone (RFC 7617); goes before credentials within the URL. */
  readonly basic?: BasicCredentials;
  readonly signal?: AbortSignal | undefined;
  /** What the body is wanted for, in words, for messages: `transport file`. */
  readonly purpose: string;
  /** A further rule for each hop: why it must not be asked, or undefined where it may. */
  readonly check?: (url: URL, scope: AddressScope) => string | undefined;
}

/** How a URL is fetched whole. */
export interface OutboundOptions extends AskOptions {
  /** For everything together: names, redirects, body. */
  readonly timeoutMs: number;
}

/** How a URL is opened. */
export interface OpenOptions extends AskOptions {
  /** For names, redirects and the head of the answer. */
  readonly headTimeoutMs: number;
  /** The longest that a reader waits for the next bytes of the body. Time in which nobody reads does not count. */
  readonly idleTimeoutMs: number;
  /** For everything together, the body included; none unless given. */
  readonly timeoutMs?: number;
  /** Asks for these bytes alone, half-open; to the end where `end` is not given. The server may answer with all. */
  readonly range?: { readonly start: number; readonly end?: number };
  /** Whether the body may come compressed and is then decompressed; true unless said. A range never is. */
  readonly decode?: boolean;
}

/** Login and password of HTTP Basic authentication. */
interface BasicCredentials {
  readonly login: string;
  readonly password: string;
}

/** What a URL answered: its whole body. */
export interface OutboundAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Where the last redirect led, without credentials. */
  readonly finalUrl: string;
}

/** What a URL answers: its body as it comes. */
export interface OutboundStream {
  readonly status: number;
  readonly headers: Headers;
  readonly body: ReadableStream<Uint8Array>;
  /** Where the last redirect led, without credentials. */
  readonly finalUrl: string;
  /** Whether what it names in turn may be asked at home: that was allowed, and it came from home itself. Not unless said. */
  readonly allowPrivate?: boolean;
}

/** The outbound client of this machine. */
export function createOutbound(runtime: FetchRuntime, log: Log): Outbound {
  const open = async (url: string, options: OpenOptions): Promise<OutboundStream> => {
    const { signal, timeoutMs = Number.POSITIVE_INFINITY, headTimeoutMs } = options;
    const whole = startDeadline(runtime.clock, timeoutMs, signal, `no whole answer in ${timeoutMs / 1000} s`);
    const isOneTime = headTimeoutMs >= timeoutMs;
    const head = isOneTime ? whole : startDeadline(runtime.clock, headTimeoutMs, whole.signal);
    const explain = (thrown: unknown) => explained(thrown, options, head.signal.aborted ? head : whole);
    try {
      const { response, finalUrl, allowPrivate } = await follow({ runtime, log }, url, options, {
        head,
        whole,
      });
      const body = await decodedBody(response, options, whole.signal);
      const { idleTimeoutMs } = options;
      const guard = { clock: runtime.clock, idleTimeoutMs, whole, explain };
      const { status, headers } = response;
      return { status, headers, body: guardedBody(body, guard), finalUrl, allowPrivate };
    } catch (thrown) {
      whole.end();
      throw explain(thrown);
    } finally {
      if (!isOneTime) head.end();
    }
  };
  return {
    open,
    async get(url, options) {
      const { timeoutMs } = options;
      const answer = await open(url, { ...options, headTimeoutMs: timeoutMs, idleTimeoutMs: timeoutMs });
      const { status, headers, finalUrl } = answer;
      return { status, headers, bytes: await wholeBody(answer.body), finalUrl };
    },
  };
}

async function wholeBody(body: ReadableStream<Uint8Array>): Promise<Uint8Array<ArrayBuffer>> {
  const reader = body.getReader();
  const parts: Uint8Array[] = [];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return concatBytes(parts);
    parts.push(value);
  }
}

/** Says what was being fetched, and why that failed. */
function explained(thrown: unknown, options: AskOptions, { signal }: Deadline): SluiceError {
  if (options.signal?.aborted) {
    return new SluiceError("cancelled", `nobody waits for the ${options.purpose} any more`, {
      cause: thrown,
    });
  }
  const isLate = signal.aborted;
  const code = thrown instanceof SluiceError && !isLate ? thrown.code : "url_unreachable";
  const why = messageOf(isLate ? signal.reason : thrown);
  return new SluiceError(code, `the ${options.purpose} could not be fetched: ${why}`, { cause: thrown });
}
