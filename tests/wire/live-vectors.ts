import { createHash } from "node:crypto";
import { latin1Bytes, toHex } from "../../src/base/bytes.ts";
import { type Infohash, infohashOf } from "../../src/base/ids.ts";
import type { UnixSeconds } from "../../src/base/time.ts";
import { ed25519Key, ed25519Verifier, sha256 } from "../../src/runtime/crypto.ts";
import { encodeBencode } from "../../src/wire/bencode-encode.ts";
import { encodeHeader, type PieceHeader } from "../../src/wire/live/header.ts";
import { type LiveInfo, liveInfoDict } from "../../src/wire/live/info.ts";
import { type decodeLiveMessage, encodeLiveMessage } from "../../src/wire/live/message.ts";
import { encodeCertificate, encodeProof, type RoleParties } from "../../src/wire/live/role-proof.ts";
import { encodeStat, type StatMessage } from "../../src/wire/live/stat.ts";
import { encodeSuccessor, type Successor } from "../../src/wire/live/successor.ts";
import { makeLiveTransportFile } from "../../src/wire/live/transport-file.ts";
import { chunkHashesOf, liveHash, signHeader } from "../../src/wire/live/trust.ts";
import type { LiveVariant } from "../../src/wire/live/variants.ts";
import { seededRandom } from "../seeded-random.ts";
import { sha1 } from "./make-torrent.ts";

export type LiveMessage = NonNullable<ReturnType<typeof decodeLiveMessage>>;

/** The key of the test vectors. Its seed is public, so it must sign nothing else. */
export const SEED = new Uint8Array(createHash("sha256").update("sluice live test vectors 1").digest());
export const KEY = ed25519Key(SEED);
export const VERIFY = ed25519Verifier(KEY.publicKey);

export const INFO: LiveInfo = {
  name: "Example channel",
  publicKey: KEY.publicKey,
  stripeCount: 4,
  pieceMs: 125,
  maxPieceBytes: 65_536,
  bytesPerSecond: 96_256,
  windowSeconds: 1800,
  segmentMs: 2000,
  container: "mpegts",
  isPrivate: false,
};

/** Two qualities of a broadcast: the stream itself, and a smaller one. */
export const VARIANTS: readonly LiveVariant[] = [
  { bytesPerSecond: 500_000, width: 1280, height: 720, codecs: ["avc1.640028", "mp4a.40.2"] },
  { infohash: "ab".repeat(20) as Infohash, bytesPerSecond: 100_000, codecs: [] },
];

export const RECIPE: Parameters<typeof makeLiveTransportFile>[0] = {
  info: INFO,
  trackers: [["udp://tracker.example:6969/announce"], ["http://tracker.example/announce"]],
  meta: {
    title: "Example — Пример",
    description: "A channel that is not on air.",
    categories: ["informational"],
    tags: ["test", "example"],
    languages: ["eng"],
    countries: ["us"],
    logo: "https://example.org/logo.png",
    isPermanent: true,
    startsAt: 1_790_000_000 as UnixSeconds,
    timeShiftSeconds: 1800,
  },
  relays: [
    { host: "192.0.2.7", port: 8621 },
    { host: "2001:db8::7", port: 8621 },
  ],
  manifests: ["https://example.org/live/index.m3u8"],
};

/** The infohash of {@link INFO}. */
export const INFOHASH: Infohash = infohashOf(sha1(encodeBencode(liveInfoDict(INFO))));
export const TRANSPORT_FILE = makeLiveTransportFile(RECIPE, KEY.sign);

const EPOCH = 1_790_000_000;
const FIRST_SEQ = 14_320_000_000;

/** A piece with its header, decoded and encoded. */
export interface MadePiece {
  readonly piece: Uint8Array<ArrayBuffer>;
  readonly header: PieceHeader;
  readonly headerBytes: Uint8Array<ArrayBuffer>;
}

/** Makes signed and chained pieces of the given lengths; the first starts a segment. */
export function makePieces(
  info: LiveInfo,
  infohash: Infohash,
  lengths: readonly number[],
  seed = 1,
): MadePiece[] {
  const random = seededRandom(seed);
  let previousHash: Uint8Array = new Uint8Array(20);
  return lengths.map((length, i) => {
    const piece = Uint8Array.from({ length }, (_, at) =>
      at % 188 === 0 ? 0x47 : Math.floor(random() * 256),
    );
    const isFirst = i === 0;
    const header: PieceHeader = {
      epoch: EPOCH,
      seq: FIRST_SEQ + i,
      timestampMs: EPOCH * 1000 + 125 * (i + 1),
      spanMs: 125,
      clockReference: isFirst ? 27_000_000 : undefined,
      randomAccessOffset: isFirst ? 188 : undefined,
      isSegmentStart: isFirst,
      segment: EPOCH / 2,
      isDiscontinuity: isFirst,
      isEnd: i === lengths.length - 1,
      pieceBytes: length,
      previousHash,
      chunkHashes: chunkHashesOf(piece, info.stripeCount, sha256),
    };
    const headerBytes = encodeHeader(header);
    signHeader(headerBytes, infohash, KEY.sign);
    previousHash = Uint8Array.from(liveHash(headerBytes, sha256));
    return { piece, header, headerBytes };
  });
}

