import { canonicalAddress } from "../../base/address.ts";
import { latin1Text } from "../../base/bytes.ts";
import { SluiceError } from "../../base/errors.ts";
import { percentDecode } from "../../base/percent.ts";
import type { ReachSettings } from "../contract.ts";

/** The parsed setting `proxy`. */
export interface ProxyServer {
  readonly kind: "socks5" | "http";
  /** An IP literal or a DNS name. */
  readonly host: string;
  readonly port: number;
  /** UTF-8. Never part of a message. */
  readonly login: { readonly name: Uint8Array; readonly password: Uint8Array } | undefined;
  /** Text for messages, without login and password. */
  readonly text: string;
}

/** Kinds of traffic that are possible with the configured proxy. */
export interface ProxyCapabilities {
  /** Datagrams: UDP trackers, DHT, uTP. */
  readonly udp: boolean;
  /** Peers can connect to this machine over TCP. */
  readonly incoming: boolean;
  /** Local networks are reachable: local discovery, port mapping. */
  readonly local: boolean;
}

/** The length field is one byte (RFC 1929 section 2); the same limit is used for HTTP. */
const MAX_CREDENTIAL_BYTES = 255;

/** Parses the setting `proxy`. Throws `bad_configuration` if it is malformed. */
export function parseProxy(setting: string): ProxyServer {
  if (!URL.canParse(setting)) throw bad("expected socks5://host:port or http://host:port");
  const url = new URL(setting);
  if (url.protocol !== "socks5:" && url.protocol !== "http:") throw bad("expected socks5:// or http://");
  const kind = url.protocol === "http:" ? "http" : "socks5";
  const name = url.hostname.replace(/^\[|\]$/g, "");
  const port = url.port === "" && kind === "http" ? 80 : Number(url.port);
  if (name === "" || port === 0) throw bad("expected a host and a port");
  const [login, password] = [percentDecode(url.username), percentDecode(url.password)];
  if (login.length > MAX_CREDENTIAL_BYTES || password.length > MAX_CREDENTIAL_BYTES)
    throw bad(`login and password can have at most ${MAX_CREDENTIAL_BYTES} bytes`);
  return {
    kind,
    host: canonicalAddress(name) ?? name.toLowerCase(),
    port,
    login: login.length + password.length > 0 ? { name: login, password } : undefined,
    text: `${kind === "http" ? "HTTP" : "SOCKS5"} proxy ${url.hostname}:${port}`,
  };
}

/** Returns the credentials after `Basic ` (RFC 7617); undefined without a login. */
export function basicCredentials({ login }: ProxyServer): string | undefined {
  if (login === undefined) return undefined;
  return btoa(`${latin1Text(login.name)}:${latin1Text(login.password)}`);
}

/** Returns the possible traffic: without a strict proxy, everything. */
export function proxyCapabilities({
  proxy,
  proxyStrict,
}: Pick<ReachSettings, "proxy" | "proxyStrict">): ProxyCapabilities {
  const isStrict = proxy !== "" && proxyStrict;
  return {
    udp: !isStrict || parseProxy(proxy).kind === "socks5",
    incoming: !isStrict,
    local: !isStrict,
  };
}

/** Returns true if the peer network uses UDP: a part that needs it is on, and the proxy carries it. */
export function needsUdp(reach: ReachSettings): boolean {
  return (
    proxyCapabilities(reach).udp && (reach.dht || reach.utp || usesWebRtc(reach) || reach.tracker !== "off")
  );
}

/** CHOICE(webrtc-proxy): WebRTC is off with a proxy, strict or not. Its descriptions contain the addresses of this machine. */
export function usesWebRtc({ webrtc, proxy }: Pick<ReachSettings, "webrtc" | "proxy">): boolean {
  return webrtc && proxy === "";
}

function bad(problem: string): SluiceError {
  return new SluiceError("bad_configuration", `proxy: ${problem}`);
}
