import { SluiceError } from "../base/errors.ts";
import { type Item, type ItemChange, type ItemContent, type ItemDraft, NO_OWNER } from "./contract.ts";
import { ownCopy } from "./item-names.ts";
import {
  MAX_CODES,
  MAX_DESCRIPTION,
  MAX_EXTRA,
  MAX_EXTRA_TEXT,
  MAX_NAME,
  MAX_TAGS,
  MAX_TEXTS,
  MAX_TITLE,
  MAX_URL,
} from "./limits.ts";

/** The members of an item that a source sets. */
export type SourceMembers = Required<Omit<ItemDraft, "externalPlaylistId" | "sourceKey">>;

/** The names of these members, in the order in which versions are compared. */
export const SOURCE_MEMBERS = [
  ...(["owner", "title", "content", "displayTitle", "description", "poster", "category", "subcategory"] as const),
  ...(["tags", "isLive", "autoSearch", "fileCount", "tvgId", "tvgName", "tvgLogo", "languages"] as const),
  ...(["countries", "logo", "tvgExtra", "httpHeaders"] as const),
] as const satisfies readonly (keyof SourceMembers)[]; // biome-ignore format: a table

/** How invalid values are handled: the user's are refused, a source's are cut. */
type TooLong = "refuse" | "cut";

/** Validates and cleans an item that the user adds; absent members get defaults. Throws `bad_parameter`. */
export function readDraft(draft: ItemDraft): SourceMembers {
  return sourceMembers(draft, "refuse")!;
}

/** Cleans an item from a source and cuts texts to their limits; returns undefined if its content is invalid. */
export function fitDraft(draft: ItemDraft): SourceMembers | undefined {
  return sourceMembers(draft, "cut");
}

function sourceMembers(draft: ItemDraft, tooLong: TooLong): SourceMembers | undefined {
  const content = readContent(draft.content, tooLong);
  if (content === undefined) return undefined;
  const line = (name: string, text: string | null | undefined, most: number) =>
    bounded(name, oneLine(text ?? ""), most, tooLong);
  const link = (name: string, text: string | undefined) => boundedLink(name, text ?? "", tooLong);
  const title = line("title", draft.title, MAX_TITLE);
  if (title === "" && tooLong === "refuse") throw expected("title", "a text", "nothing");
  const members: SourceMembers = {
    owner: line("owner", draft.owner, MAX_NAME) || NO_OWNER,
    title: title || fallbackTitle(content),
    content,
    displayTitle: line("display_title", draft.displayTitle, MAX_TITLE) || null,
    description: bounded("description", cleanText(draft.description ?? ""), MAX_DESCRIPTION, tooLong),
    poster: link("poster", draft.poster),
    category: line("category", draft.category, MAX_NAME) || null,
    subcategory: line("subcategory", draft.subcategory, MAX_NAME),
    tags: readTags(draft.tags ?? [], tooLong),
    isLive: draft.isLive ?? -1,
    autoSearch: draft.autoSearch ?? false,
    fileCount: draft.fileCount ?? null,
    tvgId: line("tvg_id", draft.tvgId, MAX_NAME),
    tvgName: line("tvg_name", draft.tvgName, MAX_TITLE),
    tvgLogo: link("tvg_logo", draft.tvgLogo),
    languages: readCodes(draft.languages),
    countries: readCodes(draft.countries),
    logo: readLogo(draft.logo ?? null, tooLong),
    tvgExtra: readExtra(draft.tvgExtra ?? [], "="),
    httpHeaders: readExtra(draft.httpHeaders ?? [], ": "),
  };
  if (textsOf(members) <= MAX_TEXTS) return members;
  if (tooLong === "cut") return undefined;
  throw tooMuchText();
}

/** Throws `bad_parameter` if the texts of an item together exceed the size of its record. */
export function checkTexts(item: SourceMembers): void {
  if (textsOf(item) > MAX_TEXTS) throw tooMuchText();
}

/** Validates and cleans a change by the user; drops undefined members. Throws `bad_parameter`. */
export function readChange(change: ItemChange): ItemChange {
  const { title, description, poster, category, subcategory, tags, logo } = change;
  const line = (name: string, text: string, most: number) => bounded(name, oneLine(text), most, "refuse");
  if (title !== undefined && oneLine(title) === "") throw expected("title", "a text", "nothing");
  return {
    ...(title !== undefined && { title: line("title", title, MAX_TITLE) }),
    ...(description !== undefined && {
      description: bounded("description", cleanText(description), MAX_DESCRIPTION, "refuse"),
    }),
    ...(poster !== undefined && { poster: boundedLink("poster", poster, "refuse") }),
    ...(category !== undefined && { category: line("category", category ?? "", MAX_NAME) || null }),
    ...(subcategory !== undefined && { subcategory: line("subcategory", subcategory, MAX_NAME) }),
    ...(tags !== undefined && { tags: readTags(tags, "refuse") }),
    ...(logo !== undefined && { logo: readLogo(logo, "refuse")! }),
    ...(change.isFavorite !== undefined && { isFavorite: change.isFavorite }),
    ...(change.isEnabled !== undefined && { isEnabled: change.isEnabled }),
    ...(change.isLocked !== undefined && { isLocked: change.isLocked }),
    ...(change.autoSearch !== undefined && { autoSearch: change.autoSearch }),
  };
}

