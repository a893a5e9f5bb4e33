import { addressScope, addressText, type PeerAddress } from "../base/address.ts";
import { formatSize } from "../setting-kinds.ts";
import { networkUrls } from "./network-urls.ts";

/** What the banner tells. */
export interface BannerFacts {
  readonly version: string;
  readonly runtime: string;
  readonly http: PeerAddress;
  readonly p2pPort: number;
  /** Peers speak to that port over UDP too. */
  readonly hasUdp: boolean;
  readonly dataDir: string;
  readonly cacheLimit: number;
  /** Addresses of this machine on its networks. */
  readonly lanAddresses: readonly string[];
}

/** What a newcomer needs once the engine is up: where it listens, where things are kept, what to open, what to try. */
export function banner(facts: BannerFacts): string {
  const { http } = facts;
  const isEverywhere = http.host === "0.0.0.0" || http.host === "::";
  const here = `http://${addressText(isEverywhere ? { ...http, host: "127.0.0.1" } : http)}/`;
  const cache =
    facts.cacheLimit === 0 ? "nothing kept on disk" : `cache up to ${formatSize(facts.cacheLimit)}`;
  const rows: [string, string][] = [
    ["Open", here],
    ["Peers", `port ${facts.p2pPort} (${facts.hasUdp ? "TCP and UDP" : "TCP"})`],
    ["Data", `${facts.dataDir} (${cache})`],
  ];
  const elsewhere = networkUrls(http, facts.lanAddresses);
  for (const url of elsewhere) rows.push(["Network", url]);
  if (addressScope(http.host) === "loopback")
    rows.push(["Network", "only this machine; --host 0.0.0.0 lets other devices in"]);
  rows.push(["Player", `mpv '${here}ace/getstream?magnet=…'`]);
  rows.push(["API", `${here}docs`]);
  rows.push(["Try", `curl '${here}ace/getstream?format=json&infohash=…'`]);
  rows.push(["Stop", "Ctrl-C"]);
  const lines = rows.map(([name, value]) => `  ${name.padEnd(9)}${value}`);
  return [`Sluice ${facts.version} on ${facts.runtime}`, "", ...lines, ""].join("\n");
}
