import type { PeerAddress } from "../base/address.ts";
import { latin1Text } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";
import { type Infohash, infohashBytes } from "../base/ids.ts";
import type { ScrapeCounts } from "./tracker-reply.ts";
import { type AnnounceQuestion, MAX_SCRAPED } from "./tracker-server.ts";
import { parseWsJson, readBinary20, readCount } from "./tracker-ws.ts";

/** One half of what two WebRTC peers say to each other through a tracker. */
export interface SessionDescription {
  readonly type: "offer" | "answer";
  readonly sdp: string;
}

/** An offer to whoever it is given to; `id` is the asker's own name for it. */
export interface Offer {
  readonly id: string;
  readonly description: SessionDescription;
}

/** What a WebSocket tracker is asked. A peer id is a text of 20 characters, a byte each. */
export type WsQuestion =
  | {
      readonly kind: "announce";
      readonly peerId: string;
      readonly announce: AnnounceQuestion;
      readonly offers: readonly Offer[];
    }
  | {
      readonly kind: "answer";
      readonly infohash: Infohash;
      readonly peerId: string;
      readonly toPeerId: string;
      readonly answer: Offer;
    }
  | { readonly kind: "scrape"; readonly infohashes: readonly Infohash[] };

const FORMAT = "WebSocket tracker question";
/** Browsers offer five to ten at once. */
const MAX_OFFERS = 10;
/** A description with a dozen addresses has some 4 KiB; one of this length fits a frame, however it is escaped. */
const MAX_SDP_LENGTH = 10_000;
/** Twenty bytes by chance, as everybody writes it. */
const MAX_OFFER_ID_LENGTH = 64;
const EVENTS = ["started", "stopped", "completed"] as const;

/** Reads a question (WebTorrent's JSON protocol). Throws `DecodeError`. */
export function decodeWsQuestion(text: string): WsQuestion {
  const message = parseWsJson(text);
  if (message.action === "scrape") return { kind: "scrape", infohashes: readInfohashes(message.info_hash) };
  if (message.action !== "announce")
    throw new DecodeError(FORMAT, 0, "expected the action announce or scrape");
  const infohash = readBinary20(message.info_hash);
  if (infohash === undefined) throw new DecodeError(FORMAT, 0, "expected an info_hash of 20 characters");
  const peerId = readPeerId("peer_id", message.peer_id);
  if (message.answer !== undefined) {
    const toPeerId = readPeerId("to_peer_id", message.to_peer_id);
    const answer = readOffer({ offer_id: message.offer_id, offer: message.answer }, "answer");
    return { kind: "answer", infohash, peerId, toPeerId, answer };
  }
  const port = readCount(message.port) ?? 0;
  const announce: AnnounceQuestion = {
    infohash,
    port: port < 65_536 ? port : 0,
    isSeed: message.left === 0,
    event: EVENTS.find((event) => event === message.event) ?? "none",
    numWant: readCount(message.numwant),
  };
  return { kind: "announce", peerId, announce, offers: readOffers(message.offers) };
}

/** The answer to an announce; `peers` are plain addresses. */
export function encodeWsAnswer(
  infohash: Infohash,
  intervalSeconds: number,
  counts: ScrapeCounts,
  peers: readonly PeerAddress[],
): string {
  return JSON.stringify({
    action: "announce",
    info_hash: binary(infohash),
    interval: intervalSeconds,
    complete: counts.seeders,
    incomplete: counts.leechers,
    ...(peers.length > 0 && { peers: peers.map(({ host, port }) => ({ ip: host, port })) }),
  });
}

/** Hands an offer, or the answer to one, to a peer. */
export function encodeWsRelayed(infohash: Infohash, fromPeerId: string, { id, description }: Offer): string {
  return JSON.stringify({
    action: "announce",
    info_hash: binary(infohash),
    peer_id: fromPeerId,
    offer_id: id,
    [description.type]: description,
  });
}

/** The answer to a scrape. */
export function encodeWsScrapeAnswer(
  counts: readonly (readonly [infohash: Infohash, counts: ScrapeCounts])[],
): string {
  const files = counts.map(([infohash, { seeders, leechers, completed }]) => [
    binary(infohash),
    { complete: seeders, incomplete: leechers, downloaded: completed },
  ]);
  return JSON.stringify({ action: "scrape", files: Object.fromEntries(files) });
}

/** A refusal in words; `infohash` where it is known what was asked for. */
export function encodeWsRefusal(reason: string, infohash?: Infohash): string {
  return JSON.stringify({
    action: "announce",
    ...(infohash && { info_hash: binary(infohash) }),
    "failure reason": reason,
  });
}

function binary(infohash: Infohash): string {
  return latin1Text(infohashBytes(infohash));
}

function readPeerId(name: string, value: unknown): string {
  if (readBinary20(value) !== undefined) return value as string;
  throw new DecodeError(FORMAT, 0, `expected a ${name} of 20 characters`);
}

function readInfohashes(value: unknown): Infohash[] {
  const named: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (named.length === 0 || named.length > MAX_SCRAPED)
    throw new DecodeError(FORMAT, 0, `expected 1 to ${MAX_SCRAPED} infohashes`);
  return named.map((each) => {
    const infohash = readBinary20(each);
    if (infohash === undefined) throw new DecodeError(FORMAT, 0, "expected an info_hash of 20 characters");
    return infohash;
  });
}

/** Further ones than anybody needs are left out. */
function readOffers(value: unknown): Offer[] {
  if (!Array.isArray(value)) return [];
  return value.slice(0, MAX_OFFERS).map((entry: unknown) => readOffer(entry, "offer"));
}

/** Only what a description consists of is read, so that nothing else is handed on. */
function readOffer(entry: unknown, type: SessionDescription["type"]): Offer {
  const { offer_id: id, offer } = (entry ?? {}) as Record<string, unknown>;
  const { type: said, sdp } = (offer ?? {}) as Record<string, unknown>;
  if (typeof id !== "string" || id === "" || id.length > MAX_OFFER_ID_LENGTH)
    throw new DecodeError(FORMAT, 0, `expected an offer_id of up to ${MAX_OFFER_ID_LENGTH} characters`);
  if (said !== type || typeof sdp !== "string" || sdp.length > MAX_SDP_LENGTH)
    throw new DecodeError(FORMAT, 0, `expected an ${type} of up to ${MAX_SDP_LENGTH} characters`);
  return { id, description: { type, sdp } };
}