/** Three pieces: one with equal chunks, one with a short and an empty chunk, and an empty one that ends the stream. */
export const PIECES = makePieces(INFO, INFOHASH, [1504, 1000, 0]);

const CANDIDATES = [
  { address: { host: "192.0.2.8", port: 8621 }, freeSlots: 12, lagMs: 350 },
  { address: { host: "2001:db8::8", port: 6881 }, freeSlots: 0, lagMs: 65_535 },
];
const STAT: Omit<StatMessage, "kind"> = {
  epoch: EPOCH,
  number: 3,
  timestampMs: EPOCH * 1000 + 60_000,
  bytesPerSecond: 120_000,
  isEnd: false,
  relays: [{ host: "192.0.2.9", port: 8621 }],
  trackers: ["udp://tracker.example:6969/announce"],
};

/** One message of each kind, encoded and decoded, for streams of four stripes. */
export const MESSAGES: readonly {
  readonly name: string;
  readonly message: LiveMessage;
  readonly bytes: Uint8Array;
}[] = [
  ["HELLO", { kind: "hello", header: PIECES[1]!.headerBytes }],
  ["HELLO of a peer that knows no piece", { kind: "hello", header: undefined }],
  ["HEADER", { kind: "header", isAnswer: false, header: PIECES[0]!.headerBytes }],
  ["HEADER that was asked for", { kind: "header", isAnswer: true, header: PIECES[2]!.headerBytes }],
  ["CHUNK", chunk(2, false, PIECES[0]!.piece.subarray(752, 1128))],
  ["CHUNK that was asked for", chunk(2, true, PIECES[1]!.piece.subarray(752))],
  [
    "SUB",
    {
      kind: "subscribe",
      stripes: 0b1010,
      epoch: EPOCH,
      startSeq: FIRST_SEQ,
      backfillPieces: 8,
      have: [0b101, 0x8000_0001],
      isDesperate: true,
    },
  ],
  ["SUBOK", { kind: "subscribed", stripes: 0b0010, epoch: EPOCH, startSeq: FIRST_SEQ + 1 }],
  ["SUBNO", { kind: "refused", stripes: 0b1000, reason: "behind", retryMs: 2500, candidates: CANDIDATES }],
  ["UNSUB", { kind: "unsubscribe", stripes: 0b0010, reason: "slow" }],
  [
    "WIN",
    {
      kind: "window",
      window: {
        epoch: EPOCH,
        oldestSeq: FIRST_SEQ - 480,
        baseSeq: FIRST_SEQ,
        runs: Uint8Array.of(2, 3, 0, 255),
        beyond: Uint16Array.of(0, 0, 0b1000_0000_0000_0011, 0),
        isOpen: true,
        freeSlots: 6,
        queueMs: 12,
        lagMs: 250,
      },
    },
  ],
  [
    "PATHS",
    {
      kind: "paths",
      paths: [
        { stripe: 0, depth: 3, ancestors: [0x1234, 0xabcd, 0x0001] },
        { stripe: 3, depth: 255, ancestors: [] },
      ],
    },
  ],
  [
    "REQ",
    {
      kind: "request",
      epoch: EPOCH,
      chunks: [
        { seq: FIRST_SEQ, stripe: 3, withinMs: 450 },
        { seq: FIRST_SEQ + 1, stripe: 0, withinMs: 575 },
      ],
    },
  ],
  ["CANCEL", { kind: "cancel", epoch: EPOCH, chunks: [{ seq: FIRST_SEQ, stripe: 3 }] }],
  [
    "NAK",
    {
      kind: "lacking",
      epoch: EPOCH,
      chunks: [
        { seq: FIRST_SEQ, stripe: 3, reason: "ask-others" },
        { seq: FIRST_SEQ + 9, stripe: 255, reason: "not-here" },
      ],
      holders: [{ host: "192.0.2.8", port: 8621 }],
    },
  ],
  [
    "HREQ",
    {
      kind: "headerRequest",
      epoch: EPOCH,
      firstSeq: FIRST_SEQ - 480,
      count: 30,
      step: 16,
      onlyRandomAccess: true,
    },
  ],
  ["PING", { kind: "ping", token: 0xdeadbeef, clockMs: EPOCH * 1000 }],
  ["PONG", { kind: "pong", token: 0xdeadbeef, clockMs: EPOCH * 1000 + 40 }],
  ["STAT", { kind: "stat", ...STAT }],
  [
    "STAT with copies on the web",
    { kind: "stat", ...STAT, number: 5, manifests: ["https://example.org/live/index.m3u8"] },
  ],
  ["STAT that ends the stream", { kind: "stat", ...STAT, number: 6, isEnd: true, relays: [], trackers: [] }],
  ["STAT with two qualities", { kind: "stat", ...STAT, number: 7, variants: VARIANTS }],
  ["BYE", { kind: "bye", reason: "leaving", candidates: CANDIDATES.slice(0, 1) }],
].map(([name, message]) => example(name as string, message as LiveMessage));

