import * as v from "valibot";
import type { ContentId, Infohash } from "../base/ids.ts";
import type { UnixSeconds } from "../base/time.ts";
import { encodeUtf8 } from "../base/utf8.ts";
import { type EditableMember, type Item, type ItemContent, NO_OWNER } from "./contract.ts";
import type { SourceMembers } from "./item-members.ts";

/** An item with the values of its source that differ from it. */
export interface StoredItem {
  readonly item: Item;
  /** The source's values of members that the user has edited or that facts have changed. */
  readonly source: Partial<SourceMembers>;
}

/** The key prefix of items. */
export const ITEM_PREFIX = "item/";
const ID_DIGITS = 10;

/** Returns the key of an item; keys sort like ids. */
export function itemKey(id: number): string {
  return ITEM_PREFIX + String(id).padStart(ID_DIGITS, "0");
}

/** Returns the id in a key; undefined if the key is invalid. */
export function idOfKey(key: string): number | undefined {
  const digits = key.slice(ITEM_PREFIX.length);
  return /^[0-9]{10}$/.test(digits) ? Number(digits) : undefined;
}

const count = v.pipe(v.number(), v.safeInteger(), v.minValue(0));
const seconds = v.pipe(
  count,
  v.transform((value) => value as UnixSeconds),
);
const hex = v.pipe(v.string(), v.regex(/^[0-9a-f]{40}$/));
const live = v.picklist([0, 1, -1]);
const words = v.array(v.string());

const content = v.pipe(
  v.object({
    transport: v.optional(v.picklist(["bt", "hls", "dash", "http"]), "bt"),
    contentId: v.optional(v.nullable(hex), null),
    infohash: v.optional(v.nullable(hex), null),
    magnet: v.optional(v.nullable(v.string()), null),
    url: v.optional(v.nullable(v.string()), null),
  }),
  v.transform(
    ({ transport, contentId, infohash, magnet, url }): ItemContent => ({
      transport,
      contentId: contentId as ContentId | null,
      infohash: infohash as Infohash | null,
      magnet,
      url,
    }),
  ),
);

const EDITABLE = [
  ...(["title", "description", "poster", "category", "subcategory", "tags", "logo"] as const),
  ...(["isFavorite", "isEnabled", "isLocked", "autoSearch"] as const),
] satisfies EditableMember[]; // biome-ignore format: a table

const members = {
  owner: v.string(),
  displayTitle: v.nullable(v.string()),
  description: v.string(),
  poster: v.string(),
  category: v.nullable(v.string()),
  subcategory: v.string(),
  tags: words,
  isLive: live,
  autoSearch: v.boolean(),
  fileCount: v.nullable(count),
  tvgId: v.string(),
  tvgName: v.string(),
  tvgLogo: v.string(),
  tvgExtra: words,
  httpHeaders: words,
  languages: v.nullable(words),
  countries: v.nullable(words),
  logo: v.nullable(hex),
};

/** Absent members have the values of {@link DEFAULTS}. */
const schema = v.object({
  ...v.partial(v.object(members)).entries,
  title: v.string(),
  content,
  isFavorite: v.optional(v.boolean()),
  isEnabled: v.optional(v.boolean()),
  isLocked: v.optional(v.boolean()),
  deletedAt: v.optional(v.nullable(seconds)),
  externalPlaylistId: v.optional(v.pipe(v.number(), v.safeInteger(), v.minValue(-1))),
  sourceKey: v.optional(v.nullable(v.string())),
  edited: v.optional(v.array(v.picklist(EDITABLE))),
  createdAt: seconds,
  updatedAt: v.optional(seconds),
  source: v.optional(v.partial(v.object({ ...members, title: v.string(), content }))),
});

/** Default values of an item. */
export const DEFAULTS = {
  owner: NO_OWNER,
  displayTitle: null,
  description: "",
  poster: "",
  category: null,
  subcategory: "",
  tags: [],
  isLive: -1,
  isFavorite: false,
  isEnabled: true,
  isLocked: false,
  autoSearch: false,
  deletedAt: null,
  fileCount: null,
  externalPlaylistId: -1,
  sourceKey: null,
  edited: [],
  tvgId: "",
  tvgName: "",
  tvgLogo: "",
  tvgExtra: [],
  httpHeaders: [],
  languages: null,
  countries: null,
  logo: null,
} as const satisfies Partial<Item>;

/** Decodes a record; returns undefined if it is damaged. */
export function decodeItem(id: number, value: unknown): StoredItem | undefined {
  const result = v.safeParse(schema, value, { abortEarly: true });
  if (!result.success) return undefined;
  const { source = {}, ...members } = result.output;
  const item = { ...DEFAULTS, updatedAt: members.createdAt, ...members, id } as Item;
  return { item, source: source as Partial<SourceMembers> };
}

/** The members of a record in alphabetical order: stores that compare records as text need not sort them again. */
const RECORD_MEMBERS = [
  ...Object.keys(DEFAULTS),
  "title",
  "content",
  "createdAt",
  "updatedAt",
  "source",
].sort();

/** Encodes an item without its default values. */
export function encodeItem({ item, source }: StoredItem): Readonly<Record<string, unknown>> {
  const record: Record<string, unknown> = {};
  for (const name of RECORD_MEMBERS) {
    if (name === "source") {
      const names = Object.keys(source).sort() as (keyof typeof source)[];
      if (names.length > 0)
        record.source = Object.fromEntries(names.map((of) => [of, compact(of, source[of])]));
      continue;
    }
    const value = item[name as keyof Item];
    const isSame = name === "updatedAt" && value === item.createdAt;
    if (!isSame && !isDefault(name, value)) record[name] = compact(name, value);
  }
  return record;
}

/** Returns the size of a record as JSON in UTF-8. */
export function recordBytes(record: unknown): number {
  const json = JSON.stringify(record);
  // Most records are ASCII and need no encoding.
  return /^[\0-\x7f]*$/.test(json) ? json.length : encodeUtf8(json).length;
}

function isDefault(name: string, value: unknown): boolean {
  const standard = (DEFAULTS as Readonly<Record<string, unknown>>)[name];
  return value === standard || (Array.isArray(standard) && Array.isArray(value) && value.length === 0);
}

function compact(name: string, value: unknown): unknown {
  if (name !== "content") return value;
  const { transport, contentId, infohash, magnet, url } = value as ItemContent;
  return {
    ...(contentId !== null && { contentId }),
    ...(infohash !== null && { infohash }),
    ...(magnet !== null && { magnet }),
    ...(transport !== "bt" && { transport }),
    ...(url !== null && { url }),
  };
}
