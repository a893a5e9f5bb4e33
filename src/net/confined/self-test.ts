import { familyOf } from "../../base/address.ts";
import type { DiagnosisRow } from "../../base/diagnosis.ts";
import { messageOf } from "../../base/errors.ts";
import { type Log, SILENT_LOG } from "../../base/log.ts";
import type { Runtime } from "../../runtime/contract.ts";
import { BoundAddresses } from "./bound-addresses.ts";
import { boundNet } from "./bound-net.ts";
import type { ConfinementSettings } from "./confined.ts";
import { type ProxyServer, parseProxy } from "./proxy.ts";
import { ProxyAddress } from "./proxy-address.ts";
import { ProxyRefusal, type ProxyRequest } from "./proxy-handshake.ts";
import { ProxyHealth } from "./proxy-health.ts";
import { openTunnel, type ProxyDependencies } from "./tunnel.ts";

const ANSWER_MS = 5_000;
const COMMAND_MS = 2_000;
/** Public addresses for route queries; nothing is sent to them. */
const PUBLIC_ADDRESS = { 4: "1.1.1.1", 6: "2606:4700:4700::1111" } as const;

/**
 * Tests the confinement: the bound interface exists and the system routes through it; the proxy responds, accepts the login,
 * and supports TCP and UDP. Contacts only the proxy. Empty if neither is configured.
 */
export async function confinementRows(
  runtime: Runtime,
  settings: ConfinementSettings,
): Promise<DiagnosisRow[]> {
  const bound = settings.bind === "" ? undefined : new BoundAddresses(settings.bind, runtime, SILENT_LOG);
  const net = bound === undefined ? runtime.net : boundNet(runtime.net, bound);
  return [
    ...(bound ? await boundRows(runtime, settings.bind, bound) : []),
    ...(settings.proxy === "" ? [] : await proxyRows({ ...runtime, net }, settings)),
  ];
}

/** Runs the test and logs the result. */
export async function logConfinement(
  runtime: Runtime,
  settings: ConfinementSettings,
  log: Log,
): Promise<void> {
  for (const { level, text, advice } of await confinementRows(runtime, settings)) {
    if (level === "fail" || level === "warn") log.warn(text, { advice });
    else log.info(text);
  }
}

async function boundRows(runtime: Runtime, bind: string, bound: BoundAddresses): Promise<DiagnosisRow[]> {
  const name = "Interface";
  const addresses = ([4, 6] as const).flatMap((family) => bound.of(family) ?? []);
  if (addresses.length === 0) {
    const text = `${bound.problem(4)}.`;
    return [
      { name, level: "fail", text, advice: "Connect the VPN, or choose another interface with --bind." },
    ];
  }
  const misrouted = (await Promise.all(addresses.map((address) => misroutedFrom(runtime, address)))).flat();
  if (misrouted.length > 0) {
    return [
      {
        name,
        level: "fail",
        text: `${misrouted.join("; ")}: traffic bound to ${bind} leaves through another interface.`,
        advice:
          "Add a route by source address (ip rule add from ADDRESS table …). VPN clients normally do this.",
      },
    ];
  }
  const from = addresses.join(" and ");
  const text = `Traffic to peers, trackers and the DHT leaves from ${from}; the system resolves their names.`;
  return [{ name, level: "ok", text }];
}

/** Describes the route of traffic from `address` if it leaves through another interface than the address's own. Empty if it
 * does not, or if the system cannot report routes (only Linux with iproute2 can). */
async function misroutedFrom({ surroundings }: Runtime, address: string): Promise<string[]> {
  const family = familyOf(address);
  const own = surroundings.networks().find(({ host }) => host === address);
  // Safe: an address literal of this machine and constants.
  const command = `ip -o -${family} route get ${PUBLIC_ADDRESS[family]} from ${address}`;
  const output = await surroundings.run(command, COMMAND_MS).catch(() => "");
  const device = / dev (\S+)/.exec(output)?.[1];
  if (own === undefined || device === undefined || device === own.interfaceName) return [];
  return [`The system routes traffic from ${address} through ${device}`];
}

