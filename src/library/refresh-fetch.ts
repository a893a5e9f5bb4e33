import { SluiceError } from "../base/errors.ts";
import type { Outbound } from "../outbound/outbound.ts";
import type { Clock } from "../runtime/contract.ts";
import type { ExternalRecord } from "./external-record.ts";
import { MAX_NAME_LENGTH } from "./external-record.ts";
import { MAX_LIST_BYTES, readListBody } from "./playlist-body.ts";

/** Long, because some servers generate lists on demand. */
const HEAD_TIMEOUT_MS = 60_000;
const IDLE_TIMEOUT_MS = 30_000;
/** 64 MiB at 1 Mbit/s. */
const TIMEOUT_MS = 10 * 60_000;

type ListResponse =
  | { readonly kind: "unchanged" }
  | { readonly kind: "failed"; readonly problem: string; readonly retryAfterSeconds: number }
  | {
      readonly kind: "list";
      readonly blocks: Uint8Array[];
      readonly etag: string;
      readonly lastModified: string;
    };

/**
 * Fetches a list; with `isConditional` only if it has changed (RFC 9110 13.1). Rejects with the errors of the outbound
 * client and of {@link readListBody}.
 */
export async function fetchList(
  dependencies: { readonly outbound: Pick<Outbound, "open">; readonly clock: Pick<Clock, "unixSeconds"> },
  record: ExternalRecord,
  isConditional: boolean,
  signal: AbortSignal,
): Promise<ListResponse> {
  const headers: Record<string, string> = {};
  if (isConditional && record.etag) headers["if-none-match"] = record.etag;
  if (isConditional && record.lastModified) headers["if-modified-since"] = record.lastModified;
  const { login, password } = record;
  const answer = await dependencies.outbound.open(record.url, {
    limitBytes: MAX_LIST_BYTES,
    allowPrivate: record.allowPrivateUrls,
    headers,
    ...(login || password ? { basic: { login, password } } : {}),
    signal,
    purpose: "playlist",
    headTimeoutMs: HEAD_TIMEOUT_MS,
    idleTimeoutMs: IDLE_TIMEOUT_MS,
    timeoutMs: TIMEOUT_MS,
  });
  if (answer.status === 200) {
    const blocks = await readListBody(answer.body, signal);
    return {
      kind: "list",
      blocks,
      etag: version(answer.headers.get("etag")),
      lastModified: version(answer.headers.get("last-modified")),
    };
  }
  await answer.body.cancel().catch(() => {}); // The body is not used.
  if (answer.status === 304 && Object.keys(headers).length > 0) return { kind: "unchanged" };
  return {
    kind: "failed",
    problem: `the server of the playlist returned status ${answer.status}${meaning(answer.status)}`,
    retryAfterSeconds: retryAfter(answer.headers.get("retry-after"), dependencies.clock.unixSeconds()),
  };
}

/** Drops a validator that is too long to store; the list is then fetched each time. */
function version(text: string | null): string {
  return text !== null && text.length <= MAX_NAME_LENGTH ? text : "";
}

function meaning(status: number): string {
  if (status === 401 || status === 403) return ": check login and password";
  if (status === 404 || status === 410) return ": the list does not exist (any more)";
  return "";
}

/** Parses Retry-After (RFC 9110 10.2.3), seconds or a date; returns seconds, 0 if it is invalid. */
function retryAfter(text: string | null, now: number): number {
  if (text === null) return 0;
  const seconds = /^\d{1,9}$/.test(text.trim()) ? Number(text) : Date.parse(text) / 1000 - now;
  return Number.isFinite(seconds) ? Math.max(0, seconds) : 0;
}

/** Returns an error if a list with `count` playable entries is implausible; undefined if it is accepted. */
export function listProblem(record: ExternalRecord, count: number, leftOut: number): SluiceError | undefined {
  if (count === 0) {
    const others = leftOut > 0 ? ` (${leftOut} have unsupported links)` : "";
    return new SluiceError("not_a_playlist", `the list has no playable entry${others}`);
  }
  const isMuchShorter = record.entryCount >= SMALL_LIST && count < record.entryCount * SHRUNKEN_SHARE;
  if (!isMuchShorter || record.hasShrunk) return undefined;
  const what = `the list has ${count} entries instead of ${record.entryCount}`;
  return new SluiceError("not_a_playlist", `${what}; items are removed if the next refresh confirms it`);
}

/** CHOICE(shrunken-list): a list of at least 20 entries that lost more than half of them is rejected once, because failing
 * servers send partial lists. The next refresh accepts it. A list without entries is always rejected. */
const SMALL_LIST = 20;
const SHRUNKEN_SHARE = 0.5;
