import { sleep } from "../async/sleep.ts";
import { DecodeError, messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { isInNetwork } from "../base/network.ts";
import type { OwnNetwork, UdpSocket } from "../runtime/contract.ts";
import {
  decodeMdnsServices,
  encodeMdnsQuery,
  MDNS_GROUP,
  MDNS_PORT,
  type MdnsService,
} from "../wire/mdns.ts";
import { decodeSsdpResponse, encodeSsdpSearch, SSDP_GROUP, SSDP_PORT } from "../wire/upnp/ssdp.ts";
import type { DeviceRuntime } from "./contract.ts";
import { deviceUrl } from "./device-networks.ts";

const RENDERER = "urn:schemas-upnp-org:device:MediaRenderer:1";
/** Kodi's JSON-RPC over TCP and over HTTP, and Chromecasts. */
export const MDNS_TYPES = [
  "_xbmc-jsonrpc._tcp.local",
  "_xbmc-jsonrpc-h._tcp.local",
  "_googlecast._tcp.local",
] as const;
/** Devices spread their responses over one second (`MX`). */
const RESPONSE_SECONDS = 1;
/** Datagrams can be lost: each search is sent three times, soon after another so that a list is complete early. */
const ROUND_MS = [400, 800, 1_300];
/** Datagrams of one search that are processed, in all and of one sender; a home has a few dozen devices, which answer each round. */
const MAX_DATAGRAMS = 1_000;
const MAX_DATAGRAMS_PER_HOST = 64;
/** Multicast for devices stays in the network; a few access points forward it once. */
const HOPS = 2;

/** An answer to a search. */
export type Sighting =
  | { readonly kind: "upnp"; readonly location: URL; readonly host: string; readonly network: OwnNetwork }
  | {
      readonly kind: "mdns";
      readonly service: MdnsService;
      readonly host: string;
      readonly network: OwnNetwork;
    };

/**
 * Searches these networks for devices by SSDP and multicast DNS, for 2.5 s. Calls `found` for each answer, several times for
 * the same device. Only answers of senders within the network count. A network that cannot be searched is logged.
 */
export async function searchDevices(
  runtime: DeviceRuntime,
  networks: readonly OwnNetwork[],
  found: (sighting: Sighting) => void,
  log: Log,
  signal: AbortSignal,
): Promise<void> {
  const sockets = (
    await Promise.all(networks.map((network) => openSockets(runtime, network, found, log)))
  ).flat();
  try {
    for (const ms of ROUND_MS) {
      for (const { send } of sockets) send();
      await sleep(runtime.clock, ms, signal);
      if (signal.aborted) return;
    }
  } finally {
    for (const { socket } of sockets) socket.close();
  }
}

interface SearchSocket {
  readonly socket: UdpSocket;
  send(): void;
}

async function openSockets(
  { net }: DeviceRuntime,
  network: OwnNetwork,
  found: (sighting: Sighting) => void,
  log: Log,
): Promise<SearchSocket[]> {
  let left = MAX_DATAGRAMS;
  const perHost = new Map<string, number>();
  const fromNetwork =
    (take: (bytes: Uint8Array, host: string) => void) => (bytes: Uint8Array, from: { host: string }) => {
      if (!isInNetwork(from.host, network) || left <= 0) return;
      const count = (perHost.get(from.host) ?? 0) + 1;
      if (count > MAX_DATAGRAMS_PER_HOST) return;
      perHost.set(from.host, count);
      left--;
      try {
        take(bytes, from.host);
      } catch (thrown) {
        if (!(thrown instanceof DecodeError)) throw thrown; // Other programs use these groups too.
      }
    };
  const open = async (
    port: number,
    group: string,
    to: number,
    query: Uint8Array<ArrayBuffer>,
    take: (bytes: Uint8Array, host: string) => void,
  ) => {
    // Answers to SSDP come to our address; multicast DNS answers go to the group, whose sockets are bound to any address.
    const host = port === 0 ? network.host : "0.0.0.0";
    const multicast = { group, networkAddress: network.multicastAddress, hops: HOPS };
    try {
      const socket = await net.bindUdp({ host, port }, fromNetwork(take), { multicast });
      return [{ socket, send: () => socket.send(query, { host: group, port: to }) }];
    } catch (thrown) {
      log.debug("cannot search a network for devices", {
        interface: network.interfaceName,
        reason: messageOf(thrown),
      });
      return [];
    }
  };
  const ssdp = open(
    0,
    SSDP_GROUP,
    SSDP_PORT,
    encodeSsdpSearch(RENDERER, SSDP_GROUP, RESPONSE_SECONDS),
    (bytes, host) => {
      const location = deviceUrl(decodeSsdpResponse(bytes).location, host, network);
      if (location) found({ kind: "upnp", location, host, network });
    },
  );
  const mdns = open(MDNS_PORT, MDNS_GROUP, MDNS_PORT, encodeMdnsQuery(MDNS_TYPES), (bytes, host) => {
    for (const service of decodeMdnsServices(bytes, MDNS_TYPES))
      if (service.isAlive) found({ kind: "mdns", service, host, network });
  });
  return (await Promise.all([ssdp, mdns])).flat();
}
