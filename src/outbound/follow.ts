import { type AddressScope, addressScope, canonicalAddress, familyOf } from "../base/address.ts";
import { SluiceError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { HttpClient, OutboundResponse, Runtime } from "../runtime/contract.ts";
import { type Deadline, startDeadline } from "./deadline.ts";
import { firstHop, type Hop, mayStayPrivate, nextHop } from "./hop.ts";
import type { OpenOptions, Upload } from "./request.ts";

/** Browsers follow 20 redirects; legitimate URLs need at most five. */
const MAX_REDIRECTS = 5;
/** Addresses of one name that are tried in turn. */
const MAX_ADDRESSES = 3;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
/** The longest delay of a runtime's timers (2^31 ms, 24 days); longer streams have to reconnect. */
const MAX_DELAY_MS = 2 ** 31 - 1;
/** The HTTP client's own timeout fires this much later, so that the deadlines report first, with a better message. */
const GRACE_MS = 1_000;

/** The runtime services that fetching a URL needs. */
export type FetchRuntime = Pick<Runtime, "lookup" | "clock"> & { readonly http: Pick<HttpClient, "request"> };

interface Dependencies {
  readonly runtime: FetchRuntime;
  readonly log: Log;
}

/** The deadlines of a request: for the response head, and for the whole exchange. */
interface Deadlines {
  readonly head: Deadline;
  readonly whole: Deadline;
}

/** The first response that is not a redirect. */
interface Followed {
  readonly response: OutboundResponse;
  readonly finalUrl: string;
  /** True if URLs in the response may use private addresses. */
  readonly allowPrivate: boolean;
}

/** Requests a URL and follows redirects. Resolves each hop's name once, checks all its addresses and connects to those
 * literally, so a DNS answer that changes later (rebinding) has no effect. Throws `url_refused` for a forbidden hop. */
export async function follow(
  { runtime, log }: Dependencies,
  url: string,
  options: OpenOptions,
  deadlines: Deadlines,
): Promise<Followed> {
  let hop: Hop = firstHop(url, options);
  for (let redirects = 0; ; redirects++) {
    deadlines.head.signal.throwIfAborted();
    const addresses = await allowedAddresses(runtime, hop, options, deadlines.head);
    log.debug(`fetching ${options.purpose}`, { origin: hop.url.origin, address: addresses[0] });
    const response = await requestInTurn(runtime, hop, addresses, deadlines, options.upload);
    const location = REDIRECTS.has(response.status) ? response.headers.get("location") : null;
    if (location === null)
      return { response, finalUrl: hop.url.href, allowPrivate: mayStayPrivate(hop, addresses) };
    await response.body.cancel().catch(() => {}); // The body of a redirect is not used.
    if (options.upload) throw refused("the server redirects uploads");
    if (redirects === MAX_REDIRECTS) throw refused(`more than ${MAX_REDIRECTS} redirects`);
    hop = nextHop(hop, location, addresses);
  }
}

/** Resolves and checks the addresses of a hop. One forbidden address refuses the name: otherwise a name with a public
 * and a private address would bypass the check. */
async function allowedAddresses(
  runtime: Pick<Runtime, "lookup">,
  hop: Hop,
  options: OpenOptions,
  deadline: Deadline,
): Promise<string[]> {
  const name = hop.url.hostname.replace(/^\[|\]$/g, "");
  const literal = canonicalAddress(name);
  const found = literal === undefined ? await deadline.race(runtime.lookup(name)) : [literal];
  if (found.length === 0) throw new Error(`${name} has no address`);
  for (const address of found) {
    const scope = addressScope(address);
    const isAllowed = scope === "global" || (hop.allowPrivate && isPrivate(scope));
    const problem = isAllowed ? options.check?.(hop.url, scope) : scopeProblem(address, scope);
    if (problem !== undefined) throw refused(`connections to ${hop.url.host} are not allowed: ${problem}`);
  }
  const usable = found.filter((address) => !options.family || options.family === familyOf(address));
  if (usable.length === 0) throw new Error(`${name} has no IPv${options.family} address`);
  return usable.slice(0, MAX_ADDRESSES);
}

/** Sends the request to one address after another until one responds. Each gets an equal share of the remaining time. */
async function requestInTurn(
  { clock, http }: Omit<FetchRuntime, "lookup">,
  hop: Hop,
  addresses: readonly string[],
  { head, whole }: Deadlines,
  upload: Upload | undefined,
): Promise<OutboundResponse> {
  let failure: unknown;
  for (const [i, connectTo] of addresses.entries()) {
    // The last attempt may outlive the head deadline, whose message is the better one.
    const shareMs = head.leftMs() / (addresses.length - i) + (i + 1 === addresses.length ? GRACE_MS : 0);
    const attempt = startDeadline(clock, shareMs, head.signal);
    // Until the head arrives the attempt's deadline applies, afterwards that of the whole exchange.
    const abort = new AbortController();
    const abortAttempt = () => abort.abort(attempt.signal.reason);
    attempt.signal.addEventListener("abort", abortAttempt, { once: true });
    const request = {
      url: hop.url,
      method: upload?.method ?? "GET",
      headers: hop.headers,
      ...(upload?.body && { body: upload.body }),
      connectTo,
      timeoutMs: Math.min(MAX_DELAY_MS, Math.max(1, whole.leftMs()) + GRACE_MS),
      signal: abort.signal,
    } as const;
    try {
      const response = await attempt.race(http.request(request));
      attempt.signal.removeEventListener("abort", abortAttempt);
      whole.signal.addEventListener("abort", () => abort.abort(whole.signal.reason), { once: true });
      return response;
    } catch (thrown) {
      head.signal.throwIfAborted();
      failure = thrown;
    } finally {
      attempt.end();
    }
  }
  throw failure;
}

/** Explains why an address is refused, and names the setting if it can be allowed. */
function scopeProblem(address: string, scope: AddressScope): string {
  const what = `${address} is ${/^[aeiou]/.test(scope) ? "an" : "a"} ${scope} address`;
  return isPrivate(scope) ? `${what} (see the setting private-urls)` : what;
}

function isPrivate(scope: AddressScope): boolean {
  return scope === "loopback" || scope === "private" || scope === "link-local";
}

function refused(why: string): SluiceError {
  return new SluiceError("url_refused", why);
}
