import type { DiagnosisRow } from "../base/diagnosis.ts";
import type { DhtFigures } from "./contract.ts";
import type { LocalFigures } from "./lsd.ts";
import type { PortMappingFigures } from "./port-mapping/port-mapping.ts";

/** With fewer nodes, a lookup may end before it reaches the nodes close to its target. */
const FEW_NODES = 20;

/** Returns the diagnosis of the DHT; undefined figures: it is off. */
export function dhtRow(figures: DhtFigures | undefined): DiagnosisRow {
  const name = "DHT";
  if (!figures)
    return { name, level: "note", text: "The DHT is off: content without trackers cannot be found." };
  const { nodes4, nodes6, bytesIn } = figures;
  const count = nodes4 + nodes6;
  if (count >= FEW_NODES)
    return { name, level: "ok", text: `${nodes4} IPv4 nodes and ${nodes6} IPv6 nodes have responded.` };
  if (count > 0) return { name, level: "note", text: `Only ${nodeCount(count)} responded so far.` };
  return {
    name,
    level: "warn",
    text: bytesIn === 0 ? "No DHT node has responded: no data received." : "No DHT node has responded yet.",
    advice:
      "Allow outgoing UDP in the firewall and check the DNS, or name other bootstrap nodes with --dht-nodes.",
  };
}

function nodeCount(count: number): string {
  return count === 1 ? "1 node has" : `${count} nodes have`;
}

/** The row of the peer port if a strict proxy carries no incoming connections. */
export const unreachableRow: DiagnosisRow = {
  name: "Port",
  level: "note",
  text: "Peers cannot connect to this machine through the proxy. Only outgoing connections are possible.",
};

/** Returns the diagnosis of port mapping; undefined figures: it is off. */
export function routerRow(figures: PortMappingFigures | undefined): DiagnosisRow {
  const name = "Router";
  if (!figures) return { name, level: "note", text: "Port mapping is off." };
  const { state, by, externalAddress, externalPort, isBehindAnother, problem } = figures;
  if (state === "looking") return { name, level: "note", text: "Searching for the router." };
  if (state === "unneeded")
    return { name, level: "ok", text: "Port mapping is not needed: this machine has an address of its own." };
  if (state === "failed") {
    return {
      name,
      level: "note",
      text: `The router does not forward the peer port: ${problem ?? "no reason given"}.`,
      advice: "Turn on UPnP, NAT-PMP or PCP in the router, or forward the port by hand.",
    };
  }
  const where = externalAddress === undefined ? `port ${externalPort}` : `${externalAddress}:${externalPort}`;
  if (!isBehindAnother)
    return { name, level: "ok", text: `The router forwards ${where} to this machine (${by}).` };
  return {
    name,
    level: "note",
    text: `The router forwards ${where} to this machine (${by}), but that is not a public address: another router is in front of it.`,
    advice:
      "Many providers share addresses between customers. Outgoing connections work; ask the provider for a public address.",
  };
}

/** Returns the diagnosis of local discovery; undefined figures: it is off. */
export function localRow(figures: LocalFigures | undefined): DiagnosisRow {
  const name = "Local peers";
  if (!figures) return { name, level: "note", text: "Local discovery is off." };
  const { networks, announcesReceived } = figures;
  if (networks === 0) return { name, level: "note", text: "No local network is available for discovery." };
  const received =
    announcesReceived === 0 ? "no announcement received yet" : `${announcesReceived} announcements received`;
  return {
    name,
    level: "ok",
    text: `Searching in ${networks === 1 ? "1 network" : `${networks} networks`}; ${received}.`,
  };
}
