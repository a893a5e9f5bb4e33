import { z } from "zod";
import { SluiceError } from "../../src/base/errors.ts";

/** A parameter that may be absent. */
type Parameter<T> = z.ZodType<T | undefined>;

/** Returns the first value that is not blank, trimmed; undefined if there is none. */
export function firstText(value: unknown): string | undefined {
  return textsOf(value)[0];
}

function textsOf(value: unknown): string[] {
  const values: readonly unknown[] = Array.isArray(value) ? value : [value];
  return values.flatMap((each) => (typeof each === "string" && each.trim() !== "" ? [each.trim()] : []));
}

const WHOLE_NUMBER = "a whole number";

/** Creates a schema that parses the first text of a parameter; `read` returns undefined for an invalid text. */
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

/** A number of `[min, max]` with an optional fraction. */
export function decimal(min: number, max: number): Parameter<number> {
  return parameter(
    `a number from ${min} to ${max}`,
    { type: "number", minimum: min, maximum: max },
    (value) => {
      const number = /^\d{1,9}(?:\.\d{1,9})?$/.test(value) ? Number(value) : Number.NaN;
      return number >= min && number <= max ? number : undefined;
    },
  );
}

/** A boolean: 1 or 0 (interface: Endpoints, Notation); `true` and `false` are accepted, too. */
export const bool: Parameter<boolean> = parameter("1 or 0", { type: "integer", enum: [0, 1] }, (value) => {
  const text = value.toLowerCase();
  if (text === "1" || text === "true") return true;
  return text === "0" || text === "false" ? false : undefined;
});

/** The maximum length of a list parameter. A client with a longer list calls several times. */
const MAX_LIST = 10_000;

/** One of several values, case-insensitive. */
export function oneOf<const T extends string>(values: readonly [T, ...T[]]): Parameter<T> {
  return parameter(values.join(" or "), { type: "string", enum: values }, (value) =>
    values.find((each) => each === value.toLowerCase()),
  );
}

/** A repeatable parameter: all its texts in order; empty if absent. */
export const texts: z.ZodType<readonly string[]> = z
  .unknown()
  .transform((value): readonly string[] => textsOf(value))
  .optional()
  .transform((value): readonly string[] => value ?? [])
  .meta({ type: "array", items: { type: "string" }, "x-expected": "texts" });

/** Whole numbers, comma-separated or repeated, at most `MAX_LIST`; empty if absent. */
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

/** Makes a parameter required: its absence becomes `missing_parameter`. */
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

/** Builds the `missing_parameter` or `bad_parameter` error for the first issue of a failed validation. */
export function parameterError(error: { readonly issues: readonly Issue[] }): SluiceError {
  const issue = error.issues[0];
  const name = issue?.path.join(".") || "parameters";
  const message = `${name}: ${issue?.message ?? "cannot be read"}`;
  const isMissing = issue?.params?.isMissing === true;
  return new SluiceError(isMissing ? "missing_parameter" : "bad_parameter", message);
}

/** The hook of validators: throws the `parameterError` of an invalid request. */
export function refuseInvalid(
  result:
    | { readonly success: true }
    | { readonly success: false; readonly error: { readonly issues: readonly Issue[] } },
): void {
  if (!result.success) throw parameterError(result.error);
}

interface Issue {
  readonly path: readonly PropertyKey[];
  readonly message: string;
  readonly params?: Record<string, unknown> | undefined;
}

function wholeNumber(value: string): number | undefined {
  return /^-?\d{1,15}$/.test(value) ? Number(value) : undefined;
}

/** Shortens a value for an error message. */
export function clipped(value: string): string {
  return value.length > 60 ? `${value.slice(0, 60)}…` : value;
}
