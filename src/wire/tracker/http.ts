import { addressFromBytes, addressScope, canonicalAddress, type PeerAddress } from "../../base/address.ts";
import { latin1Text } from "../../base/bytes.ts";
import { DecodeError } from "../../base/errors.ts";
import { type Infohash, infohashBytes } from "../../base/ids.ts";
import { percentEncode } from "../../base/percent.ts";
import {
  type BencodeDict,
  type BencodeValue,
  bytesOf,
  decodeBencodePrefix,
  dictOf,
  integerOf,
  listOf,
} from "../bencode.ts";
import { decodeCompactPeers } from "../compact-peers.ts";
import type { AnnounceReply, AnnounceRequest, SwarmCounts } from "./announce.ts";
import { clampInterval, MAX_REPLY_PEERS, replyText, type ScrapeCounts, usablePeers } from "./announce.ts";

/** Larger replies are refused (libtorrent: the same). */
export const MAX_TRACKER_REPLY_BYTES = 1024 * 1024;
const FORMAT = "tracker reply";

/** Builds the announce URL for an HTTP tracker (BEP 3, 7, 21, 23). Query parameters of the tracker's URL are kept. */
export function httpAnnounceUrl(request: AnnounceRequest): string {
  const parameters = [
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
  if (request.event !== "none") parameters.push(`event=${request.event}`);
  if (request.trackerId) parameters.push(`trackerid=${percentEncode(request.trackerId)}`);
  return withParameters(request.url, parameters);
}

/** Decodes the response body of an announce (BEP 3, 7, 23, 24, 31). A failure of the tracker is a reply with `ok: false`. Throws
 * `DecodeError`. */
export function decodeHttpAnnounce(bytes: Uint8Array): AnnounceReply {
  const dict = readReply(bytes);
  const failure = bytesOf(dict.get("failure reason"));
  if (failure) return { ok: false, reason: replyText(failure) || "the tracker gave no reason" };
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

/** Returns the scrape URL of an HTTP tracker; undefined if its announce URL does not allow scraping (BEP 48). */
export function httpScrapeUrl(announceUrl: string, infohash: Infohash): string | undefined {
  const match = /^([a-z]+:\/\/[^?#]*\/)announce([^/?#]*)(\?[^#]*)?/i.exec(announceUrl);
  if (!match) return undefined;
  const url = `${match[1]}scrape${match[2]}${match[3] ?? ""}`;
  return withParameters(url, [`info_hash=${percentEncode(infohashBytes(infohash))}`]);
}

/** Decodes the scrape result of `infohash` (BEP 48); undefined if the tracker does not list it. Throws `DecodeError`. */
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

/** Reads the counts, which are optional; if only one is present, the other is 0. */
function readCounts(dict: BencodeDict): SwarmCounts | undefined {
  const seeders = countOf(dict, "complete");
  const leechers = countOf(dict, "incomplete");
  if (seeders === undefined && leechers === undefined) return undefined;
  return { seeders: seeders ?? 0, leechers: leechers ?? 0 };
}

/** Some trackers send -1 for an unknown count. */
function countOf(dict: BencodeDict, key: string): number | undefined {
  const count = integerOf(dict.get(key));
  return count !== undefined && count >= 0 ? count : undefined;
}

/** Reads the external address, 4 or 16 bytes (BEP 24). Ignores text, which some trackers send, and unusable addresses. */
function readExternalAddress(value: BencodeValue | undefined): string | undefined {
  const bytes = bytesOf(value);
  if (!bytes || (bytes.length !== 4 && bytes.length !== 16)) return undefined;
  const address = addressFromBytes(bytes);
  const scope = addressScope(address);
  return scope === "unspecified" || scope === "multicast" ? undefined : address;
}

function withParameters(url: string, parameters: readonly string[]): string {
  const bare = url.replace(/#.*$/, "");
  return `${bare}${bare.includes("?") ? "&" : "?"}${parameters.join("&")}`;
}

/** Accepts unsorted keys and trailing bytes: replies are not hashed, and implementations vary. */
function readReply(bytes: Uint8Array): BencodeDict {
  if (bytes.length > MAX_TRACKER_REPLY_BYTES) {
    throw new DecodeError(FORMAT, MAX_TRACKER_REPLY_BYTES, `larger than ${MAX_TRACKER_REPLY_BYTES} bytes`);
  }
  const dict = dictOf(decodeBencodePrefix(bytes, { lenientKeyOrder: true }).value);
  if (!dict) throw new DecodeError(FORMAT, 0, "expected a dictionary");
  return dict;
}

/** Reads compact IPv4 addresses or a list of dictionaries (BEP 3). Entries with a host name are skipped. */
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
