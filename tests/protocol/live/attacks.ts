import { createHash } from "node:crypto";
import type { PeerAddress } from "../../../src/base/address.ts";
import { DecodeError } from "../../../src/base/errors.ts";
import { type Infohash, infohashOf } from "../../../src/base/ids.ts";
import { type Instant, instant } from "../../../src/base/time.ts";
import { LiveCodec } from "../../../src/protocol/live/live-codec.ts";
import { LiveSwarm } from "../../../src/protocol/live/live-swarm.ts";
import type { LiveAbout, LiveMessage, SignedHeader } from "../../../src/protocol/live/messages.ts";
import { ed25519Key, ed25519Verifier, sha256 } from "../../../src/runtime/crypto.ts";
import { chunkRange, cutPiece } from "../../../src/wire/live/chunks.ts";
import { encodeHeader, type PieceHeader } from "../../../src/wire/live/header.ts";
import type { LiveInfo } from "../../../src/wire/live/info.ts";
import { encodeLiveMessage } from "../../../src/wire/live/message.ts";
import {
  chunkHashesOf,
  isChunkOf,
  isSignedHeader,
  liveHash,
  signHeader,
} from "../../../src/wire/live/trust.ts";
import { emptyWindow } from "../../../src/wire/live/window.ts";
import { seededRandom } from "../../seeded-random.ts";
import { wakeUntil } from "./wake-until.ts";

const SEED = new Uint8Array(createHash("sha256").update("sluice attacks").digest());
const KEY = ed25519Key(SEED);
const VERIFY = ed25519Verifier(KEY.publicKey);
export const STRIPES = 4;
const PIECE_BYTES = STRIPES * 188;
export const PIECE_MS = 125;
const EPOCH = 1_790_000_000;
const FIRST_SEQ = 14_320_000_000;

export const INFO: LiveInfo = {
  name: "Attacked",
  publicKey: KEY.publicKey,
  stripeCount: STRIPES,
  pieceMs: PIECE_MS,
  maxPieceBytes: 65_536,
  bytesPerSecond: 6_016,
  windowSeconds: 60,
  segmentMs: 2_000,
  container: "mpegts",
  isPrivate: false,
};
const INFOHASH: Infohash = infohashOf(new Uint8Array(20).fill(7));
const FOREIGN: Infohash = infohashOf(new Uint8Array(20).fill(8));

/** A piece as its source made it, and the messages that carry it. */
export interface Made {
  readonly header: SignedHeader;
  readonly chunks: readonly Uint8Array[];
  readonly headerMessage: Uint8Array;
  readonly chunkMessages: readonly Uint8Array[];
}

/** How a piece differs from the next one of the stream. */
export interface Twist {
  readonly header?: Partial<PieceHeader>;
  /** The first byte of its media. */
  readonly mark?: number;
  /** Signed for another stream, with the same key. */
  readonly isForeign?: boolean;
}

/** The source of the stream: makes pieces that are signed and chained, and forged ones. */
export class Forge {
  seq = FIRST_SEQ;
  #previousHash: Uint8Array = new Uint8Array(20);

  /** The next piece of the stream. */
  next(): Made {
    const made = this.make({});
    this.seq++;
    this.#previousHash = Uint8Array.from(liveHash(made.header.bytes, sha256));
    return made;
  }

  /** Another version of the next piece, which does not advance the stream. */
  make({ header, mark = 0x47, isForeign = false }: Twist): Made {
    const { seq } = this;
    const piece = new Uint8Array(PIECE_BYTES).fill(seq & 255);
    for (let at = 0; at < PIECE_BYTES; at += 188) piece[at] = mark;
    const value: PieceHeader = {
      epoch: EPOCH,
      seq,
      timestampMs: EPOCH * 1_000 + PIECE_MS * (seq - FIRST_SEQ + 1),
      spanMs: PIECE_MS,
      clockReference: undefined,
      randomAccessOffset: seq % 4 === 0 ? 0 : undefined,
      isSegmentStart: false,
      segment: EPOCH / 2,
      isDiscontinuity: false,
      isEnd: false,
      pieceBytes: PIECE_BYTES,
      previousHash: this.#previousHash,
      chunkHashes: chunkHashesOf(piece, STRIPES, sha256),
      ...header,
    };
    const bytes = encodeHeader(value);
    signHeader(bytes, isForeign ? FOREIGN : INFOHASH, KEY.sign);
    const chunks = cutPiece(piece, STRIPES);
    return {
      header: { value, bytes },
      chunks,
      headerMessage: headerMessage(bytes),
      chunkMessages: chunks.map((chunk, stripe) => chunkMessage(value, stripe, chunk)),
    };
  }
}

