import type { DiagnosisRow } from "../diagnosis/contract.ts";
import type { DhtFigures } from "./contract.ts";
import type { LocalFigures } from "./lsd.ts";
import type { PortMappingFigures } from "./port-mapping/port-mapping.ts";

/** Fewer nodes than that, and a lookup may end before it comes to those who know. */
const FEW_NODES = 20;

/** How the DHT is doing. */
export function dhtRow(figures: DhtFigures | undefined): DiagnosisRow {
  const name = "DHT";
  if (!figures)
    return { name, level: "note", text: "It is off: content without trackers is found in no other way." };
  const { nodes4, nodes6, bytesIn } = figures;
  const count = nodes4 + nodes6;
  if (count >= FEW_NODES)
    return { name, level: "ok", text: `${nodes4} nodes of IPv4 and ${nodes6} of IPv6 are known.` };
  if (count > 0)
    return { name, level: "note", text: `Only ${count} nodes are known yet; they lead to others.` };
  return {
    name,
    level: "warn",
    text: bytesIn === 0 ? "No node has answered: not a byte has come." : "No node has answered yet.",
    advice: "Let UDP out at the firewall, and look at the DNS; other nodes are named by --dht-nodes.",
  };
}

/** What stands in the place of the port, where a proxy that may not be gone around carries no calls from outside. */
export const unreachableRow: DiagnosisRow = {
  name: "Port",
  level: "note",
  text: "Nobody can call us through the proxy. We call others, which reaches whoever can be called.",
};

/** How the router lets peers in. */
export function routerRow(figures: PortMappingFigures | undefined): DiagnosisRow {
  const name = "Router";
  if (!figures) return { name, level: "note", text: "It is not asked to let peers in." };
  const { state, by, externalAddress, externalPort, isBehindAnother, problem } = figures;
  if (state === "looking") return { name, level: "note", text: "It is being looked for." };
  if (state === "unneeded")
    return { name, level: "ok", text: "There is none to be asked: this machine has an address of its own." };
  if (state === "failed") {
    return {
      name,
      level: "note",
      text: `It does not let peers in: ${problem ?? "it does not say why"}.`,
      advice: "Turn on UPnP, NAT-PMP or PCP there, or let the port in by hand.",
    };
  }
  const where = externalAddress === undefined ? `port ${externalPort}` : `${externalAddress}:${externalPort}`;
  if (!isBehindAnother) return { name, level: "ok", text: `It lets peers in at ${where} (${by}).` };
  return {
    name,
    level: "note",
    text: `It lets peers in at ${where} (${by}), but that is no address of the Internet: there is another router behind it.`,
    advice: "Many providers share addresses. Peers are called all the same; ask for an address of your own.",
  };
}

/** How neighbours are found. */
export function localRow(figures: LocalFigures | undefined): DiagnosisRow {
  const name = "Neighbours";
  if (!figures) return { name, level: "note", text: "Engines of this network are not looked for." };
  const { networks, announcesHeard } = figures;
  if (networks === 0)
    return { name, level: "note", text: "There is no network in which others could be looked for." };
  const heard = announcesHeard === 0 ? "nobody has been heard yet" : `${announcesHeard} words were heard`;
  return {
    name,
    level: "ok",
    text: `Others are looked for in ${networks === 1 ? "1 network" : `${networks} networks`}; ${heard}.`,
  };
}
