import { canonicalAddress, type PeerAddress } from "../src/base/address.ts";

/** A Host header that has been read. */
export interface HostName {
  /** A canonical address, or a name in lower case. */
  readonly name: string;
  readonly port: number | undefined;
}

const PORT = "(?::([1-9]\\d{0,4}))?";
const ADDRESS_6 = new RegExp(`^\\[([0-9a-fA-F:.]{2,45})\\]${PORT}$`);
const LABEL = "[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?";
const NAME = new RegExp(`^(${LABEL}(?:\\.${LABEL})*)${PORT}$`, "i");

/**
 * Reads a Host (RFC 9112 3.2, RFC 3986 3.2.2) more strictly than any URL parser: no user, no zone, no trailing dot, no
 * IPv4 address in octal, hexadecimal or short form. Undefined where it is none; two of them are none.
 */
export function parseHost(text: string): HostName | undefined {
  if (text.length > 260) return undefined;
  const six = ADDRESS_6.exec(text);
  const [, written, digits] = six ?? NAME.exec(text) ?? [];
  if (written === undefined) return undefined;
  const port = digits === undefined ? undefined : Number(digits);
  if (port !== undefined && port > 65535) return undefined;
  const address = canonicalAddress(written);
  if (six !== null) return address === undefined ? undefined : { name: address, port };
  if (address !== undefined) return { name: address, port };
  // A name whose last label begins with a digit is meant as an address by browsers (WHATWG URL 4.1).
  return /(?:^|\.)\d[^.]*$/.test(written) ? undefined : { name: written.toLowerCase(), port };
}

/** The names by which the interface may be addressed. */
export interface HostRules {
  /** Names of this machine, valid with our own port. */
  readonly ownNames: readonly string[];
  /** From the settings: `name` with any port, `name:port` with this one. Addresses too. */
  readonly allowed: readonly string[];
}

/**
 * CHOICE(host-names): a page of another site can bring a browser to us under a name of its own (DNS rebinding), but only
 * under its own. So Host must be localhost, the very address that was connected to, a name of this machine, each with the
 * port that was connected to, or one of `allowed-hosts`, with any port unless it says one: behind a proxy or a port
 * mapping nobody else can know it.
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

/** One of `allowed-hosts`: a Host, or an IPv6 address without its brackets; undefined where it is neither. */
export function configuredHost(text: string): HostName | undefined {
  const address = canonicalAddress(text);
  return address === undefined ? parseHost(text) : { name: address, port: undefined };
}
