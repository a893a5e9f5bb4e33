import { familyOf } from "../../../base/address.ts";
import { messageOf } from "../../../base/errors.ts";
import type { Log } from "../../../base/log.ts";
import type { Runtime } from "../../../runtime/contract.ts";
import type { DiagnosisRow } from "../../diagnosis/contract.ts";
import type { InsideSettings } from "../inside.ts";
import { BoundAddresses } from "./bound-addresses.ts";
import { boundNet } from "./bound-net.ts";
import { type ProxyServer, parseProxy } from "./proxy.ts";
import { ProxyHealth } from "./proxy-health.ts";
import { ProxyPlace } from "./proxy-place.ts";
import { ProxyRefusal, type ProxyWish } from "./proxy-talk.ts";
import { type DoorParts, openTunnel } from "./tunnel.ts";

/** A proxy that takes longer is none to play through. */
const ANSWER_MS = 5_000;
const COMMAND_MS = 2_000;
/** Addresses of the Internet that the system is asked the way to; nothing is sent there. */
const FAR = { 4: "1.1.1.1", 6: "2606:4700:4700::1111" } as const;
const SILENT: Log = { error() {}, warn() {}, info() {}, debug() {}, named: () => SILENT };

/**
 * Tries what keeps traffic inside: whether the bound interface is there and the system's routes lead out of it, whether the
 * proxy answers, takes our login, and carries TCP and UDP. Nobody but the proxy is asked. Empty where nothing is set.
 */
export async function insideRows(runtime: Runtime, settings: InsideSettings): Promise<DiagnosisRow[]> {
  const bound = settings.bind === "" ? undefined : new BoundAddresses(settings.bind, runtime, SILENT);
  const net = bound === undefined ? runtime.net : boundNet(runtime.net, bound);
  return [
    ...(bound ? await boundRows(runtime, settings.bind, bound) : []),
    ...(settings.proxy === "" ? [] : await proxyRows({ ...runtime, net }, settings)),
  ];
}

/** Tries it all, and says what came out of it; at start, so that nobody has to ask. */
export async function tellInside(runtime: Runtime, settings: InsideSettings, log: Log): Promise<void> {
  for (const { level, text, advice } of await insideRows(runtime, settings)) {
    if (level === "fail" || level === "warn") log.warn(text, { advice });
    else log.info(text);
  }
}

async function boundRows(runtime: Runtime, bind: string, bound: BoundAddresses): Promise<DiagnosisRow[]> {
  const name = "Interface";
  const addresses = ([4, 6] as const).flatMap((family) => bound.of(family) ?? []);
  if (addresses.length === 0) {
    const text = `${bound.problem(4)}.`;
    return [{ name, level: "fail", text, advice: "Connect the VPN, or name another interface with --bind." }];
  }
  const strays = (await Promise.all(addresses.map((address) => strayOf(runtime, address)))).flat();
  if (strays.length > 0) {
    return [
      {
        name,
        level: "fail",
        text: `${strays.join("; ")}: what is bound to ${bind} does not leave there.`,
        advice:
          "Route by source address (ip rule add from ADDRESS table …), as VPN programs do by themselves.",
      },
    ];
  }
  const from = addresses.join(" and ");
  const text = `Peers, trackers and the DHT are reached from ${from}; the system looks up their names.`;
  return [{ name, level: "ok", text }];
}

/** Where the system would send what comes from an address of ours, where that is another interface than its own; nothing
 * where it does not say (only Linux with iproute2 does). */
async function strayOf({ surroundings }: Runtime, address: string): Promise<string[]> {
  const family = familyOf(address);
  const own = surroundings.networks().find(({ host }) => host === address);
  // All of it is ours: a literal of our own, and constants.
  const command = `ip -o -${family} route get ${FAR[family]} from ${address}`;
  const said = await surroundings.run(command, COMMAND_MS).catch(() => "");
  const device = / dev (\S+)/.exec(said)?.[1];
  if (own === undefined || device === undefined || device === own.interfaceName) return [];
  return [`The system sends what comes from ${address} out by ${device}`];
}

async function proxyRows(runtime: Runtime, settings: InsideSettings): Promise<DiagnosisRow[]> {
  const proxy = parseProxy(settings.proxy);
  const { clock, net } = runtime;
  const health = new ProxyHealth(SILENT, proxy.text);
  const door: DoorParts = {
    proxy,
    net,
    clock,
    health,
    place: new ProxyPlace(proxy.host, clock, runtime.lookup),
  };
  // The one place that is surely there, and that tells nobody anything.
  const itself = { host: proxy.host, port: proxy.port };
  const tcp = tcpRow(proxy, await outcomeOf(door, { command: "connect", to: itself }));
  if (tcp.level === "fail" || proxy.kind === "http") return [tcp, ...udpless(proxy, settings)];
  const wish = { command: "associate", to: { host: "0.0.0.0", port: 0 } } as const;
  return [tcp, udpRow(await outcomeOf(door, wish), settings)];
}

/** Undefined: the proxy did it. */
type Outcome = ProxyRefusal | Error | undefined;

function outcomeOf(door: DoorParts, wish: ProxyWish): Promise<Outcome> {
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
    const tunnel = openTunnel(door, wish, wish.to, handlers, ANSWER_MS);
  });
}

function tcpRow(proxy: ProxyServer, outcome: Outcome): DiagnosisRow {
  const name = "Proxy";
  if (outcome === undefined) return { name, level: "ok", text: `The ${proxy.text} answers, and connects.` };
  if (!(outcome instanceof ProxyRefusal)) {
    const advice = "Start it, or look at its address and port in --proxy.";
    return { name, level: "fail", text: `${messageOf(outcome)}.`, advice };
  }
  if (outcome.kind === "login") {
    const text = `The ${proxy.text} answers, but not to us: ${outcome.message}.`;
    return { name, level: "fail", text, advice: "Look at the login and password in --proxy." };
  }
  const text = `The ${proxy.text} answers and knows who we are`;
  if (outcome.kind === "place")
    return { name, level: "ok", text: `${text}; it does not connect to itself, as many do not.` };
  return {
    name,
    level: "fail",
    text: `${text}, but connects nobody.`,
    advice: "Name another one with --proxy.",
  };
}

function udpRow(outcome: Outcome, settings: InsideSettings): DiagnosisRow {
  const name = "Proxy, UDP";
  if (outcome === undefined)
    return { name, level: "ok", text: "It carries UDP: trackers, the DHT and uTP go through it." };
  return withoutUdp(name, messageOf(outcome), settings);
}

function udpless(proxy: ProxyServer, settings: InsideSettings): DiagnosisRow[] {
  if (proxy.kind !== "http") return [];
  return [withoutUdp("Proxy, UDP", "an HTTP proxy carries no datagrams", settings)];
}

function withoutUdp(name: string, reason: string, { proxyStrict }: InsideSettings): DiagnosisRow {
  const left = proxyStrict
    ? "there is no DHT, no uTP and no UDP tracker"
    : "UDP goes around it, and shows this machine's address";
  return {
    name,
    level: proxyStrict ? "note" : "warn",
    text: `It carries no UDP (${reason}): ${left}.`,
    advice: "A SOCKS5 proxy with UDP ASSOCIATE carries all of it.",
  };
}
