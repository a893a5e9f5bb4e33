/** Where a request comes from (interface: Authentication 3). */
export type Asker = "local" | "intranet" | "internet";

/** Which page caused a request: none or our own, one of `allowed-origins`, or one of another site. */
export type Page = "own" | "listed" | "foreign";

/** What is known of the token that came along; one that was renewed is wrong. */
export type TokenFact = "none" | "wrong" | "good";

/** What of a control method decides who may call it. */
export interface MethodAccess {
  readonly name: string;
  readonly isPublic: boolean;
  readonly isRemote: boolean;
  readonly isOpenToPages: boolean;
}

/** The method that gives the key to all others: not even listed pages may call it. */
const TOKEN_METHOD = "get_api_access_token";

/** Whether askers from there may ask at all (interface: Authentication 3, 4). */
export function isAdmitted(
  asker: Asker,
  switches: { readonly allowsIntranet: boolean; readonly allowsRemote: boolean },
): boolean {
  if (asker === "local") return true;
  return asker === "intranet" ? switches.allowsIntranet : switches.allowsRemote;
}

/**
 * Why a method may not be called, or undefined where it may (interface: Authentication 1 to 5). First from where, then by
 * which page, then with which token: who may not ask at all is told nothing about tokens.
 */
export function refusalOf(
  method: MethodAccess,
  facts: { readonly asker: Asker; readonly page: Page; readonly token: TokenFact },
): "access_denied" | "token_required" | "wrong_token" | undefined {
  const { asker, page, token } = facts;
  if (!method.isRemote && asker !== "local") return "access_denied";
  const isOpen = method.isPublic && method.isOpenToPages;
  if (page === "foreign" && !isOpen) return "access_denied";
  if (page === "listed" && method.name === TOKEN_METHOD) return "access_denied";
  // Pages of the user's own choosing count as ours where they bring the token that the user gave them.
  const isFree = method.isPublic && (isOpen || page === "own");
  if (isFree || token === "good") return undefined;
  return token === "none" ? "token_required" : "wrong_token";
}

/** Which pages may read the answer: `*` only for what is public and open, and never for what needs a token. */
export function mayPageRead(method: MethodAccess, page: Page): "all" | "this" | "none" {
  if (method.isPublic && method.isOpenToPages) return "all";
  return page === "listed" && method.name !== TOKEN_METHOD ? "this" : "none";
}
