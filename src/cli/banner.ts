import { encode } from "uqr";
import { addressScope, addressText, type PeerAddress } from "../base/address.ts";
import { formatSize } from "../settings/kinds.ts";
import { networkUrls } from "./own-addresses.ts";

/** Facts about a started engine. */
export interface BannerFacts {
  readonly version: string;
  /** Name and version of the runtime, such as `node 24.0.0`. */
  readonly runtime: string;
  readonly http: PeerAddress;
  readonly p2pPort: number;
  /** Peers use the port over UDP too. */
  readonly hasUdp: boolean;
  readonly dataDir: string;
  /** Bytes; 0 if the disk cache is off. */
  readonly cacheLimit: number;
  /** Addresses of this machine on its networks. */
  readonly lanAddresses: readonly string[];
  /** See `exposureWarnings`. */
  readonly warnings: readonly string[];
}

/**
 * Returns the start-up text: addresses, folders, and commands to try. `json` returns the facts as one line of JSON, for scripts;
 * `terminal` adds a QR code of the address for other devices.
 */
export function banner(facts: BannerFacts, form: "text" | "terminal" | "json"): string {
  if (form === "json") return bannerJson(facts);
  const { http } = facts;
  const here = localUrl(http);
  const cache = facts.cacheLimit === 0 ? "no disk cache" : `cache up to ${formatSize(facts.cacheLimit)}`;
  const urls = networkUrls(http, facts.lanAddresses);
  const rows: [string, string][] = [
    ["Open", here],
    ...urls.map((url): [string, string] => ["Network", url]),
    ["Peers", `port ${facts.p2pPort} (${facts.hasUdp ? "TCP and UDP" : "TCP"})`],
    ["Data", `${facts.dataDir} (${cache})`],
  ];
  if (addressScope(http.host) === "loopback")
    rows.push(["Network", "this machine only; without --host, devices of your network can play too"]);
  rows.push(["Player", `mpv '${here}ace/getstream?magnet=…'`]);
  rows.push(["API", `${here}docs`]);
  rows.push(["Try", `curl '${here}ace/getstream?format=json&infohash=…'`]);
  rows.push(["Stop", "Ctrl-C"]);
  for (const warning of facts.warnings) rows.push(["Warning", warning]);
  const lines = rows.map(([name, value]) => `  ${name.padEnd(9)}${value}`);
  const code = form === "terminal" && urls.length > 0 ? [qrText(urls[0]!), ""] : [];
  return [`Sluice ${facts.version} on ${facts.runtime}`, "", ...lines, "", ...code].join("\n");
}

function bannerJson({ http, lanAddresses, ...facts }: BannerFacts): string {
  return `${JSON.stringify({
    version: facts.version,
    runtime: facts.runtime,
    url: localUrl(http),
    network_urls: networkUrls(http, lanAddresses),
    p2p_port: facts.p2pPort,
    data_dir: facts.dataDir,
    warnings: facts.warnings,
  })}\n`;
}

/** The URL of the interface on this machine. */
function localUrl(http: PeerAddress): string {
  const host = addressScope(http.host) === "unspecified" ? "127.0.0.1" : http.host;
  return `http://${addressText({ host, port: http.port })}/`;
}

/** Returns a QR code (ISO 18004) of `text`: two rows of modules a line, black on white whatever the terminal's colors are. */
function qrText(text: string): string {
  const { data, size } = encode(text, { border: 2 });
  const lines = Array.from({ length: Math.ceil(size / 2) }, (_, line) => {
    const [upper, lower] = [data[2 * line]!, data[2 * line + 1] ?? []];
    const cells = upper.map((isDark, x) => (isDark ? (lower[x] ? "█" : "▀") : lower[x] ? "▄" : " "));
    return `  \x1b[30;107m${cells.join("")}\x1b[0m`;
  });
  return lines.join("\n");
}
