import { concatBytes } from "../base/bytes.ts";
import { adtsPrefix, parseAacConfig, setAdtsLength } from "../media/aac.ts";
import { H264_NAL, isH264Slice, parseAvcConfig } from "../media/h264.ts";
import { HEVC_NAL, hevcNalType, parseHevcConfig } from "../media/hevc.ts";
import { findStartCode, withStartCodes } from "../media/nal.ts";
import type { TsMuxTrack } from "./ts-mux-input.ts";

/** Converts the frames of one track to the form that a transport stream carries. */
export interface FrameWriter {
  /** Returns the size of the converted frame in bytes; 0 if nothing of it is usable. */
  measure(data: Uint8Array, isKey: boolean): number;
  /** Returns the largest size that `measure` can return for a frame of `bytes`; absent if only the content tells. */
  readonly bound?: (bytes: number, isKey: boolean) => number;
  /** Writes the converted frame at offset `at` and returns its size, which equals the result of `measure`. */
  write(data: Uint8Array, isKey: boolean, out: Uint8Array, at: number): number;
}

/** Returns the writer for a track. Throws `DecodeError` if its decoder configuration is invalid. */
export function frameWriter(track: TsMuxTrack): FrameWriter {
  if (track.codec === "h264") return h264Writer(track.config);
  if (track.codec === "hevc") return hevcWriter(track.config);
  return track.codec === "aac" && track.config ? new AdtsWriter(track.config) : new PlainWriter();
}

/** Carries frames unchanged. */
class PlainWriter implements FrameWriter {
  measure(data: Uint8Array): number {
    return data.length;
  }

  bound(bytes: number): number {
    return bytes;
  }

  write(data: Uint8Array, _isKey: boolean, out: Uint8Array, at: number): number {
    out.set(data, at);
    return data.length;
  }
}

/** The length of an ADTS frame has 13 bits. A larger frame is invalid and omitted. */
const MAX_ADTS_BYTES = 8191;

/** Puts an ADTS header before each raw AAC frame (ISO 13818-7 6.2). */
class AdtsWriter implements FrameWriter {
  readonly #prefix: Uint8Array;

  constructor(config: Uint8Array) {
    this.#prefix = adtsPrefix(parseAacConfig(config));
  }

  measure(data: Uint8Array): number {
    return this.bound(data.length);
  }

  bound(bytes: number): number {
    const length = bytes === 0 ? 0 : this.#prefix.length + bytes;
    return length > MAX_ADTS_BYTES ? 0 : length;
  }

