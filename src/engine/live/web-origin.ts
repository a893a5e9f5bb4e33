import { SluiceError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { PacketStretch } from "../../media/packet-stretch.ts";
import type { Outbound } from "../../outbound/outbound.ts";
import type { Clock } from "../../runtime/contract.ts";
import { WebClient, wrongStatus } from "../http/web-client.ts";
import { HlsOrigin } from "./web-origin-hls.ts";
import { StreamOrigin } from "./web-origin-stream.ts";

/** What is wanted of a stream on the web. */
export interface OriginWish {
  /** A clock of the programme near which it is, in ticks of 27 MHz. */
  readonly reference: number;
  /** Where it lies to what is here already, if that is known. */
  readonly side: "before" | "after" | undefined;
}

/** A stream on the web that has the bytes of a live stream, too. */
export interface WebOrigin {
  /** What has been fetched, one packet after another. Another object where it does not go on from what was there. */
  readonly stretch: PacketStretch;
  /** Fetches what is wanted, or what leads there; false where it is not there yet. Not asked again before it has answered. Rejects with `SluiceError`. */
  bring(wish: OriginWish, signal: AbortSignal): Promise<boolean>;
  /** Lets connections go; `bring` makes new ones. */
  rest(): void;
}

/** What fetching needs. */
export interface OriginParts {
  readonly clock: Clock;
  readonly outbound: Pick<Outbound, "open">;
  readonly log: Log;
  readonly url: string;
  /** Whether it may be at home: where somebody here has named it. */
  readonly allowPrivate: boolean;
  /** What is kept, and the most of one fetch. */
  readonly limitBytes: number;
  /** Fires when the live stream is left. */
  readonly stopped: AbortSignal;
}

/** What comes later than this is of no use to anybody. */
const TIMEOUT_MS = 10_000;
const IDLE_MS = 5_000;

/** The stream at a URL: HLS, or MPEG-TS without end. Rejects with `SluiceError`. */
export async function openOrigin(parts: OriginParts, signal: AbortSignal): Promise<WebOrigin> {
  const { url, allowPrivate, limitBytes, stopped } = parts;
  const client = new WebClient(
    { ...parts, outbound: bounded(parts) },
    {
      ...{ url, allowPrivate, kind: "stream", name: "web", mime: "", size: 0, validator: undefined },
    },
  );
  const answer = await client.open(url, {
    limitBytes: Number.POSITIVE_INFINITY,
    purpose: "the stream's copy on the web",
    decode: false,
    signal: stopped,
  });
  const reader = answer.body.getReader();
  const stop = () => void reader.cancel().catch(() => {}); // It is given up either way.
  signal.addEventListener("abort", stop, { once: true });
  try {
    if (answer.status !== 200) throw wrongStatus(answer.status, "the stream's copy");
    const { value } = await reader.read();
    if (!value) throw new SluiceError("url_unreachable", "the server sent nothing");
    const isList = value[0] !== 0x47 || /mpegurl/i.test(answer.headers.get("content-type") ?? "");
    if (!isList) return new StreamOrigin(client, parts, { reader, first: value });
    stop();
    return new HlsOrigin(client, { url, allowPrivate }, limitBytes);
  } catch (thrown) {
    stop();
    throw thrown;
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

/** The web, where no answer takes longer or is larger than is of use. */
function bounded({ outbound, limitBytes }: OriginParts): Pick<Outbound, "open"> {
  return {
    open: (url, options) =>
      outbound.open(url, {
        ...options,
        // A stream without end is bounded by what its reader takes.
        ...(options.limitBytes !== Number.POSITIVE_INFINITY && {
          limitBytes: Math.min(options.limitBytes, limitBytes),
          timeoutMs: TIMEOUT_MS,
        }),
        headTimeoutMs: IDLE_MS,
        idleTimeoutMs: IDLE_MS,
      }),
  };
}
