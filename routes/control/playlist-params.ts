import { z } from "zod";
import { SluiceError } from "../../src/base/errors.ts";
import { bool, clipped, integer, required, text } from "./params.ts";

/** What one text of an item may hold, in UTF-16 units: what the library keeps whole (`library/limits.ts`). */
const MAX_TITLE = 300;
const MAX_DESCRIPTION = 4_000;
const MAX_NAME = 128;
/** So long may links of all kinds be. */
export const MAX_URL = 4_096;
const MAX_TAGS = 32;

/** Private, and callable from other addresses: all methods of these sections of the interface. */
export const PRIVATE = { isPublic: false, isRemote: true, isOpenToPages: false } as const;

/** A line of text: what would break it (line feeds and their kin) becomes a space. */
function line(most: number) {
  return text
    .transform((value, context) => {
      const clean = value?.replace(/\p{Cc}+/gu, " ").trim();
      return withinLimit(clean, most, context);
    })
    .meta({ type: "string", maxLength: most, "x-expected": "text" });
}

/** A line that may be given empty, to say that there shall be none. */
function clearableLine(most: number) {
  return z
    .unknown()
    .transform((value, context) => {
      const first: unknown = Array.isArray(value) ? value[0] : value;
      if (typeof first !== "string") return undefined;
      return withinLimit(first.replace(/\p{Cc}+/gu, " ").trim(), most, context);
    })
    .optional()
    .meta({ type: "string", maxLength: most, "x-expected": "text" });
}

function withinLimit<T extends string | undefined>(value: T, most: number, context: z.RefinementCtx): T {
  if (value === undefined || value.length <= most) return value;
  context.addIssue({
    code: "custom",
    message: `expected at most ${most} characters, got ${value.length}`,
  });
  return z.NEVER;
}

/** What can be said about an item. */
export const title = line(MAX_TITLE).describe("The title");
export const name = line(MAX_NAME);
export const owner = line(MAX_NAME).describe("Whose items; _no_owner_ for those that belong to nobody");
export const clearableName = clearableLine(MAX_NAME);

/** A description may have lines of its own. */
export const description = z
  .unknown()
  .transform((value, context) => {
    const first: unknown = Array.isArray(value) ? value[0] : value;
    if (typeof first !== "string") return undefined;
    const clean = first.replaceAll("\r\n", "\n").replace(/[^\P{Cc}\n\t]+/gu, " ");
    return withinLimit(clean.trim(), MAX_DESCRIPTION, context);
  })
  .optional()
  .meta({ type: "string", maxLength: MAX_DESCRIPTION, "x-expected": "text" });

/** A name or password of HTTP Basic (RFC 7617), every character of it; empty for none. It is in no error. */
export const credential = z
  .unknown()
  .transform((value, context) => {
    const first: unknown = Array.isArray(value) ? value[0] : value;
    if (typeof first !== "string") return undefined;
    if (first.length <= MAX_NAME && !/\p{Cc}/u.test(first)) return first;
    context.addIssue(`expected at most ${MAX_NAME} characters, none of them a control character`);
    return z.NEVER;
  })
  .optional()
  .meta({ type: "string", maxLength: MAX_NAME, "x-expected": "text" });

const TAGS = `a JSON list of at most ${MAX_TAGS} texts of at most ${MAX_NAME} characters, such as ["a","b"]`;

/** Tags, as JSON (interface: Endpoints, Notation). */
export const tags = text
  .transform((value, context) => {
    if (value === undefined) return undefined;
    const list = tagsOf(value);
    if (list === undefined) context.addIssue(`expected ${TAGS}, got "${clipped(value)}"`);
    return list;
  })
  .meta({ type: "string", contentMediaType: "application/json", "x-expected": TAGS })
  .describe("A JSON list of texts");

function tagsOf(value: string): readonly string[] | undefined {
  let list: unknown;
  try {
    list = JSON.parse(value);
  } catch {
    return undefined;
  }
  if (!Array.isArray(list) || !list.every((tag) => typeof tag === "string")) return undefined;
  const clean = list.map((tag) => tag.replace(/\p{Cc}+/gu, " ").trim()).filter((tag) => tag !== "");
  const all = [...new Set(clean)];
  return all.length <= MAX_TAGS && all.every((tag) => tag.length <= MAX_NAME) ? all : undefined;
}

const WEB_URL = "an http:// or https:// URL";

/** A URL of another server. What cannot be used is not repeated in the error: it may hold a password. */
export const webUrl = text
  .transform((value, context) => {
    if (value === undefined) return undefined;
    const problem = urlProblem(value);
    if (problem === undefined) return new URL(value).href;
    context.addIssue(problem);
    return z.NEVER;
  })
  .meta({ type: "string", format: "uri", maxLength: MAX_URL, "x-expected": WEB_URL });

/** The same, or empty for none. */
export const clearableUrl = clearableLine(MAX_URL).transform((value, context) => {
  if (value === undefined || value === "") return value;
  const problem = urlProblem(value);
  if (problem === undefined) return new URL(value).href;
  context.addIssue(problem);
  return z.NEVER;
});

function urlProblem(value: string): string | undefined {
  if (value.length > MAX_URL)
    return `expected ${WEB_URL} of at most ${MAX_URL} characters, got ${value.length}`;
  if (!URL.canParse(value)) return `expected ${WEB_URL}`;
  const { protocol, href } = new URL(value);
  if (protocol === "file:") return `expected ${WEB_URL}; files of this machine are not read (file:)`;
  if (protocol !== "http:" && protocol !== "https:")
    return `expected ${WEB_URL}, got one of ${clipped(protocol)}`;
  return href.length > MAX_URL ? `expected ${WEB_URL} of at most ${MAX_URL} characters` : undefined;
}

/** 0 VOD, 1 live, -1 unknown (interface: Playlist item). */
export const isLive = text
  .transform((value, context): 0 | 1 | -1 | undefined => {
    if (value === undefined) return undefined;
    if (value === "0" || value === "1" || value === "-1") return Number(value) as 0 | 1 | -1;
    context.addIssue(`expected 0, 1 or -1, got "${clipped(value)}"`);
    return z.NEVER;
  })
  .meta({ type: "integer", enum: [0, 1, -1], "x-expected": "0, 1 or -1" })
  .describe("0 VOD, 1 live, -1 unknown");

/** Which item is meant, and whether all sources of its channel are. */
export const itemChoice = {
  id: required(integer).describe("The id of an item"),
  use_media_groups: bool.describe("1: all sources of its channel, but for locked ones"),
} as const;

/** The same object without the members that were not said. */
export function said<T extends object>(members: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}

/** A title that nobody typed: of a transport file or a link, cut where it is too long. */
export function clippedTitle(text: string): string {
  return text
    .replace(/\p{Cc}+/gu, " ")
    .trim()
    .slice(0, MAX_TITLE);
}

/** A list of ids that names at least one. */
export function someOf(ids: readonly number[]): readonly number[] {
  if (ids.length > 0) return [...new Set(ids)];
  throw new SluiceError("missing_parameter", "ids: expected whole numbers with commas between them");
}