/** A HEADER with these bytes. */
export function headerMessage(header: Uint8Array): Uint8Array {
  return encodeLiveMessage({ kind: "header", isAnswer: false, header });
}

/** A CHUNK that claims to be this stripe of that piece. */
export function chunkMessage(
  of: { epoch: number; seq: number },
  stripe: number,
  bytes: Uint8Array,
): Uint8Array {
  const place = { epoch: of.epoch, seq: of.seq, stripe, fragment: 0, isLast: true, isLate: false };
  return encodeLiveMessage({ kind: "chunk", ...place, bytes });
}

interface Link {
  readonly codec: LiveCodec;
  readonly address: PeerAddress;
}

/** A viewer with an honest parent, a child, and other peers. It receives encoded messages, as from sockets.
 * A viewer with an honest parent, a child, and other peers. It receives encoded messages, as from sockets. */
export class Victim {
  readonly forge = new Forge();
  readonly swarm: LiveSwarm;
  now: Instant = instant(1_000);
  readonly played: number[] = [];
  /** Number of played or sent items that do not verify; must be 0. */
  wrong = 0;
  forks = 0;
  verifications = 0;
  banned = 0;
  readonly honest: number;
  readonly child: number;
  /** Headers and chunks that were sent to the child. */
  forwarded = 0;
  readonly #headers = new Map<number, SignedHeader>();
  readonly #links = new Map<number, Link>();
  #made = 0;

  constructor(seed = 1) {
    this.swarm = new LiveSwarm(
      {
        about: about(1),
        layout: {
          stripes: STRIPES,
          pieceMs: PIECE_MS,
          bytesPerSecond: INFO.bytesPerSecond,
          maxPieceBytes: INFO.maxPieceBytes,
        },
        lagMs: 3_000,
        keepMs: 10_000,
        random: seededRandom(seed),
        unixMs: (now) => EPOCH * 1_000 + now,
        hash: (bytes) => liveHash(bytes, sha256),
        isSigned: ({ bytes }) => {
          this.verifications++;
          return isSignedHeader(bytes, INFOHASH, VERIFY);
        },
        isSignedStat: () => false,
        isValidChunk: ({ value }, stripe, bytes) => {
          const { start, end } = chunkRange(value.pieceBytes, STRIPES, stripe);
          return bytes.length === end - start && isChunkOf(value, stripe, bytes, sha256);
        },
      },
      this.now,
    );
    this.honest = this.connect();
    this.child = this.connect();
    const first = this.forge.next();
    this.receive(this.honest, encodeLiveMessage({ kind: "hello", header: first.header.bytes }));
    this.#window(this.honest, first.header.value.seq);
    const paths = Array.from({ length: STRIPES }, (_, stripe) => ({ stripe, depth: 1, ancestors: [9] }));
    this.receive(this.honest, encodeLiveMessage({ kind: "paths", paths }));
    this.receive(this.child, encodeLiveMessage({ kind: "hello", header: undefined }));
    this.pass(100);
    const granted = {
      kind: "subscribed",
      stripes: 15,
      epoch: EPOCH,
      startSeq: first.header.value.seq,
    } as const;
    this.receive(this.honest, encodeLiveMessage(granted));
    for (const message of first.chunkMessages) this.receive(this.honest, message);
    const wanted = {
      epoch: EPOCH,
      startSeq: FIRST_SEQ,
      backfillPieces: 0,
      have: [0, 0, 0, 0],
      isDesperate: true,
    };
    this.receive(this.child, encodeLiveMessage({ kind: "subscribe", stripes: 15, ...wanted }));
  }

