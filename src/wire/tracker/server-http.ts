import { addressBytes, familyOf } from "../../base/address.ts";
import { latin1Text } from "../../base/bytes.ts";
import { DecodeError } from "../../base/errors.ts";
import { type Infohash, infohashBytes, infohashOf } from "../../base/ids.ts";
import { percentDecode } from "../../base/percent.ts";
import { bencodeDict, encodeBencode } from "../bencode-encode.ts";
import { encodeCompactPeers } from "../compact-peers.ts";
import type { ScrapeCounts } from "./announce.ts";
import { MAX_SCRAPE_INFOHASHES, type TrackerServerAnnounce, type TrackerServerResponse } from "./server.ts";

const FORMAT = "tracker request";
/** Enough for 74 infohashes with every byte escaped. */
const MAX_QUERY_LENGTH = 8192;
const EVENTS = ["started", "stopped", "completed"] as const;

/** Decodes the query string of an announce, without `?` (BEP 3, 23). Throws `DecodeError`. */
export function decodeHttpAnnounceRequest(query: string): TrackerServerAnnounce {
  const parameters = parametersOf(query);
  const first = (name: string) => parameters.find(([each]) => each === name)?.[1];
  const infohash = first("info_hash");
  if (infohash === undefined) throw new DecodeError(FORMAT, 0, "expected info_hash");
  const peerId = first("peer_id");
  if (peerId === undefined || percentDecode(peerId).length !== 20)
    throw new DecodeError(FORMAT, 0, "expected 20 bytes of peer_id");
  const port = numberOf("port", first("port"), 65_535);
  if (port === undefined) throw new DecodeError(FORMAT, 0, "expected port");
  const event = EVENTS.find((each) => each === first("event")) ?? "none";
  return {
    infohash: readInfohash(infohash),
    port,
    isSeed: first("left") === "0",
    event,
    numWant: numberOf("numwant", first("numwant"), Number.MAX_SAFE_INTEGER),
  };
}

/** Decodes the query string of a scrape (BEP 48): one to {@link MAX_SCRAPE_INFOHASHES} infohashes. Throws `DecodeError`. */
export function decodeHttpScrapeRequest(query: string): Infohash[] {
  const named = parametersOf(query).filter(([name]) => name === "info_hash");
  if (named.length === 0) throw new DecodeError(FORMAT, 0, "expected info_hash");
  if (named.length > MAX_SCRAPE_INFOHASHES)
    throw new DecodeError(FORMAT, 0, `expected at most ${MAX_SCRAPE_INFOHASHES} infohashes`);
  return named.map(([, value]) => readInfohash(value));
}

/** Encodes the response to an announce: compact peers of both IP versions (BEP 7, 23), and the address of the client (BEP 24). */
export function encodeHttpAnnounceResponse(
  response: TrackerServerResponse,
  clientHost: string,
): Uint8Array<ArrayBuffer> {
  const { intervalSeconds, minIntervalSeconds, counts, peers } = response;
  const hasPeers6 = peers.some(({ host }) => familyOf(host) === 6);
  return encodeBencode(
    bencodeDict({
      interval: intervalSeconds,
      "min interval": minIntervalSeconds,
      complete: counts.seeders,
      incomplete: counts.leechers,
      downloaded: counts.completed,
      peers: encodeCompactPeers(peers, 4),
      peers6: hasPeers6 ? encodeCompactPeers(peers, 6) : undefined,
      "external ip": addressBytes(clientHost),
    }),
  );
}

/** Encodes the response to a scrape (BEP 48). */
export function encodeHttpScrapeResponse(
  counts: readonly (readonly [infohash: Infohash, counts: ScrapeCounts])[],
): Uint8Array<ArrayBuffer> {
  const files = new Map(
    counts.map(([infohash, { seeders, completed, leechers }]) => [
      latin1Text(infohashBytes(infohash)),
      bencodeDict({ complete: seeders, downloaded: completed, incomplete: leechers }),
    ]),
  );
  return encodeBencode(bencodeDict({ files }));
}

/** Encodes a failure, and after how many minutes the client may retry (BEP 31); `never` if a retry would fail as well. */
export function encodeHttpFailure(reason: string, retryMinutes: number | "never"): Uint8Array<ArrayBuffer> {
  return encodeBencode(
    bencodeDict({
      "failure reason": reason,
      "retry in": retryMinutes === "never" ? "never" : String(retryMinutes),
    }),
  );
}

type Parameter = readonly [name: string, value: string];

function parametersOf(query: string): Parameter[] {
  if (query.length > MAX_QUERY_LENGTH)
    throw new DecodeError(FORMAT, MAX_QUERY_LENGTH, `longer than ${MAX_QUERY_LENGTH} characters`);
  return query.split("&").map((member) => {
    const equals = member.indexOf("=");
    return equals < 0 ? [member, ""] : [member.slice(0, equals), member.slice(equals + 1)];
  });
}

function readInfohash(value: string): Infohash {
  // Some clients encode a space as `+` (RFC 1866 8.2.1); all escape a plus sign.
  const bytes = percentDecode(value.replaceAll("+", "%20"));
  if (bytes.length === 20) return infohashOf(bytes);
  throw new DecodeError(FORMAT, 0, `expected 20 bytes of info_hash, got ${bytes.length}`);
}

/** Parses an integer up to `max`; undefined if absent, empty or -1, which some clients send for the default. */
function numberOf(name: string, text: string | undefined, max: number): number | undefined {
  if (text === undefined || text === "" || text === "-1") return undefined;
  const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.POSITIVE_INFINITY;
  if (value <= max) return value;
  throw new DecodeError(FORMAT, 0, `${name}: expected a number up to ${max}`);
}
