import type { Context } from "hono";
import { failure } from "../envelope.ts";
import type { ErrorRow } from "../errors.ts";

/** CHOICE(api-version): absent, 1 and what cannot be read: errors are text. 2 and 3, and what comes later: objects. */
export function apiVersionOf(text: string | undefined): 1 | 2 | 3 {
  const number = Number(text);
  if (!(number >= 2)) return 1;
  return number === 2 ? 2 : 3;
}

/** A failure as that version of the interface tells it, with status 200. */
export function controlFailure(c: Context, version: 1 | 2 | 3, { text, code }: ErrorRow): Response {
  return failure(c, "result", version === 1 ? text : { message: text, code });
}
