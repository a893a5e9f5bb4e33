import { addressScope, type PeerAddress } from "../../base/address.ts";
import { DecodeError } from "../../base/errors.ts";
import { isInNetwork } from "../../base/network.ts";
import type { RouterDescription, WanService } from "../../wire/router/upnp-description.ts";
import { decodeSsdpResponse } from "../../wire/upnp/ssdp.ts";
import type { RouterLocation } from "./contract.ts";

/** A service and its control URL. */
export interface ServiceEndpoint {
  readonly type: WanService["type"];
  readonly url: URL;
}

/** Returns the services at the router's own address; a description must not direct us to other hosts. */
export function serviceEndpoints({ baseUrl, services }: RouterDescription, location: URL): ServiceEndpoint[] {
  const base = (baseUrl === undefined ? undefined : ownUrl(baseUrl, location.hostname)) ?? location;
  return services.flatMap(({ type, controlUrl }) => {
    const url = ownUrl(controlUrl, location.hostname, base);
    return url ? [{ type, url }] : [];
  });
}

/** Returns the description URL of a response; undefined if it is not the router's own. */
export function descriptionUrl(
  bytes: Uint8Array,
  from: PeerAddress,
  router: RouterLocation,
): URL | undefined {
  const isRouter = router.isGuessed ? isInNetwork(from.host, router.own) : from.host === router.router;
  if (!isRouter) return undefined;
  try {
    return ownUrl(decodeSsdpResponse(bytes).location, from.host);
  } catch (thrown) {
    if (!(thrown instanceof DecodeError)) throw thrown;
    return undefined;
  }
}

/** Parses a URL (relative to `base`) that must point to `host`, a private address. Undefined if it does not. */
function ownUrl(text: string, host: string, base?: URL): URL | undefined {
  if (!URL.canParse(text, base)) return undefined;
  const url = new URL(text, base);
  const isOwn = url.protocol === "http:" && url.hostname === host && url.username + url.password === "";
  return isOwn && addressScope(host) === "private" ? url : undefined;
}
