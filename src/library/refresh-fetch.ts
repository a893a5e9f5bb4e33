import { SluiceError } from "../base/errors.ts";
import type { Outbound } from "../outbound/outbound.ts";
import type { Clock } from "../runtime/contract.ts";
import type { ExternalRecord } from "./external-record.ts";
import { MAX_NAME_LENGTH } from "./external-record.ts";
import { MAX_LIST_BYTES, readListBody } from "./playlist-body.ts";

/** A server that makes lists on demand takes its time. */
const HEAD_TIMEOUT_MS = 60_000;
const IDLE_TIMEOUT_MS = 30_000;
/** 64 MiB at 1 Mbit/s. */
const TIMEOUT_MS = 10 * 60_000;

/** What the server of a list answered. */
export type ListAnswer =
  | { readonly kind: "unchanged" }
  | { readonly kind: "failed"; readonly problem: string; readonly retryAfterSeconds: number }
  | {
      readonly kind: "list";
      readonly blocks: Uint8Array[];
      readonly etag: string;
      readonly lastModified: string;
    };

/**
 * Asks for a list; only for a newer one than we have, where `isConditional` (RFC 9110 13.1). Its login goes to the origin
 * of its URL alone. Rejects with what the outbound client and the reading of the body reject with.
 */
export async function fetchList(
  parts: { readonly outbound: Pick<Outbound, "open">; readonly clock: Pick<Clock, "unixSeconds"> },
  record: ExternalRecord,
  isConditional: boolean,
  signal: AbortSignal,
): Promise<ListAnswer> {
  const headers: Record<string, string> = {};
  if (isConditional && record.etag) headers["if-none-match"] = record.etag;
  if (isConditional && record.lastModified) headers["if-modified-since"] = record.lastModified;
  const { login, password } = record;
  const answer = await parts.outbound.open(record.url, {
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
  await answer.body.cancel().catch(() => {}); // Nobody reads it.
  if (answer.status === 304 && Object.keys(headers).length > 0) return { kind: "unchanged" };
  return {
    kind: "failed",
    problem: `the server of the playlist ${meaning(answer.status)}`,
    retryAfterSeconds: retryAfter(answer.headers.get("retry-after"), parts.clock.unixSeconds()),
  };
}

/** A version's name longer than is kept is no name: the list is then fetched each time. */
function version(text: string | null): string {
  return text !== null && text.length <= MAX_NAME_LENGTH ? text : "";
}

function meaning(status: number): string {
  if (status === 401 || status === 403) return `answered ${status}: it wants another login, or none of ours`;
  if (status === 404 || status === 410) return `answered ${status}: the list is not there (any more)`;
  return `answered ${status}`;
}

/** RFC 9110 10.2.3: seconds or a date; 0 where it says nothing that can be read. */
function retryAfter(text: string | null, now: number): number {
  if (text === null) return 0;
  const seconds = /^\d{1,9}$/.test(text.trim()) ? Number(text) : Date.parse(text) / 1000 - now;
  return Number.isFinite(seconds) ? Math.max(0, seconds) : 0;
}

/** Why a list with `count` entries is not believed, where that is so; undefined where it is. */
export function suspicion(record: ExternalRecord, count: number, leftOut: number): SluiceError | undefined {
  if (count === 0) {
    const others = leftOut > 0 ? ` (${leftOut} that cannot)` : "";
    return new SluiceError("not_a_playlist", `the list has no entry that can be played${others}`);
  }
  const isMuchShorter = record.entryCount >= SMALL_LIST && count < record.entryCount * SHRUNKEN_SHARE;
  if (!isMuchShorter || record.hasShrunk) return undefined;
  const what = `the list has ${count} entries where it had ${record.entryCount}`;
  return new SluiceError("not_a_playlist", `${what}: nothing is taken away until it says so twice`);
}

/** CHOICE(shrunken-list): a list that lost more than half of its entries, and had 20 at least, is refused once: servers in trouble
 * send the half of a list. The next refresh in a row that says the same is believed. One without any entry never is. */
const SMALL_LIST = 20;
const SHRUNKEN_SHARE = 0.5;