function readContent(content: ItemContent, tooLong: TooLong): ItemContent | undefined {
  const { transport, contentId, infohash, magnet, url } = content;
  const problem =
    (url !== null && !isWebUrl(url) && "an http or https URL of at most 4096 characters") ||
    (magnet !== null &&
      !(magnet.length <= MAX_URL && /^magnet:\P{Cc}*$/iu.test(magnet)) &&
      "a magnet link") ||
    (transport !== "bt" && url === null && "a URL") ||
    ((contentId ?? infohash ?? magnet ?? url) === null && "a content id, an infohash, a magnet or a URL");
  if (problem === false) {
    return {
      transport,
      contentId,
      infohash,
      magnet: magnet?.toWellFormed() ?? null,
      url: url?.toWellFormed() ?? null,
    };
  }
  if (tooLong === "cut") return undefined;
  throw expected("content", problem, url ?? magnet ?? "nothing");
}

function isWebUrl(text: string): boolean {
  return text.length <= MAX_URL && /^https?:\/\/[^\s\p{Cc}]+$/iu.test(text);
}

function readTags(tags: readonly string[], tooLong: TooLong): string[] {
  const words = new Set(
    tags.slice(0, 4 * MAX_TAGS).map((tag) => bounded("tags", oneLine(tag), MAX_NAME, tooLong)),
  );
  words.delete("");
  if (tags.length > MAX_TAGS && tooLong === "refuse")
    throw expected("tags", `at most ${MAX_TAGS}`, String(tags.length));
  return [...words].slice(0, MAX_TAGS);
}

function readCodes(codes: readonly string[] | null | undefined): string[] | null {
  const good = (codes ?? []).filter((code) => /^[a-z]{2,3}$/.test(code)).slice(0, MAX_CODES);
  return good.length > 0 ? good.map(ownCopy) : null;
}

/** Drops attributes and headers that are too long, because a cut one would be useless. */
function readExtra(texts: readonly string[], mark: "=" | ": "): string[] {
  const extra = texts.map(oneLine).filter((text) => text.length <= MAX_EXTRA_TEXT && text.includes(mark));
  return extra.slice(0, MAX_EXTRA).map(ownCopy);
}

function readLogo(id: string | null, tooLong: TooLong): string | null {
  if (id === null || /^[0-9a-f]{40}$/.test(id)) return id;
  if (tooLong === "cut") return null;
  throw expected("logo", "the id of a picture", id);
}

function boundedLink(name: string, text: string, tooLong: TooLong): string {
  const link = oneLine(text);
  // A truncated URL would be useless.
  return link.length > MAX_URL && tooLong === "cut" ? "" : bounded(name, link, MAX_URL, tooLong);
}

function bounded(name: string, text: string, most: number, tooLong: TooLong): string {
  if (text.length <= most) return text;
  if (tooLong === "refuse") throw expected(name, `at most ${most} characters`, String(text.length));
  return text.slice(0, most).toWellFormed().trimEnd();
}

function oneLine(text: string): string {
  if (!/[\p{Cc}\p{Cs}]/u.test(text)) return text.trim();
  return text
    .toWellFormed()
    .replace(/\p{Cc}+/gu, " ")
    .trim();
}

function cleanText(text: string): string {
  if (!/[\p{Cc}\p{Cs}]/u.test(text)) return text.trim();
  return text
    .toWellFormed()
    .replace(/\r\n?/g, "\n")
    .replace(/(?!\n)\p{Cc}/gu, " ")
    .trim();
}

function fallbackTitle(content: ItemContent): string {
  return (content.url ?? content.infohash ?? content.contentId ?? content.magnet ?? "").slice(0, MAX_TITLE);
}

function textsOf(members: SourceMembers): number {
  const { content, tags } = members;
  let units = (content.url?.length ?? 0) + (content.magnet?.length ?? 0);
  for (const text of [...tags, ...members.tvgExtra, ...members.httpHeaders]) units += text.length + 3;
  for (const name of SOURCE_MEMBERS) {
    const value = members[name];
    if (typeof value === "string") units += value.length;
  }
  return units;
}

function tooMuchText(): SluiceError {
  return expected("texts", `at most ${MAX_TEXTS} characters in all texts of the item`, "more");
}

function expected(name: string, what: string, found: string): SluiceError {
  return new SluiceError("bad_parameter", `${name}: expected ${what}, got ${found.slice(0, 80)}`);
}

/** Returns true if two values of a member are equal. */
export function isSameMember(a: Item[keyof Item], b: Item[keyof Item]): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}
