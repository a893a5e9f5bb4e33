import { concatBytes, latin1Bytes, readU16, readU32, writeU32 } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";
import { type Infohash, infohashOf } from "../base/ids.ts";
import { type AddressFamily, compactPeerBytes, encodeCompactPeers } from "./compact-peers.ts";
import type { ScrapeCounts } from "./tracker-reply.ts";
import { type AnnounceAnswer, type AnnounceQuestion, MAX_SCRAPED } from "./tracker-server.ts";

/** What a UDP tracker is asked (BEP 15). `transaction` is the asker's number, to be said again in the answer. */
export type UdpQuestion =
  | { readonly kind: "connect"; readonly transaction: number }
  | {
      readonly kind: "announce";
      readonly transaction: number;
      /** 8 bytes that the asker got from us, if it is honest. A view on the datagram. */
      readonly connectionId: Uint8Array;
      readonly announce: AnnounceQuestion;
    }
  | {
      readonly kind: "scrape";
      readonly transaction: number;
      readonly connectionId: Uint8Array;
      readonly infohashes: readonly Infohash[];
    };

const FORMAT = "UDP tracker question";
const [CONNECT, ANNOUNCE, SCRAPE, ERROR] = [0, 1, 2, 3];
/** The constant that opens a conversation (BEP 15). */
const PROTOCOL_ID = [0x00000417, 0x27101980] as const;
const HEAD_BYTES = 16;
const ANNOUNCE_BYTES = 98;
const EVENTS = ["none", "completed", "started", "stopped"] as const;
/** What goes through every network without being cut: Ethernet's 1,500 bytes, less the heads and those of tunnels. */
const MAX_DATAGRAM_BYTES = 1400;

/**
 * Reads a question. What follows an announce are options (BEP 41): the path that the asker was given, which means nothing
 * here, so they are not read. Throws `DecodeError`.
 */
export function decodeUdpQuestion(bytes: Uint8Array): UdpQuestion {
  if (bytes.length < HEAD_BYTES)
    throw new DecodeError(FORMAT, bytes.length, `expected at least ${HEAD_BYTES} bytes`);
  const transaction = readU32(bytes, 12);
  const action = readU32(bytes, 8);
  const connectionId = bytes.subarray(0, 8);
  if (action === CONNECT) {
    if (readU32(bytes, 0) !== PROTOCOL_ID[0] || readU32(bytes, 4) !== PROTOCOL_ID[1])
      throw new DecodeError(FORMAT, 0, "expected the number of the protocol");
    return { kind: "connect", transaction };
  }
  if (action === ANNOUNCE)
    return { kind: "announce", transaction, connectionId, announce: decodeAnnounce(bytes) };
  if (action === SCRAPE)
    return { kind: "scrape", transaction, connectionId, infohashes: decodeScrape(bytes) };
  throw new DecodeError(FORMAT, 8, `unknown action ${action}`);
}

/** Gives a connection id of 8 bytes: as long as the question. */
export function encodeUdpConnected(transaction: number, connectionId: Uint8Array): Uint8Array<ArrayBuffer> {
  return concatBytes([words(CONNECT!, transaction), connectionId]);
}

/** The answer to an announce: peers of the IP version that it came over, as many as one datagram holds. */
export function encodeUdpAnswer(
  transaction: number,
  { intervalSeconds, counts, peers }: AnnounceAnswer,
  family: AddressFamily,
): Uint8Array<ArrayBuffer> {
  const head = words(ANNOUNCE!, transaction, intervalSeconds, counts.leechers, counts.seeders);
  const most = Math.floor((MAX_DATAGRAM_BYTES - head.length) / compactPeerBytes(family));
  const compact = encodeCompactPeers(peers, family);
  return concatBytes([head, compact.subarray(0, most * compactPeerBytes(family))]);
}

/** The answer to a scrape, in the order of the question. */
export function encodeUdpScrapeAnswer(
  transaction: number,
  counts: readonly ScrapeCounts[],
): Uint8Array<ArrayBuffer> {
  const each = counts.flatMap(({ seeders, completed, leechers }) => [seeders, completed, leechers]);
  return words(SCRAPE!, transaction, ...each);
}

/** A refusal in words (ASCII). */
export function encodeUdpRefusal(transaction: number, reason: string): Uint8Array<ArrayBuffer> {
  return concatBytes([words(ERROR!, transaction), latin1Bytes(reason)]);
}

function decodeAnnounce(bytes: Uint8Array): AnnounceQuestion {
  if (bytes.length < ANNOUNCE_BYTES)
    throw new DecodeError(FORMAT, bytes.length, `expected at least ${ANNOUNCE_BYTES} bytes of an announce`);
  // 84: an address that the asker would like to have; it has the one that it asks from.
  const numWant = readU32(bytes, 92);
  return {
    infohash: infohashOf(bytes.subarray(16, 36)),
    port: readU16(bytes, 96),
    isSeed: readU32(bytes, 64) === 0 && readU32(bytes, 68) === 0,
    event: EVENTS[readU32(bytes, 80)] ?? "none",
    // -1, and what is as good as negative, is "as usual".
    numWant: numWant < 0x8000_0000 ? numWant : undefined,
  };
}

function decodeScrape(bytes: Uint8Array): Infohash[] {
  const count = (bytes.length - HEAD_BYTES) / 20;
  if (!Number.isInteger(count) || count < 1 || count > MAX_SCRAPED)
    throw new DecodeError(FORMAT, HEAD_BYTES, `expected 1 to ${MAX_SCRAPED} infohashes`);
  return Array.from({ length: count }, (_, i) =>
    infohashOf(bytes.subarray(HEAD_BYTES + 20 * i, HEAD_BYTES + 20 * (i + 1))),
  );
}

function words(...numbers: readonly number[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(4 * numbers.length);
  for (const [i, number] of numbers.entries()) writeU32(bytes, 4 * i, number);
  return bytes;
}
