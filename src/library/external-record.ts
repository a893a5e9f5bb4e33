import * as v from "valibot";
import type { UnixSeconds } from "../base/time.ts";
import type { ExternalPlaylist } from "./contract.ts";

/** The record of an external playlist, at `external/<10 digits>`, with the state of its refreshes. */
export interface ExternalRecord extends Omit<ExternalPlaylist, "itemCount"> {
  readonly owner: string;
  /** True if its URL may use private addresses, which depends on the client that added it. */
  readonly allowPrivateUrls: boolean;
  /** Validators of the stored version (RFC 9110 8.8); empty if the server sent none. */
  readonly etag: string;
  readonly lastModified: string;
  /** The program guides it names. */
  readonly guides: readonly string[];
  /** Consecutive failed refreshes. */
  readonly failures: number;
  /** Number of entries at the last successful refresh. */
  readonly entryCount: number;
  /** The last refresh rejected a list that was much shorter than before; the next one accepts it. */
  readonly hasShrunk: boolean;
  /** A refresh has begun to change items and has not ended; the next start repeats it. */
  readonly isPending: boolean;
  /** It is being deleted; the next start continues. */
  readonly isGoing: boolean;
  /** The key of the next new entry (`SourceRow.key`). */
  readonly nextKey: number;
}

/** Limits of names, settings and URLs in characters. */
export const MAX_NAME_LENGTH = 1000;
export const MAX_URL_LENGTH = 8192;
/** Limits of guides per list (some lists name one for each country) and of their length in characters. */
export const MAX_GUIDES = 20;
export const MAX_GUIDE_LENGTH = 1000;

const name = v.pipe(v.string(), v.maxLength(MAX_NAME_LENGTH));
const count = v.pipe(v.number(), v.safeInteger(), v.minValue(0));
const seconds = v.pipe(
  count,
  v.transform((value) => value as UnixSeconds),
);
const guide = v.pipe(v.string(), v.maxLength(MAX_GUIDE_LENGTH));

const recordSchema = v.object({
  id: v.pipe(count, v.minValue(1)),
  type: v.picklist(["content", "broadcast"]),
  category: name,
  name,
  url: v.pipe(v.string(), v.maxLength(MAX_URL_LENGTH)),
  login: name,
  password: name,
  updateInterval: count,
  updatedAt: seconds,
  lastUpdate: seconds,
  nextUpdate: seconds,
  problem: v.nullable(v.string()),
  owner: name,
  allowPrivateUrls: v.boolean(),
  etag: name,
  lastModified: name,
  guides: v.pipe(v.array(guide), v.maxLength(MAX_GUIDES)),
  failures: count,
  entryCount: count,
  hasShrunk: v.boolean(),
  isPending: v.boolean(),
  isGoing: v.boolean(),
  nextKey: v.pipe(count, v.minValue(1)),
});

/** The key prefix of these records. */
export const EXTERNAL_PREFIX = "external/";

/** Returns the key of a playlist's record. */
export function externalKey(id: number): string {
  return `${EXTERNAL_PREFIX}${String(id).padStart(10, "0")}`;
}

/** Decodes a record; returns undefined if it is damaged. */
export function readExternalRecord(value: unknown): ExternalRecord | undefined {
  const parsed = v.safeParse(recordSchema, value);
  return parsed.success ? parsed.output : undefined;
}
