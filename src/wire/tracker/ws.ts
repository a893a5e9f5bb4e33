import { canonicalAddress, type PeerAddress } from "../../base/address.ts";
import { latin1Bytes, latin1Text } from "../../base/bytes.ts";
import { DecodeError } from "../../base/errors.ts";
import { type Infohash, infohashBytes, infohashOf } from "../../base/ids.ts";
import { encodeUtf8 } from "../../base/utf8.ts";
import type { AnnounceReply, AnnounceRequest, SwarmCounts } from "./announce.ts";
import { clampInterval, MAX_REPLY_PEERS, replyText, type ScrapeCounts, usablePeers } from "./announce.ts";

/** A message of a WebSocket tracker (WebTorrent's JSON protocol). */
export type WsReply =
  | { readonly kind: "announce"; readonly infohash: Infohash; readonly reply: AnnounceReply }
  | { readonly kind: "scrape"; readonly counts: ReadonlyMap<Infohash, ScrapeCounts> }
  /** A failure without infohash; it refers to the last request. */
  | { readonly kind: "failure"; readonly reason: string }
  /** A WebRTC offer or answer; see `decodeWsSignal`. */
  | { readonly kind: "other" };

/** A WebRTC offer, as the caller of `encodeWsAnnounce` made it. */
interface WsOffer {
  readonly id: string;
  readonly description: { readonly type: string; readonly sdp: string };
}

/** A JSON message. Infohashes and peer ids are strings of 20 characters, one per byte. */
type Json = Readonly<Record<string, unknown>>;

const FORMAT = "WebSocket tracker message";
/** Swarms read from one scrape response. */
const MAX_SCRAPE_REPLIES = 100;

/** Encodes an announce; `offers` are those for WebRTC, if it is on. Trackers that also list plain addresses use `port`. */
export function encodeWsAnnounce(request: AnnounceRequest, offers?: readonly WsOffer[]): string {
  const { infohash, peerId, port, uploaded, downloaded, left, event, numWant, trackerId } = request;
  return JSON.stringify({
    action: "announce",
    info_hash: latin1Text(infohashBytes(infohash)),
    peer_id: latin1Text(peerId),
    port,
    uploaded,
    downloaded,
    left,
    numwant: offers ? offers.length : numWant,
    ...(offers && { offers: offers.map(({ id, description }) => ({ offer_id: id, offer: description })) }),
    ...(event !== "none" && { event: event === "paused" ? "update" : event }),
    ...(trackerId && { trackerid: latin1Text(trackerId) }),
  });
}

/** Encodes a scrape of one swarm. */
export function encodeWsScrape(infohash: Infohash): string {
  return JSON.stringify({ action: "scrape", info_hash: latin1Text(infohashBytes(infohash)) });
}

/** Decodes a message of a tracker. Throws `DecodeError`. */
export function decodeWsReply(text: string): WsReply {
  const message = parseWsJson(text);
  const failure = textOf(message["failure reason"]);
  const infohash = readBinary20(message.info_hash);
  if (failure !== undefined) {
    const reason = failure || "the tracker gave no reason";
    if (infohash === undefined) return { kind: "failure", reason };
    return { kind: "announce", infohash, reply: { ok: false, reason } };
  }
  if (message.action === "scrape") return { kind: "scrape", counts: readFiles(message.files) };
  if (message.action !== "announce")
    throw new DecodeError(FORMAT, 0, "expected the action announce or scrape");
  if (message.offer !== undefined || message.answer !== undefined) return { kind: "other" };
  if (infohash === undefined) throw new DecodeError(FORMAT, 0, "expected an info_hash of 20 characters");
  return { kind: "announce", infohash, reply: readReply(message) };
}

/** Parses a message as a JSON object. Throws `DecodeError`. */
export function parseWsJson(text: string): Json {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new DecodeError(FORMAT, 0, "not JSON");
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Json;
  throw new DecodeError(FORMAT, 0, "expected an object");
}

/** Converts a string of 20 characters, one per byte, to an infohash; undefined if `value` is anything else. */
export function readBinary20(value: unknown): Infohash | undefined {
  const isBinary = typeof value === "string" && value.length === 20 && !/[^\0-\xff]/.test(value);
  return isBinary ? infohashOf(latin1Bytes(value)) : undefined;
}

/** Returns `value` if it is a non-negative integer, otherwise undefined. */
export function readCount(value: unknown): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

function readReply(message: Json): AnnounceReply {
  const counts = readCounts(message);
  const minInterval = readCount(message["min interval"]);
  const trackerId = message["tracker id"];
  const warning = textOf(message["warning message"]);
  return {
    ok: true,
    peers: usablePeers(readPeers(message.peers)),
    intervalSeconds: clampInterval(readCount(message.interval)),
    ...(minInterval && { minIntervalSeconds: clampInterval(minInterval) }),
    ...(typeof trackerId === "string" && isShortBinary(trackerId) && { trackerId: latin1Bytes(trackerId) }),
    ...(warning !== undefined && { warning }),
    ...(counts && { counts }),
  };
}

function isShortBinary(text: string): boolean {
  return text.length > 0 && text.length <= 1024 && !/[^\0-\xff]/.test(text);
}

function readCounts(message: Json): SwarmCounts | undefined {
  const [seeders, leechers] = [readCount(message.complete), readCount(message.incomplete)];
  if (seeders === undefined && leechers === undefined) return undefined;
  return { seeders: seeders ?? 0, leechers: leechers ?? 0 };
}

/** Reads plain addresses, which only some trackers send. */
function readPeers(value: unknown): PeerAddress[] {
  if (!Array.isArray(value)) return [];
  return value.slice(0, MAX_REPLY_PEERS).flatMap((entry: unknown) => {
    if (typeof entry !== "object" || entry === null) return [];
    const { ip, port } = entry as Json;
    const host = typeof ip === "string" && ip.length <= 64 ? canonicalAddress(ip) : undefined;
    const number = readCount(port);
    return host !== undefined && number !== undefined && number < 65_536 ? [{ host, port: number }] : [];
  });
}

function readFiles(value: unknown): Map<Infohash, ScrapeCounts> {
  const counts = new Map<Infohash, ScrapeCounts>();
  if (typeof value !== "object" || value === null) return counts;
  for (const [key, file] of Object.entries(value).slice(0, MAX_SCRAPE_REPLIES)) {
    const infohash = readBinary20(key);
    if (infohash === undefined || typeof file !== "object" || file === null) continue;
    const { complete, incomplete, downloaded } = file as Json;
    counts.set(infohash, {
      seeders: readCount(complete) ?? 0,
      leechers: readCount(incomplete) ?? 0,
      completed: readCount(downloaded) ?? 0,
    });
  }
  return counts;
}

/** Converts a text of the tracker to one short line. */
function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? replyText(encodeUtf8(value.slice(0, 1024))) : undefined;
}
