/** Where a request comes from (interface: Authentication 3). */
export type ClientNetwork = "local" | "intranet" | "internet";

/** The page that caused a request: none or the engine's own, a page listed in `allowed-origins`, or any other page. */
export type PageOrigin = "same-origin" | "allowed" | "foreign";

/** The state of the access token that came with a request. A token that was renewed is `wrong`. */
export type TokenState = "none" | "wrong" | "valid";

/** The properties of a control method that decide which callers it accepts. */
export interface MethodAccess {
  readonly name: string;
  readonly isPublic: boolean;
  readonly isRemote: boolean;
  readonly isCrossOrigin: boolean;
}

/** This method returns the token for all others, so not even pages of `allowed-origins` may call it. */
const TOKEN_METHOD = "get_api_access_token";

/** Returns whether clients of this network may send requests at all (interface: Authentication 3, 4). */
export function isAdmitted(
  network: ClientNetwork,
  switches: { readonly allowsIntranet: boolean; readonly allowsRemote: boolean },
): boolean {
  if (network === "local") return true;
  return network === "intranet" ? switches.allowsIntranet : switches.allowsRemote;
}

/**
 * Returns why a caller may not call a method, or undefined if it may (interface: Authentication 1 to 5). Checks the
 * network first, then the page, then the token, so that a refused caller learns nothing about tokens.
 */
export function refusalOf(
  method: MethodAccess,
  caller: { readonly network: ClientNetwork; readonly page: PageOrigin; readonly token: TokenState },
): "access_denied" | "token_required" | "wrong_token" | undefined {
  const { network, page, token } = caller;
  if (!method.isRemote && network !== "local") return "access_denied";
  const isOpen = method.isPublic && method.isCrossOrigin;
  if (page === "foreign" && !isOpen) return "access_denied";
  if (page === "allowed" && method.name === TOKEN_METHOD) return "access_denied";
  // A page of `allowed-origins` needs the token that the user gave it, even for public methods.
  const needsNoToken = method.isPublic && (isOpen || page === "same-origin");
  if (needsNoToken || token === "valid") return undefined;
  return token === "none" ? "token_required" : "wrong_token";
}

/** Returns which pages may read the response: `all` (`*`) only for public cross-origin methods, never for private ones. */
export function pageReadAccess(method: MethodAccess, page: PageOrigin): "all" | "this" | "none" {
  if (method.isPublic && method.isCrossOrigin) return "all";
  return page === "allowed" && method.name !== TOKEN_METHOD ? "this" : "none";
}
