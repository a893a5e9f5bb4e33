import type { PeerAddress } from "../../base/address.ts";
import { assert } from "../../base/assert.ts";
import { concatBytes, readU32, writeU16, writeU32 } from "../../base/bytes.ts";
import { DecodeError } from "../../base/errors.ts";
import { type Infohash, infohashBytes } from "../../base/ids.ts";
import { encodeUtf8 } from "../../base/utf8.ts";
import { type AddressFamily, decodeCompactPeers } from "../compact-peers.ts";
import type { AnnounceRequest } from "./announce.ts";
import { clampInterval, MAX_REPLY_PEERS, replyText, type ScrapeCounts, usablePeers } from "./announce.ts";
import { MAX_SCRAPE_INFOHASHES } from "./server.ts";
import { trackerPath } from "./url.ts";

/** A response of a UDP tracker (BEP 15). `transaction` is the id of the request. */
export type UdpReply =
  | { readonly kind: "connect"; readonly transaction: number; readonly connectionId: Uint8Array }
  | {
      readonly kind: "announce";
      readonly transaction: number;
      readonly intervalSeconds: number;
      readonly seeders: number;
      readonly leechers: number;
      readonly peers: readonly PeerAddress[];
    }
  | { readonly kind: "scrape"; readonly transaction: number; readonly counts: readonly ScrapeCounts[] }
  | { readonly kind: "error"; readonly transaction: number; readonly message: string };

const FORMAT = "UDP tracker reply";
const [CONNECT, ANNOUNCE, SCRAPE, ERROR] = [0, 1, 2, 3];
/** Protocol id of a connect request (BEP 15). */
const PROTOCOL_ID = [0x00000417, 0x27101980] as const;
const CONNECTION_ID_BYTES = 8;
/** Event numbers (BEP 15). There is none for `paused` (BEP 21), so it becomes a plain announce. */
const EVENTS = { none: 0, completed: 1, started: 2, stopped: 3, paused: 0 } as const;
/** Option with the path and query of the tracker's URL, at most 255 bytes each (BEP 41). */
const [URL_DATA, MAX_OPTION_BYTES] = [2, 255];

/** Encodes a request for a connection id. */
export function encodeUdpConnect(transaction: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(16);
  writeU32(bytes, 0, PROTOCOL_ID[0]);
  writeU32(bytes, 4, PROTOCOL_ID[1]);
  writeU32(bytes, 8, CONNECT!);
  writeU32(bytes, 12, transaction);
  return bytes;
}

/** Encodes an announce (BEP 15, 41).
 * @param connectionId From a connect response less than a minute ago. */
export function encodeUdpAnnounce(
  connectionId: Uint8Array,
  transaction: number,
  request: AnnounceRequest,
): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(98);
  writeHead(bytes, connectionId, ANNOUNCE!, transaction);
  bytes.set(infohashBytes(request.infohash), 16);
  bytes.set(request.peerId, 36);
  writeU64(bytes, 56, request.downloaded);
  writeU64(bytes, 64, request.left);
  writeU64(bytes, 72, request.uploaded);
  writeU32(bytes, 80, EVENTS[request.event]);
  // The address field at 84 stays 0: the tracker uses the source address of the datagram.
  writeU32(bytes, 88, request.key);
  writeU32(bytes, 92, request.numWant);
  writeU16(bytes, 96, request.port);
  return concatBytes([bytes, ...urlData(trackerPath(request.url))]);
}

/** Encodes a scrape of up to {@link MAX_SCRAPE_INFOHASHES} infohashes. */
export function encodeUdpScrape(
  connectionId: Uint8Array,
  transaction: number,
  infohashes: readonly Infohash[],
): Uint8Array<ArrayBuffer> {
  assert(
    infohashes.length <= MAX_SCRAPE_INFOHASHES,
    `a scrape names at most ${MAX_SCRAPE_INFOHASHES} infohashes`,
  );
  const bytes = new Uint8Array(16 + 20 * infohashes.length);
  writeHead(bytes, connectionId, SCRAPE!, transaction);
  for (const [i, infohash] of infohashes.entries()) bytes.set(infohashBytes(infohash), 16 + 20 * i);
  return bytes;
}

/** Decodes a response. Throws `DecodeError`.
 * @param family IP version of the connection, which is also that of the peers. */
export function decodeUdpReply(bytes: Uint8Array, family: AddressFamily): UdpReply {
  if (bytes.length < 8) throw new DecodeError(FORMAT, bytes.length, "expected at least 8 bytes");
  const transaction = readU32(bytes, 4);
  switch (readU32(bytes, 0)) {
    case CONNECT:
      if (bytes.length < 16)
        throw new DecodeError(FORMAT, bytes.length, "expected 16 bytes of a connect response");
      return { kind: "connect", transaction, connectionId: bytes.slice(8, 16) };
    case ANNOUNCE:
      return decodeAnnounce(bytes, transaction, family);
    case SCRAPE:
      return { kind: "scrape", transaction, counts: decodeCounts(bytes) };
    case ERROR:
      return { kind: "error", transaction, message: replyText(bytes.subarray(8)) };
    default:
      throw new DecodeError(FORMAT, 0, `unknown action ${readU32(bytes, 0)}`);
  }
}

function decodeAnnounce(bytes: Uint8Array, transaction: number, family: AddressFamily): UdpReply {
  if (bytes.length < 20)
    throw new DecodeError(FORMAT, bytes.length, "expected at least 20 bytes of an announce");
  return {
    kind: "announce",
    transaction,
    intervalSeconds: clampInterval(readU32(bytes, 8)),
    leechers: readU32(bytes, 12),
    seeders: readU32(bytes, 16),
    peers: usablePeers(decodeCompactPeers(bytes.subarray(20), family, MAX_REPLY_PEERS)),
  };
}

function decodeCounts(bytes: Uint8Array): ScrapeCounts[] {
  if ((bytes.length - 8) % 12 !== 0)
    throw new DecodeError(FORMAT, bytes.length, "expected 12 bytes per swarm");
  const counts: ScrapeCounts[] = [];
  for (let at = 8; at < bytes.length; at += 12) {
    const [seeders, completed, leechers] = [
      readU32(bytes, at),
      readU32(bytes, at + 4),
      readU32(bytes, at + 8),
    ];
    counts.push({ seeders, leechers, completed });
  }
  return counts;
}

function writeHead(bytes: Uint8Array, connectionId: Uint8Array, action: number, transaction: number): void {
  assert(connectionId.length === CONNECTION_ID_BYTES, "a connection id has 8 bytes");
  bytes.set(connectionId, 0);
  writeU32(bytes, 8, action);
  writeU32(bytes, 12, transaction);
}

function writeU64(bytes: Uint8Array, at: number, value: number): void {
  writeU32(bytes, at, Math.floor(value / 2 ** 32));
  writeU32(bytes, at + 4, value >>> 0);
}

/** Encodes the path as options; none for an empty path, because old trackers do not support options. */
function urlData(path: string): Uint8Array[] {
  if (path === "" || path === "/") return [];
  const data = encodeUtf8(path);
  const parts: Uint8Array[] = [];
  for (let at = 0; at < data.length; at += MAX_OPTION_BYTES!) {
    const part = data.subarray(at, at + MAX_OPTION_BYTES!);
    parts.push(Uint8Array.of(URL_DATA!, part.length), part);
  }
  return parts;
}
