import { addressScope, canonicalAddress } from "../base/address.ts";

const MAX_CHARACTERS = 200;

/**
 * Checks the address of an engine, which comes from the store: players are sent there. Returns its origin, such as `http://10.0.0.5:6878`; undefined
 * unless it is a plain `http` or `https` URL without user, path and query. A loopback address is valid only if `own`, the address of this engine, is
 * one, too; link-local and multicast addresses never are.
 */
export function vettedAddress(text: string, own: string): string | undefined {
  const url = plainUrl(text);
  if (url === undefined) return undefined;
  const scope = scopeOf(url);
  if (scope === "name" || scope === "global" || scope === "private") return url.origin;
  const ownUrl = plainUrl(own);
  return scope === "loopback" && ownUrl && scopeOf(ownUrl) === "loopback" ? url.origin : undefined;
}

function plainUrl(text: string): URL | undefined {
  if (text.length > MAX_CHARACTERS || !/^https?:\/\/[^/?#@\\\s]+\/?$/i.test(text) || !URL.canParse(text))
    return undefined;
  const url = new URL(text);
  return url.hostname === "" || url.username !== "" ? undefined : url;
}

function scopeOf({ hostname }: URL): ReturnType<typeof addressScope> | "name" {
  const host = canonicalAddress(hostname.replace(/^\[|\]$/g, ""));
  if (host !== undefined) return addressScope(host);
  return /(^|\.)localhost\.?$/.test(hostname) ? "loopback" : "name";
}
