import { H264_NAL } from "../h264.ts";
import { hevcNalType } from "../hevc.ts";
import { annexBNals, findStartCode, unescapeNal } from "../nal.ts";

/** Three bytes of caption data for each entry: type (0 to 3), and two bytes (ATSC A/53 part 4, 6.2.3.1). */
export type CaptionTriplets = Uint8Array;

/** Types of entries: CEA-608 of both fields, and the continuation and the start of a CEA-708 packet. */
export const CAPTION_TYPE = { field1: 0, field2: 1, dtvccData: 2, dtvccStart: 3 } as const;

/** `GA94` and the type code of captions. */
const ATSC = [0x47, 0x41, 0x39, 0x34, 0x03];
/** Country and provider of a registered user data message (ITU-T T.35) with ATSC data. */
const ITU_T35 = [0xb5, 0x00, 0x31];
const SEI_USER_DATA = 4;
const HEVC_PREFIX_SEI = 39;
const MPEG2_USER_DATA = 0xb2;
/** Supplemental information is before the first slice; larger units are damaged. */
const NALS_LIMIT = 32;
const SEI_LIMIT_BYTES = 4096;

/** Returns the valid caption data of a frame: H.264, HEVC or MPEG-2 video as a byte stream. */
export function captionData(codec: string, frame: Uint8Array): CaptionTriplets {
  const out: number[] = [];
  if (codec === "mpeg2video") {
    for (let at = findStartCode(frame, 0); at >= 0; at = findStartCode(frame, at + 3)) {
      // Slices follow the user data of a picture.
      if (frame[at + 3]! >= 1 && frame[at + 3]! <= 0xaf) break;
      if (frame[at + 3] === MPEG2_USER_DATA) readAtsc(frame.subarray(at + 4, at + 4 + SEI_LIMIT_BYTES), out);
    }
    return Uint8Array.from(out);
  }
  for (const { start, end } of annexBNals(frame, NALS_LIMIT)) {
    const isSei =
      codec === "h264"
        ? (frame[start]! & 0x1f) === H264_NAL.sei
        : hevcNalType(frame[start]!) === HEVC_PREFIX_SEI;
    if (!isSei) continue;
    const body = frame.subarray(start + (codec === "h264" ? 1 : 2), Math.min(end, start + SEI_LIMIT_BYTES));
    readMessages(unescapeNal(body), out);
  }
  return Uint8Array.from(out);
}

/** Reads the messages of supplemental information (ISO 14496-10 7.3.2.3.1). */
function readMessages(sei: Uint8Array, out: number[]): void {
  let at = 0;
  const number = () => {
    let value = 0;
    while (sei[at] === 0xff) value += sei[at++]!;
    return value + (sei[at++] ?? 0);
  };
  while (at + 2 < sei.length) {
    const [type, size] = [number(), number()];
    const end = at + size;
    if (end > sei.length) return;
    if (type === SEI_USER_DATA && ITU_T35.every((byte, i) => sei[at + i] === byte))
      readAtsc(sei.subarray(at + ITU_T35.length, end), out);
    at = end;
  }
}

function readAtsc(data: Uint8Array, out: number[]): void {
  if (!ATSC.every((byte, i) => data[i] === byte)) return;
  const flags = data[5] ?? 0;
  if ((flags & 0x40) === 0) return;
  for (let i = 0, at = 7; i < (flags & 31) && at + 3 <= data.length; i++, at += 3) {
    const isValid = (data[at]! & 4) !== 0;
    if (isValid) out.push(data[at]! & 3, data[at + 1]!, data[at + 2]!);
  }
}
