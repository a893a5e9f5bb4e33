import { runtime } from "#runtime";
import { webAssets } from "#web-assets";
import { canonicalAddress, type PeerAddress } from "./base/address.ts";
import { SluiceError } from "./base/errors.ts";
import { isInNetwork, type Network } from "./base/network.ts";
import { createLog } from "./cli/log.ts";
import { openService } from "./cli/service.ts";
import type { KeyValueStore, RequestOrigin } from "./runtime/contract.ts";
import { readConfig } from "./settings/config.ts";
import { settingsTable } from "./settings/settings.ts";

export type { PeerAddress } from "./base/address.ts";
export type { KeyValueChange, KeyValueStore } from "./runtime/contract.ts";

/** Options of {@link startEngine}. */
export interface EngineOptions {
  /**
   * Settings by name, as in the config file: `{ "data-dir": "/srv/sluice", "cache-limit": "5GB" }`. `sluice settings` lists them.
   * Variables and config files are not read. `data-dir` is required; `http-port` and `host` are the defaults of `listen`.
   */
  readonly settings: Readonly<Record<string, unknown>>;
  /** Replaces the database of playlists, tokens and accounts. The engine closes it when it stops. */
  readonly store?: KeyValueStore;
  /** Receives each log line without a newline; without it nothing is logged. The setting `log` is the level. */
  readonly log?: (line: string) => void;
}

/** The connection that a request came on. */
export interface ConnectionInfo {
  /** The client: an IP address and a port. */
  readonly remote: PeerAddress;
  /**
   * The address and port that the client connected to. If the server does not tell, it is this machine's address on the
   * network of the client, with the port of the URL.
   */
  readonly local?: PeerAddress;
}

/** An engine in this process. */
export interface EmbeddedEngine {
  /** The port of the peer network. */
  readonly p2pPort: number;
  /**
   * Answers a request of the HTTP interface without a socket. `info` is the client of the server that received it, and the
   * access rules apply to that client. Without `info` the request counts as one of this machine; then the host of the URL
   * must be `127.0.0.1`, such as `http://127.0.0.1/ace/getstream?infohash=…&format=json`. Rejects with `bad_parameter` if an
   * address is not an IP address.
   */
  fetch(request: Request, info?: ConnectionInfo): Promise<Response>;
  /**
   * Calls a method of the control interface (docs/openapi.json) and resolves to its result. The access token is added. Rejects
   * with the error of the method.
   */
  call(method: string, parameters?: Readonly<Record<string, string | number>>): Promise<unknown>;
  /** Starts the HTTP interface for players, by default on all networks; resolves to its URL, such as `http://127.0.0.1:6878`. */
  listen(at?: { readonly host?: string; readonly port?: number }): Promise<string>;
  /** Ends all sessions and broadcasts, and closes the store. */
  close(): Promise<void>;
}

const LOCAL_ORIGIN = { remote: { host: "127.0.0.1", port: 1 }, local: { host: "127.0.0.1", port: 80 } };

/** Builds the origin of a request from what the server of the program knows. */
function originOf(
  { remote, local }: ConnectionInfo,
  port: number,
  networks: readonly Network[],
): RequestOrigin {
  const host = addressOf(remote.host);
  const distant = host.includes(":") ? "0.0.0.0" : "::";
  // A client on none of the networks gets an address of the other IP version, whose subnet contains no such client.
  const near = () => networks.find((network) => isInNetwork(host, network))?.host ?? distant;
  return {
    remote: { host, port: remote.port },
    local: local ? { host: addressOf(local.host), port: local.port } : { host: near(), port },
    networks,
  };
}

function addressOf(text: string): string {
  const address = canonicalAddress(text);
  if (address === undefined) throw new SluiceError("bad_parameter", `expected an IP address, got "${text}"`);
  return address;
}

/** Starts an engine in this process. Rejects with an error that has a `code`, such as `port_busy` or `bad_configuration`. */
export async function startEngine(options: EngineOptions): Promise<EmbeddedEngine> {
  const file = { path: "settings", content: options.settings };
  const table = settingsTable({ dataDir: undefined });
  const config = readConfig(table, { flags: new Map(), environment: {}, file });
  if (config.dataDir === "") throw new SluiceError("bad_configuration", "settings: data-dir is required");
  const { store, log } = options;
  const service = await openService({
    runtime: store === undefined ? runtime : { ...runtime, openStore: async () => store },
    webAssets,
    config,
    log: createLog({
      level: log === undefined ? "silent" : config.log,
      colors: false,
      write: (line) => log?.(line.trimEnd()),
      wallClock: () => new Date(),
    }),
  });
  const listeners: { close(): Promise<void> }[] = [];
  const fetchFrom = async (request: Request, info?: ConnectionInfo) => {
    const url = new URL(request.url);
    const headers = new Headers(request.headers);
    if (!headers.has("host")) headers.set("host", url.host);
    const origin =
      info === undefined
        ? LOCAL_ORIGIN
        : originOf(info, Number(url.port || 80), runtime.surroundings.networks());
    return service.fetch(new Request(request, { headers }), origin);
  };
  const callWith = async (method: string, parameters: Readonly<Record<string, string | number>>) => {
    const query = new URLSearchParams({ api_version: "3", method });
    for (const [name, value] of Object.entries(parameters)) query.set(name, String(value));
    const response = await fetchFrom(new Request(`http://127.0.0.1/server/api?${query}`));
    const { result, error } = (await response.json()) as { result?: unknown; error?: { message?: string } };
    if (error) throw new Error(`${method}: ${error.message ?? JSON.stringify(error)}`);
    return result;
  };
  return {
    p2pPort: service.p2pPort,
    fetch: fetchFrom,
    async call(method, parameters = {}) {
      const { token } = (await callWith("get_api_access_token", {})) as { token: string };
      return callWith(method, { token, ...parameters });
    },
    async listen({ host = config.host, port = config.httpPort } = {}) {
      const listener = await service.listen({ host, port });
      listeners.push(listener);
      const { host: at, port: bound } = listener.address;
      const name = at === "0.0.0.0" || at === "::" ? "127.0.0.1" : at.includes(":") ? `[${at}]` : at;
      return `http://${name}:${bound}`;
    },
    async close() {
      await Promise.all(listeners.map((listener) => listener.close()));
      await service.close();
    },
  };
}
