import { canonicalAddress, parseIpv4 } from "../base/address.ts";
import { DecodeError } from "../base/errors.ts";
import { type Infohash, parseInfohash, parseMultihash } from "../base/ids.ts";
import { type ItemName, isItemSource, parseItemName } from "../base/item-name.ts";
import { percentDecode } from "../base/percent.ts";
import { decodeUtf8, encodeUtf8 } from "../base/utf8.ts";
import { safeElement } from "./file-names.ts";
import { isTrackerUrl } from "./tracker-url.ts";

/** What a magnet link says (BEP 9, 46, 52, 53). */
export type Magnet = MagnetOfInfohash | MagnetOfKey;

export interface MagnetOfInfohash extends MagnetMembers {
  readonly infohash: Infohash;
}

/** It names a key alone: the DHT says the infohash (BEP 46). */
export interface MagnetOfKey extends MagnetMembers {
  readonly infohash: undefined;
  /** `xs=urn:btpk:` and `s`. */
  readonly item: ItemName;
}

interface MagnetMembers {
  /** `dn`: display text. */
  readonly displayName?: string;
  /** `tr`: announce URLs; by BEP 12 each is a tier of its own. */
  readonly trackers: readonly string[];
  /** `x.pe`: peers; the host may be a name. */
  readonly peers: readonly { readonly host: string; readonly port: number }[];
  /** `so`: indices of the files to fetch, ascending (BEP 53). */
  readonly selectOnly?: readonly number[];
  /** `xl`: the size in bytes, as the link claims. */
  readonly exactLength?: number;
  /** `xs` and `as`: URLs of the transport file. */
  readonly exactSources: readonly string[];
  /** `ws` and `as`: URLs of the content itself (BEP 19). What `as` means differs from link to link. */
  readonly webSeeds: readonly string[];
}

/** Longer links are refused: no player and no page makes them. */
const MAX_MAGNET_LENGTH = 64 * 1024;
/** Entries of one kind (trackers, peers, sources); further ones are not read. */
const MAX_ENTRIES = 100;
/** Files that `so` may name, repeated ones counted, and the highest index. */
const MAX_SELECTED = 10_000;
const MAX_FILE_INDEX = 100_000;
const FORMAT = "magnet";

/** Reads a magnet link. Members we do not know are ignored, broken optional ones too. Of the two infohashes of a hybrid
 * (BEP 52) that of version 1 counts; a key (BEP 46) where there is none. Throws `DecodeError` where there is neither. */
export function parseMagnet(text: string): Magnet {
  if (text.length > MAX_MAGNET_LENGTH) {
    throw new DecodeError(FORMAT, MAX_MAGNET_LENGTH, `longer than ${MAX_MAGNET_LENGTH} characters`);
  }
  if (!/^\s*magnet:\?/i.test(text)) throw new DecodeError(FORMAT, 0, "expected magnet:?");
  const members = readMembers(text.slice(text.indexOf("?") + 1));
  const dn = members.get("dn")?.[0];
  const displayName = dn === undefined ? "" : safeElement(encodeUtf8(dn));
  const selectOnly = readSelection(members.get("so") ?? []);
  const length = members.get("xl")?.[0];
  const hasLength = length !== undefined && /^\d{1,15}$/.test(length);
  return {
    ...readTopic(members),
    ...(displayName !== "" && { displayName }),
    trackers: distinct(members.get("tr")).filter(isTrackerUrl),
    peers: distinct(members.get("x.pe")).flatMap(readPeer),
    ...(selectOnly && { selectOnly }),
    ...(hasLength && { exactLength: Number(length) }),
    exactSources: distinct([...(members.get("xs") ?? []), ...(members.get("as") ?? [])]).filter(isHttpUrl),
    webSeeds: distinct([...(members.get("ws") ?? []), ...(members.get("as") ?? [])]).filter(isHttpUrl),
  };
}

