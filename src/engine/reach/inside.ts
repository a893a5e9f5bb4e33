import { addressScope } from "../../base/address.ts";
import type { Log, LogFields } from "../../base/log.ts";
import { isInNetwork } from "../../base/network.ts";
import type { Runtime } from "../../runtime/contract.ts";
import type { ReachSettings } from "./contract.ts";
import { BoundAddresses } from "./inside/bound-addresses.ts";
import { boundNet } from "./inside/bound-net.ts";
import { insideHttp } from "./inside/inside-http.ts";
import { proxiedNet } from "./inside/proxied-net.ts";
import { parseProxy } from "./inside/proxy.ts";
import { ProxyHealth } from "./inside/proxy-health.ts";
import { ProxyPlace } from "./inside/proxy-place.ts";
import { StandIns } from "./inside/stand-ins.ts";

/** What of the settings says where traffic may leave. */
export type InsideSettings = Pick<ReachSettings, "bind" | "proxy" | "proxyStrict">;

/** The machine from inside. */
export interface InsideRuntime extends Runtime {
  /** Why the proxy carries nothing, as far as was tried; undefined where it does, or there is none. */
  proxyProblem(): string | undefined;
}

/**
 * The machine, of which nothing reaches others elsewhere than the settings allow: from the address of `bind`, through the
 * proxy, or both. What is given here is all that peers, trackers and what follows from content are reached with. See
 * docs/design/staying-inside.md.
 */
export function stayInside(runtime: Runtime, settings: InsideSettings, log: Log): InsideRuntime {
  const bound = settings.bind === "" ? runtime : boundRuntime(runtime, settings.bind, log);
  if (settings.proxy === "") return { ...bound, proxyProblem: () => undefined };
  return proxiedRuntime(bound, settings, log);
}

/**
 * What URLs that a user names are fetched with: those of the own networks directly, since they never leave the house, all
 * others as `inside` does it.
 */
export function withOwnNetworks(
  inside: Runtime,
  runtime: Runtime,
): Pick<Runtime, "http" | "lookup" | "clock"> {
  if (inside.http === runtime.http) return runtime;
  const isNear = (address: string) =>
    addressScope(address) !== "global" &&
    runtime.surroundings.networks().some((network) => isInNetwork(address, network));
  return {
    clock: runtime.clock,
    lookup: inside.lookup,
    http: {
      request: (request) => (isNear(request.connectTo) ? runtime : inside).http.request(request),
      openWebSocket: (request, handlers) =>
        (isNear(request.connectTo) ? runtime : inside).http.openWebSocket(request, handlers),
    },
  };
}

function boundRuntime(runtime: Runtime, bind: string, log: Log): Runtime {
  const net = boundNet(runtime.net, new BoundAddresses(bind, runtime, log));
  return { ...runtime, net, http: insideHttp(runtime.http, net, new StandIns()) };
}

function proxiedRuntime(runtime: Runtime, settings: InsideSettings, log: Log): InsideRuntime {
  const { clock, surroundings } = runtime;
  const proxy = parseProxy(settings.proxy);
  const isStrict = settings.proxyStrict;
  const standIns = new StandIns();
  const health = new ProxyHealth(log, proxy.text);
  const place = new ProxyPlace(proxy.host, clock, runtime.lookup);
  const net = proxiedNet({
    door: { proxy, clock, health, place },
    net: runtime.net,
    standIns,
    isStrict,
    networks: surroundings.networks,
    warnOnce: warningOnce(log),
  });
  log.info("peers and trackers are reached through a proxy", { proxy: proxy.text, strict: isStrict });
  return {
    ...runtime,
    net,
    http: insideHttp(runtime.http, net, standIns),
    lookup: isStrict ? async (name) => strictLookup(name, standIns) : runtime.lookup,
    proxyProblem: () => health.lastProblem,
  };
}

/** Names are the proxy's to look up; that of this machine is known. */
function strictLookup(name: string, standIns: StandIns): string[] {
  return /^(?:.+\.)?localhost\.?$/i.test(name) ? ["127.0.0.1"] : [standIns.of(name)];
}

function warningOnce(log: Log): Log["warn"] {
  const said = new Set<string>();
  return (message: string, fields?: LogFields) => {
    if (said.has(message)) return;
    said.add(message);
    log.warn(message, fields);
  };
}
