import { SluiceError } from "../base/errors.ts";
import { type Item, type ItemChange, type ItemContent, type ItemDraft, NO_OWNER } from "./contract.ts";
import { ownCopy } from "./item-names.ts";
import { MAX_CODES, MAX_DESCRIPTION, MAX_NAME, MAX_TAGS, MAX_TEXTS, MAX_TITLE, MAX_URL } from "./limits.ts";

/** The members of an item that a source has a word in. */
export type SourceMembers = Required<Omit<ItemDraft, "externalPlaylistId" | "sourceKey">>;

/** In the order in which a source's version is compared. */
export const SOURCE_MEMBERS = [
  ...(["owner", "title", "content", "displayTitle", "description", "poster", "category", "subcategory"] as const),
  ...(["tags", "isLive", "autoSearch", "fileCount", "tvgId", "tvgName", "tvgLogo", "languages"] as const),
  ...(["countries", "logo"] as const),
] as const satisfies readonly (keyof SourceMembers)[]; // biome-ignore format: a table

/** What becomes of what is wrong: the user is told, a source's is cut. */
type TooLong = "refuse" | "cut";

/** What the user adds, cleaned and with the defaults of what is not said. Throws `SluiceError("bad_parameter")`. */
export function readDraft(draft: ItemDraft): SourceMembers {
  return membersOf(draft, "refuse")!;
}

/** What a source lists, cleaned and cut to what is kept; undefined where what it plays cannot be kept. */
export function fitDraft(draft: ItemDraft): SourceMembers | undefined {
  return membersOf(draft, "cut");
}

function membersOf(draft: ItemDraft, tooLong: TooLong): SourceMembers | undefined {
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
  };
  if (textsOf(members) <= MAX_TEXTS) return members;
  if (tooLong === "cut") return undefined;
  throw tooMuchText();
}

/** Throws `SluiceError("bad_parameter")` where all texts of an item together are more than its record can hold. */
export function checkTexts(item: SourceMembers): void {
  if (textsOf(item) > MAX_TEXTS) throw tooMuchText();
}

/** What the user changes, cleaned; members that are undefined are left out. Throws `SluiceError("bad_parameter")`. */
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

function readLogo(id: string | null, tooLong: TooLong): string | null {
  if (id === null || /^[0-9a-f]{40}$/.test(id)) return id;
  if (tooLong === "cut") return null;
  throw expected("logo", "the id of a picture", id);
}

function boundedLink(name: string, text: string, tooLong: TooLong): string {
  const link = oneLine(text);
  // Half a URL leads nowhere.
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
  for (const tag of tags) units += tag.length + 3;
  for (const name of SOURCE_MEMBERS) {
    const value = members[name];
    if (typeof value === "string") units += value.length;
  }
  return units;
}

function tooMuchText(): SluiceError {
  return expected("texts", `at most ${MAX_TEXTS} characters in all of the item`, "more");
}

function expected(name: string, what: string, came: string): SluiceError {
  return new SluiceError("bad_parameter", `${name}: expected ${what}, got ${came.slice(0, 80)}`);
}

/** Whether two values of a member are the same. */
export function isSameMember(a: Item[keyof Item], b: Item[keyof Item]): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}
