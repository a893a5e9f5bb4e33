import { addressScope, type PeerAddress } from "../../../base/address.ts";
import { DecodeError } from "../../../base/errors.ts";
import { isInNetwork } from "../../../base/network.ts";
import { decodeSsdpAnswer, encodeSsdpSearch, SSDP_GROUP, SSDP_PORT } from "../../../wire/ssdp.ts";
import { pauseFor } from "../../live/source-feed.ts";
import { bindTo } from "./bind-to.ts";
import { RouterError, type RouterParts, type RouterPlace } from "./contract.ts";

/** What routers answer to; one of version 2 answers to both (UPnP Device Architecture 1.1, 1.3.2). */
const TARGETS = [1, 2].map((version) => `urn:schemas-upnp-org:device:InternetGatewayDevice:${version}`);
/** Datagrams get lost: asked twice. Answers come within two seconds. */
const ROUNDS = 2;
const ROUND_MS = 1_250;
/** One router has one description, some have two. */
const MAX_LOCATIONS = 4;

/**
 * Where the descriptions of the network's routers are. Only one that answers for itself is believed: its description is at
 * its own address. Rejects with `RouterError` where none answers.
 */
export async function searchRouters(
  { runtime }: Pick<RouterParts, "runtime">,
  place: RouterPlace,
  signal: AbortSignal,
): Promise<URL[]> {
  signal.throwIfAborted();
  const { clock, net } = runtime;
  const locations = new Map<string, URL>();
  const enough = new AbortController();
  const stop = () => enough.abort();
  const socket = await bindTo(net, place.own.host, (bytes, from) => {
    const location = locationOf(bytes, from, place);
    if (location === undefined || locations.size >= MAX_LOCATIONS) return;
    locations.set(location.href, location);
    stop();
  });
  signal.addEventListener("abort", stop, { once: true });
  try {
    for (let round = 0; round < ROUNDS && !enough.signal.aborted; round++) {
      for (const target of TARGETS) {
        // To the router alone as well: where multicast is lost, that may pass.
        for (const host of [SSDP_GROUP, place.router]) {
          socket.send(encodeSsdpSearch(target, host), { host, port: SSDP_PORT });
        }
      }
      await pauseFor(clock, ROUND_MS, enough.signal);
    }
  } finally {
    signal.removeEventListener("abort", stop);
    socket.close();
  }
  signal.throwIfAborted();
  if (locations.size === 0) throw new RouterError("no router answers to a search for UPnP", "silent");
  return [...locations.values()];
}

/** The URL that an answer names, where whoever answers may name it; undefined otherwise. */
export function locationOf(bytes: Uint8Array, from: PeerAddress, place: RouterPlace): URL | undefined {
  const isRouter = place.isGuessed ? isInNetwork(from.host, place.own) : from.host === place.router;
  if (!isRouter) return undefined;
  try {
    return ownUrl(decodeSsdpAnswer(bytes).location, from.host);
  } catch (thrown) {
    if (!(thrown instanceof DecodeError)) throw thrown;
    return undefined;
  }
}

/** Reads a URL that must lead to `host`, a private address; relative ones to `base`. Undefined where it leads elsewhere. */
export function ownUrl(text: string, host: string, base?: URL): URL | undefined {
  if (!URL.canParse(text, base)) return undefined;
  const url = new URL(text, base);
  const isOwn = url.protocol === "http:" && url.hostname === host && url.username + url.password === "";
  return isOwn && addressScope(host) === "private" ? url : undefined;
}
