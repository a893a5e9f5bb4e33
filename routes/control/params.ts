import { z } from "zod";
import { SluiceError } from "../../src/base/errors.ts";

/** A file that came with a form (RFC 7578), held whole: forms are bounded (`multipart.ts`). */
export interface UploadedFile {
  /** Display text only; never a path on our disk. */
  readonly filename: string;
  /** What the sender calls it; nothing is decided by that alone. */
  readonly mime: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** The parameters of one call as they came: all values of a name, query before form. */
export type RawParameters = Readonly<Record<string, readonly (string | UploadedFile)[]>>;

/** A parameter that may be absent. */
type Parameter<T> = z.ZodType<T | undefined>;

/** The first value of a name that is not blank, trimmed; an empty parameter is none. */
export function firstText(value: unknown): string | undefined {
  return textsOf(value)[0];
}

function textsOf(value: unknown): string[] {
  const values: readonly unknown[] = Array.isArray(value) ? value : [value];
  return values.flatMap((each) => (typeof each === "string" && each.trim() !== "" ? [each.trim()] : []));
}

const WHOLE_NUMBER = "a whole number";

/** Reads the first text of a parameter; `read` answers undefined for what it cannot take. */
function parameter<T>(
  expected: string,
  schema: { readonly [key: string]: unknown },
  read: (text: string) => T | undefined,
): Parameter<T> {
  const type = z.unknown().transform((value, context): T | undefined => {
    const text = firstText(value);
    if (text === undefined) return undefined;
    const result = read(text);
    if (result === undefined) context.addIssue(`expected ${expected}, got "${clipped(text)}"`);
    return result;
  });
  return type.optional().meta({ ...schema, "x-expected": expected });
}

/** Any text. */
export const text: Parameter<string> = parameter("text", { type: "string" }, (value) => value);

/** A whole number of up to 15 digits. */
export const integer: Parameter<number> = parameter(WHOLE_NUMBER, { type: "integer" }, wholeNumber);

/** Booleans are 1 and 0 in requests (interface: Endpoints, Notation); words are taken too. */
export const bool: Parameter<boolean> = parameter("1 or 0", { type: "integer", enum: [0, 1] }, (value) => {
  const word = value.toLowerCase();
  if (word === "1" || word === "true") return true;
  return word === "0" || word === "false" ? false : undefined;
});

/** Whole numbers with commas between them, at most `MAX_LIST`. */
export const integers: Parameter<readonly number[]> = parameter(
  "whole numbers with commas between them",
  { type: "string", pattern: "^-?\\d+(,-?\\d+)*$" },
  (value) => {
    const numbers = value.split(",").map((each) => wholeNumber(each.trim()));
    if (numbers.length > MAX_LIST) return undefined;
    return numbers.every((each) => each !== undefined) ? numbers : undefined;
  },
);

/** A list in one parameter is at most so long; what acts on more is called again. */
const MAX_LIST = 10_000;

/** Texts as JSON: `["a","b"]` (interface: tags). */
export const jsonTexts: Parameter<readonly string[]> = parameter(
  'a JSON list of texts, such as ["a","b"]',
  { type: "string", contentMediaType: "application/json" },
  (value) => {
    const list = jsonOf(value);
    if (!Array.isArray(list) || list.length > MAX_LIST) return undefined;
    return list.every((each) => typeof each === "string") ? list : undefined;
  },
);

/** One of a few words, in any case of its letters. */
export function oneOf<const T extends string>(words: readonly [T, ...T[]]): Parameter<T> {
  return parameter(words.join(" or "), { type: "string", enum: words }, (value) =>
    words.find((word) => word === value.toLowerCase()),
  );
}

/** A parameter that may be given again and again: all its texts, in order; empty where it is absent. */
export const texts: z.ZodType<readonly string[]> = z
  .unknown()
  .transform((value): readonly string[] => textsOf(value))
  .optional()
  .transform((value): readonly string[] => value ?? [])
  .meta({ type: "array", items: { type: "string" }, "x-expected": "texts" });

/** Whole numbers given again and again, or with commas between them; empty where there is none. */
export const integerList: z.ZodType<readonly number[]> = z
  .unknown()
  .transform((value, context): readonly number[] => {
    const numbers = textsOf(value).flatMap((each) => each.split(",").map((part) => wholeNumber(part.trim())));
    if (numbers.length <= MAX_LIST && numbers.every((each) => each !== undefined)) return numbers;
    context.addIssue(`expected whole numbers, got "${clipped(textsOf(value).join(","))}"`);
    return z.NEVER;
  })
  .optional()
  .transform((value): readonly number[] => value ?? [])
  .meta({ type: "array", items: { type: "integer" }, "x-expected": "whole numbers" });

/** An uploaded file. A file field that was left empty (no name, no bytes) is none. */
export const file: Parameter<UploadedFile> = z
  .unknown()
  .transform((value, context): UploadedFile | undefined => {
    const values: readonly unknown[] = Array.isArray(value) ? value : [value];
    const found = values.find(isUploadedFile);
    if (!found && firstText(value) !== undefined) {
      context.addIssue("expected a file of a multipart/form-data body, got text");
      return z.NEVER;
    }
    return found && (found.filename !== "" || found.bytes.length > 0) ? found : undefined;
  })
  .optional()
  .meta({ type: "string", format: "binary", "x-expected": "a file" });

/** The same parameter, without which nothing can be done: its absence is `missing_parameter`. */
export function required<T>(optional: Parameter<T>): z.ZodType<T> {
  const meta = optional.meta();
  const expected = String(meta?.["x-expected"] ?? "a value");
  const whole = optional.transform((value, context): T => {
    if (value !== undefined) return value;
    context.addIssue({ code: "custom", message: `expected ${expected}`, params: { isMissing: true } });
    return z.NEVER;
  });
  return meta ? whole.meta(meta) : whole;
}

/** Says which parameter is missing, or cannot be read and why. */
export function parameterError(error: { readonly issues: readonly Issue[] }): SluiceError {
  const issue = error.issues[0];
  const name = issue?.path.join(".") || "parameters";
  const message = `${name}: ${issue?.message ?? "cannot be read"}`;
  const isMissing = issue?.params?.isMissing === true;
  return new SluiceError(isMissing ? "missing_parameter" : "bad_parameter", message);
}

interface Issue {
  readonly path: readonly PropertyKey[];
  readonly message: string;
  readonly params?: Record<string, unknown> | undefined;
}

function wholeNumber(value: string): number | undefined {
  return /^-?\d{1,15}$/.test(value) ? Number(value) : undefined;
}

function jsonOf(value: string): unknown {
  try {
    return JSON.parse(value);
  } catch {
    return undefined;
  }
}

function isUploadedFile(value: unknown): value is UploadedFile {
  return typeof value === "object" && value !== null && "bytes" in value;
}

/** What came, short enough for a message. */
export function clipped(value: string): string {
  return value.length > 60 ? `${value.slice(0, 60)}…` : value;
}
