import { addressText, canonicalAddress, type PeerAddress, parseIpv4 } from "../../base/address.ts";
import { DecodeError } from "../../base/errors.ts";
import { type Infohash, parseInfohash, parseMultihash } from "../../base/ids.ts";
import { type ItemName, isPublicKeyUrn, parseItemName } from "../../base/item-name.ts";
import { percentDecode } from "../../base/percent.ts";
import { decodeUtf8, encodeUtf8 } from "../../base/utf8.ts";
import { isTrackerUrl } from "../tracker/url.ts";
import { safeElement } from "./file-names.ts";

/** A parsed magnet link (BEP 9, 46, 52, 53). */
export type Magnet = MagnetOfInfohash | MagnetOfKey;

export interface MagnetOfInfohash extends MagnetParameters {
  readonly infohash: Infohash;
}

/** A magnet with a public key instead of an infohash; the DHT maps the key to an infohash (BEP 46). */
interface MagnetOfKey extends MagnetParameters {
  readonly infohash: undefined;
  /** The public key from `xs=urn:btpk:` and the salt from `s`. */
  readonly item: ItemName;
}

interface MagnetParameters {
  /** `dn`: display text. */
  readonly displayName?: string;
  /** `tr`: announce URLs; each is a tier of its own (BEP 12). */
  readonly trackers: readonly string[];
  /** `x.pe`: peers; the host may be a name. */
  readonly peers: readonly { readonly host: string; readonly port: number }[];
  /** `so`: indices of the files to fetch, ascending (BEP 53). */
  readonly selectOnly?: readonly number[];
  /** `xl`: the size in bytes; unverified. */
  readonly exactLength?: number;
  /** `xs` and `as`: URLs of the transport file. */
  readonly exactSources: readonly string[];
  /** `ws` and `as`: URLs of the content (BEP 19). The meaning of `as` varies between links. */
  readonly webSeeds: readonly string[];
}

/** Longer links are refused; they do not occur in practice. */
const MAX_MAGNET_LENGTH = 64 * 1024;
/** Maximum number of values read of one parameter. */
const MAX_ENTRIES = 100;
/** Maximum number of indices in `so`, including repeated ones, and the maximum index. */
const MAX_SELECTED = 10_000;
const MAX_FILE_INDEX = 100_000;
const FORMAT = "magnet";

/** Parses a magnet link. Unknown parameters and malformed optional ones are ignored. The v1 infohash of a hybrid takes precedence
 * over the v2 infohash (BEP 52), and any infohash over a public key (BEP 46). Throws `DecodeError` if the link has none of the three. */
export function parseMagnet(text: string): Magnet {
  if (text.length > MAX_MAGNET_LENGTH) {
    throw new DecodeError(FORMAT, MAX_MAGNET_LENGTH, `longer than ${MAX_MAGNET_LENGTH} characters`);
  }
  if (!/^\s*magnet:\?/i.test(text)) throw new DecodeError(FORMAT, 0, "expected magnet:?");
  const parameters = readParameters(text.slice(text.indexOf("?") + 1));
  const dn = parameters.get("dn")?.[0];
  const displayName = dn === undefined ? "" : safeElement(encodeUtf8(dn));
  const selectOnly = readSelection(parameters.get("so") ?? []);
  const length = parameters.get("xl")?.[0];
  const hasLength = length !== undefined && /^\d{1,15}$/.test(length);
  return {
    ...readTopic(parameters),
    ...(displayName !== "" && { displayName }),
    trackers: distinct(parameters.get("tr")).filter(isTrackerUrl),
    peers: distinct(parameters.get("x.pe")).flatMap(readPeer),
    ...(selectOnly && { selectOnly }),
    ...(hasLength && { exactLength: Number(length) }),
    exactSources: distinct([...(parameters.get("xs") ?? []), ...(parameters.get("as") ?? [])]).filter(
      isHttpUrl,
    ),
    webSeeds: distinct([...(parameters.get("ws") ?? []), ...(parameters.get("as") ?? [])]).filter(isHttpUrl),
  };
}

/** Returns the parameters by name, in order. `xt.1` counts as `xt` (numbered names of older links). */
function readParameters(query: string): Map<string, string[]> {
  const parameters = new Map<string, string[]>();
  // Links copied from HTML source have escaped ampersands.
  for (const parameter of query.trim().replaceAll("&amp;", "&").split("&")) {
    const equals = parameter.indexOf("=");
    if (equals < 0) continue;
    const name = parameter
      .slice(0, equals)
      .toLowerCase()
      .replace(/\.\d+$/, "");
    const values = parameters.get(name);
    if (values && values.length >= MAX_ENTRIES) continue;
    const raw = parameter.slice(equals + 1);
    const value = decodeUtf8(percentDecode(name === "dn" ? raw.replaceAll("+", " ") : raw));
    if (values) values.push(value);
    else parameters.set(name, [value]);
  }
  return parameters;
}

