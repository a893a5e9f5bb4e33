import { access, writeFile } from "node:fs/promises";
import type { Space, Spaces } from "./namespaces.ts";
import { type RunningProcess, run, startProcess } from "./process.ts";

/** A home network behind a router with NAT, and a machine outside. */
export interface Home {
  readonly inside: Space;
  readonly outside: Space;
  readonly router: Space;
  readonly insideAddress: string;
  readonly routerAddress: string;
  readonly outsideAddress: string;
  /** The outer address of the router: a global address that is only routed inside the test. */
  readonly externalAddress: string;
}

const MINIUPNPD = "/usr/sbin/miniupnpd";

/** Returns why this machine cannot run the router of the tests; undefined if it can. */
export async function whyNoRouter(): Promise<string | undefined> {
  try {
    await access(MINIUPNPD);
    await run("nft", ["--version"]);
    return undefined;
  } catch {
    return "miniupnpd or nft is not installed: apt-get install miniupnpd nftables";
  }
}

/** Makes two networks and a router between them that hides the first and blocks incoming connections. */
export async function makeHome(spaces: Spaces): Promise<Home> {
  const [inside, router, outside] = [
    await spaces.make("in"),
    await spaces.make("router"),
    await spaces.make("out"),
  ];
  const [insideAddress, routerAddress] = ["192.168.77.2", "192.168.77.1"];
  const [externalAddress, outsideAddress] = ["93.184.216.1", "93.184.216.2"];
  await spaces.wire(
    { space: inside, device: "lan", addresses: [`${insideAddress}/24`] },
    { space: router, device: "lan", addresses: [`${routerAddress}/24`] },
  );
  await spaces.wire(
    { space: router, device: "wan", addresses: [`${externalAddress}/24`] },
    { space: outside, device: "wan", addresses: [`${outsideAddress}/24`] },
  );
  await inside.run("ip", "route", "add", "default", "via", routerAddress);
  await router.run("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward");
  await router.run("nft", RULES);
  return { inside, router, outside, insideAddress, routerAddress, outsideAddress, externalAddress };
}

/** Two homes, each behind a router of its own, and a server that both reach. */
export interface Internet {
  readonly server: Space;
  readonly serverAddress: string;
  readonly homes: readonly [InternetHome, InternetHome];
}

/** One of the two home networks. */
export interface InternetHome {
  readonly inside: Space;
  readonly router: Space;
}

/** Makes the two home networks. The routers do NAT and block incoming connections, or follow `rules` (nft, with devices `lan` and
 * `wan`); the outer addresses are global, but the test has no route to the Internet. */
export async function makeInternet(spaces: Spaces, rules = RULES): Promise<Internet> {
  const serverAddress = "93.184.216.9";
  const server = await spaces.make("server");
  const [one, two] = [await makeRouted(spaces, 77, rules), await makeRouted(spaces, 88, rules)];
  await spaces.network("net", [
    { space: server, device: "wan", addresses: [`${serverAddress}/24`] },
    { space: one.router, device: "wan", addresses: ["93.184.216.77/24"] },
    { space: two.router, device: "wan", addresses: ["93.184.216.88/24"] },
  ]);
  return { server, serverAddress, homes: [one, two] };
}

/** A home network 192.168.NUMBER.0/24 without the uplink of its router. */
async function makeRouted(spaces: Spaces, number: number, rules: string): Promise<InternetHome> {
  const [inside, router] = [await spaces.make(`in${number}`), await spaces.make(`r${number}`)];
  const gateway = `192.168.${number}.1`;
  await spaces.wire(
    { space: inside, device: "lan", addresses: [`192.168.${number}.2/24`] },
    { space: router, device: "lan", addresses: [`${gateway}/24`] },
  );
  await inside.run("ip", "route", "add", "default", "via", gateway);
  await router.run("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward");
  await router.run("nft", rules);
  return { inside, router };
}

/** The tables that miniupnpd requires. Connections to unmapped ports are dropped. */
const RULES = `table inet filter {
  chain forward { type filter hook forward priority 0; policy drop;
    ct state established,related accept
    iifname lan accept
    jump miniupnpd
  }
  chain miniupnpd { }
  chain prerouting { type nat hook prerouting priority -100; jump prerouting_miniupnpd; }
  chain postrouting { type nat hook postrouting priority 100; jump postrouting_miniupnpd; oifname wan masquerade; }
  chain prerouting_miniupnpd { }
  chain postrouting_miniupnpd { }
}`;

/** Starts miniupnpd, the daemon of real routers. `ways`: the protocols it supports. */
export async function startMiniupnpd(
  { router }: Pick<Home, "router">,
  folder: string,
  ways: { readonly upnp: boolean; readonly natPmp: boolean },
): Promise<RunningProcess> {
  const [config, leases] = [`${folder}/miniupnpd.conf`, `${folder}/leases`];
  const yes = (is: boolean) => (is ? "yes" : "no");
  const lines = [
    "ext_ifname=wan",
    "listening_ip=lan",
    "port=0",
    `enable_upnp=${yes(ways.upnp)}`,
    `enable_natpmp=${yes(ways.natPmp)}`,
    "secure_mode=yes",
    "system_uptime=no",
    "uuid=7f4757c9-0497-4f18-817b-28d6f203647b",
    `lease_file=${leases}`,
    "allow 1024-65535 192.168.0.0/16 1024-65535",
    "deny 0-65535 0.0.0.0/0 0-65535",
  ];
  await writeFile(config, `${lines.join("\n")}\n`);
  const pid = `${folder}/miniupnpd.pid`;
  const daemon = startProcess("ip", [...router.prefix.slice(1), MINIUPNPD, "-d", "-f", config, "-P", pid]);
  return daemon;
}
