import { onAbort } from "../../async/abort.ts";
import { SluiceError } from "../../base/errors.ts";
import type { Outbound } from "../../outbound/outbound.ts";
import { WebClient, wrongStatus } from "../../web-content/web-client.ts";
import type { OriginOptions, WebOrigin } from "../contract.ts";
import { HlsOrigin } from "./web-origin-hls.ts";
import { StreamOrigin } from "./web-origin-stream.ts";

/** A later response is of no use. */
const TIMEOUT_MS = 10_000;
const IDLE_MS = 5_000;

/** Opens the copy of the stream at a URL: HLS, or endless MPEG-TS. Rejects with `SluiceError`. */
export async function openOrigin(options: OriginOptions, signal: AbortSignal): Promise<WebOrigin> {
  const { url, allowPrivate, limitBytes, stopped } = options;
  const client = new WebClient(
    { ...options, outbound: bounded(options) },
    {
      ...{ url, allowPrivate, kind: "stream", name: "web", mime: "", size: 0, validator: undefined },
    },
  );
  const answer = await client.open(url, {
    limitBytes: Number.POSITIVE_INFINITY,
    purpose: "web copy of the stream",
    decode: false,
    signal: stopped,
  });
  const reader = answer.body.getReader();
  const stop = () => void reader.cancel().catch(() => {}); // The response is discarded anyway.
  const release = onAbort(signal, stop);
  try {
    if (answer.status !== 200) throw wrongStatus(answer.status, "the web copy");
    const { value } = await reader.read();
    if (!value) throw new SluiceError("url_unreachable", "the server sent nothing");
    const isList = value[0] !== 0x47 || /mpegurl/i.test(answer.headers.get("content-type") ?? "");
    if (!isList) return new StreamOrigin(client, options, { reader, first: value });
    stop();
    return new HlsOrigin(client, { url, allowPrivate }, limitBytes);
  } catch (thrown) {
    stop();
    throw thrown;
  } finally {
    release();
  }
}

/** Limits the duration and the size of each response. */
function bounded({ outbound, limitBytes }: OriginOptions): Pick<Outbound, "open"> {
  return {
    open: (url, options) =>
      outbound.open(url, {
        ...options,
        // The reader limits an endless stream.
        ...(options.limitBytes !== Number.POSITIVE_INFINITY && {
          limitBytes: Math.min(options.limitBytes, limitBytes),
          timeoutMs: TIMEOUT_MS,
        }),
        headTimeoutMs: IDLE_MS,
        idleTimeoutMs: IDLE_MS,
      }),
  };
}
