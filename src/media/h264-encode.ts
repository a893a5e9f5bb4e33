import { concatBytes } from "../base/bytes.ts";
import { BitWriter } from "./bit-writer.ts";
import { type FlatFormat, type FlatPicture, flatPicture } from "./h264-encode-picture.ts";
import { QUANTISER, writeSlice } from "./h264-encode-slice.ts";

/** `frame_num` has four bits (`log2_max_frame_num_minus4` 0). */
const FRAME_NUMBERS = 16;
/** Level 3.0 (A.3.4.1): 1620 macroblocks per picture, 40500 per second. */
const LEVEL = 30;

/**
 * Encodes flat pictures as H.264 constrained baseline (ISO 14496-10): one access unit per picture, without delimiter, in the byte stream
 * format (Annex B). Macroblocks that differ from the previous picture are Intra 16×16 with DC levels only, all others are skipped.
 * Without deblocking, the encoder reproduces the decoded picture exactly.
 */
export class FlatEncoder {
  readonly #format: FlatFormat;
  readonly #parameterSets: Uint8Array<ArrayBuffer>;
  /** The previous picture as decoded, and as given. */
  readonly #decoded: FlatPicture;
  readonly #previous: FlatPicture;
  #frameNumber = 0;
  #keyframes = 0;

  constructor(format: FlatFormat) {
    this.#format = format;
    this.#parameterSets = concatBytes([
      nalUnit(0x67, (out) => writeSps(out, format)),
      nalUnit(0x68, writePps),
    ]);
    this.#decoded = flatPicture(format);
    this.#previous = flatPicture(format);
  }

  /** Returns one access unit. A key picture is an IDR picture, preceded by its parameter sets. */
  encode(picture: FlatPicture, isKey: boolean): Uint8Array<ArrayBuffer> {
    if (isKey) this.#frameNumber = 0;
    const slice = nalUnit(isKey ? 0x65 : 0x61, (out) => {
      writeSliceHead(out, isKey, this.#frameNumber, this.#keyframes);
      writeSlice(out, this.#format, { isKey, picture, previous: this.#previous, decoded: this.#decoded });
    });
    if (isKey) this.#keyframes++;
    this.#frameNumber = (this.#frameNumber + 1) % FRAME_NUMBERS;
    return isKey ? concatBytes([this.#parameterSets, slice]) : slice;
  }
}

/** Sequence parameter set (7.3.2.1.1), with video usability information (Annex E). */
function writeSps(out: BitWriter, { columns, rows, width, height, framesPerSecond }: FlatFormat): void {
  out.bits(66, 8);
  out.bits(0xc0, 8); // constraint_set0 and 1: constrained baseline
  out.bits(LEVEL, 8);
  out.ue(0); // seq_parameter_set_id
  out.ue(0); // log2_max_frame_num_minus4
  out.ue(2); // pic_order_cnt_type: output order is decoding order
  out.ue(1); // max_num_ref_frames
  out.bits(0, 1); // no gaps in frame numbers
  out.ue(columns - 1);
  out.ue(rows - 1);
  out.bits(1, 1); // frame_mbs_only
  out.bits(1, 1); // direct_8x8_inference
  out.bits(1, 1); // cropped
  for (const pixels of [0, 16 * columns - width, 0, 16 * rows - height]) out.ue(pixels / 2);
  out.bits(1, 1); // usability information
  out.bits(0, 1); // no aspect ratio
  out.bits(0, 1); // no overscan
  out.bits(1, 1); // video signal: format 5 (unspecified), limited range, BT.709 throughout
  out.bits(5, 3);
  out.bits(0, 1);
  out.bits(1, 1);
  for (let i = 0; i < 3; i++) out.bits(1, 8);
  out.bits(0, 1); // no chroma location
  out.bits(1, 1); // timing: two ticks a frame
  writeU32Bits(out, 1);
  writeU32Bits(out, 2 * framesPerSecond);
  out.bits(1, 1); // fixed frame rate
  out.bits(0, 2); // no HRD
  out.bits(0, 1); // no picture structure messages
  out.bits(1, 1); // restrictions
  out.bits(1, 1);
  out.ue(0);
  out.ue(0);
  out.ue(9); // motion vector range of the profile; no vectors are used
  out.ue(9);
  out.ue(0); // max_num_reorder_frames
  out.ue(1); // max_dec_frame_buffering
}

/** Picture parameter set (7.3.2.2). */
function writePps(out: BitWriter): void {
  out.ue(0);
  out.ue(0);
  out.bits(0, 2); // CAVLC, one field order
  out.ue(0); // one slice group
  out.ue(0);
  out.ue(0);
  out.bits(0, 3); // no weights
  out.se(0); // pic_init_qp: 26; each slice sets its own
  out.se(0);
  out.se(0); // chroma_qp_index_offset
  out.bits(0b100, 3); // deblocking_filter_control_present_flag
}

/** Slice header (7.3.3). */
function writeSliceHead(out: BitWriter, isKey: boolean, frameNumber: number, keyframes: number): void {
  out.ue(0); // first_mb_in_slice
  out.ue(isKey ? 7 : 5); // I or P, as all slices of the picture
  out.ue(0);
  out.bits(frameNumber, 4);
  if (isKey)
    out.ue(keyframes & 1); // idr_pic_id: neighbours differ
  else out.bits(0, 2); // no override of references, no reordering
  out.bits(0, isKey ? 2 : 1); // reference marking: nothing special
  out.se(QUANTISER - 26);
  out.ue(1); // disable_deblocking_filter_idc
}

function writeU32Bits(out: BitWriter, value: number): void {
  out.bits(value >>> 16, 16);
  out.bits(value & 0xffff, 16);
}

/** Returns a NAL unit with start code, trailing bits and emulation prevention bytes (7.3.1). */
function nalUnit(header: number, write: (out: BitWriter) => void): Uint8Array<ArrayBuffer> {
  const out = new BitWriter();
  write(out);
  out.bits(1, 1);
  out.align();
  const payload = out.bytes();
  // At most one emulation prevention byte per two payload bytes.
  const unit = new Uint8Array(5 + payload.length + (payload.length >> 1) + 1);
  unit[3] = 1;
  unit[4] = header;
  let length = 5;
  let zeros = 0;
  for (const byte of payload) {
    if (zeros >= 2 && byte <= 3) {
      unit[length++] = 3;
      zeros = 0;
    }
    unit[length++] = byte;
    zeros = byte === 0 ? zeros + 1 : 0;
  }
  return unit.subarray(0, length);
}