  write(data: Uint8Array, _isKey: boolean, out: Uint8Array, at: number): number {
    const length = this.#prefix.length + data.length;
    out.set(this.#prefix, at);
    setAdtsLength(out, at, length);
    out.set(data, at + this.#prefix.length);
    return length;
  }
}

const NO_BYTES = new Uint8Array(0);

/** The differences between H.264 and HEVC. */
interface NalSyntax {
  /** An access unit delimiter with its start code. */
  readonly delimiter: Uint8Array;
  /** Parameter sets with their start codes; empty if the container has none. */
  readonly parameterSets: Uint8Array;
  /** Size of a NAL unit length field in bytes; 0 for Annex B. */
  readonly lengthSize: number;
  isDelimiter(header: number): boolean;
  isParameterSet(header: number): boolean;
  isSlice(header: number): boolean;
}

function h264Writer(config: Uint8Array | undefined): FrameWriter {
  const avc = config && parseAvcConfig(config);
  return new NalWriter({
    delimiter: new Uint8Array([0, 0, 0, 1, 9, 0xf0]),
    parameterSets: withStartCodes(avc ? [...avc.sps, ...avc.pps] : []),
    lengthSize: avc?.lengthSize ?? 0,
    isDelimiter: (header) => (header & 0x1f) === H264_NAL.delimiter,
    isParameterSet: (header) => (header & 0x1f) === H264_NAL.sps,
    isSlice: isH264Slice,
  });
}

function hevcWriter(config: Uint8Array | undefined): FrameWriter {
  const hevc = config && parseHevcConfig(config);
  const order = [HEVC_NAL.vps, HEVC_NAL.sps, HEVC_NAL.pps];
  const sets = order.flatMap((type) => hevc?.units.filter((unit) => hevcNalType(unit[0]!) === type) ?? []);
  return new NalWriter({
    delimiter: new Uint8Array([0, 0, 0, 1, 0x46, 1, 0x50]),
    parameterSets: withStartCodes(sets),
    lengthSize: hevc?.lengthSize ?? 0,
    isDelimiter: (header) => hevcNalType(header) === HEVC_NAL.delimiter,
    isParameterSet: (header) => hevcNalType(header) === HEVC_NAL.sps,
    isSlice: (header) => hevcNalType(header) < 32,
  });
}

/**
 * Writes video as Annex B: each access unit begins with a delimiter (ISO 13818-1 2.14.1), and parameter sets precede a key frame, so
 * that playback can start there. A unit whose length exceeds the frame ends the frame early: decoders conceal a lost slice, and one
 * damaged frame must not stop playback.
 */
class NalWriter implements FrameWriter {
  /** Start codes are as long as length fields of four bytes, so conversion only adds the prefix. Shorter fields would need the content. */
  readonly bound?: (bytes: number, isKey: boolean) => number;
  readonly #syntax: NalSyntax;
  readonly #delimiterAndSets: Uint8Array;

  constructor(syntax: NalSyntax) {
    this.#syntax = syntax;
    this.#delimiterAndSets = concatBytes([syntax.delimiter, syntax.parameterSets]);
    const [plain, key] = [syntax.delimiter.length, this.#delimiterAndSets.length];
    if (syntax.lengthSize === 4)
      this.bound = (bytes, isKey) => (bytes <= 4 ? 0 : (isKey ? key : plain) + bytes);
  }

  measure(data: Uint8Array, isKey: boolean): number {
    const body = this.#syntax.lengthSize === 0 ? data.length : this.#walk(data, undefined, 0);
    return body === 0 ? 0 : this.#prefix(data, isKey).length + body;
  }

  write(data: Uint8Array, isKey: boolean, out: Uint8Array, at: number): number {
    const prefix = this.#prefix(data, isKey);
    out.set(prefix, at);
    if (this.#syntax.lengthSize !== 0) return prefix.length + this.#walk(data, out, at + prefix.length);
    out.set(data, at + prefix.length);
    return prefix.length + data.length;
  }

  /** Converts length-prefixed units to start codes and returns the size of the result; only measures if `out` is undefined. */
  #walk(data: Uint8Array, out: Uint8Array | undefined, at: number): number {
    const size = this.#syntax.lengthSize;
    let from = 0;
    let length = 0;
    while (from + size < data.length) {
      let unit = 0;
      for (let i = 0; i < size; i++) unit = unit * 256 + data[from + i]!;
      from += size;
      if (unit > data.length - from) break;
      const isKept = unit > 0 && !this.#syntax.isDelimiter(data[from]!); // The prefix already has a delimiter.
      if (isKept && out) {
        out.set(data.subarray(from, from + unit), at + length + 4);
        out[at + length] = 0;
        out[at + length + 1] = 0;
        out[at + length + 2] = 0;
        out[at + length + 3] = 1;
      }
      if (isKept) length += 4 + unit;
      from += unit;
    }
    return length;
  }

  #prefix(data: Uint8Array, isKey: boolean): Uint8Array {
    const { lengthSize, delimiter, isDelimiter } = this.#syntax;
    if (lengthSize !== 0) return isKey && !this.#hasSets(data) ? this.#delimiterAndSets : delimiter;
    const first = findStartCode(data, 0) + 3;
    return first >= 3 && first < data.length && isDelimiter(data[first]!) ? NO_BYTES : delimiter;
  }

  /** Returns true if a sequence parameter set precedes the first slice. */
  #hasSets(data: Uint8Array): boolean {
    const { lengthSize, isParameterSet, isSlice } = this.#syntax;
    for (let at = lengthSize; at < data.length && !isSlice(data[at]!); at = this.#nextUnit(data, at)) {
      if (isParameterSet(data[at]!)) return true;
    }
    return false;
  }

  /** Offset of the unit after the unit at `at`. */
  #nextUnit(data: Uint8Array, at: number): number {
    const size = this.#syntax.lengthSize;
    let unit = 0;
    for (let i = size; i > 0; i--) unit = unit * 256 + data[at - i]!;
    return at + unit + size;
  }
}
