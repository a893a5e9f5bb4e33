import type { Instant } from "../base/time.ts";

/** A complete segment of a live stream, and its time in UNIX ms. */
export interface ListedSegment {
  readonly number: number;
  readonly startMs: number;
  readonly durationMs: number;
}

/** The upload limits of a stream, for responses outside its connections. */
export interface UploadAllowance {
  /** Returns for how many ms to wait before more is sent; 0 for now. */
  waitMs(now: Instant): number;
  /** Counts bytes that were sent. */
  spend(bytes: number, now: Instant): void;
}

/** The last minutes of a live stream as pieces that a page verifies: signed headers, each followed by its bytes (`encodePieces`). */
export interface PieceSegments {
  /** Returns the newest segments without a gap or a jump of the clocks between them, oldest first. */
  list(): readonly ListedSegment[];
  /** Returns the pieces that contain a segment, and the one after. Rejects with `no_such_segment`. */
  segment(number: number): Promise<Uint8Array<ArrayBuffer>>;
  /** Returns all pieces from the newest complete segment on; none before there is one. */
  recent(): Promise<Uint8Array<ArrayBuffer>>;
}
