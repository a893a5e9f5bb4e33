import { concatBytes } from "../base/bytes.ts";
import { messageOf, SluiceError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { type Deadline, startDeadline } from "./deadline.ts";
import { decodedBody } from "./decoded-body.ts";
import { type FetchRuntime, follow } from "./follow.ts";
import { guardedBody } from "./guarded-body.ts";
import type { OpenOptions, OutboundAnswer, OutboundOptions, OutboundStream } from "./request.ts";

/** The one HTTP client for URLs from untrusted sources: transport files, trackers, playlists, media. */
export interface Outbound {
  /** Follows redirects and reads the whole body. Resolves for every HTTP status; rejects with a `SluiceError`:
   * `url_refused` (scheme, address, size), `url_unreachable` (network, timeout, damaged body), `cancelled` (signal). */
  get(url: string, options: OutboundOptions): Promise<OutboundAnswer>;
  /** Like `get`, with the body as a pull-driven stream that errors with the same codes. The caller must read the body to
   * its end or cancel it; both close the connection. */
  open(url: string, options: OpenOptions): Promise<OutboundStream>;
}

/** Creates the outbound client on the network of `runtime`. */
export function createOutbound(runtime: FetchRuntime, log: Log): Outbound {
  const open = async (url: string, options: OpenOptions): Promise<OutboundStream> => {
    const { signal, timeoutMs = Number.POSITIVE_INFINITY, headTimeoutMs, idleTimeoutMs } = options;
    const timeoutMessage = `no complete response within ${timeoutMs / 1000} s`;
    const whole = startDeadline(runtime.clock, timeoutMs, signal, timeoutMessage);
    const isOneDeadline = headTimeoutMs >= timeoutMs;
    const head = isOneDeadline ? whole : startDeadline(runtime.clock, headTimeoutMs, whole.signal);
    const explain = (thrown: unknown) => explained(thrown, options, head.signal.aborted ? head : whole);
    try {
      const deadlines = { head, whole };
      const { response, finalUrl, allowPrivate } = await follow({ runtime, log }, url, options, deadlines);
      const body = await decodedBody(response, options, whole.signal);
      const guard = { clock: runtime.clock, idleTimeoutMs, whole, explain };
      const { status, headers } = response;
      return { status, headers, body: guardedBody(body, guard), finalUrl, allowPrivate };
    } catch (thrown) {
      whole.end();
      throw explain(thrown);
    } finally {
      if (!isOneDeadline) head.end();
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
  const chunks: Uint8Array[] = [];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return concatBytes(chunks);
    chunks.push(value);
  }
}

/** Converts a failure to a `SluiceError` that names what was fetched and why it failed. */
function explained(
  thrown: unknown,
  { signal, purpose }: Pick<OpenOptions, "signal" | "purpose">,
  deadline: Deadline,
): SluiceError {
  if (signal?.aborted)
    return new SluiceError("cancelled", `the request for the ${purpose} was cancelled`, { cause: thrown });
  const isLate = deadline.signal.aborted;
  const code = thrown instanceof SluiceError && !isLate ? thrown.code : "url_unreachable";
  const why = messageOf(isLate ? deadline.signal.reason : thrown);
  return new SluiceError(code, `the ${purpose} could not be fetched: ${why}`, { cause: thrown });
}
