import type { Context } from "hono";
import { askerOf, isOwnPage } from "./access.ts";
import type { House, RouteEnv } from "./house.ts";

/**
 * Whether this request may make the engine fetch from loopback and private addresses: whoever sits at this host may, and
 * with the setting `private-urls=intranet` whoever is in its network; never because a page of another site caused it.
 */
export function mayReachPrivate(c: Context<RouteEnv>, house: Pick<House, "privateUrls">): boolean {
  if (!isOwnPage(c)) return false;
  const asker = askerOf(c.env.origin);
  return asker === "local" || (asker === "intranet" && house.privateUrls === "intranet");
}
