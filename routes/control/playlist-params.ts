import { z } from "zod";
import { SluiceError } from "../../src/base/errors.ts";
import { bool, clipped, integer, required, text } from "./params.ts";

/** The maximum lengths of an item's texts, in UTF-16 units: the same as in `library/limits.ts`. */
const MAX_TITLE = 300;
const MAX_DESCRIPTION = 4_000;
const MAX_NAME = 128;
/** The maximum length of a link of any kind. */
export const MAX_URL = 4_096;
const MAX_TAGS = 32;

/** A single line of text: control characters, such as line feeds, become a space. */
function line(maxLength: number) {
  return text
    .transform((value, context) => {
      const clean = value?.replace(/\p{Cc}+/gu, " ").trim();
      return withinLimit(clean, maxLength, context);
    })
    .meta({ type: "string", maxLength, "x-expected": "text" });
}

/** A text that may be empty, which clears the value; `read` cleans and checks it. */
function clearableText(
  maxLength: number,
  read: (text: string, context: z.RefinementCtx) => string,
): z.ZodType<string | undefined> {
  return z
    .unknown()
    .transform((value, context) => {
      const first: unknown = Array.isArray(value) ? value[0] : value;
      return typeof first === "string" ? read(first, context) : undefined;
    })
    .optional()
    .meta({ type: "string", maxLength, "x-expected": "text" });
}

/** A single line of text; an empty value clears it. */
function clearableLine(maxLength: number) {
  return clearableText(maxLength, (text, context) =>
    withinLimit(text.replace(/\p{Cc}+/gu, " ").trim(), maxLength, context),
  );
}

function withinLimit<T extends string | undefined>(value: T, maxLength: number, context: z.RefinementCtx): T {
  if (value === undefined || value.length <= maxLength) return value;
  context.addIssue({
    code: "custom",
    message: `expected at most ${maxLength} characters, got ${value.length}`,
  });
  return z.NEVER;
}

/** The text parameters of an item. */
export const title = line(MAX_TITLE).describe("The title");
export const name = line(MAX_NAME);
export const owner = line(MAX_NAME).describe("The owner of the items; _no_owner_ for items without an owner");
export const clearableName = clearableLine(MAX_NAME);

/** Part of a title, for filters. */
export const titlePart = name.describe("Part of the title; ignores case and accents");

const count = integer
  .refine((value) => value === undefined || value >= 0, "expected a whole number, 0 or more")
  .meta({ type: "integer", minimum: 0 });

/** The part of a list that is returned. */
export const pageParams = {
  offset: count.describe("The number of items to skip"),
  limit: count.describe("The maximum number of items; default: all"),
};

/** A description, which may have several lines. */
export const description = clearableText(MAX_DESCRIPTION, (text, context) => {
  const clean = text.replaceAll("\r\n", "\n").replace(/[^\P{Cc}\n\t]+/gu, " ");
  return withinLimit(clean.trim(), MAX_DESCRIPTION, context);
});

/** A login or password of HTTP Basic (RFC 7617), not trimmed; empty clears it. Error messages never contain it. */
export const credential = clearableText(MAX_NAME, (text, context) => {
  if (text.length <= MAX_NAME && !/\p{Cc}/u.test(text)) return text;
  context.addIssue(`expected at most ${MAX_NAME} characters, none of them a control character`);
  return z.NEVER;
});

const TAGS = `a JSON list of at most ${MAX_TAGS} strings of at most ${MAX_NAME} characters, such as ["a","b"]`;

/** Tags, as JSON (interface: Endpoints, Notation). */
export const tags = text
  .transform((value, context) => {
    if (value === undefined) return undefined;
    const list = tagsOf(value);
    if (list === undefined) context.addIssue(`expected ${TAGS}, got "${clipped(value)}"`);
    return list;
  })
  .meta({ type: "string", contentMediaType: "application/json", "x-expected": TAGS })
  .describe("A JSON list of strings");

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

/** An http or https URL. Error messages never contain it, because it may contain a password. */
export const webUrl = text
  .transform((value, context) => {
    if (value === undefined) return undefined;
    const problem = urlProblem(value);
    if (problem === undefined) return new URL(value).href;
    context.addIssue(problem);
    return z.NEVER;
  })
  .meta({ type: "string", format: "uri", maxLength: MAX_URL, "x-expected": WEB_URL });

/** Any text (interface: Playlist methods), of which only http and https URLs are shown; empty clears it. */
export const poster = clearableLine(MAX_URL);

function urlProblem(value: string): string | undefined {
  if (value.length > MAX_URL)
    return `expected ${WEB_URL} of at most ${MAX_URL} characters, got ${value.length}`;
  if (!URL.canParse(value)) return `expected ${WEB_URL}`;
  const { protocol, href } = new URL(value);
  if (protocol === "file:") return `expected ${WEB_URL}; the engine does not read local files (file:)`;
  if (protocol !== "http:" && protocol !== "https:")
    return `expected ${WEB_URL}, got the scheme ${clipped(protocol)}`;
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

/** The parameters that select an item, or all sources of its channel. */
export const itemParams = {
  id: required(integer).describe("The id of an item"),
  use_media_groups: bool.describe("1: also the other sources of the channel, except locked items"),
} as const;

/** Returns a copy without the members that are undefined. */
export function omitUndefined<T extends object>(members: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}

/** Shortens a title that comes from a transport file, a link or a file name. */
export function clippedTitle(text: string): string {
  return text
    .replace(/\p{Cc}+/gu, " ")
    .trim()
    .slice(0, MAX_TITLE);
}

/** Returns the ids without duplicates. Throws `missing_parameter` if there are none. */
export function nonEmptyIds(ids: readonly number[]): readonly number[] {
  if (ids.length > 0) return [...new Set(ids)];
  throw new SluiceError("missing_parameter", "ids: expected comma-separated whole numbers");
}
