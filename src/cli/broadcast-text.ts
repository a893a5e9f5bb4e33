import { addressText, type PeerAddress } from "../base/address.ts";
import type { Broadcast, BroadcastFigures, Publishing } from "../live/broadcast/broadcast-contract.ts";
import { printable } from "./log.ts";
import { bitsText } from "./units.ts";

/** Ports, URLs and commands for the text of a broadcast. */
export interface BroadcastPlaces {
  readonly p2pPort: number;
  /** `http://host:port` of the HTTP interface of this process. */
  readonly httpUrl: string;
  /** How the user starts this program: see {@link startCommand}. */
  readonly program: string;
  /** Viewers can find the broadcast through the DHT. */
  readonly hasDht: boolean;
}

/** Returns the text shown when the stream is on air: its names, and how to watch it here and elsewhere. */
export function broadcastText(broadcast: Broadcast, places: BroadcastPlaces): string {
  const { p2pPort, httpUrl, program } = places;
  const { request, magnet, link, publishing } = broadcast;
  const called = encodeURIComponent(magnet);
  const rows: readonly (readonly [string, string])[] = [
    ...(publishing ? publishRows(publishing) : []),
    ["Link", link],
    ["Magnet", magnet],
    ["Id", broadcast.contentId],
    ["Infohash", broadcast.infohash],
    ["File", `${broadcast.transportFilePath}${fileRemark(broadcast, places)}`],
    [
      "Peers",
      `port ${p2pPort} at ${hostsText(request.addresses)}${request.isPrivate ? ", for relays only" : ""}`,
    ],
    ["Preview", `${httpUrl}/ace/getstream?infohash=${broadcast.infohash}`],
    ["Watch", `${program} play '${link}'`],
    ["Player", `http://127.0.0.1:6878/ace/getstream?magnet=${called}`],
    ["Stop", "Ctrl-C; the next start keeps the link"],
  ];
  const title = printable(request.meta.title ?? request.name);
  const lines = rows.map(([name, value]) => `  ${name.padEnd(9)}${printable(value)}`);
  const state = request.isStandby ? "Standby" : "On air";
  return [`${state}: ${title}`, "", ...lines, ""].join("\n");
}

/** What to enter in OBS: server and stream key, or for SRT the server alone. */
function publishRows({ urls, key }: Publishing): [string, string][] {
  const hasKey = urls.some((url) => url.startsWith("srt:"));
  const suffix = hasKey ? `?passphrase=${encodeURIComponent(key)}` : "";
  return [
    ...urls.map((url, index): [string, string] => [index === 0 ? "Publish" : "or", `${url}${suffix}`]),
    ...(hasKey ? [] : [["Key", key] as [string, string]]),
  ];
}

/** Unlike the link, the transport file contains no address of this machine. */
function fileRemark({ request }: Broadcast, { hasDht }: BroadcastPlaces): string {
  if (request.trackers.length > 0 || request.relays.length > 0) return "";
  return hasDht
    ? "  (viewers find this machine through the DHT; faster with a tracker or relay)"
    : "  (viewers find this machine only with a tracker or relay)";
}

/** Returns the same facts as one line of JSON, for scripts. */
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
    ...(broadcast.publishing && {
      publish_urls: broadcast.publishing.urls,
      stream_key: broadcast.publishing.key,
    }),
  })}\n`;
}

/** Returns the status line: `good · 12 peers, 3 direct viewers · piece 14283 · 8.0 Mbit/s · upload 24.3 Mbit/s`. */
export function broadcastStatus(figures: BroadcastFigures): string {
  const { health, remark, peers, children, seq, bytesPerSecond, uploadBytesPerSecond } = figures;
  const parts: string[] = [health === "good" || remark === "" ? health : `${health}: ${printable(remark)}`];
  parts.push(
    `${peers} ${peers === 1 ? "peer" : "peers"}, ${children} direct ${children === 1 ? "viewer" : "viewers"}`,
  );
  if (seq !== undefined) parts.push(`piece ${seq}`);
  if (bytesPerSecond !== undefined) parts.push(bitsText(bytesPerSecond));
  parts.push(`upload ${bitsText(uploadBytesPerSecond)}`);
  return parts.join(" · ");
}

function hostsText(addresses: readonly PeerAddress[]): string {
  return addresses.map(addressText).join(", ");
}

/** Returns how the user starts the program, for commands to copy: `sluice`, or the script of npm or Bun. */
export function startCommand(environment: Readonly<Record<string, string | undefined>>): string {
  // npm and Bun set the name of the script and their own name: `npm/10.2.4 node/…`, `bun/1.4.5 …`.
  if (environment.npm_lifecycle_event !== "start") return "sluice";
  return environment.npm_config_user_agent?.startsWith("bun/") ? "bun run start" : "npm start --";
}
