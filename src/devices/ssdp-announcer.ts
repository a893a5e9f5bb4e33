import { DecodeError, messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { isInNetwork } from "../base/network.ts";
import { after } from "../base/time.ts";
import { replyLimit } from "../net/tuner-discovery.ts";
import type { OwnNetwork, Runtime, UdpSocket } from "../runtime/contract.ts";
import { MEDIA_SERVER, serviceType } from "../wire/upnp/media-server.ts";
import {
  decodeSsdpSearch,
  encodeSsdpNotify,
  encodeSsdpResponse,
  SSDP_GROUP,
  SSDP_PORT,
} from "../wire/upnp/ssdp.ts";
import { deviceNetworks } from "./device-networks.ts";

/** Dependencies of {@link announceMediaServer}. */
export interface AnnouncerDependencies {
  readonly runtime: Pick<Runtime, "net" | "clock" | "surroundings">;
  /** See {@link deviceNetworks}. */
  readonly interfaces: string;
  /** The unique device name, `uuid:…`. */
  readonly udn: string;
  /** The URL of the device description for a network. */
  readonly locationAt: (host: string) => string;
  /** Returns true while clients of the local network may use the engine. */
  readonly isAllowed: () => boolean;
  readonly log: Log;
}

/** Announcements expire after 30 minutes; they are repeated before half of that (UPnP Device Architecture 1.0, section 1.1.2). */
const ANNOUNCE_MS = 600_000;
/** New networks are found within this time. */
const CHECK_MS = 30_000;
/** Multicast for devices stays in the network; a few access points forward it once. */
const HOPS = 2;

/** One network that the server is announced in. */
interface Place {
  readonly network: OwnNetwork;
  readonly socket: UdpSocket;
}

/**
 * Announces the media server by SSDP on the chosen networks only, and answers searches from them. The returned function says goodbye and
 * closes the sockets.
 */
export function announceMediaServer(dependencies: AnnouncerDependencies): () => void {
  const { runtime, interfaces, udn, locationAt, isAllowed, log } = dependencies;
  const { clock, net, surroundings } = runtime;
  const targets = [
    "upnp:rootdevice",
    udn,
    MEDIA_SERVER,
    serviceType("ContentDirectory"),
    serviceType("ConnectionManager"),
  ];
  /** By the address of the network; undefined while the socket opens, or if it cannot. */
  const places = new Map<string, Place | undefined>();
  const mayReply = replyLimit();
  let isClosed = false;
  let announcedAt = clock.now();
  let cancel = () => {};

  const facts = (target: string, { host }: OwnNetwork) => ({
    target,
    usn: target === udn ? udn : `${udn}::${target}`,
    location: locationAt(host),
  });
  const notify = ({ network, socket }: Place, isAlive: boolean) => {
    for (const target of targets)
      socket.send(encodeSsdpNotify(facts(target, network), isAlive), { host: SSDP_GROUP, port: SSDP_PORT });
  };
  const answer = (network: OwnNetwork, bytes: Uint8Array, from: { host: string; port: number }) => {
    // The system delivers datagrams of the group to the sockets of all networks.
    if (!isInNetwork(from.host, network) || !isAllowed()) return;
    let target: string | undefined;
    try {
      target = decodeSsdpSearch(bytes);
    } catch (thrown) {
      if (!(thrown instanceof DecodeError)) throw thrown; // Other programs use the group too.
    }
    const matches = targets.filter((each) => target === "ssdp:all" || target === each);
    const place = places.get(network.host);
    if (matches.length === 0 || place === undefined || !mayReply(clock.now())) return;
    for (const match of matches) place.socket.send(encodeSsdpResponse(facts(match, network)), from);
  };
  const open = async (network: OwnNetwork) => {
    places.set(network.host, undefined);
    const multicast = { group: SSDP_GROUP, networkAddress: network.multicastAddress, hops: HOPS };
    try {
      const received = (bytes: Uint8Array, from: { host: string; port: number }) =>
        answer(network, bytes, from);
      const socket = await net.bindUdp({ host: "0.0.0.0", port: SSDP_PORT }, received, { multicast });
      if (isClosed || !places.has(network.host)) return socket.close();
      const place = { network, socket };
      places.set(network.host, place);
      if (isAllowed()) notify(place, true);
      log.info("announced the media server", { interface: network.interfaceName, address: network.host });
    } catch (error) {
      // The entry stays, so that the network is not tried and logged again in each check.
      log.warn("cannot announce the media server", {
        interface: network.interfaceName,
        reason: messageOf(error),
      });
    }
  };
  const check = () => {
    const networks = deviceNetworks(surroundings.networks(), interfaces);
    for (const [host, place] of places) {
      if (networks.some((network) => network.host === host)) continue;
      place?.socket.close();
      places.delete(host);
    }
    for (const network of networks) if (!places.has(network.host)) void open(network);
    if (after(announcedAt, ANNOUNCE_MS) <= clock.now()) {
      announcedAt = clock.now();
      if (isAllowed()) for (const place of places.values()) if (place) notify(place, true);
    }
    cancel = clock.at(after(clock.now(), CHECK_MS), check);
  };
  check();
  return () => {
    isClosed = true;
    cancel();
    for (const place of places.values()) {
      if (place === undefined) continue;
      notify(place, false);
      // The goodbye is on its way when the socket closes, because the system sends a datagram at once.
      place.socket.close();
    }
    places.clear();
  };
}
