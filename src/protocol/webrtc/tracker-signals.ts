import { latin1Text } from "../../base/bytes.ts";
import { DecodeError } from "../../base/errors.ts";
import { type Infohash, infohashBytes } from "../../base/ids.ts";
import { type Offer, readOffer } from "../../wire/tracker/server-ws.ts";
import { parseWsJson, readBinary20 } from "../../wire/tracker/ws.ts";

/** An offer or answer that a WebSocket tracker relays. */
export interface WsSignal {
  readonly infohash: Infohash;
  /** Peer id of the sender: 20 characters, one per byte. */
  readonly peerId: string;
  readonly signal: Offer;
}

/** Decodes an offer or answer of another peer. Throws `DecodeError`. */
export function decodeWsSignal(text: string): WsSignal {
  const message = parseWsJson(text);
  const infohash = readBinary20(message.info_hash);
  const peerId = message.peer_id;
  if (infohash === undefined || typeof peerId !== "string" || readBinary20(peerId) === undefined)
    throw new DecodeError("WebRTC signal", 0, "expected an info_hash and a peer_id of 20 characters");
  const type = message.offer === undefined ? "answer" : "offer";
  return { infohash, peerId, signal: readOffer({ ...message, offer: message[type] }, type) };
}

/** Encodes an answer to the offer of `toPeerId`. */
export function encodeWsAnswer(
  infohash: Infohash,
  peerId: string,
  toPeerId: string,
  { id, description }: Offer,
): string {
  return JSON.stringify({
    action: "announce",
    info_hash: latin1Text(infohashBytes(infohash)),
    peer_id: peerId,
    to_peer_id: toPeerId,
    answer: description,
    offer_id: id,
  });
}
