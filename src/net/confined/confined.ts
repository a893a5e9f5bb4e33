import { addressScope } from "../../base/address.ts";
import { SluiceError } from "../../base/errors.ts";
import type { Log, LogFields } from "../../base/log.ts";
import { isInNetwork } from "../../base/network.ts";
import type { Dial, HttpClient, Net, Runtime } from "../../runtime/contract.ts";
import type { ReachSettings } from "../contract.ts";
import { BoundAddresses } from "./bound-addresses.ts";
import { boundNet } from "./bound-net.ts";
import { PlaceholderAddresses } from "./placeholder-addresses.ts";
import { proxiedNet } from "./proxied-net.ts";
import { parseProxy } from "./proxy.ts";
import { ProxyAddress } from "./proxy-address.ts";
import { ProxyHealth } from "./proxy-health.ts";

/** The settings that confine peer traffic. */
export type ConfinementSettings = Pick<ReachSettings, "bind" | "proxy" | "proxyStrict">;

export interface ConfinedRuntime extends Runtime {
  /** The last error of the proxy; undefined if it works or none is configured. */
  proxyProblem(): string | undefined;
}

/**
 * Wraps the runtime so that all traffic leaves from the address of `bind`, through the proxy, or both. All traffic to peers,
 * trackers and servers that content refers to uses the result. See docs/design/staying-inside.md.
 */
export function confineRuntime(runtime: Runtime, settings: ConfinementSettings, log: Log): ConfinedRuntime {
  const bound = settings.bind === "" ? runtime : boundRuntime(runtime, settings.bind, log);
  if (settings.proxy === "") return { ...bound, proxyProblem: () => undefined };
  return proxiedRuntime(bound, settings, log);
}

/** Returns the runtime for URLs that the user enters: requests to addresses in local networks are direct,
 * requests to other addresses use `confined`. */
export function withOwnNetworks(
  confined: Runtime,
  runtime: Runtime,
): Pick<Runtime, "http" | "lookup" | "clock"> {
  if (confined.http === runtime.http) return runtime;
  const isLocal = (address: string) =>
    addressScope(address) !== "global" &&
    runtime.surroundings.networks().some((network) => isInNetwork(address, network));
  return {
    clock: runtime.clock,
    lookup: confined.lookup,
    http: {
      request: (request) => (isLocal(request.connectTo) ? runtime : confined).http.request(request),
      openWebSocket: (request, handlers) =>
        (isLocal(request.connectTo) ? runtime : confined).http.openWebSocket(request, handlers),
    },
  };
}

function boundRuntime(runtime: Runtime, bind: string, log: Log): Runtime {
  const net = boundNet(runtime.net, new BoundAddresses(bind, runtime, log));
  return { ...runtime, net, http: confinedHttp(runtime.http, net, new PlaceholderAddresses()) };
}

function proxiedRuntime(runtime: Runtime, settings: ConfinementSettings, log: Log): ConfinedRuntime {
  const { clock, surroundings } = runtime;
  const proxy = parseProxy(settings.proxy);
  const isStrict = settings.proxyStrict;
  const placeholders = new PlaceholderAddresses();
  const health = new ProxyHealth(log, proxy.text);
  const address = new ProxyAddress(proxy.host, clock, runtime.lookup);
  const net = proxiedNet({
    proxyDependencies: { proxy, clock, health, address },
    net: runtime.net,
    placeholders,
    isStrict,
    networks: surroundings.networks,
    warnOnce: warningOnce(log),
  });
  log.info("connecting to peers and trackers through a proxy", { proxy: proxy.text, strict: isStrict });
  return {
    ...runtime,
    net,
    http: confinedHttp(runtime.http, net, placeholders),
    lookup: isStrict ? async (name) => strictLookup(name, placeholders) : runtime.lookup,
    proxyProblem: () => health.lastProblem,
  };
}

/** Returns a placeholder for `name`, which the proxy resolves later; returns 127.0.0.1 for `localhost`. */
function strictLookup(name: string, placeholders: PlaceholderAddresses): string[] {
  return /^(?:.+\.)?localhost\.?$/i.test(name) ? ["127.0.0.1"] : [placeholders.of(name)];
}

function warningOnce(log: Log): Log["warn"] {
  const logged = new Set<string>();
  return (message: string, fields?: LogFields) => {
    if (logged.has(message)) return;
    logged.add(message);
    log.warn(message, fields);
  };
}

/** Returns an HTTP client that connects through `net`, except to this machine. */
function confinedHttp(
  http: HttpClient,
  net: Pick<Net, "connect">,
  placeholders: PlaceholderAddresses,
): HttpClient {
  const withDial = <T extends ConfinableRequest>(request: T): T => {
    const { url, connectTo, timeoutMs } = request;
    // An outer layer has already set `dial`: a proxy on top of a bound interface.
    if (request.dial || addressScope(connectTo) === "loopback") return request;
    const name = placeholders.nameOf(connectTo);
    // A placeholder may have been reassigned since the lookup.
    if (name !== undefined && name !== url.hostname.replace(/\.$/, ""))
      throw new SluiceError("url_unreachable", `${url.hostname} must be resolved again`);
    const dial: Dial = (handlers) =>
      net.connect({ host: connectTo, port: portOf(url) }, handlers, { timeoutMs });
    return { ...request, dial };
  };
  return {
    request: async (request) => http.request(withDial(request)),
    openWebSocket: async (request, handlers) => http.openWebSocket(withDial(request), handlers),
  };
}

interface ConfinableRequest {
  readonly url: URL;
  readonly connectTo: string;
  readonly timeoutMs: number;
  readonly dial?: Dial;
}

function portOf({ port, protocol }: URL): number {
  if (port !== "") return Number(port);
  return protocol === "https:" || protocol === "wss:" ? 443 : 80;
}
