import { SluiceError } from "../../base/errors.ts";

/**
 * What a web seed did wrong, and what follows: `later`: it is asked again after a while; `missing`: it lacks this file, and
 * is asked for the others; `never`: it is of no use.
 */
export class SeedFault extends Error {
  override readonly name = "SeedFault";
  readonly fate: "later" | "missing" | "never";
  /** When the server wants to be asked again, in milliseconds from now. */
  readonly retryMs: number | undefined;

  constructor(fate: SeedFault["fate"], message: string, retryMs?: number) {
    super(message);
    this.fate = fate;
    this.retryMs = retryMs;
  }
}

/** A server that names a later time than this is asked then all the same. */
const MAX_RETRY_MS = 3_600_000;

/** What follows from an answer that is no content (RFC 9110 15.5, 15.6). */
export function statusFault(status: number, headers: Headers): SeedFault {
  const said = `the server answered ${status}`;
  if (status === 404 || status === 410) return new SeedFault("missing", said);
  if (status === 408 || status === 425 || status === 429 || status >= 500)
    return new SeedFault("later", said, retryAfterMs(headers));
  if (status === 416) return new SeedFault("never", `${said}: its file is shorter than that of the content`);
  return new SeedFault("never", said);
}

/** What follows from a failed fetch. */
export function fetchFault(thrown: unknown): unknown {
  if (!(thrown instanceof SluiceError)) return thrown;
  if (thrown.code === "url_unreachable") return new SeedFault("later", thrown.message);
  return thrown.code === "url_refused" ? new SeedFault("never", thrown.message) : thrown;
}

/** `Retry-After` in seconds; dates are not worth a clock. */
function retryAfterMs(headers: Headers): number | undefined {
  const text = headers.get("retry-after")?.trim() ?? "";
  return /^\d{1,9}$/.test(text) ? Math.min(MAX_RETRY_MS, Number(text) * 1000) : undefined;
}
