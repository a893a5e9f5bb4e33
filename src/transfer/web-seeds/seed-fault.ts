import { SluiceError } from "../../base/errors.ts";

/**
 * A failure of a web seed. `later`: it is tried again after a while; `missing`: it lacks a file but may have others; `never`: it
 * is not used any more.
 */
export class SeedFault extends Error {
  override readonly name = "SeedFault";
  readonly retry: "later" | "missing" | "never";
  /** Delay that the server requested, in milliseconds. */
  readonly retryMs: number | undefined;

  constructor(retry: SeedFault["retry"], message: string, retryMs?: number) {
    super(message);
    this.retry = retry;
    this.retryMs = retryMs;
  }
}

/** Limit of the delay that a server may request. */
const MAX_RETRY_MS = 3_600_000;

/** Builds the fault for an HTTP error status (RFC 9110 15.5, 15.6). */
export function statusFault(status: number, headers: Headers): SeedFault {
  const message = `the server answered ${status}`;
  if (status === 404 || status === 410) return new SeedFault("missing", message);
  if (status === 408 || status === 425 || status === 429 || status >= 500)
    return new SeedFault("later", message, retryAfterMs(headers));
  if (status === 416) return new SeedFault("never", `${message}: its file is shorter than the content`);
  return new SeedFault("never", message);
}

/** Builds the fault for a failed request; returns other errors unchanged. */
export function fetchFault(thrown: unknown): unknown {
  if (!(thrown instanceof SluiceError)) return thrown;
  if (thrown.code === "url_unreachable") return new SeedFault("later", thrown.message);
  return thrown.code === "url_refused" ? new SeedFault("never", thrown.message) : thrown;
}

/** Parses `Retry-After` in seconds; the date form is ignored. */
function retryAfterMs(headers: Headers): number | undefined {
  const text = headers.get("retry-after")?.trim() ?? "";
  return /^\d{1,9}$/.test(text) ? Math.min(MAX_RETRY_MS, Number(text) * 1000) : undefined;
}
