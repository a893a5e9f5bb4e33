import type { Infohash } from "../../base/ids.ts";
import type { Ed25519Sign, Sha256 } from "../../base/signature.ts";
import type { LivePiece } from "../../media/live-piece.ts";
import type { SignedHeader } from "../../protocol/live/messages.ts";
import { cutPiece } from "../../wire/live/chunks.ts";
import { decodeHeader, encodeHeader, type PieceHeader } from "../../wire/live/header.ts";
import type { LiveInfo } from "../../wire/live/info.ts";
import { chunkHashesOf, liveHash, signHeader } from "../../wire/live/trust.ts";
import type { SourceStart } from "./broadcast-start.ts";
import type { SourceState } from "./identity-state.ts";

/** A piece as it is sent, and the state that must be written before. */
export interface SignedPiece {
  readonly header: SignedHeader;
  /** One per stripe; views of the piece. */
  readonly chunks: readonly Uint8Array[];
  readonly state: Omit<SourceState, "reservedSeq">;
}

/** What signing depends on. */
export interface PieceSignerOptions {
  readonly info: LiveInfo;
  readonly infohash: Infohash;
  readonly sign: Ed25519Sign;
  readonly sha256: Sha256;
}

/** The media fields of the piece that ends a stream. */
const END_PIECE = {
  bytes: new Uint8Array(0),
  spanMs: 0,
  clockReference: undefined,
  randomAccessOffset: undefined,
  isSegmentStart: false,
  isDiscontinuity: false,
};

/** Numbers, chains and signs the pieces of one run of a source. */
export class PieceSigner {
  readonly #options: PieceSignerOptions;
  readonly #start: SourceStart;
  #last: SignedPiece["state"] | undefined;

  constructor(options: PieceSignerOptions, start: SourceStart) {
    this.#options = options;
    this.#start = start;
  }

  /** Signs the next piece. */
  sign(piece: LivePiece, isEnd = false): SignedPiece {
    const { info, infohash, sign, sha256 } = this.#options;
    const header = this.#header(piece, isEnd);
    const bytes = encodeHeader(header);
    signHeader(bytes, infohash, sign);
    const { epoch, seq, timestampMs, segment } = header;
    const state = { epoch, seq, timestampMs, segment, headerHash: liveHash(bytes, sha256) };
    this.#last = state;
    // Decoded as peers decode it: an invalid header fails here.
    return {
      header: { value: decodeHeader(bytes, info), bytes },
      chunks: cutPiece(piece.bytes, info.stripeCount),
      state,
    };
  }

  /** Signs the empty piece that ends the stream. */
  end(nowMs: number): SignedPiece {
    const segment = this.#last?.segment ?? Math.floor(nowMs / this.#options.info.segmentMs);
    return this.sign({ ...END_PIECE, timestampMs: nowMs, segment }, true);
  }

  #header(piece: LivePiece, isEnd: boolean): PieceHeader {
    const { info, sha256 } = this.#options;
    const start = this.#start;
    const last = this.#last;
    const timestampMs = Math.max(piece.timestampMs, last?.timestampMs ?? start.leastTimestampMs);
    return {
      epoch: start.epoch,
      seq: last ? last.seq + 1 : Math.max(start.leastSeq, Math.floor(timestampMs / info.pieceMs)),
      timestampMs,
      spanMs: piece.spanMs,
      clockReference: piece.clockReference,
      randomAccessOffset: piece.randomAccessOffset,
      isSegmentStart: piece.isSegmentStart,
      segment: piece.segment,
      // Clocks and counters do not continue after a restart.
      isDiscontinuity: piece.isDiscontinuity || (!last && start.isContinued),
      isEnd,
      pieceBytes: piece.bytes.length,
      previousHash: last?.headerHash ?? start.previousHash,
      chunkHashes: chunkHashesOf(piece.bytes, info.stripeCount, sha256),
    };
  }
}
