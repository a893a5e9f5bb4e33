import { canonicalAddress } from "../../../base/address.ts";
import { latin1Text } from "../../../base/bytes.ts";
import { SluiceError } from "../../../base/errors.ts";
import { percentDecode } from "../../../base/percent.ts";
import type { ReachSettings } from "../contract.ts";

/** A proxy as the setting names it. */
export interface ProxyServer {
  readonly kind: "socks5" | "http";
  /** An IP literal, or a name. */
  readonly host: string;
  readonly port: number;
  /** As UTF-8; in no message. */
  readonly login: { readonly name: Uint8Array; readonly password: Uint8Array } | undefined;
  /** How messages call it: without login and password. */
  readonly text: string;
}

/** What can leave this engine. */
export interface Carried {
  /** Datagrams: UDP trackers, DHT, uTP. */
  readonly udp: boolean;
  /** Others can call us over TCP. */
  readonly incoming: boolean;
  /** Neighbours and the router can be spoken to: LSD, port mapping. */
  readonly neighbours: boolean;
}

/** One byte says how long a login or a password is (RFC 1929 2); the same bound serves HTTP. */
const MAX_CREDENTIAL_BYTES = 255;

/** Reads the setting `proxy`. Throws `bad_configuration` where it names none. */
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
    throw bad(`a login and a password have at most ${MAX_CREDENTIAL_BYTES} bytes`);
  return {
    kind,
    host: canonicalAddress(name) ?? name.toLowerCase(),
    port,
    login: login.length + password.length > 0 ? { name: login, password } : undefined,
    text: `${kind === "http" ? "HTTP" : "SOCKS5"} proxy ${url.hostname}:${port}`,
  };
}

/** What follows `Basic ` for a proxy that wants a login (RFC 7617). */
export function basicOf({ login }: ProxyServer): string | undefined {
  if (login === undefined) return undefined;
  return btoa(`${latin1Text(login.name)}:${latin1Text(login.password)}`);
}

/** What the proxy lets leave: without one everything, with one that may be gone around everything as well. */
export function whatIsCarried({ proxy, proxyStrict }: Pick<ReachSettings, "proxy" | "proxyStrict">): Carried {
  const isStrict = proxy !== "" && proxyStrict;
  return {
    udp: !isStrict || parseProxy(proxy).kind === "socks5",
    incoming: !isStrict,
    neighbours: !isStrict,
  };
}

function bad(why: string): SluiceError {
  return new SluiceError("bad_configuration", `proxy: ${why}`);
}
