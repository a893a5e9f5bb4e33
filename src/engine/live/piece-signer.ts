import type { Infohash } from "../../base/ids.ts";
import type { Ed25519Sign, Sha256 } from "../../base/signature.ts";
import type { LivePiece } from "../../media/live-piece.ts";
import type { SignedHeader } from "../../swarm/live/messages.ts";
import { cutPiece } from "../../wire/live-chunks.ts";
import { decodeHeader, encodeHeader, type PieceHeader } from "../../wire/live-header.ts";
import type { LiveInfo } from "../../wire/live-info.ts";
import { chunkHashesOf, liveHash, signHeader } from "../../wire/live-trust.ts";
import type { SourceStart } from "./broadcast-start.ts";
import type { SourceState } from "./identity-state.ts";

/** A piece as it is given to the swarm, and what must be on disk before. */
export interface SignedPiece {
  readonly header: SignedHeader;
  /** One for each stripe; views on the piece. */
  readonly chunks: readonly Uint8Array[];
  readonly state: Omit<SourceState, "reservedSeq">;
}

/** What signing needs. */
export interface PieceSignerParts {
  readonly info: LiveInfo;
  readonly infohash: Infohash;
  readonly sign: Ed25519Sign;
  readonly sha256: Sha256;
}

/** What is said of the piece that ends a stream. */
const NOTHING = {
  bytes: new Uint8Array(0),
  spanMs: 0,
  clockReference: undefined,
  randomAccessOffset: undefined,
  isSegmentStart: false,
  isDiscontinuity: false,
};

/** Numbers, chains and signs the pieces of one life of a source. */
export class PieceSigner {
  readonly #parts: PieceSignerParts;
  readonly #start: SourceStart;
  #last: SignedPiece["state"] | undefined;

  constructor(parts: PieceSignerParts, start: SourceStart) {
    this.#parts = parts;
    this.#start = start;
  }

  /** The next piece. */
  sign(piece: LivePiece, isEnd = false): SignedPiece {
    const { info, infohash, sign, sha256 } = this.#parts;
    const header = this.#header(piece, isEnd);
    const bytes = encodeHeader(header);
    signHeader(bytes, infohash, sign);
    const { epoch, seq, timestampMs, segment } = header;
    const state = { epoch, seq, timestampMs, segment, headerHash: liveHash(bytes, sha256) };
    this.#last = state;
    // As everybody reads it: what they would refuse must not leave this house.
    return {
      header: { value: decodeHeader(bytes, info), bytes },
      chunks: cutPiece(piece.bytes, info.stripeCount),
      state,
    };
  }

  /** A piece without bytes that says that there is nothing more to come. */
  end(nowMs: number): SignedPiece {
    const segment = this.#last?.segment ?? Math.floor(nowMs / this.#parts.info.segmentMs);
    return this.sign({ ...NOTHING, timestampMs: nowMs, segment }, true);
  }

  #header(piece: LivePiece, isEnd: boolean): PieceHeader {
    const { info, sha256 } = this.#parts;
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
      // Clocks and counters do not go on where the program was started again.
      isDiscontinuity: piece.isDiscontinuity || (!last && start.isContinued),
      isEnd,
      pieceBytes: piece.bytes.length,
      previousHash: last?.headerHash ?? start.previousHash,
      chunkHashes: chunkHashesOf(piece.bytes, info.stripeCount, sha256),
    };
  }
}
