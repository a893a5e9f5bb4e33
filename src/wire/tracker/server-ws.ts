import type { PeerAddress } from "../../base/address.ts";
import { latin1Text } from "../../base/bytes.ts";
import { DecodeError } from "../../base/errors.ts";
import { type Infohash, infohashBytes } from "../../base/ids.ts";
import type { ScrapeCounts } from "./announce.ts";
import { MAX_SCRAPE_INFOHASHES, type TrackerServerAnnounce } from "./server.ts";
import { parseWsJson, readBinary20, readCount } from "./ws.ts";

/** A WebRTC session description that the tracker relays between two peers. */
interface SessionDescription {
  readonly type: "offer" | "answer";
  readonly sdp: string;
}

/** An offer or answer with the `offer_id` that its sender chose. */
export interface Offer {
  readonly id: string;
  readonly description: SessionDescription;
}

/** A request to the WebSocket tracker server. A peer id is a string of 20 characters, one per byte. */
type WsTrackerRequest =
  | {
      readonly kind: "announce";
      readonly peerId: string;
      readonly announce: TrackerServerAnnounce;
      /** Undefined if the client did not say that it speaks WebRTC. */
      readonly offers: readonly Offer[] | undefined;
    }
  | {
      readonly kind: "answer";
      readonly infohash: Infohash;
      readonly peerId: string;
      readonly toPeerId: string;
      readonly answer: Offer;
    }
  | { readonly kind: "scrape"; readonly infohashes: readonly Infohash[] };

const FORMAT = "WebSocket tracker request";
/** Browsers send five to ten offers at once. */
const MAX_OFFERS = 10;
/** A description with a dozen addresses has about 4 KiB. This length fits into one frame even if every character is escaped. */
const MAX_SDP_LENGTH = 10_000;
/** Clients use 20 random bytes. */
const MAX_OFFER_ID_LENGTH = 64;
const EVENTS = ["started", "stopped", "completed"] as const;

/** Decodes a request (WebTorrent's JSON protocol). Throws `DecodeError`. */
export function decodeWsRequest(text: string): WsTrackerRequest {
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
  const announce: TrackerServerAnnounce = {
    infohash,
    port: port < 65_536 ? port : 0,
    isSeed: message.left === 0,
    event: EVENTS.find((event) => event === message.event) ?? "none",
    numWant: readCount(message.numwant),
  };
  return { kind: "announce", peerId, announce, offers: readOffers(message.offers) };
}

/** Encodes the response to an announce; `peers` are plain addresses. */
export function encodeWsAnnounceResponse(
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

/** Encodes an offer or an answer for the peer that receives it. */
export function encodeWsSignal(infohash: Infohash, fromPeerId: string, { id, description }: Offer): string {
  return JSON.stringify({
    action: "announce",
    info_hash: binary(infohash),
    peer_id: fromPeerId,
    offer_id: id,
    [description.type]: description,
  });
}

/** Encodes the response to a scrape. */
export function encodeWsScrapeResponse(
  counts: readonly (readonly [infohash: Infohash, counts: ScrapeCounts])[],
): string {
  const files = counts.map(([infohash, { seeders, leechers, completed }]) => [
    binary(infohash),
    { complete: seeders, incomplete: leechers, downloaded: completed },
  ]);
  return JSON.stringify({ action: "scrape", files: Object.fromEntries(files) });
}

/** Encodes a failure; `infohash` if the request had a valid one. */
export function encodeWsFailure(reason: string, infohash?: Infohash): string {
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
  if (named.length === 0 || named.length > MAX_SCRAPE_INFOHASHES)
    throw new DecodeError(FORMAT, 0, `expected 1 to ${MAX_SCRAPE_INFOHASHES} infohashes`);
  return named.map((each) => {
    const infohash = readBinary20(each);
    if (infohash === undefined) throw new DecodeError(FORMAT, 0, "expected an info_hash of 20 characters");
    return infohash;
  });
}

/** Reads offers; those beyond the limit are dropped. */
function readOffers(value: unknown): Offer[] | undefined {
  if (!Array.isArray(value)) return undefined;
  return value.slice(0, MAX_OFFERS).map((entry: unknown) => readOffer(entry, "offer"));
}

/** Reads an offer, or an answer in the place of one. Only the known members: the tracker relays nothing else. Throws `DecodeError`. */
export function readOffer(entry: unknown, type: SessionDescription["type"]): Offer {
  const { offer_id: id, offer } = (entry ?? {}) as Record<string, unknown>;
  const { type: actualType, sdp } = (offer ?? {}) as Record<string, unknown>;
  if (typeof id !== "string" || id === "" || id.length > MAX_OFFER_ID_LENGTH)
    throw new DecodeError(FORMAT, 0, `expected an offer_id of up to ${MAX_OFFER_ID_LENGTH} characters`);
  if (actualType !== type || typeof sdp !== "string" || sdp.length > MAX_SDP_LENGTH)
    throw new DecodeError(FORMAT, 0, `expected an ${type} of up to ${MAX_SDP_LENGTH} characters`);
  return { id, description: { type, sdp } };
}
