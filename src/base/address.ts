/** The address at which a peer or a tracker listens. `host` is a canonical IPv4 or IPv6 literal, never a name. */
export interface PeerAddress {
  readonly host: string;
  readonly port: number;
}

/** Formats an address as `1.2.3.4:5` or `[::1]:5`, for map keys and logs. */
export function addressText(address: PeerAddress): string {
  return address.host.includes(":") ? `[${address.host}]:${address.port}` : `${address.host}:${address.port}`;
}

/** Parses a strict dotted quad (no octal, no leading zeros) to a 32-bit number; undefined if `text` is anything else. */
export function parseIpv4(text: string): number | undefined {
  let value = 0;
  let part = 0;
  let digits = 0;
  let dots = 0;
  // No regular expression: this runs for every datagram received.
  for (let at = 0; at < text.length; at++) {
    const digit = text.charCodeAt(at) - 0x30;
    if (digit >= 0 && digit <= 9) {
      if (digits > 0 && part === 0) return undefined;
      part = 10 * part + digit;
      if (++digits > 3 || part > 255) return undefined;
    } else if (digit === DOT && digits > 0 && ++dots <= 3) {
      value = value * 256 + part;
      part = digits = 0;
    } else return undefined;
  }
  return dots === 3 && digits > 0 ? value * 256 + part : undefined;
}

/** Character code of `.` relative to `0`. */
const DOT = -2;

/** Parses an IPv6 literal without a zone (RFC 4291 2.2) to 16 bytes; undefined if `text` is anything else. */
function parseIpv6(text: string): Uint8Array<ArrayBuffer> | undefined {
  let body = text;
  let tail: number | undefined;
  const dotted = /^(.*:)(\d+\.\d+\.\d+\.\d+)$/.exec(text);
  if (dotted) {
    tail = parseIpv4(dotted[2]!);
    if (tail === undefined) return undefined;
    body = `${dotted[1]}${(tail >>> 16).toString(16)}:${(tail & 0xffff).toString(16)}`;
  }
  const halves = body.split("::");
  if (halves.length > 2) return undefined;
  const head = halves[0] === "" ? [] : halves[0]!.split(":");
  const rest = halves.length === 2 && halves[1] !== "" ? halves[1]!.split(":") : [];
  const missing = 8 - head.length - rest.length;
  if (halves.length === 1 ? missing !== 0 : missing < 1) return undefined;
  const groups = [...head, ...Array<string>(halves.length === 2 ? missing : 0).fill("0"), ...rest];
  const bytes = new Uint8Array(16);
  for (const [i, group] of groups.entries()) {
    if (!/^[0-9a-fA-F]{1,4}$/.test(group)) return undefined;
    const value = Number.parseInt(group, 16);
    bytes[2 * i] = value >>> 8;
    bytes[2 * i + 1] = value;
  }
  return bytes;
}

/** Formats 4 or 16 address bytes canonically (RFC 5952); an IPv4-mapped address becomes its IPv4 form. */
export function addressFromBytes(bytes: Uint8Array): string {
  if (bytes.length === 4) return bytes.join(".");
  if (isMapped(bytes)) return bytes.subarray(12).join(".");
  const groups = Array.from({ length: 8 }, (_, i) => (bytes[2 * i]! << 8) | bytes[2 * i + 1]!);
  let best = { at: -1, length: 1 };
  for (let at = 0; at < 8; at++) {
    let length = 0;
    while (at + length < 8 && groups[at + length] === 0) length++;
    if (length > best.length) best = { at, length };
  }
  const text = (from: number, to: number) =>
    groups
      .slice(from, to)
      .map((group) => group.toString(16))
      .join(":");
  return best.at < 0 ? text(0, 8) : `${text(0, best.at)}::${text(best.at + best.length, 8)}`;
}

/** Returns the canonical form of an IP literal, without its zone; undefined if `text` is not an IP literal. */
export function canonicalAddress(text: string): string | undefined {
  if (parseIpv4(text) !== undefined) return text;
  const bytes = parseIpv6(text.replace(/%.*$/, ""));
  return bytes && addressFromBytes(bytes);
}

/** Returns the 4 or 16 bytes of a canonical address; undefined if `host` is not an IP literal. */
export function addressBytes(host: string): Uint8Array<ArrayBuffer> | undefined {
  const v4 = parseIpv4(host);
  if (v4 === undefined) return parseIpv6(host);
  return new Uint8Array([v4 >>> 24, v4 >>> 16, v4 >>> 8, v4]);
}

