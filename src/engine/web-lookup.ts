import { SluiceError } from "../base/errors.ts";
import type { Outbound } from "../outbound/outbound.ts";
import type { Clock } from "../runtime/contract.ts";
import type { InspectOptions } from "../transfer/contract.ts";
import { BodyBytes } from "../web-content/body-bytes.ts";

/** The response of a server, of which only the needed bytes are read. */
export interface WebAnswer {
  readonly headers: Headers;
  /** The URL after all redirects. */
  readonly finalUrl: string;
  /** The MIME type of `Content-Type` in lower case, without parameters; empty if the header is missing. */
  readonly mime: string;
  /** The size of the resource in bytes, if the server states it. */
  readonly size: number | undefined;
  /** Whether URLs in the response may lead to private addresses. */
  readonly allowPrivate: boolean;
  /** Returns at least the first `minBytes` bytes, or the whole body if it is shorter. */
  head(minBytes: number): Promise<Uint8Array>;
  /** Returns the whole body. Rejects with `url_refused` if it is larger than `limitBytes`. */
  whole(limitBytes: number): Promise<Uint8Array>;
}

/** Dependencies of `WebLookup`. */
export interface WebLookupDependencies {
  readonly outbound: Pick<Outbound, "open">;
  readonly clock: Clock;
}

/** The time for all requests of a lookup together. Players give up after about 10 s. */
const LOOKUP_TIMEOUT_MS = 9_000;

/** Requests the URLs that describe content, all within one time-out. */
export class WebLookup {
  readonly #deps: WebLookupDependencies;
  readonly #options: InspectOptions;
  readonly #deadlineMs: number;

  constructor(deps: WebLookupDependencies, options: InspectOptions) {
    this.#deps = deps;
    this.#options = options;
    this.#deadlineMs = deps.clock.now() + LOOKUP_TIMEOUT_MS;
  }

  /**
   * Requests `url` and passes the response to `read`; bytes that `read` leaves are not downloaded.
   *
   * @param purpose the resource, as error texts name it
   * @param parent the response that contained `url`: it decides whether private addresses are allowed
   * @throws SluiceError if the request fails
   */
  async request<T>(
    url: string,
    purpose: string,
    read: (answer: WebAnswer) => Promise<T>,
    parent?: Pick<WebAnswer, "allowPrivate">,
  ): Promise<T> {
    const { allowPrivateUrls, signal } = this.#options;
    const timeoutMs = Math.max(1, this.#deadlineMs - this.#deps.clock.now());
    const opened = await this.#deps.outbound.open(url, {
      allowPrivate: allowPrivateUrls && (parent?.allowPrivate ?? true),
      signal,
      limitBytes: Number.POSITIVE_INFINITY, // The reads below are limited; the body itself may be a long film.
      headTimeoutMs: timeoutMs,
      idleTimeoutMs: timeoutMs,
      timeoutMs,
      purpose,
    });
    const { status, headers, body, finalUrl } = opened;
    const bytes = new BodyBytes(body);
    try {
      if (status !== 200 && status !== 206)
        throw new SluiceError("url_unreachable", `the server answered the ${purpose} with status ${status}`);
      return await read({
        headers,
        finalUrl,
        allowPrivate: opened.allowPrivate ?? false,
        mime: (headers.get("content-type") ?? "").replace(/;.*$/s, "").trim().toLowerCase(),
        size: sizeOf(headers),
        head: (minBytes) => bytes.head(minBytes),
        whole: async (limitBytes) => {
          const whole = await bytes.whole(limitBytes);
          if (whole) return whole;
          throw new SluiceError("url_refused", `the ${purpose} is larger than ${limitBytes} bytes`);
        },
      });
    } finally {
      await bytes.cancel();
    }
  }
}

/** Returns `Content-Length`, unless a content encoding changes the size. */
function sizeOf(headers: Headers): number | undefined {
  const text = headers.get("content-length") ?? "";
  return /^\d{1,15}$/.test(text) && !headers.has("content-encoding") ? Number(text) : undefined;
}