/** Members by name, in order. `xt.1` counts as `xt` (numbered names of BEP 9's older form); `x.pe` has its own dot. */
function readMembers(query: string): Map<string, string[]> {
  const members = new Map<string, string[]>();
  // Links copied from the source of a page have their ampersands escaped.
  for (const member of query.trim().replaceAll("&amp;", "&").split("&")) {
    const equals = member.indexOf("=");
    if (equals < 0) continue;
    const name = member
      .slice(0, equals)
      .toLowerCase()
      .replace(/\.\d+$/, "");
    const values = members.get(name);
    if (values && values.length >= MAX_ENTRIES) continue;
    const raw = member.slice(equals + 1);
    const value = decodeUtf8(percentDecode(name === "dn" ? raw.replaceAll("+", " ") : raw));
    if (values) values.push(value);
    else members.set(name, [value]);
  }
  return members;
}

/** What is named: an infohash, else a key. */
function readTopic(
  members: Map<string, string[]>,
): { infohash: Infohash } | Pick<MagnetOfKey, "infohash" | "item"> {
  const infohash = readInfohash(members.get("xt") ?? []);
  if (infohash) return { infohash };
  const sources = (members.get("xs") ?? []).filter(isItemSource);
  if (sources.length === 0)
    throw new DecodeError(
      FORMAT,
      0,
      "no infohash (xt=urn:btih: or xt=urn:btmh:1220…), and no key (xs=urn:btpk:)",
    );
  for (const source of sources) {
    const item = parseItemName(source, members.get("s")?.[0] ?? "");
    if (item) return { infohash: undefined, item };
  }
  throw new DecodeError(FORMAT, 0, "a key is 64 hex digits, and its salt (s) at most 128");
}

function readInfohash(topics: readonly string[]): Infohash | undefined {
  for (const topic of topics) {
    const match = /^urn:btih:(.*)$/is.exec(topic);
    const infohash = match && parseInfohash(match[1]!.trim());
    if (infohash) return infohash;
  }
  if (topics.some((topic) => /^urn:btih:/i.test(topic))) {
    throw new DecodeError(FORMAT, 0, "an infohash is 40 hex digits or 32 base-32 characters");
  }
  for (const topic of topics) {
    const infohash = parseMultihash(/^urn:btmh:(.*)$/is.exec(topic)?.[1]?.trim() ?? "");
    if (infohash) return infohash;
  }
  return undefined;
}

/** `host:port`, the host an IPv4 address, a name, or an IPv6 address in brackets. */
function readPeer(text: string): { host: string; port: number }[] {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9._-]{1,253})):(\d{1,5})$/.exec(text);
  if (!match) return [];
  const port = Number(match[3]);
  const host = match[1] === undefined ? hostName(match[2]!) : canonicalAddress(match[1]);
  return host === undefined || port === 0 || port > 65535 ? [] : [{ host, port }];
}

/** What ends in a number must be a proper IPv4 address: some resolvers read `127.1` or `0x7f.1` as one too. */
function hostName(text: string): string | undefined {
  const looksNumeric = /(^|\.)(\d+|0x[0-9a-f]*)\.?$/i.test(text);
  return looksNumeric && parseIpv4(text) === undefined ? undefined : text.toLowerCase();
}

/** `0,2,4-6` (BEP 53); undefined where nothing readable was named. */
function readSelection(values: readonly string[]): number[] | undefined {
  const indices = new Set<number>();
  // Counts repeated ones too: `0-9999` said a thousand times must not cost a thousand times as much.
  let named = 0;
  for (const part of values.join(",").split(",")) {
    const match = /^(\d{1,6})(?:-(\d{1,6}))?$/.exec(part);
    if (!match) continue;
    const first = Number(match[1]);
    const last = Math.min(Number(match[2] ?? match[1]), MAX_FILE_INDEX);
    for (let index = first; index <= last && named < MAX_SELECTED; index++, named++) indices.add(index);
  }
  return indices.size > 0 ? [...indices].sort((a, b) => a - b) : undefined;
}

function distinct(values: readonly string[] | undefined): string[] {
  return [...new Set(values)];
}

function isHttpUrl(url: string): boolean {
  return url.length <= 8192 && /^https?:\/\/[!-~]+$/i.test(url);
}
