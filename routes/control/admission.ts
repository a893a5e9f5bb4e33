import type { Context } from "hono";
import { SluiceError } from "../../src/base/errors.ts";
import type { Library } from "../../src/library/library.ts";
import { askerOf, pageOf } from "../access.ts";
import { type MethodAccess, mayPageRead, refusalOf, type TokenFact } from "../access-decision.ts";
import type { House, RouteEnv } from "../house.ts";

type Call = Context<RouteEnv>;

const WHY = {
  access_denied: "not from there, or not by that page",
  token_required: "get one with get_api_access_token",
  wrong_token: "get a new one with get_api_access_token",
} as const;

/**
 * Refuses calls that no token would help, so that no body is read for them. Lets the page that calls read the answer,
 * where it may.
 */
export function admitAsker(method: MethodAccess, c: Call, house: House): void {
  refuse(method, c, house, "good");
  allowReading(method, c, house);
}

/** Refuses calls at addresses where no token is read, so that none can help. */
export function admitAnybody(method: MethodAccess, c: Call, house: House): void {
  const facts = { asker: askerOf(c.env.origin), page: pageIn(c, house), token: "none" } as const;
  if (refusalOf(method, facts) !== undefined) throw new SluiceError("access_denied", WHY.access_denied);
  allowReading(method, c, house);
}

/** Refuses calls without the token that they need. */
export async function admitToken(
  method: MethodAccess,
  c: Call,
  house: House & { readonly library: Library },
  token: string | undefined,
): Promise<void> {
  refuse(method, c, house, await factOf(token, house.library));
}

/** Answers what browsers ask before pages of other sites may call (Fetch standard, CORS-preflight). */
export function preflight(method: MethodAccess | undefined, c: Call, house: House): Response {
  if (method === undefined || !allowReading(method, c, house)) return c.text("access denied\n", 403);
  c.header("access-control-allow-methods", "GET, HEAD, POST");
  c.header("access-control-allow-headers", "content-type");
  c.header("access-control-max-age", "600");
  return c.body(null, 204);
}

function refuse(method: MethodAccess, c: Call, house: House, token: TokenFact): void {
  const facts = { asker: askerOf(c.env.origin), page: pageIn(c, house), token };
  const refusal = refusalOf(method, facts);
  if (refusal !== undefined) throw new SluiceError(refusal, WHY[refusal]);
}

/** Asks the store each time, so that a token that was renewed beside us is good for nothing at once. */
async function factOf(token: string | undefined, library: Library): Promise<TokenFact> {
  if (token === undefined) return "none";
  return (await library.access.isToken(token)) ? "good" : "wrong";
}

function allowReading(method: MethodAccess, c: Call, house: House): boolean {
  const readers = mayPageRead(method, pageIn(c, house));
  if (readers === "none") return false;
  c.header("access-control-allow-origin", readers === "all" ? "*" : (c.req.header("origin") ?? ""));
  if (readers === "this") c.header("vary", "origin");
  return true;
}

function pageIn(c: Call, house: House) {
  return pageOf(c, house.access?.allowedOrigins ?? []);
}
