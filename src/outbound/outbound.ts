import { type AddressScope, addressScope, canonicalAddress, familyOf } from "../base/address.ts";
import { latin1Text } from "../base/bytes.ts";
import { messageOf, SluiceError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { percentDecode } from "../base/percent.ts";
import type { OutboundResponse, Runtime } from "../runtime/contract.ts";
import { type Deadline, startDeadline } from "./deadline.ts";
import { readOutboundBody } from "./outbound-body.ts";

/** The one client for every URL that comes from outside: transport files, trackers, playlists. */
export interface Outbound {
  /** Fetches a URL, redirects followed. Any status is an answer; rejects with `SluiceError`: `url_refused` (scheme,
   * address, size), `url_unreachable` (network, time, broken body), `cancelled` (the signal). */
  get(url: string, options: OutboundOptions): Promise<OutboundAnswer>;
}

export interface OutboundOptions {
  /** The longest body, after decompression, in bytes. */
  readonly limitBytes: number;
  /** For everything together: names, redirects, body. */
  readonly timeoutMs: number;
  /** Whether loopback, private and link-local addresses may be asked. Others than those and global ones never are. */
  readonly allowPrivate: boolean;
  /** Only addresses of this IP version are asked. */
  readonly family?: 4 | 6;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
  /** What the body is wanted for, in words, for messages: `transport file`. */
  readonly purpose: string;
  /** A further rule for each hop: why it must not be asked, or undefined where it may. */
  readonly check?: (url: URL, scope: AddressScope) => string | undefined;
}

export interface OutboundAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Where the last redirect led, without credentials. */
  readonly finalUrl: string;
}

/** Browsers follow twenty; nobody honest needs more than five. */
const MAX_REDIRECTS = 5;
const MAX_URL_LENGTH = 8192;
/** Addresses of one name that are tried in turn, where the first does not answer. */
const MAX_ADDRESSES = 3;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
/** Dropped when a redirect leaves the origin: they were meant for it alone. */
const CREDENTIALS: ReadonlySet<string> = new Set(["authorization", "cookie", "proxy-authorization"]);

type Parts = Pick<Runtime, "http" | "lookup" | "clock">;

/** One hop of a fetch: where to go, what to send along, and what the hops before allow. */
interface Hop {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly allowPrivate: boolean;
}

/** The outbound client of this machine. */
export function createOutbound(runtime: Parts, log: Log): Outbound {
  return {
    async get(text, options) {
      const deadline = startDeadline(runtime.clock, options.timeoutMs, options.signal);
      try {
        return await follow(runtime, log, text, options, deadline);
      } catch (thrown) {
        throw explained(thrown, options, deadline);
      } finally {
        deadline.end();
      }
    },
  };
}

async function follow(
  runtime: Parts,
  log: Log,
  text: string,
  options: OutboundOptions,
  deadline: Deadline,
): Promise<OutboundAnswer> {
  let hop: Hop = firstHop(readUrl(text, undefined), options);
  for (let redirects = 0; ; redirects++) {
    deadline.signal.throwIfAborted();
    const addresses = await allowedAddresses(runtime, hop, options, deadline);
    log.debug(`fetching ${options.purpose}`, { origin: hop.url.origin, address: addresses[0] });
    const response = await ask(runtime, hop, addresses, deadline);
    const location = REDIRECTS.has(response.status) ? response.headers.get("location") : null;
    if (location === null) {
      const bytes = await readOutboundBody(response, options.limitBytes, deadline.signal);
      return { status: response.status, headers: response.headers, bytes, finalUrl: hop.url.href };
    }
    await response.body.cancel().catch(() => {}); // Nobody reads it; that it broke changes nothing.
    if (redirects === MAX_REDIRECTS) throw refused(`more than ${MAX_REDIRECTS} redirects`);
    hop = nextHop(hop, readUrl(location, hop.url), addresses);
  }
}

function readUrl(text: string, base: URL | undefined): URL {
  if (text.length > MAX_URL_LENGTH) throw refused(`a URL longer than ${MAX_URL_LENGTH} characters`);
  if (!URL.canParse(text, base)) throw refused("not a URL");
  const url = new URL(text, base);
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw refused(`expected an http or https URL, not ${url.protocol}${helpWith(url.protocol)}`);
  }
  url.hash = "";
  return url;
}

/** What to do instead, for what people paste most. */
function helpWith(protocol: string): string {
  if (protocol === "file:")
    return " (files are not read by URL: post the transport file as transport_file_data)";
  if (protocol === "magnet:") return " (it leads to a magnet link: give that as magnet=)";
  return "";
}

