import type { Context } from "hono";
import { SluiceError } from "../../src/base/errors.ts";
import type { Library } from "../../src/library/library.ts";
import { clientNetworkOf, pageOriginOf, setRefusalHeaders } from "../http/access.ts";
import { type MethodAccess, pageReadAccess, refusalOf, type TokenState } from "../http/access-rules.ts";
import type { RouteDependencies, RouteEnv } from "../http/dependencies.ts";

type Call = Context<RouteEnv>;

const REFUSAL_DETAILS = {
  access_denied: "this client or web page may not call the method",
  token_required: "get one with get_api_access_token",
  wrong_token: "get a new one with get_api_access_token",
} as const;

/**
 * Refuses calls that would fail even with a valid token, before their body is read. Sets the CORS headers for pages that
 * may read the response. Throws `access_denied`.
 */
export function authorizeCaller(method: MethodAccess, c: Call, dependencies: RouteDependencies): void {
  refuse(method, c, dependencies, "valid");
  setCorsHeaders(method, c, dependencies);
}

/** Refuses private methods on paths that read no token; else the same as `authorizeCaller`. */
export function authorizeWithoutToken(method: MethodAccess, c: Call, dependencies: RouteDependencies): void {
  const caller = {
    network: clientNetworkOf(c.env.origin),
    page: pageOf(c, dependencies),
    token: "none",
  } as const;
  if (refusalOf(method, caller) !== undefined) {
    setRefusalHeaders(c);
    throw new SluiceError("access_denied", REFUSAL_DETAILS.access_denied);
  }
  setCorsHeaders(method, c, dependencies);
}

/** Refuses calls without the token that they need. Rejects with `token_required`, `wrong_token` or `access_denied`. */
export async function authorizeToken(
  method: MethodAccess,
  c: Call,
  dependencies: RouteDependencies & { readonly library: Library },
  token: string | undefined,
): Promise<void> {
  refuse(method, c, dependencies, await tokenStateOf(token, dependencies.library));
}

/** The same for a path that sends the token in a header (RFC 6750 2.1), which keeps it out of URLs. Clients of this host need none. */
export async function authorizeOwner(
  method: MethodAccess,
  c: Call,
  dependencies: RouteDependencies & { readonly library: Library },
): Promise<void> {
  if (clientNetworkOf(c.env.origin) === "local") return;
  const token = c.req.query("token") ?? /^Bearer (\S+)$/i.exec(c.req.header("authorization") ?? "")?.[1];
  await authorizeToken(method, c, dependencies, token);
}

/** Answers the preflight request that browsers send before a page of another site calls (Fetch standard, CORS-preflight). */
export function preflight(
  method: MethodAccess | undefined,
  c: Call,
  dependencies: RouteDependencies,
): Response {
  if (method === undefined || !setCorsHeaders(method, c, dependencies)) return c.text("access denied\n", 403);
  c.header("access-control-allow-methods", "GET, HEAD, POST");
  c.header("access-control-allow-headers", "content-type");
  c.header("access-control-max-age", "600");
  return c.body(null, 204);
}

function refuse(method: MethodAccess, c: Call, dependencies: RouteDependencies, token: TokenState): void {
  const caller = { network: clientNetworkOf(c.env.origin), page: pageOf(c, dependencies), token };
  const refusal = refusalOf(method, caller);
  if (refusal === undefined) return;
  if (refusal === "access_denied") setRefusalHeaders(c);
  throw new SluiceError(refusal, REFUSAL_DETAILS[refusal]);
}

/** Reads the store for each call, so that a token that another process renewed is invalid at once. */
async function tokenStateOf(token: string | undefined, library: Library): Promise<TokenState> {
  if (token === undefined) return "none";
  return (await library.access.isToken(token)) ? "valid" : "wrong";
}

function setCorsHeaders(method: MethodAccess, c: Call, dependencies: RouteDependencies): boolean {
  const readers = pageReadAccess(method, pageOf(c, dependencies));
  if (readers === "none") return false;
  c.header("access-control-allow-origin", readers === "all" ? "*" : (c.req.header("origin") ?? ""));
  if (readers === "this") c.header("vary", "origin");
  return true;
}

function pageOf(c: Call, { access }: RouteDependencies) {
  return pageOriginOf(c, access?.allowedOrigins ?? []);
}