const PARTIES: RoleParties = {
  infohash: INFOHASH,
  prover: latin1Bytes("-SL0100-prover000001"),
  verifier: latin1Bytes("-SL0100-verifier0001"),
  challenge: latin1Bytes("0123456789abcdef"),
};
const RELAY_SEED = new Uint8Array(createHash("sha256").update("sluice live relay vectors 1").digest());
const RELAY_KEY = ed25519Key(RELAY_SEED);
const CERTIFICATE = encodeCertificate(
  { publicKey: RELAY_KEY.publicKey, untilMs: EPOCH * 1000 },
  INFOHASH,
  KEY.sign,
);

/** The stream with {@link RELAY_KEY} succeeds the one of the vectors. */
export const SUCCESSOR: Successor = {
  publicKey: RELAY_KEY.publicKey,
  infohash: infohashOf(new Uint8Array(20).fill(0x11)),
  sinceMs: EPOCH * 1000 + 120_000,
};
export const SUCCESSOR_RECORD = encodeSuccessor(SUCCESSOR, INFOHASH, KEY.sign);

/** A PROOF of the source, of a relay with the key of the stream, and of one with a certificate. */
export const PROOFS = (
  [
    { role: "source", sign: KEY.sign },
    { role: "relay", sign: KEY.sign },
    { role: "relay", sign: RELAY_KEY.sign, certificate: CERTIFICATE },
  ] as const
).map((key) => ({ role: key.role, parties: PARTIES, bytes: encodeProof(key, PARTIES) }));

/** Two valid headers of one piece, of which the second contradicts the first: a fork. */
const FORK = makePieces(INFO, INFOHASH, [1504, 376], 2);

function chunk(stripe: number, isLate: boolean, bytes: Uint8Array): LiveMessage {
  return {
    kind: "chunk",
    epoch: EPOCH,
    seq: FIRST_SEQ + Number(isLate),
    stripe,
    fragment: 0,
    isLast: true,
    isLate,
    bytes,
  };
}

function example(name: string, message: LiveMessage) {
  const bytes =
    message.kind === "stat" ? encodeStat(message, INFOHASH, KEY.sign) : encodeLiveMessage(message);
  return { name, message, bytes };
}

/** Converts a value to the form of the vectors file: bytes as hex, absent members omitted. */
export function plain(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (_, item) => {
      if (item instanceof Uint8Array) return toHex(item);
      return item instanceof Uint16Array ? [...item] : item;
    }),
  );
}

/** Returns all vectors in the form of `tests/fixtures/live/vectors.json`. */
export function allVectors(): unknown {
  return plain({
    seed: SEED,
    publicKey: KEY.publicKey,
    transportFile: {
      ...RECIPE,
      bytes: TRANSPORT_FILE,
      text: printable(TRANSPORT_FILE),
      infohash: INFOHASH,
      contentId: INFOHASH,
    },
    handshake: printable(
      latin1Bytes("d1:md7:sl_livei3ee2:sld1:n16:0123456789abcdef4:rolei1e2:upi2621440e1:vi1eee"),
    ),
    pieces: PIECES,
    fork: FORK,
    messages: MESSAGES,
    successor: {
      ...SUCCESSOR,
      bytes: SUCCESSOR_RECORD,
      stat: encodeStat({ ...STAT, number: 4, successor: SUCCESSOR_RECORD }, INFOHASH, KEY.sign),
    },
    proofs: { relaySeed: RELAY_SEED, certificate: CERTIFICATE, examples: PROOFS },
  });
}

/** Formats bytes as ASCII text with `\xHH` escapes. */
function printable(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) =>
    byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, "0")}`,
  ).join("");
}
