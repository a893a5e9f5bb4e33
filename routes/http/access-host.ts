import { canonicalAddress, type PeerAddress } from "../../src/base/address.ts";

/** A parsed Host header. */
interface HostName {
  /** A canonical IP address, or a host name in lower case. */
  readonly name: string;
  readonly port: number | undefined;
}

const PORT = "(?::([1-9]\\d{0,4}))?";
const ADDRESS_6 = new RegExp(`^\\[([0-9a-fA-F:.]{2,45})\\]${PORT}$`);
const LABEL = "[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?";
const NAME = new RegExp(`^(${LABEL}(?:\\.${LABEL})*)${PORT}$`, "i");

/**
 * Parses a Host header (RFC 9112 3.2, RFC 3986 3.2.2) more strictly than a URL parser does: no user, no zone, no trailing
 * dot, no IPv4 address in octal, hexadecimal or short form. Returns undefined if the text is not exactly one such host.
 */
export function parseHost(text: string): HostName | undefined {
  if (text.length > 260) return undefined;
  const bracketed = ADDRESS_6.exec(text);
  const [, host, digits] = bracketed ?? NAME.exec(text) ?? [];
  if (host === undefined) return undefined;
  const port = digits === undefined ? undefined : Number(digits);
  if (port !== undefined && port > 65535) return undefined;
  const address = canonicalAddress(host);
  if (bracketed !== null) return address === undefined ? undefined : { name: address, port };
  if (address !== undefined) return { name: address, port };
  // Browsers parse a name whose last label begins with a digit as an IPv4 address (WHATWG URL 4.1).
  return /(?:^|\.)\d[^.]*$/.test(host) ? undefined : { name: host.toLowerCase(), port };
}

/** The host names and addresses that the HTTP interface accepts. */
interface HostRules {
  /** Names of this machine, accepted with the engine's own port. */
  readonly ownNames: readonly string[];
  /** The setting `allowed-hosts`: names or addresses; `name` accepts any port, `name:port` only that port. */
  readonly allowed: readonly string[];
}

/**
 * Creates a function that checks a Host header against the local address of the connection.
 *
 * CHOICE(host-names): with DNS rebinding a page of another site can make a browser send requests to the engine, but only
 * under a host name of that site. So Host must be localhost, the local address of the connection, or a name of this
 * machine, each with the port of the connection, or an entry of `allowed-hosts`. An entry without a port accepts any
 * port, because a proxy or a port mapping may use a port that the engine cannot know.
 */
export function hostChecker(rules: HostRules): (text: string, local: PeerAddress) => boolean {
  const own = new Set(["localhost", ...rules.ownNames.map((name) => name.toLowerCase())]);
  const allowed = new Map<string, (number | undefined)[]>();
  for (const text of rules.allowed) {
    const host = configuredHost(text);
    if (host !== undefined) allowed.set(host.name, [...(allowed.get(host.name) ?? []), host.port]);
  }
  return (text, local) => {
    const host = parseHost(text);
    if (host === undefined) return false;
    const port = host.port ?? 80;
    if (port === local.port && (own.has(host.name) || host.name === local.host)) return true;
    return allowed.get(host.name)?.some((only) => only === undefined || only === port) ?? false;
  };
}

/** Parses an entry of `allowed-hosts`: a Host, or an IPv6 address without brackets. Returns undefined if it is neither. */
export function configuredHost(text: string): HostName | undefined {
  const address = canonicalAddress(text);
  return address === undefined ? parseHost(text) : { name: address, port: undefined };
}
