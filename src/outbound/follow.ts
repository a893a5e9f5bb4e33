import { type AddressScope, addressScope, canonicalAddress, familyOf } from "../base/address.ts";
import { SluiceError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { OutboundResponse, Runtime } from "../runtime/contract.ts";
import { askInTurn, type FetchRuntime } from "./ask.ts";
import type { Deadline } from "./deadline.ts";
import { firstHop, type Hop, mayLeadHome, nextHop } from "./hop.ts";
import type { OpenOptions } from "./outbound.ts";

/** Browsers follow twenty; nobody honest needs more than five. */
const MAX_REDIRECTS = 5;
/** Addresses of one name that are tried in turn, where the first does not answer. */
const MAX_ADDRESSES = 3;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

interface Parts {
  readonly runtime: FetchRuntime;
  readonly log: Log;
}

/** The two times of a fetch: until the head of the answer is there, and for all of it. */
export interface FetchTimes {
  readonly head: Deadline;
  readonly whole: Deadline;
}

/** Where a fetch has come to. */
interface Followed {
  readonly response: OutboundResponse;
  readonly finalUrl: string;
  /** Whether what the answer names may be asked at home. */
  readonly allowPrivate: boolean;
}

/** Asks a URL, and where it is led on, until an answer is no redirect. Each hop's addresses are looked up once, checked,
 * and then asked as they are: a name that answers differently the second time is not asked a second time. */
export async function follow(
  parts: Parts,
  text: string,
  options: OpenOptions,
  times: FetchTimes,
): Promise<Followed> {
  const { runtime, log } = parts;
  let hop: Hop = firstHop(text, options);
  for (let redirects = 0; ; redirects++) {
    times.head.signal.throwIfAborted();
    const addresses = await allowedAddresses(runtime, hop, options, times.head);
    log.debug(`fetching ${options.purpose}`, { origin: hop.url.origin, address: addresses[0] });
    const response = await askInTurn(runtime, hop, addresses, times);
    const location = REDIRECTS.has(response.status) ? response.headers.get("location") : null;
    if (location === null)
      return { response, finalUrl: hop.url.href, allowPrivate: mayLeadHome(hop, addresses) };
    await response.body.cancel().catch(() => {}); // Nobody reads it; that it broke changes nothing.
    if (redirects === MAX_REDIRECTS) throw refused(`more than ${MAX_REDIRECTS} redirects`);
    hop = nextHop(hop, location, addresses);
  }
}

/** The addresses of a hop. One that may not be asked refuses the whole name: half of it would be a way around. */
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
    const isAllowed = scope === "global" || (hop.allowPrivate && isHome(scope));
    const problem = isAllowed ? options.check?.(hop.url, scope) : scopeProblem(address, scope);
    if (problem !== undefined) throw refused(`${hop.url.host} may not be asked: ${problem}`);
  }
  const wanted = found.filter((address) => !options.family || options.family === familyOf(address));
  if (wanted.length === 0) throw new Error(`${name} has no IPv${options.family} address`);
  return wanted.slice(0, MAX_ADDRESSES);
}

/** Why an address may not be asked; where the user may allow it, how. */
function scopeProblem(address: string, scope: AddressScope): string {
  const what = `${address} is ${/^[aeiou]/.test(scope) ? "an" : "a"} ${scope} address`;
  return isHome(scope) ? `${what} (see the setting private-urls)` : what;
}

function isHome(scope: AddressScope): boolean {
  return scope === "loopback" || scope === "private" || scope === "link-local";
}

function refused(why: string): SluiceError {
  return new SluiceError("url_refused", why);
}
