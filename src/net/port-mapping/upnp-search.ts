import { linkedAbort } from "../../async/abort.ts";
import { sleep } from "../../async/sleep.ts";
import { encodeSsdpSearch, SSDP_GROUP, SSDP_PORT } from "../../wire/upnp/ssdp.ts";
import { type RouterDependencies, RouterError, type RouterLocation } from "./contract.ts";
import { bindLocal } from "./find-router.ts";
import { descriptionUrl } from "./upnp-urls.ts";

/** Search targets; a version 2 router responds to both (UPnP Device Architecture 1.1, section 1.3.2). */
const TARGETS = [1, 2].map((version) => `urn:schemas-upnp-org:device:InternetGatewayDevice:${version}`);
/** Each search is sent twice, because datagrams can be lost. Routers respond within two seconds. */
const ROUNDS = 2;
const ROUND_MS = 1_250;
/** A router has one or two descriptions. */
const MAX_LOCATIONS = 4;

/**
 * Finds the device descriptions of the router by SSDP. A response is accepted only if the description is at the responder's
 * own address. Rejects with `RouterError` if no router responds.
 */
export async function searchRouters(
  { runtime }: Pick<RouterDependencies, "runtime">,
  router: RouterLocation,
  signal: AbortSignal,
): Promise<URL[]> {
  signal.throwIfAborted();
  const { clock, net } = runtime;
  const locations = new Map<string, URL>();
  const enough = linkedAbort(signal);
  const socket = await bindLocal(net, router.own.host, (bytes, from) => {
    const location = descriptionUrl(bytes, from, router);
    if (location === undefined || locations.size >= MAX_LOCATIONS) return;
    locations.set(location.href, location);
    enough.abort();
  });
  try {
    for (let round = 0; round < ROUNDS && !enough.signal.aborted; round++) {
      for (const target of TARGETS) {
        // Also by unicast, which may work if multicast is filtered.
        for (const host of [SSDP_GROUP, router.router]) {
          socket.send(encodeSsdpSearch(target, host), { host, port: SSDP_PORT });
        }
      }
      await sleep(clock, ROUND_MS, enough.signal);
    }
  } finally {
    enough.release();
    socket.close();
  }
  signal.throwIfAborted();
  if (locations.size === 0) throw new RouterError("no router responds to a UPnP search", "silent");
  return [...locations.values()];
}