/** Reads the infohash, or the public key if there is no infohash. */
function readTopic(
  parameters: Map<string, string[]>,
): { infohash: Infohash } | Pick<MagnetOfKey, "infohash" | "item"> {
  const infohash = readInfohash(parameters.get("xt") ?? []);
  if (infohash) return { infohash };
  const sources = (parameters.get("xs") ?? []).filter(isPublicKeyUrn);
  if (sources.length === 0)
    throw new DecodeError(
      FORMAT,
      0,
      "no infohash (xt=urn:btih: or xt=urn:btmh:1220…) and no public key (xs=urn:btpk:)",
    );
  for (const source of sources) {
    const item = parseItemName(source, parameters.get("s")?.[0] ?? "");
    if (item) return { infohash: undefined, item };
  }
  throw new DecodeError(
    FORMAT,
    0,
    "expected a public key (xs) of 64 hex digits and a salt (s) of at most 128 hex digits",
  );
}

function readInfohash(topics: readonly string[]): Infohash | undefined {
  for (const topic of topics) {
    const match = /^urn:btih:(.*)$/is.exec(topic);
    const infohash = match && parseInfohash(match[1]!.trim());
    if (infohash) return infohash;
  }
  if (topics.some((topic) => /^urn:btih:/i.test(topic))) {
    throw new DecodeError(FORMAT, 0, "expected an infohash of 40 hex digits or 32 base-32 characters");
  }
  for (const topic of topics) {
    const infohash = parseMultihash(/^urn:btmh:(.*)$/is.exec(topic)?.[1]?.trim() ?? "");
    if (infohash) return infohash;
  }
  return undefined;
}

/** Parses `host:port`; the host is an IPv4 address, a name, or an IPv6 address in brackets. */
function readPeer(text: string): { host: string; port: number }[] {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9._-]{1,253})):(\d{1,5})$/.exec(text);
  if (!match) return [];
  const port = Number(match[3]);
  const host = match[1] === undefined ? hostName(match[2]!) : canonicalAddress(match[1]);
  return host === undefined || port === 0 || port > 65535 ? [] : [{ host, port }];
}

/** Returns undefined for a name that ends in a number and is not an IPv4 address: some resolvers read `127.1` or `0x7f.1` as an address. */
function hostName(text: string): string | undefined {
  const looksNumeric = /(^|\.)(\d+|0x[0-9a-f]*)\.?$/i.test(text);
  return looksNumeric && parseIpv4(text) === undefined ? undefined : text.toLowerCase();
}

/** Parses `0,2,4-6` (BEP 53); undefined if no part is well-formed. */
function readSelection(values: readonly string[]): number[] | undefined {
  const indices = new Set<number>();
  // Repeated indices count toward the limit, so that a link cannot repeat `0-9999` to cost a thousand times as much.
  let count = 0;
  for (const part of values.join(",").split(",")) {
    const match = /^(\d{1,6})(?:-(\d{1,6}))?$/.exec(part);
    if (!match) continue;
    const first = Number(match[1]);
    const last = Math.min(Number(match[2] ?? match[1]), MAX_FILE_INDEX);
    for (let index = first; index <= last && count < MAX_SELECTED; index++, count++) indices.add(index);
  }
  return indices.size > 0 ? [...indices].sort((a, b) => a - b) : undefined;
}

function distinct(values: readonly string[] | undefined): string[] {
  return [...new Set(values)];
}

function isHttpUrl(url: string): boolean {
  return url.length <= 8192 && /^https?:\/\/[!-~]+$/i.test(url);
}

/** The parts of a link to content of this engine. */
export interface LinkParts {
  readonly infohash: Infohash;
  readonly displayName?: string;
  readonly trackers: readonly string[];
  /** Peers that are always reachable. */
  readonly peers: readonly PeerAddress[];
  /** URL of the transport file. */
  readonly transportFileUrl?: string;
}

/** Builds a magnet link (BEP 9); live streams have the same parameters as files, so that every magnet parser accepts them. */
export function magnetLink(parts: LinkParts): string {
  const parameter = (name: string, value: string) => `&${name}=${encodeURIComponent(value.toWellFormed())}`;
  return [
    `magnet:?xt=urn:btih:${parts.infohash}`,
    parts.displayName === undefined ? "" : parameter("dn", parts.displayName),
    ...parts.trackers.map((url) => parameter("tr", url)),
    ...parts.peers.map((address) => parameter("x.pe", addressText(address))),
    parts.transportFileUrl === undefined ? "" : parameter("xs", parts.transportFileUrl),
  ].join("");
}

/** Builds a `sluice:` link, which opens this program. It contains the magnet link, because an infohash alone names no trackers. */
export function liveLink(parts: LinkParts): string {
  return `sluice:?magnet=${encodeURIComponent(magnetLink(parts))}`;
}
