import * as v from "valibot";
import type { UnixSeconds } from "../base/time.ts";
import type { ExternalPlaylist } from "./contract.ts";

/** An external playlist as it is kept, at `external/<10 digits>`: what is shown of it, and what refreshing it needs. */
export interface ExternalRecord extends Omit<ExternalPlaylist, "itemCount"> {
  readonly owner: string;
  /** Whether its URL may lead to this host and its network: as allowed to the one who added it. */
  readonly allowPrivateUrls: boolean;
  /** What its server named the version that we have (RFC 9110 8.8); empty where it did not. */
  readonly etag: string;
  readonly lastModified: string;
  /** The programme guides it names. */
  readonly guides: readonly string[];
  /** Refreshes in a row that failed. */
  readonly failures: number;
  /** How many entries it had when it was last taken over. */
  readonly entryCount: number;
  /** The last refresh refused a list that was much shorter than before: the next one believes it. */
  readonly hasShrunk: boolean;
  /** A refresh began to change items and has not ended: it is done again at the next start. */
  readonly isPending: boolean;
  /** It is being deleted, which goes on at the next start. */
  readonly isGoing: boolean;
  /** The key of the next entry that has never been there (`SourceRow.key`). */
  readonly nextKey: number;
}

/** What names and settings of a playlist may have at most, in characters. */
export const MAX_NAME_LENGTH = 1000;
export const MAX_URL_LENGTH = 8192;
/** Guides of one list, and the length of each, in characters: some lists name one for each country. */
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

/** Where all records of this kind are. */
export const EXTERNAL_PREFIX = "external/";

/** The key of a playlist's record. */
export function externalKey(id: number): string {
  return `${EXTERNAL_PREFIX}${String(id).padStart(10, "0")}`;
}

/** Reads what is kept; undefined where that is not such a record. */
export function readExternalRecord(value: unknown): ExternalRecord | undefined {
  const parsed = v.safeParse(recordSchema, value);
  return parsed.success ? parsed.output : undefined;
}
