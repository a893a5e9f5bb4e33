import type { Context } from "hono";
import { textAnswer } from "./text-answer.ts";

/** How the answers of one family are wrapped: session URLs say `response`, control methods say `result`. */
export type EnvelopeKind = "response" | "result";

/**
 * JSON with a space after each colon and comma: deployed health probes look for the very text `"error": null`.
 * Members that are undefined are left out, as `JSON.stringify` does.
 */
export function spacedJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(spacedJson).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return `{${members.map(([key, member]) => `${JSON.stringify(key)}: ${spacedJson(member)}`).join(", ")}}`;
}

/** A success: `{"response": …, "error": null}`. */
export function success(c: Context, kind: EnvelopeKind, value: unknown): Response {
  return json(c, { [kind]: value, error: null });
}

/** A failure, with status 200: clients that ask for JSON take any other status for a broken engine. */
export function failure(
  c: Context,
  kind: EnvelopeKind,
  error: string | { message: string; code: number },
): Response {
  return json(c, { [kind]: null, error });
}

function json(c: Context, value: unknown): Response {
  return textAnswer(c, spacedJson(value), "application/json");
}
