/** Where a peer (or a tracker) listens. `host` is a canonical IPv4 or IPv6 literal, never a name. */
export interface PeerAddress {
  readonly host: string;
  readonly port: number;
}

/** One text for one address: `1.2.3.4:5` or `[::1]:5`. For keys of maps and for logs. */
export function addressText(address: PeerAddress): string {
  return address.host.includes(":") ? `[${address.host}]:${address.port}` : `${address.host}:${address.port}`;
}

/** Reads a strict dotted quad (no octal, no leading zeros) as a 32-bit number; undefined where it is not one. */
export function parseIpv4(text: string): number | undefined {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(text);
  if (!match) return undefined;
  let value = 0;
  for (let i = 1; i <= 4; i++) {
    const part = match[i]!;
    if ((part.length > 1 && part.startsWith("0")) || Number(part) > 255) return undefined;
    value = value * 256 + Number(part);
  }
  return value;
}

/** Reads an IPv6 literal (no zone) as 16 bytes (RFC 4291 2.2); undefined where it is not one. */
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

/** The canonical text of 4 or 16 address bytes (RFC 5952); an IPv4-mapped address becomes its IPv4 form. */
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

/** The canonical form of an IP literal (zone dropped), or undefined where the text is none. */
export function canonicalAddress(text: string): string | undefined {
  if (parseIpv4(text) !== undefined) return text;
  const bytes = parseIpv6(text.replace(/%.*$/, ""));
  return bytes && addressFromBytes(bytes);
}

/** 4 or 16 bytes of a canonical address. */
export function addressBytes(host: string): Uint8Array<ArrayBuffer> | undefined {
  const v4 = parseIpv4(host);
  if (v4 === undefined) return parseIpv6(host);
  return new Uint8Array([v4 >>> 24, v4 >>> 16, v4 >>> 8, v4]);
}

/** The IP version of a canonical address. */
export function familyOf(host: string): 4 | 6 {
  return host.includes(":") ? 6 : 4;
}

/** What kind of network an address belongs to (RFC 1918, 3927, 4193, 4291, 5735, 6598). */
export type AddressScope = "loopback" | "private" | "link-local" | "multicast" | "unspecified" | "global";

/** The scope of a canonical address, an embedded IPv4 (mapped, 6to4, NAT64) judged by itself. */
export function addressScope(host: string): AddressScope {
  const bytes = addressBytes(host);
  if (!bytes) return "unspecified";
  if (bytes.length === 4) return scope4(bytes);
  if (isMapped(bytes)) return scope4(bytes.subarray(12));
  if (bytes[0] === 0x20 && bytes[1] === 0x02) return scope4(bytes.subarray(2, 6));
  if (bytes[0] === 0 && bytes[1] === 0x64 && bytes[2] === 0xff && bytes[3] === 0x9b)
    return scope4(bytes.subarray(12));
  if (bytes.subarray(0, 15).every((byte) => byte === 0)) return bytes[15] === 1 ? "loopback" : "unspecified";
  if (bytes[0] === 0xff) return "multicast";
  if (bytes[0] === 0xfe && (bytes[1]! & 0xc0) === 0x80) return "link-local";
  if ((bytes[0]! & 0xfe) === 0xfc) return "private";
  return "global";
}

function scope4(bytes: Uint8Array): AddressScope {
  const [a, b] = [bytes[0]!, bytes[1]!];
  if (a === 127) return "loopback";
  if (a === 0 || a === 255) return "unspecified";
  if (a >= 224) return "multicast";
  if (a === 169 && b === 254) return "link-local";
  if (a === 10 || (a === 192 && b === 168) || (a === 172 && b >= 16 && b < 32)) return "private";
  if (a === 100 && b >= 64 && b < 128) return "private";
  return "global";
}

function isMapped(bytes: Uint8Array): boolean {
  return bytes.subarray(0, 10).every((byte) => byte === 0) && bytes[10] === 0xff && bytes[11] === 0xff;
}
