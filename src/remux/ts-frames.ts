import { concatBytes } from "../base/bytes.ts";
import { SluiceError } from "../base/errors.ts";
import { adtsPrefix, parseAacConfig, setAdtsLength } from "../media/aac.ts";
import { H264_NAL, isH264Slice, parseAvcConfig } from "../media/h264.ts";
import { HEVC_NAL, hevcNalType, parseHevcConfig } from "../media/hevc.ts";
import { findStartCode, withStartCodes } from "../media/nal.ts";
import type { TsMuxTrack } from "./ts-mux-input.ts";

/** Brings the frames of one track into the form that a transport stream carries. */
export interface FrameWriter {
  /** How many bytes the frame will take, or 0 where nothing of it is usable. */
  measure(data: Uint8Array, isKey: boolean): number;
  /** Writes the frame at `at` and returns its length: what `measure` said. */
  write(data: Uint8Array, isKey: boolean, out: Uint8Array, at: number): number;
}

/** The writer for a track. Throws `DecodeError` where its decoder configuration cannot be read. */
export function frameWriter(track: TsMuxTrack): FrameWriter {
  if (track.codec === "h264") return h264Writer(track.config);
  if (track.codec === "hevc") return hevcWriter(track.config);
  return track.codec === "aac" && track.config ? new AdtsWriter(track.config) : new PlainWriter();
}

/** For frames that are carried as they are. */
class PlainWriter implements FrameWriter {
  measure(data: Uint8Array): number {
    return data.length;
  }

  write(data: Uint8Array, _isKey: boolean, out: Uint8Array, at: number): number {
    out.set(data, at);
    return data.length;
  }
}

/** Puts an ADTS header before each raw AAC frame (ISO 13818-7 6.2). */
class AdtsWriter implements FrameWriter {
  readonly #prefix: Uint8Array;

  constructor(config: Uint8Array) {
    this.#prefix = adtsPrefix(parseAacConfig(config));
  }

  measure(data: Uint8Array): number {
    const length = data.length === 0 ? 0 : this.#prefix.length + data.length;
    if (length > 8191)
      throw new SluiceError("broken_media", `an AAC frame of ${length} bytes; ADTS carries up to 8191`);
    return length;
  }

  write(data: Uint8Array, _isKey: boolean, out: Uint8Array, at: number): number {
    const length = this.#prefix.length + data.length;
    out.set(this.#prefix, at);
    setAdtsLength(out, at, length);
    out.set(data, at + this.#prefix.length);
    return length;
  }
}

const NOTHING = new Uint8Array(0);

/** What sets H.264 and HEVC apart here. */
interface NalSyntax {
  /** An access unit delimiter with its start code. */
  readonly delimiter: Uint8Array;
  /** Parameter sets with their start codes; empty where the container gave none. */
  readonly parameterSets: Uint8Array;
  /** Bytes of a NAL length; 0 for Annex B. */
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
 * Writes video as Annex B: each access unit begins with a delimiter (ISO 13818-1 2.14.1), and a keyframe has its parameter
 * sets before it, so that a player may join there. A unit whose length runs past the frame ends the frame before it:
 * decoders conceal a lost slice, and one damaged frame must not stop the film.
 */
class NalWriter implements FrameWriter {
  readonly #syntax: NalSyntax;
  readonly #delimiterAndSets: Uint8Array;

  constructor(syntax: NalSyntax) {
    this.#syntax = syntax;
    this.#delimiterAndSets = concatBytes([syntax.delimiter, syntax.parameterSets]);
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

  /** Goes over length-prefixed units, writing them with start codes where `out` is given; how many bytes they take. */
  #walk(data: Uint8Array, out: Uint8Array | undefined, at: number): number {
    const size = this.#syntax.lengthSize;
    let from = 0;
    let length = 0;
    while (from + size < data.length) {
      let unit = 0;
      for (let i = 0; i < size; i++) unit = unit * 256 + data[from + i]!;
      from += size;
      if (unit > data.length - from) break;
      const isKept = unit > 0 && !this.#syntax.isDelimiter(data[from]!); // We have written our own.
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
    return first >= 3 && first < data.length && isDelimiter(data[first]!) ? NOTHING : delimiter;
  }

  /** Whether a sequence parameter set stands before the first slice. */
  #hasSets(data: Uint8Array): boolean {
    const { lengthSize, isParameterSet, isSlice } = this.#syntax;
    for (let at = lengthSize; at < data.length && !isSlice(data[at]!); at = this.#nextUnit(data, at)) {
      if (isParameterSet(data[at]!)) return true;
    }
    return false;
  }

  /** The first byte of the unit after the one that begins at `at`. */
  #nextUnit(data: Uint8Array, at: number): number {
    const size = this.#syntax.lengthSize;
    let unit = 0;
    for (let i = size; i > 0; i--) unit = unit * 256 + data[at - i]!;
    return at + unit + size;
  }
}
