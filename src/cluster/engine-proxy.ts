import { canonicalAddress } from "../base/address.ts";
import { SluiceError } from "../base/errors.ts";
import { after } from "../base/time.ts";
import type { Runtime } from "../runtime/contract.ts";
import type { EngineProxy } from "./cluster-contract.ts";

/** Longer than an engine takes to start content, or to refuse it. */
const HEAD_MS = 120_000;
/** The longest delay of a runtime's timers (2^31 ms, 24 days): a player may watch as long. */
const WHOLE_MS = 2 ** 31 - 1;
/** Headers of one connection (RFC 9110 7.6.1), and those that this engine sets itself. */
const OWN_HEADERS =
  /^(?:connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|date|access-control-.*)$/;

/** Creates the client with which an engine requests media from the other engines of its cluster. */
export function createEngineProxy({
  http,
  lookup,
  clock,
}: Pick<Runtime, "http" | "lookup" | "clock">): EngineProxy {
  return {
    async request(url, method, headers) {
      const abort = new AbortController();
      const late = () => abort.abort(new Error(`no answer within ${HEAD_MS / 1000} s`));
      const cancel = clock.at(after(clock.now(), HEAD_MS), late);
      try {
        const host = url.hostname.replace(/^\[|\]$/g, "");
        const connectTo = canonicalAddress(host) ?? (await lookup(host))[0];
        if (connectTo === undefined) throw new Error(`${host} has no address`);
        const request = { url, method, headers, connectTo, timeoutMs: WHOLE_MS, signal: abort.signal };
        const response = await http.request(request);
        const passed = [...response.headers].filter(([name]) => !OWN_HEADERS.test(name));
        return { status: response.status, headers: new Headers(passed), body: response.body };
      } catch (error) {
        throw new SluiceError("url_unreachable", `the engine at ${url.host} does not answer`, {
          cause: error,
        });
      } finally {
        cancel();
      }
    },
  };
}
