import { concatBytes, latin1Bytes, readU16, readU32, writeU32 } from "../../base/bytes.ts";
import { DecodeError } from "../../base/errors.ts";
import { type Infohash, infohashOf } from "../../base/ids.ts";
import { type AddressFamily, compactPeerBytes, encodeCompactPeers } from "../compact-peers.ts";
import type { ScrapeCounts } from "./announce.ts";
import { MAX_SCRAPE_INFOHASHES, type TrackerServerAnnounce, type TrackerServerResponse } from "./server.ts";

/** A request to the UDP tracker server (BEP 15). The response repeats `transaction`. */
export type UdpTrackerRequest =
  | { readonly kind: "connect"; readonly transaction: number }
  | {
      readonly kind: "announce";
      readonly transaction: number;
      /** 8 bytes from an earlier connect response, unless forged; a view of the datagram. */
      readonly connectionId: Uint8Array;
      readonly announce: TrackerServerAnnounce;
    }
  | {
      readonly kind: "scrape";
      readonly transaction: number;
      readonly connectionId: Uint8Array;
      readonly infohashes: readonly Infohash[];
    };

const FORMAT = "UDP tracker request";
const [CONNECT, ANNOUNCE, SCRAPE, ERROR] = [0, 1, 2, 3];
/** Protocol id of a connect request (BEP 15). */
const PROTOCOL_ID = [0x00000417, 0x27101980] as const;
const HEAD_BYTES = 16;
const ANNOUNCE_BYTES = 98;
const EVENTS = ["none", "completed", "started", "stopped"] as const;
/** Fits into an Ethernet frame (1,500 bytes) with IP, UDP and tunnel headers, so that it is not fragmented. */
const MAX_DATAGRAM_BYTES = 1400;

/**
 * Decodes a request. Options after an announce (BEP 41) are ignored, since the URL path has no meaning here. Throws
 * `DecodeError`.
 */
export function decodeUdpRequest(bytes: Uint8Array): UdpTrackerRequest {
  if (bytes.length < HEAD_BYTES)
    throw new DecodeError(FORMAT, bytes.length, `expected at least ${HEAD_BYTES} bytes`);
  const transaction = readU32(bytes, 12);
  const action = readU32(bytes, 8);
  const connectionId = bytes.subarray(0, 8);
  if (action === CONNECT) {
    if (readU32(bytes, 0) !== PROTOCOL_ID[0] || readU32(bytes, 4) !== PROTOCOL_ID[1])
      throw new DecodeError(FORMAT, 0, "expected the protocol id");
    return { kind: "connect", transaction };
  }
  if (action === ANNOUNCE)
    return { kind: "announce", transaction, connectionId, announce: decodeAnnounce(bytes) };
  if (action === SCRAPE)
    return { kind: "scrape", transaction, connectionId, infohashes: decodeScrape(bytes) };
  throw new DecodeError(FORMAT, 8, `unknown action ${action}`);
}

/** Encodes a connect response with a connection id of 8 bytes. It is no longer than the request. */
export function encodeUdpConnectResponse(
  transaction: number,
  connectionId: Uint8Array,
): Uint8Array<ArrayBuffer> {
  return concatBytes([words(CONNECT!, transaction), connectionId]);
}

/** Encodes the response to an announce: peers of one IP version, as many as fit into one datagram. */
export function encodeUdpAnnounceResponse(
  transaction: number,
  { intervalSeconds, counts, peers }: TrackerServerResponse,
  family: AddressFamily,
): Uint8Array<ArrayBuffer> {
  const head = words(ANNOUNCE!, transaction, intervalSeconds, counts.leechers, counts.seeders);
  const maxPeers = Math.floor((MAX_DATAGRAM_BYTES - head.length) / compactPeerBytes(family));
  const compact = encodeCompactPeers(peers, family);
  return concatBytes([head, compact.subarray(0, maxPeers * compactPeerBytes(family))]);
}

/** Encodes the response to a scrape, in the order of the request. */
export function encodeUdpScrapeResponse(
  transaction: number,
  counts: readonly ScrapeCounts[],
): Uint8Array<ArrayBuffer> {
  const each = counts.flatMap(({ seeders, completed, leechers }) => [seeders, completed, leechers]);
  return words(SCRAPE!, transaction, ...each);
}

/** Encodes an error; `reason` is ASCII. */
export function encodeUdpError(transaction: number, reason: string): Uint8Array<ArrayBuffer> {
  return concatBytes([words(ERROR!, transaction), latin1Bytes(reason)]);
}

function decodeAnnounce(bytes: Uint8Array): TrackerServerAnnounce {
  if (bytes.length < ANNOUNCE_BYTES)
    throw new DecodeError(FORMAT, bytes.length, `expected at least ${ANNOUNCE_BYTES} bytes of an announce`);
  // The address field at 84 is ignored; the source address of the datagram counts.
  const numWant = readU32(bytes, 92);
  return {
    infohash: infohashOf(bytes.subarray(16, 36)),
    port: readU16(bytes, 96),
    isSeed: readU32(bytes, 64) === 0 && readU32(bytes, 68) === 0,
    event: EVENTS[readU32(bytes, 80)] ?? "none",
    // -1, or any other negative number, requests the default.
    numWant: numWant < 0x8000_0000 ? numWant : undefined,
  };
}

function decodeScrape(bytes: Uint8Array): Infohash[] {
  const count = (bytes.length - HEAD_BYTES) / 20;
  if (!Number.isInteger(count) || count < 1 || count > MAX_SCRAPE_INFOHASHES)
    throw new DecodeError(FORMAT, HEAD_BYTES, `expected 1 to ${MAX_SCRAPE_INFOHASHES} infohashes`);
  return Array.from({ length: count }, (_, i) =>
    infohashOf(bytes.subarray(HEAD_BYTES + 20 * i, HEAD_BYTES + 20 * (i + 1))),
  );
}

function words(...numbers: readonly number[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(4 * numbers.length);
  for (const [i, number] of numbers.entries()) writeU32(bytes, 4 * i, number);
  return bytes;
}
