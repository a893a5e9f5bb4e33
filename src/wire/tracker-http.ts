import { addressFromBytes, addressScope, canonicalAddress, type PeerAddress } from "../base/address.ts";
import { latin1Text } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";
import { type Infohash, infohashBytes } from "../base/ids.ts";
import { percentEncode } from "../base/percent.ts";
import {
  type BencodeDict,
  type BencodeValue,
  bytesOf,
  decodeBencodePrefix,
  dictOf,
  integerOf,
  listOf,
} from "./bencode.ts";
import { decodeCompactPeers } from "./compact-peers.ts";
import type { AnnounceReply, AnnounceRequest, SwarmCounts } from "./tracker.ts";
import {
  clampInterval,
  MAX_REPLY_PEERS,
  replyText,
  type ScrapeCounts,
  usablePeers,
} from "./tracker-reply.ts";

/** A reply larger than this is refused (libtorrent: the same). */
export const MAX_TRACKER_REPLY_BYTES = 1024 * 1024;
const FORMAT = "tracker reply";

/** The URL that announces to an HTTP tracker (BEP 3, 7, 21, 23). The tracker's own query members stay. */
export function httpAnnounceUrl(request: AnnounceRequest): string {
  const members = [
    `info_hash=${percentEncode(infohashBytes(request.infohash))}`,
    `peer_id=${percentEncode(request.peerId)}`,
    `port=${request.port}`,
    `uploaded=${request.uploaded}`,
    `downloaded=${request.downloaded}`,
    `left=${request.left}`,
    "compact=1",
    "no_peer_id=1",
    `numwant=${request.numWant}`,
    `key=${(request.key >>> 0).toString(16).padStart(8, "0")}`,
  ];
  if (request.event !== "none") members.push(`event=${request.event}`);
  if (request.trackerId) members.push(`trackerid=${percentEncode(request.trackerId)}`);
  return withMembers(request.url, members);
}

/** Reads the body of an announce (BEP 3, 7, 23, 24, 31). A refusal is a reply too: `ok: false`. Throws `DecodeError`. */
export function decodeHttpAnnounce(bytes: Uint8Array): AnnounceReply {
  const dict = readReply(bytes);
  const failure = bytesOf(dict.get("failure reason"));
  if (failure) return { ok: false, reason: replyText(failure) || "the tracker refused" };
  const peers = [...readPeers(dict.get("peers")), ...readPeers6(dict.get("peers6"))];
  const minInterval = integerOf(dict.get("min interval"));
  const trackerId = bytesOf(dict.get("tracker id"));
  const warning = bytesOf(dict.get("warning message"));
  const externalAddress = readExternalAddress(dict.get("external ip"));
  const counts = readCounts(dict);
  return {
    ok: true,
    peers: usablePeers(peers),
    intervalSeconds: clampInterval(integerOf(dict.get("interval"))),
    ...(minInterval !== undefined && minInterval > 0 && { minIntervalSeconds: clampInterval(minInterval) }),
    ...(trackerId && trackerId.length <= 1024 && { trackerId: trackerId.slice() }),
    ...(warning && { warning: replyText(warning) }),
    ...(externalAddress !== undefined && { externalAddress }),
    ...(counts && { counts }),
  };
}

/** The URL that scrapes an HTTP tracker, or undefined where its announce URL allows none (BEP 48). */
export function httpScrapeUrl(announceUrl: string, infohash: Infohash): string | undefined {
  const match = /^([a-z]+:\/\/[^?#]*\/)announce([^/?#]*)(\?[^#]*)?/i.exec(announceUrl);
  if (!match) return undefined;
  const url = `${match[1]}scrape${match[2]}${match[3] ?? ""}`;
  return withMembers(url, [`info_hash=${percentEncode(infohashBytes(infohash))}`]);
}

/** What a scrape says of `infohash` (BEP 48); undefined where the tracker does not know it. Throws `DecodeError`. */
export function decodeHttpScrape(bytes: Uint8Array, infohash: Infohash): ScrapeCounts | undefined {
  const files = dictOf(readReply(bytes).get("files"));
  const counts = dictOf(files?.get(latin1Text(infohashBytes(infohash))));
  if (!counts) return undefined;
  return {
    seeders: countOf(counts, "complete") ?? 0,
    leechers: countOf(counts, "incomplete") ?? 0,
    completed: countOf(counts, "downloaded") ?? 0,
  };
}

/** An announce need not carry them (BEP 3 does not know them); with one of the two the other is none. */
function readCounts(dict: BencodeDict): SwarmCounts | undefined {
  const seeders = countOf(dict, "complete");
  const leechers = countOf(dict, "incomplete");
  if (seeders === undefined && leechers === undefined) return undefined;
  return { seeders: seeders ?? 0, leechers: leechers ?? 0 };
}

/** Some trackers write -1 where they do not know. */
function countOf(dict: BencodeDict, key: string): number | undefined {
  const count = integerOf(dict.get(key));
  return count !== undefined && count >= 0 ? count : undefined;
}

/** BEP 24: 4 or 16 bytes. What cannot be anybody's address is left out; so is text, which some trackers send. */
function readExternalAddress(value: BencodeValue | undefined): string | undefined {
  const bytes = bytesOf(value);
  if (!bytes || (bytes.length !== 4 && bytes.length !== 16)) return undefined;
  const address = addressFromBytes(bytes);
  const scope = addressScope(address);
  return scope === "unspecified" || scope === "multicast" ? undefined : address;
}

function withMembers(url: string, members: readonly string[]): string {
  const bare = url.replace(/#.*$/, "");
  return `${bare}${bare.includes("?") ? "&" : "?"}${members.join("&")}`;
}

/** Not hashed by anybody, and written by many hands: unsorted keys are borne, and bytes after the end. */
function readReply(bytes: Uint8Array): BencodeDict {
  if (bytes.length > MAX_TRACKER_REPLY_BYTES) {
    throw new DecodeError(FORMAT, MAX_TRACKER_REPLY_BYTES, `larger than ${MAX_TRACKER_REPLY_BYTES} bytes`);
  }
  const dict = dictOf(decodeBencodePrefix(bytes, { lenientKeyOrder: true }).value);
  if (!dict) throw new DecodeError(FORMAT, 0, "expected a dictionary");
  return dict;
}

/** Compact IPv4 addresses, or a list of dictionaries (BEP 3), whose hosts must be addresses: we resolve no names here. */
function readPeers(value: BencodeValue | undefined): PeerAddress[] {
  const compact = bytesOf(value);
  if (compact) return decodeCompactPeers(compact, 4, MAX_REPLY_PEERS);
  const peers: PeerAddress[] = [];
  for (const entry of listOf(value) ?? []) {
    if (peers.length >= MAX_REPLY_PEERS) break;
    const dict = dictOf(entry);
    const host = canonicalAddress(
      latin1Text((bytesOf(dict?.get("ip")) ?? new Uint8Array(0)).subarray(0, 64)),
    );
    const port = integerOf(dict?.get("port")) ?? 0;
    if (host !== undefined && port > 0 && port < 65536) peers.push({ host, port });
  }
  return peers;
}

function readPeers6(value: BencodeValue | undefined): PeerAddress[] {
  const compact = bytesOf(value);
  return compact ? decodeCompactPeers(compact, 6, MAX_REPLY_PEERS) : [];
}
