import { DecodeError } from "../base/errors.ts";
import { H264_NAL, parseH264Sps } from "../media/h264.ts";
import { HEVC_NAL, hevcNalType, parseHevcSps } from "../media/hevc.ts";
import { annexBNals } from "../media/nal.ts";
import { deltaTicks, TICKS_PER_SECOND } from "../media/timestamps.ts";
import { TS_PACKET_BYTES } from "../media/ts-packet.ts";
import { type ScannedUnit, UnitScanner } from "../media/unit-scanner.ts";
import type { StreamFacts } from "./health-contract.ts";

/** A larger step between two units is a gap. */
const MAX_STEP_TICKS = 3 * TICKS_PER_SECOND;
/** Parameter sets are among the first units of a key frame. */
const MAX_NALS = 16;
/** A picture that repeats the one before it needs at most this many bytes in transport packets. */
const REPEATED_BYTES = 2 * TS_PACKET_BYTES;
/** If more than this share of the pictures between key frames is larger, the picture moves. */
const MOVING_SHARE = 0.1;

/** Learns what a transport stream contains from its first seconds. */
export class StreamSurvey {
  readonly #scanner = new UnitScanner();
  #lastDts: number | undefined;
  /** Bytes before the first unit. */
  #leadBytes = 0;
  #ticks = 0;
  #size: { readonly width: number; readonly height: number } | undefined;
  #pictures = 0;
  #largePictures = 0;
  #keyBytes = 0;
  #keys = 0;
  #hasOtherKey = false;

  /** Takes the next bytes. */
  push(bytes: Uint8Array): void {
    for (const unit of this.#scanner.push(bytes)) this.#add(unit);
  }

  /** Milliseconds of media so far. */
  get mediaMs(): number {
    return (1000 * this.#ticks) / TICKS_PER_SECOND;
  }

  /** Bytes so far except null packets. */
  get mediaBytes(): number {
    return this.#scanner.mediaBytes;
  }

  /** Describes the stream. */
  facts(): StreamFacts {
    const { streams } = this.#scanner;
    const audio = streams.filter(({ kind }) => kind === "audio");
    const played = [...streams.filter(({ kind }) => kind === "video"), ...audio];
    const seconds = this.#ticks / TICKS_PER_SECOND;
    return {
      bytesPerSecond: seconds > 0 ? Math.round((this.mediaBytes - this.#leadBytes) / seconds) : 0,
      codecs: [...new Set(played.map(({ codec }) => codec))],
      width: this.#size?.width ?? 0,
      height: this.#size?.height ?? 0,
      languages: [...new Set(audio.map(({ language }) => language))].filter((code) => code !== "und"),
      isMoving: this.#isMoving(),
    };
  }

  #add(unit: ScannedUnit): void {
    if (this.#lastDts === undefined) this.#leadBytes = this.mediaBytes;
    const step = this.#lastDts === undefined ? 0 : deltaTicks(unit.dts, this.#lastDts);
    if (step > 0 && step < MAX_STEP_TICKS) this.#ticks += step;
    this.#lastDts = unit.dts;
    if (!unit.isKey) {
      this.#pictures++;
      if (unit.bytes > REPEATED_BYTES) this.#largePictures++;
      return;
    }
    // Their bytes differ although the picture does not: consecutive IDR pictures have different ids (ISO 14496-10 7.4.3).
    this.#hasOtherKey ||= this.#keys > 0 && Math.abs(unit.bytes - this.#keyBytes) > TS_PACKET_BYTES;
    this.#keyBytes = unit.bytes;
    this.#keys++;
    this.#size ??= pictureSize(unit.head, this.#codec);
  }

  get #codec(): string | undefined {
    return this.#scanner.streams.find(({ kind }) => kind === "video")?.codec;
  }

  #isMoving(): boolean | undefined {
    if (this.#codec === undefined) return undefined;
    if (this.#hasOtherKey || this.#largePictures > MOVING_SHARE * this.#pictures) return true;
    return this.#keys >= 2 ? false : undefined;
  }
}

/** Returns the size in the parameter sets of a key frame, if they are there and valid. */
function pictureSize(
  head: Uint8Array,
  codec: string | undefined,
): { readonly width: number; readonly height: number } | undefined {
  for (const { start, end } of annexBNals(head, MAX_NALS)) {
    const nal = head.subarray(start, end);
    try {
      if (codec === "h264" && (nal[0]! & 0x1f) === H264_NAL.sps) return parseH264Sps(nal);
      // A sequence header (ISO 13818-2 6.2.2.1).
      if (codec === "mpeg2video" && nal[0] === 0xb3 && nal.length >= 4)
        return { width: (nal[1]! << 4) | (nal[2]! >> 4), height: ((nal[2]! & 15) << 8) | nal[3]! };
      if (codec === "hevc" && hevcNalType(nal[0]!) === HEVC_NAL.sps) return parseHevcSps(nal);
    } catch (error) {
      if (!(error instanceof DecodeError)) throw error;
    }
  }
  return undefined;
}