/** Returns the IP version of a canonical address. */
export function familyOf(host: string): 4 | 6 {
  return host.includes(":") ? 6 : 4;
}

/** The kind of network an address belongs to (RFC 1918, 3927, 4193, 4291, 6598, 6666, 6890). */
export type AddressScope = "loopback" | "private" | "link-local" | "multicast" | "unspecified" | "global";

/** Returns the scope of a canonical address. An IPv6 address that embeds an IPv4 address (mapped, compatible, 6to4, NAT64,
 * Teredo, ISATAP) has the scope of that IPv4 address unless it is global. */
export function addressScope(host: string): AddressScope {
  const bytes = addressBytes(host);
  if (!bytes) return "unspecified";
  if (bytes.length === 4) return scope4(bytes);
  if (bytes.subarray(0, 15).every((byte) => byte === 0)) return bytes[15] === 1 ? "loopback" : "unspecified";
  const inner = embeddedIpv4(bytes);
  const scope = inner ? scope4(inner) : "global";
  if (scope !== "global") return scope;
  if (bytes[0] === 0xff) return "multicast";
  // Discard-only (RFC 6666): names pages in the live protocol (Browsers), and must never be called.
  if (startsWith(bytes, [1, 0, 0, 0, 0, 0, 0, 0])) return "unspecified";
  // fe80::/10 link-local, fec0::/10 site-local (RFC 3879), fc00::/7 unique local, 64:ff9b:1::/48 local-use NAT64 (RFC 8215).
  if (bytes[0] === 0xfe && (bytes[1]! & 0xc0) === 0x80) return "link-local";
  if (bytes[0] === 0xfe && (bytes[1]! & 0xc0) === 0xc0) return "private";
  if ((bytes[0]! & 0xfe) === 0xfc) return "private";
  return startsWith(bytes, [0, 0x64, 0xff, 0x9b, 0, 1]) ? "private" : "global";
}

/** Returns the IPv4 address embedded in an IPv6 address: a router may deliver packets there. */
function embeddedIpv4(bytes: Uint8Array): Uint8Array | undefined {
  const last = bytes.subarray(12);
  // Mapped and "compatible" (RFC 4291 2.5.5), then NAT64 (RFC 6052 2.1), then 6to4 (RFC 3056 2).
  if (isMapped(bytes) || startsWith(bytes, Array(12).fill(0))) return last;
  if (startsWith(bytes, [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0])) return last;
  if (startsWith(bytes, [0x20, 0x02])) return bytes.subarray(2, 6);
  // Teredo inverts the client's address (RFC 4380 4); ISATAP precedes it with 00:5e:fe (RFC 5214 6.1).
  if (startsWith(bytes, [0x20, 0x01, 0, 0])) return last.map((byte) => byte ^ 0xff);
  const isIsatap = (bytes[8]! & 0xfd) === 0 && startsWith(bytes.subarray(9), [0, 0x5e, 0xfe]);
  return isIsatap ? last : undefined;
}

function startsWith(bytes: Uint8Array, head: readonly number[]): boolean {
  return head.every((byte, i) => bytes[i] === byte);
}

function scope4(bytes: Uint8Array): AddressScope {
  const [a, b] = [bytes[0]!, bytes[1]!];
  if (a === 127) return "loopback";
  if (a === 0 || a === 255) return "unspecified";
  if (a >= 224) return "multicast";
  if (a === 169 && b === 254) return "link-local";
  if (a === 10 || (a === 192 && b === 168) || (a === 172 && b >= 16 && b < 32)) return "private";
  if (a === 100 && b >= 64 && b < 128) return "private";
  // Reserved for protocols and benchmarks (RFC 6890, 2544). 168.63.129.16 is the metadata server of Azure.
  if ((a === 192 && b === 0 && bytes[2] === 0) || (a === 198 && (b === 18 || b === 19))) return "private";
  if (a === 168 && b === 63 && bytes[2] === 129 && bytes[3] === 16) return "link-local";
  return "global";
}

function isMapped(bytes: Uint8Array): boolean {
  return bytes.subarray(0, 10).every((byte) => byte === 0) && bytes[10] === 0xff && bytes[11] === 0xff;
}