  /** Accepts a connection; returns its number. */
  connect(): number {
    const made = this.#made++;
    const connection = 2 * made + 1;
    const host = `${11 + (made >> 16)}.${(made >> 8) & 255}.${made & 255}.7`;
    const address = { host, port: 6_881 };
    this.#links.set(connection, { codec: new LiveCodec(INFO, address), address });
    const input = { connection, address, isReachable: false, rttMs: 20 };
    this.swarm.handle({ kind: "accepted", ...input, about: about(100 + made) }, this.now);
    this.#drain();
    return connection;
  }

  /** Connects a peer that has sent HELLO. */
  liar(): number {
    const connection = this.connect();
    this.receive(connection, encodeLiveMessage({ kind: "hello", header: undefined }));
    return connection;
  }

  /** Closes the connection if it is open. */
  leave(connection: number): void {
    if (!this.#links.delete(connection)) return;
    this.swarm.handle({ kind: "closed", connection }, this.now);
    this.#drain();
  }

  isConnected(connection: number): boolean {
    return this.#links.has(connection);
  }

  /** Receives an encoded message, as the driver does. Returns false if the connection is closed. */
  receive(connection: number, payload: Uint8Array): boolean {
    const link = this.#links.get(connection);
    if (!link) return false;
    try {
      const message = link.codec.decode(payload);
      if (message) this.swarm.handle({ kind: "message", connection, message }, this.now);
    } catch (error) {
      if (!(error instanceof DecodeError)) throw error;
      this.banned++;
      this.leave(connection);
    }
    this.#drain();
    return this.#links.has(connection);
  }

  /** Advances the time. */
  pass(ms: number): void {
    const until = instant(this.now + ms);
    wakeUntil(this.swarm, until, (now) => {
      this.now = now;
      this.#drain();
    });
    this.now = until;
  }

  /** Receives the next piece from the parent. */
  play(made = this.forge.next()): void {
    this.receive(this.honest, made.headerMessage);
    for (const message of made.chunkMessages) this.receive(this.honest, message);
    this.#window(this.honest, made.header.value.seq);
    this.#window(this.child, made.header.value.seq);
    this.#pingChild();
    this.pass(PIECE_MS);
  }

  #window(from: number, seq: number): void {
    const window = { ...emptyWindow(STRIPES), epoch: EPOCH, baseSeq: seq + 1, isOpen: true, freeSlots: 8 };
    this.receive(from, encodeLiveMessage({ kind: "window", window }));
  }

  #pingChild(): void {
    this.receive(this.child, encodeLiveMessage({ kind: "ping", token: 1, clockMs: 0 }));
  }

  #drain(): void {
    for (let output = this.swarm.poll(); output; output = this.swarm.poll()) {
      if (output.kind === "close") this.#links.delete(output.connection);
      else if (output.kind === "banned") this.banned++;
      else if (output.kind === "forked") this.forks++;
      else if (output.kind === "piece") this.#played(output.header, output.chunks);
      else if (output.kind === "send") this.#sent(output.connection, output.message);
    }
  }

  #played(header: SignedHeader, chunks: readonly Uint8Array[]): void {
    this.played.push(header.value.seq);
    if (!isSignedHeader(header.bytes, INFOHASH, VERIFY)) this.wrong++;
    for (const [stripe, chunk] of chunks.entries()) {
      if (!isChunkOf(header.value, stripe, chunk, sha256) || chunk[0] !== 0x47) this.wrong++;
    }
  }

  #sent(connection: number, message: LiveMessage): void {
    if (message.kind === "header") {
      const { bytes, value } = message.header;
      if (!isSignedHeader(bytes, INFOHASH, VERIFY)) this.wrong++;
      this.#headers.set(value.seq, message.header);
      this.#headers.delete(value.seq - 100);
    } else if (message.kind === "chunk") {
      const { seq, stripe, bytes } = message;
      const header = this.#headers.get(seq);
      if (header && !isChunkOf(header.value, stripe, bytes, sha256)) this.wrong++;
      if (bytes[0] !== 0x47) this.wrong++;
    } else return;
    if (connection === this.child) this.forwarded++;
  }
}

function about(digest: number): LiveAbout {
  return { role: "viewer", uploadBytesPerSecond: 100_000, homeStripe: 0, digest };
}
