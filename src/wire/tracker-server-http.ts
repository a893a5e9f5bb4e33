import { addressBytes, familyOf } from "../base/address.ts";
import { latin1Text } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";
import { type Infohash, infohashBytes, infohashOf } from "../base/ids.ts";
import { percentDecode } from "../base/percent.ts";
import { bencodeDict, encodeBencode } from "./bencode-encode.ts";
import { encodeCompactPeers } from "./compact-peers.ts";
import type { ScrapeCounts } from "./tracker-reply.ts";
import { type AnnounceAnswer, type AnnounceQuestion, MAX_SCRAPED } from "./tracker-server.ts";

const FORMAT = "tracker question";
/** Seventy-four infohashes, every byte of them escaped, with room to spare. */
const MAX_QUERY_LENGTH = 8192;
const EVENTS = ["started", "stopped", "completed"] as const;

/** Reads the query of an announce, without its `?` (BEP 3, 23). Throws `DecodeError`. */
export function decodeHttpQuestion(query: string): AnnounceQuestion {
  const members = membersOf(query);
  const first = (name: string) => members.find(([each]) => each === name)?.[1];
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

/** Reads the query of a scrape (BEP 48): one to {@link MAX_SCRAPED} infohashes. Throws `DecodeError`. */
export function decodeHttpScrapeQuestion(query: string): Infohash[] {
  const named = membersOf(query).filter(([name]) => name === "info_hash");
  if (named.length === 0) throw new DecodeError(FORMAT, 0, "expected info_hash");
  if (named.length > MAX_SCRAPED)
    throw new DecodeError(FORMAT, 0, `expected at most ${MAX_SCRAPED} infohashes`);
  return named.map(([, value]) => readInfohash(value));
}

/** The answer to an announce: compact peers of both IP versions (BEP 7, 23), the asker's own address (BEP 24). */
export function encodeHttpAnswer(answer: AnnounceAnswer, askerHost: string): Uint8Array<ArrayBuffer> {
  const { intervalSeconds, minIntervalSeconds, counts, peers } = answer;
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
      "external ip": addressBytes(askerHost),
    }),
  );
}

/** The answer to a scrape (BEP 48). */
export function encodeHttpScrapeAnswer(
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

/** A refusal, and when to come again (BEP 31), in minutes; `never` where that would change nothing. */
export function encodeHttpRefusal(reason: string, retryMinutes: number | "never"): Uint8Array<ArrayBuffer> {
  return encodeBencode(
    bencodeDict({
      "failure reason": reason,
      "retry in": retryMinutes === "never" ? "never" : String(retryMinutes),
    }),
  );
}

type Member = readonly [name: string, value: string];

function membersOf(query: string): Member[] {
  if (query.length > MAX_QUERY_LENGTH)
    throw new DecodeError(FORMAT, MAX_QUERY_LENGTH, `longer than ${MAX_QUERY_LENGTH} characters`);
  return query.split("&").map((member) => {
    const equals = member.indexOf("=");
    return equals < 0 ? [member, ""] : [member.slice(0, equals), member.slice(equals + 1)];
  });
}

function readInfohash(value: string): Infohash {
  // Some programs write a space as forms do (RFC 1866 8.2.1); a plus sign itself is escaped by all.
  const bytes = percentDecode(value.replaceAll("+", "%20"));
  if (bytes.length === 20) return infohashOf(bytes);
  throw new DecodeError(FORMAT, 0, `expected 20 bytes of info_hash, got ${bytes.length}`);
}

/** A whole number up to `most`; -1, which some write for "as usual", is as if nothing stood there. */
function numberOf(name: string, text: string | undefined, most: number): number | undefined {
  if (text === undefined || text === "" || text === "-1") return undefined;
  const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.POSITIVE_INFINITY;
  if (value <= most) return value;
  throw new DecodeError(FORMAT, 0, `${name}: expected a number up to ${most}`);
}
