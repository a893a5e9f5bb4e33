import type { HttpClient, OutboundResponse, Runtime } from "../runtime/contract.ts";
import { startDeadline } from "./deadline.ts";
import type { FetchTimes } from "./follow.ts";
import type { Hop } from "./hop.ts";

/** The longest that a timer of the runtimes can wait (2^31 ms, 24 days): who plays a stream for longer reconnects. */
const LONGEST_MS = 2 ** 31 - 1;
/** The deadlines end the exchange by its signal, in their own words; the client's own limit comes after them. */
const GRACE_MS = 1_000;

/** What fetching a URL needs of the machine. */
export type FetchRuntime = Pick<Runtime, "lookup" | "clock"> & { readonly http: Pick<HttpClient, "request"> };

/** Asks the addresses in turn until one answers; each gets its share of the time that is left. */
export async function askInTurn(
  runtime: Omit<FetchRuntime, "lookup">,
  hop: Hop,
  addresses: readonly string[],
  { head, whole }: FetchTimes,
): Promise<OutboundResponse> {
  let failure: unknown;
  for (const [i, connectTo] of addresses.entries()) {
    // The last address has all that is left: then the deadline itself ends it, in its own words.
    const share = head.leftMs() / (addresses.length - i) + (i + 1 === addresses.length ? GRACE_MS : 0);
    const attempt = startDeadline(runtime.clock, share, head.signal);
    // Until the head is there the attempt's own time counts, afterwards that of the whole fetch.
    const abort = new AbortController();
    const cut = () => abort.abort(attempt.signal.reason);
    attempt.signal.addEventListener("abort", cut, { once: true });
    const request = {
      url: hop.url,
      method: "GET",
      headers: hop.headers,
      connectTo,
      timeoutMs: Math.min(LONGEST_MS, Math.max(1, whole.leftMs()) + GRACE_MS),
      signal: abort.signal,
    } as const;
    try {
      const response = await attempt.race(runtime.http.request(request));
      attempt.signal.removeEventListener("abort", cut);
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
