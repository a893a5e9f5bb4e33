import { addressText, type PeerAddress } from "../base/address.ts";
import type { Broadcast, BroadcastFigures } from "../engine/live/broadcast-contract.ts";
import { printable } from "./log.ts";
import { bitsText } from "./units.ts";

/** Where a broadcast can be reached from here. */
export interface BroadcastPlaces {
  readonly p2pPort: number;
  /** `http://host:port` of its own HTTP interface. */
  readonly httpUrl: string;
  /** How this program is started here, such as `sluice` (program-word.ts). */
  readonly program: string;
  /** Viewers can find it by the DHT. */
  readonly hasDht: boolean;
}

/** What a newcomer needs once the stream is on air: what it is called, how to look at it, how to watch it elsewhere. */
export function broadcastText(broadcast: Broadcast, places: BroadcastPlaces): string {
  const { p2pPort, httpUrl, program } = places;
  const { request, magnet, link } = broadcast;
  const called = encodeURIComponent(magnet);
  const rows: readonly (readonly [string, string])[] = [
    ["Link", link],
    ["Magnet", magnet],
    ["Id", broadcast.contentId],
    ["Infohash", broadcast.infohash],
    ["File", `${broadcast.transportFilePath}${fileRemark(broadcast, places)}`],
    [
      "Peers",
      `port ${p2pPort} at ${hostsText(request.addresses)}${request.isPrivate ? ", for relays alone" : ""}`,
    ],
    ["Look", `${httpUrl}/ace/getstream?infohash=${broadcast.infohash}`],
    ["Watch", `${program} play '${link}'`],
    ["Player", `http://127.0.0.1:6878/ace/getstream?magnet=${called}`],
    ["Stop", "Ctrl-C; the next start goes on with the same link"],
  ];
  const title = printable(request.meta.title ?? request.name);
  const lines = rows.map(([name, value]) => `  ${name.padEnd(9)}${printable(value)}`);
  const state = request.isStandby ? "Standing by" : "On air";
  return [`${state}: ${title}`, "", ...lines, ""].join("\n");
}

/** The transport file names no address of this machine, as the link does. */
function fileRemark({ request }: Broadcast, { hasDht }: BroadcastPlaces): string {
  if (request.trackers.length > 0 || request.relays.length > 0) return "";
  return hasDht
    ? "  (leads viewers here by the DHT; sooner with a tracker or relay)"
    : "  (leads viewers here with a tracker or relay only)";
}

/** The same for scripts, on one line. */
export function broadcastJson(broadcast: Broadcast, { p2pPort, httpUrl }: BroadcastPlaces): string {
  const { request } = broadcast;
  return `${JSON.stringify({
    name: request.name,
    title: request.meta.title ?? request.name,
    ...(request.isStandby && { standby: true }),
    infohash: broadcast.infohash,
    content_id: broadcast.contentId,
    magnet: broadcast.magnet,
    link: broadcast.link,
    transport_file: broadcast.transportFilePath,
    addresses: request.addresses.map(addressText),
    p2p_port: p2pPort,
    http_url: httpUrl,
  })}\n`;
}

/** `good · 12 peers, 3 fed from here · piece 14283 · 8.0 Mbit/s · upload 24.3 Mbit/s`. */
export function broadcastStatus(figures: BroadcastFigures): string {
  const { health, remark, peers, children, seq, bytesPerSecond, uploadBytesPerSecond } = figures;
  const parts: string[] = [health === "good" || remark === "" ? health : `${health}: ${printable(remark)}`];
  parts.push(`${peers} ${peers === 1 ? "peer" : "peers"}, ${children} fed from here`);
  if (seq !== undefined) parts.push(`piece ${seq}`);
  if (bytesPerSecond !== undefined) parts.push(bitsText(bytesPerSecond));
  parts.push(`upload ${bitsText(uploadBytesPerSecond)}`);
  return parts.join(" · ");
}

function hostsText(addresses: readonly PeerAddress[]): string {
  return addresses.map(addressText).join(", ");
}
