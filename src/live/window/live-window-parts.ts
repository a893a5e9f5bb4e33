import { isUnitStartAt, payloadStartAt, pidAt, TS_PACKET_BYTES } from "../../media/ts-packet.ts";

/** A part of a live segment (RFC 8216bis 4.4.4.9): bytes `[start, end)` of the segment. */
export interface LivePart {
  readonly start: number;
  readonly end: number;
  readonly durationMs: number;
  /** It begins with tables and a keyframe. */
  readonly isIndependent: boolean;
}

/** Minimum duration of a part: each one is a request from every player. */
const MIN_PART_MS = 250;
/** The source closes a piece with the first packet after its time, so pieces are slightly too long. */
const SLACK = 1.1;
/** RFC 8216bis 4.4.4.9: minimum share of the target duration, except for the last part of a segment and independent
 * parts. */
const MIN_SHARE = 0.85;

/** Returns the maximum duration of a part, in ms, for pieces of `pieceMs`. */
export function partTargetMs(pieceMs: number): number {
  return Math.round(SLACK * piecesPerPart(pieceMs) * pieceMs);
}

/** Returns the number of pieces in a part. */
function piecesPerPart(pieceMs: number): number {
  return Math.ceil(MIN_PART_MS / pieceMs);
}

/**
 * Cuts a segment into parts where a piece ends, or before the picture that continues in the next piece: players that receive an
 * incomplete picture at the end of a part decode it as it is (hls.js 1.7), which damages all pictures up to the next key frame. It uses
 * only the headers and bytes of pieces, so all engines that have a segment from its start produce the same parts. If pieces vary and a
 * part would be too short, it gets another piece; a part longer than the target is listed with the target duration.
 */
export class PartCutter {
  readonly #targetMs: number;
  readonly #parts: LivePart[] = [];
  readonly #pictures = new PictureEnds();
  #start = 0;
  #end = 0;
  #spanMs = 0;
  /** The last random access point. */
  #cutAt = -1;
  #isIndependent = false;

  constructor(pieceMs: number) {
    this.#targetMs = partTargetMs(pieceMs);
  }

  /** The complete parts. */
  get parts(): readonly LivePart[] {
    return this.#parts;
  }

  /** Extends the segment with a piece, or a part of a piece, of `spanMs`. `cutAt`: a random access point in `bytes`; negative if it has
   * none. */
  add(bytes: Uint8Array, spanMs: number, cutAt: number): void {
    if (cutAt >= 0) this.#cutAt = this.#end + cutAt;
    if (this.#cutAt === this.#start) this.#isIndependent = true;
    this.#pictures.add(bytes, this.#cutAt);
    this.#end += bytes.length;
    this.#spanMs += spanMs;
    if (this.#spanMs >= MIN_SHARE * this.#targetMs) this.#closeAt(this.#pictures.openAt ?? this.#end);
  }

  /** Ends the last part: the segment is complete, or cannot be cut any further. */
  close(): void {
    this.#closeAt(this.#end);
  }

  /** Ends a part at `end`, unless it would be empty. */
  #closeAt(end: number): void {
    if (end <= this.#start) return;
    const durationMs = Math.min(this.#targetMs, Math.max(1, this.#spanMs));
    this.#parts.push({ start: this.#start, end, durationMs, isIndependent: this.#isIndependent });
    this.#start = end;
    this.#spanMs = 0;
    this.#isIndependent = this.#cutAt === end;
  }
}

/** Finds the picture that is incomplete at the end of the bytes so far. Only PES packets without a length are considered, which only video
 * may have (ISO 13818-1 2.4.3.7): players wait for the rest of the others. */
class PictureEnds {
  #pid: number | undefined;
  #bytes = 0;
  /** Where the last picture begins. */
  #lastAt = -1;
  #openAt: number | undefined;

  /** Where the incomplete picture begins, with the tables before it; undefined if all pictures are complete. */
  get openAt(): number | undefined {
    return this.#openAt;
  }

  /** `cutAt`: the last random access point, in bytes from the first `add`; negative if there is none. */
  add(bytes: Uint8Array, cutAt: number): void {
    for (let at = 0; at < bytes.length; at += TS_PACKET_BYTES) {
      const pid = pidAt(bytes, at);
      if (isUnitStartAt(bytes, at) && (this.#pid ?? pid) === pid && hasUnknownLength(bytes, at)) {
        this.#pid = pid;
        const start = this.#bytes + at;
        this.#openAt = cutAt > this.#lastAt && cutAt <= start ? cutAt : start;
        this.#lastAt = start;
      }
      if (pid === this.#pid && isStuffed(bytes, at)) this.#openAt = undefined;
    }
    this.#bytes += bytes.length;
  }
}

/** Returns true if a PES packet of a video stream begins in the packet at `at` and does not state its length. */
function hasUnknownLength(bytes: Uint8Array, at: number): boolean {
  const payload = payloadStartAt(bytes, at);
  if (payload + 6 > at + TS_PACKET_BYTES) return false;
  const isVideo = (bytes[payload + 3]! & 0xf0) === 0xe0;
  const hasPrefix = bytes[payload] === 0 && bytes[payload + 1] === 0 && bytes[payload + 2] === 1;
  return hasPrefix && isVideo && bytes[payload + 4] === 0 && bytes[payload + 5] === 0;
}

/** Returns true if the packet at `at` has payload and, before it, stuffing (ISO 13818-1 2.4.3.5), which fills up the last packet of a unit. */
function isStuffed(bytes: Uint8Array, at: number): boolean {
  if ((bytes[at + 3]! & 0x30) !== 0x30) return false;
  const length = bytes[at + 4]!;
  if (length === 0) return true;
  const flags = bytes[at + 5]!;
  // Private data and the extension have lengths of their own, and are rare.
  if (flags & 0x03) return false;
  const used = 1 + (flags & 0x10 ? 6 : 0) + (flags & 0x08 ? 6 : 0) + (flags & 0x04 ? 1 : 0);
  return length > used || flags === 0;
}
