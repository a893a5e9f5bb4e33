import * as v from "valibot";
import type { ContentId, Infohash } from "../base/ids.ts";
import type { UnixSeconds } from "../base/time.ts";
import { encodeUtf8 } from "../base/utf8.ts";
import { type EditableMember, type Item, type ItemContent, NO_OWNER } from "./contract.ts";
import type { SourceMembers } from "./item-members.ts";

/** An item, and what its source says where that is not what the item has. */
export interface KeptItem {
  readonly item: Item;
  /** The source's word on members that the user has edited, or that were found out later. */
  readonly source: Partial<SourceMembers>;
}

/** All keys of items begin so. */
export const ITEM_PREFIX = "item/";
const ID_DIGITS = 10;

/** The key of an item; keys sort as ids do. */
export function itemKey(id: number): string {
  return ITEM_PREFIX + String(id).padStart(ID_DIGITS, "0");
}

/** The id in a key of the store, or undefined where it is none. */
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
  languages: v.nullable(words),
  countries: v.nullable(words),
  logo: v.nullable(hex),
};

/** What is not written is as in {@link DEFAULTS}. */
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

/** What an item is where nobody says otherwise. */
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
  languages: null,
  countries: null,
  logo: null,
} as const satisfies Partial<Item>;

/** Reads a record of the store; undefined where it is damaged or none of ours. */
export function decodeItem(id: number, value: unknown): KeptItem | undefined {
  const result = v.safeParse(schema, value, { abortEarly: true });
  if (!result.success) return undefined;
  const { source = {}, ...said } = result.output;
  const item = { ...DEFAULTS, updatedAt: said.createdAt, ...said, id } as Item;
  return { item, source: source as Partial<SourceMembers> };
}

/** The record of an item: what is as usual is left out. */
export function encodeItem({ item, source }: KeptItem): Readonly<Record<string, unknown>> {
  const record: Record<string, unknown> = {};
  const { id: _, content, ...members } = item;
  for (const name of Object.keys(members) as (keyof typeof members)[])
    if (!isDefault(name, members[name])) record[name] = members[name];
  if (item.updatedAt === item.createdAt) delete record.updatedAt;
  record.content = compactContent(content);
  const said = Object.entries(source);
  if (said.length > 0)
    record.source = Object.fromEntries(
      said.map(([name, value]) => [name, name === "content" ? compactContent(value as ItemContent) : value]),
    );
  return record;
}

/** The size of a record as the store counts it. */
export function recordBytes(record: unknown): number {
  const json = JSON.stringify(record);
  // Most are ASCII, and need no copy to be counted.
  return /^[\0-\x7f]*$/.test(json) ? json.length : encodeUtf8(json).length;
}

function isDefault(name: string, value: unknown): boolean {
  const usual = (DEFAULTS as Readonly<Record<string, unknown>>)[name];
  return value === usual || (Array.isArray(usual) && Array.isArray(value) && value.length === 0);
}

function compactContent(content: ItemContent): Partial<ItemContent> {
  const { transport, contentId, infohash, magnet, url } = content;
  return {
    ...(transport !== "bt" && { transport }),
    ...(contentId !== null && { contentId }),
    ...(infohash !== null && { infohash }),
    ...(magnet !== null && { magnet }),
    ...(url !== null && { url }),
  };
}
