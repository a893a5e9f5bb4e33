import { addressBytes, canonicalAddress } from "../base/address.ts";
import { readU32 } from "../base/bytes.ts";
import { parseNetwork } from "../base/network.ts";

/** The addresses `first` to `last`, both inclusive: one 32-bit word for IPv4, four for IPv6. */
interface IpRange {
  readonly first: readonly number[];
  readonly last: readonly number[];
}

/** `1.2.3.4-1.2.3.9` at the end of a line, with or without leading zeros; eMule's form adds a level and a name. */
const PAIR =
  /(?:^|[:\s])(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})\s*-\s*(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})\s*(?:,\s*(\d{1,3})\s*(?:,.*)?)?$/;
/** A name before the range, as opposed to the start of a malformed IPv6 address. */
const NAMED = /^[^:]*[^0-9a-fA-F:.\s-][^:]*:/;
/** eMule allows addresses from this level on. */
const ALLOWED_LEVEL = 128;
const IGNORED = /^\s*(?:[#;]|\/\/|$)/;

/**
 * Parses a line of a block list: P2P text (`name:1.2.3.4-1.2.3.9`), eMule's `ipfilter.dat`
 * (`001.002.003.004 - 001.002.003.009 , 100 , name`), a network, or an address. Returns `ignored` for comments, empty lines and
 * ranges that the list allows; undefined if the line is malformed.
 */
export function parseIpListLine(line: string): IpRange | "ignored" | undefined {
  if (IGNORED.test(line)) return "ignored";
  const pair = PAIR.exec(line);
  if (pair) return readPair(pair);
  // Spam lists put a comment after the network.
  const text = line.replace(/\s+[#;].*$/, "").trim();
  return readRange(text) ?? (NAMED.test(text) ? readRange(text.slice(text.indexOf(":") + 1)) : undefined);
}

function readPair(pair: RegExpExecArray): IpRange | "ignored" | undefined {
  const first = quad(pair, 1);
  const last = quad(pair, 5);
  if (first === undefined || last === undefined || first > last) return undefined;
  if (pair[9] !== undefined && Number(pair[9]) >= ALLOWED_LEVEL) return "ignored";
  return { first: [first], last: [last] };
}

function quad(match: RegExpExecArray, at: number): number | undefined {
  let value = 0;
  for (let i = at; i < at + 4; i++) {
    const byte = Number(match[i]);
    if (byte > 255) return undefined;
    value = value * 256 + byte;
  }
  return value;
}

/** Parses a network, an address, or two addresses with a dash between them. */
function readRange(text: string): IpRange | undefined {
  const network = parseNetwork(text);
  if (network) return networkRange(addressBytes(network.host)!, network.bits);
  const [from, to, ...more] = text.split("-").map((part) => canonicalAddress(part.trim()));
  const [first, last] = [from && addressBytes(from), to && addressBytes(to)];
  if (!first || !last || more.length > 0 || first.length !== last.length) return undefined;
  return { first: addressWords(first), last: addressWords(last) };
}

function networkRange(bytes: Uint8Array, bits: number): IpRange {
  const first = bytes.map((byte, i) => byte & ~hostMask(i, bits));
  const last = bytes.map((byte, i) => byte | hostMask(i, bits));
  return { first: addressWords(first), last: addressWords(last) };
}

/** Returns the bits of byte `i` after the first `bits` bits of the address. */
function hostMask(i: number, bits: number): number {
  return 0xff >> Math.min(8, Math.max(0, bits - 8 * i));
}

/** Converts the 4 or 16 bytes of an address to 32-bit words. */
export function addressWords(bytes: Uint8Array): number[] {
  return Array.from({ length: bytes.length / 4 }, (_, i) => readU32(bytes, 4 * i));
}