async function proxyRows(runtime: Runtime, settings: ConfinementSettings): Promise<DiagnosisRow[]> {
  const proxy = parseProxy(settings.proxy);
  const { clock, net } = runtime;
  const health = new ProxyHealth(SILENT_LOG, proxy.text);
  const dependencies: ProxyDependencies = {
    proxy,
    net,
    clock,
    health,
    address: new ProxyAddress(proxy.host, clock, runtime.lookup),
  };
  // Connecting to the proxy itself contacts no third party.
  const itself = { host: proxy.host, port: proxy.port };
  const tcp = tcpRow(proxy, await outcomeOf(dependencies, { command: "connect", to: itself }));
  if (tcp.level === "fail" || proxy.kind === "http") return [tcp, ...withoutHttpUdp(proxy, settings)];
  const request = { command: "associate", to: { host: "0.0.0.0", port: 0 } } as const;
  return [tcp, udpRow(await outcomeOf(dependencies, request), settings)];
}

/** Undefined: success. */
type Outcome = ProxyRefusal | Error | undefined;

function outcomeOf(dependencies: ProxyDependencies, request: ProxyRequest): Promise<Outcome> {
  return new Promise((resolve) => {
    const handlers = {
      opened: () => {
        resolve(undefined);
        tunnel.close();
      },
      refused: resolve,
      received: () => {},
      drained: () => {},
      closed: (reason: string) => resolve(new Error(reason)),
    };
    const tunnel = openTunnel(dependencies, request, request.to, handlers, ANSWER_MS);
  });
}

function tcpRow(proxy: ProxyServer, outcome: Outcome): DiagnosisRow {
  const name = "Proxy";
  if (outcome === undefined) return { name, level: "ok", text: `The ${proxy.text} responds and connects.` };
  if (!(outcome instanceof ProxyRefusal)) {
    const advice = "Start the proxy, or correct the address and port in --proxy.";
    return { name, level: "fail", text: `${messageOf(outcome)}.`, advice };
  }
  if (outcome.kind === "login") {
    const text = `The ${proxy.text} responds, but refuses this engine: ${outcome.message}.`;
    return { name, level: "fail", text, advice: "Correct the login and password in --proxy." };
  }
  const text = `The ${proxy.text} responds and accepts the login`;
  if (outcome.kind === "destination")
    return { name, level: "ok", text: `${text}. It refuses connections to itself, as many proxies do.` };
  return {
    name,
    level: "fail",
    text: `${text}, but does not support connections.`,
    advice: "Choose another proxy with --proxy.",
  };
}

function udpRow(outcome: Outcome, settings: ConfinementSettings): DiagnosisRow {
  const name = "Proxy, UDP";
  if (outcome === undefined)
    return { name, level: "ok", text: "The proxy supports UDP: UDP trackers, the DHT and uTP use it." };
  return withoutUdp(name, messageOf(outcome), settings);
}

function withoutHttpUdp(proxy: ProxyServer, settings: ConfinementSettings): DiagnosisRow[] {
  if (proxy.kind !== "http") return [];
  return [withoutUdp("Proxy, UDP", "HTTP proxies do not support UDP", settings)];
}

function withoutUdp(name: string, reason: string, { proxyStrict }: ConfinementSettings): DiagnosisRow {
  const effect = proxyStrict
    ? "the DHT, uTP and UDP trackers do not work"
    : "UDP bypasses the proxy and reveals the address of this machine";
  return {
    name,
    level: proxyStrict ? "note" : "warn",
    text: `The proxy does not support UDP (${reason}): ${effect}.`,
    advice: "Use a SOCKS5 proxy with UDP ASSOCIATE.",
  };
}