/** Credentials within the URL become a header, so that no message and no redirect shows them. */
function firstHop(url: URL, options: OutboundOptions): Hop {
  const headers: Record<string, string> = {
    accept: "*/*",
    "accept-encoding": "gzip, deflate",
    "user-agent": "Sluice",
    connection: "close",
  };
  for (const [name, value] of Object.entries(options.headers ?? {})) headers[name.toLowerCase()] = value;
  if (url.username !== "" || url.password !== "") {
    const pair = latin1Text(percentDecode(`${url.username}:${url.password}`));
    headers.authorization ??= `Basic ${btoa(pair)}`;
  }
  return { url: bare(url), headers, allowPrivate: options.allowPrivate };
}

/** A public server must not lead us into the home network, whoever asked. */
function nextHop(hop: Hop, target: URL, addresses: readonly string[]): Hop {
  const url = bare(target);
  const kept = Object.entries(hop.headers).filter(([name]) => !CREDENTIALS.has(name));
  return {
    url,
    headers: url.origin === hop.url.origin ? hop.headers : Object.fromEntries(kept),
    allowPrivate: hop.allowPrivate && addresses.every((address) => addressScope(address) !== "global"),
  };
}

function bare(url: URL): URL {
  const copy = new URL(url);
  copy.username = "";
  copy.password = "";
  return copy;
}

/** The addresses of a hop. One that may not be asked refuses the whole name: half of it would be a way around. */
async function allowedAddresses(
  runtime: Parts,
  hop: Hop,
  options: OutboundOptions,
  deadline: Deadline,
): Promise<string[]> {
  const name = hop.url.hostname.replace(/^\[|\]$/g, "");
  const literal = canonicalAddress(name);
  const found = literal === undefined ? await deadline.race(runtime.lookup(name)) : [literal];
  if (found.length === 0) throw new Error(`${name} has no address`);
  for (const address of found) {
    const scope = addressScope(address);
    const isAllowed = scope === "global" || (hop.allowPrivate && isHome(scope));
    const problem = isAllowed ? options.check?.(hop.url, scope) : `${address} is a ${scope} address`;
    if (problem !== undefined) throw refused(`${hop.url.host} may not be asked: ${problem}`);
  }
  const wanted = found.filter((address) => !options.family || options.family === familyOf(address));
  if (wanted.length === 0) throw new Error(`${name} has no IPv${options.family} address`);
  return wanted.slice(0, MAX_ADDRESSES);
}

function isHome(scope: AddressScope): boolean {
  return scope === "loopback" || scope === "private" || scope === "link-local";
}

/** Asks the addresses in turn until one answers; each gets its share of the time that is left. */
async function ask(
  runtime: Parts,
  hop: Hop,
  addresses: readonly string[],
  deadline: Deadline,
): Promise<OutboundResponse> {
  let failure: unknown;
  for (const [i, connectTo] of addresses.entries()) {
    // The last address has all that is left: then the deadline itself ends it, in its own words.
    const share = deadline.leftMs() / (addresses.length - i) + (i + 1 === addresses.length ? 1_000 : 0);
    const attempt = startDeadline(runtime.clock, share, deadline.signal);
    const request = {
      url: hop.url,
      method: "GET",
      headers: hop.headers,
      connectTo,
      // The deadline ends the exchange by its signal, in its own words; the client's limit comes after it.
      timeoutMs: Math.max(1, deadline.leftMs()) + 1_000,
    } as const;
    // Until the head is there the attempt's own time counts, afterwards that of the whole fetch.
    const abort = new AbortController();
    const cut = () => abort.abort(attempt.signal.reason);
    attempt.signal.addEventListener("abort", cut, { once: true });
    try {
      const response = await attempt.race(runtime.http.request({ ...request, signal: abort.signal }));
      attempt.signal.removeEventListener("abort", cut);
      deadline.signal.addEventListener("abort", () => abort.abort(deadline.signal.reason), { once: true });
      return response;
    } catch (thrown) {
      deadline.signal.throwIfAborted();
      failure = thrown;
    } finally {
      attempt.end();
    }
  }
  throw failure;
}

function refused(why: string): SluiceError {
  return new SluiceError("url_refused", why);
}

/** Says what was being fetched, and why that failed. */
function explained(thrown: unknown, options: OutboundOptions, deadline: Deadline): SluiceError {
  if (options.signal?.aborted) {
    return new SluiceError("cancelled", `nobody waits for the ${options.purpose} any more`, {
      cause: thrown,
    });
  }
  const code = thrown instanceof SluiceError ? thrown.code : "url_unreachable";
  const isLate = deadline.signal.aborted;
  const why = isLate ? `no whole answer in ${options.timeoutMs / 1000} s` : messageOf(thrown);
  return new SluiceError(code, `the ${options.purpose} could not be fetched: ${why}`, { cause: thrown });
}
