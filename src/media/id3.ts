import { latin1Text, readU32 } from "../base/bytes.ts";
import { TICKS_MODULUS } from "./timestamps.ts";

/** The ID3 tags before packed audio (ID3v2.3, ID3v2.4). */
interface Id3Head {
  /** Size of all tags in bytes. */
  readonly length: number;
  /** PTS of the first frame (RFC 8216 3.4) in 90 kHz ticks; undefined if the tags have none. */
  readonly ticks: number | undefined;
}

const HEADER_BYTES = 10;
const FRAME_HEADER_BYTES = 10;
/** Limit of consecutive tags. */
const MAX_TAGS = 16;
const OWNER = "com.apple.streaming.transportStreamTimestamp\0";

/** Reads the tags at the start of `bytes`, up to the first truncated one. */
export function readId3(bytes: Uint8Array): Id3Head {
  let length = 0;
  let ticks: number | undefined;
  for (let tags = 0; tags < MAX_TAGS; tags++) {
    const head = bytes.subarray(length, length + HEADER_BYTES);
    if (head.length < HEADER_BYTES || latin1Text(head.subarray(0, 3)) !== "ID3") break;
    const bodyBytes = readSynchsafe(head, 6);
    const end = length + HEADER_BYTES + bodyBytes + (head[5]! & 0x10 ? HEADER_BYTES : 0);
    if (end > bytes.length) break;
    const body = bytes.subarray(length + HEADER_BYTES, length + HEADER_BYTES + bodyBytes);
    ticks ??= readTicks(body, head[3]! >= 4);
    length = end;
  }
  return { length, ticks };
}

function readTicks(body: Uint8Array, isVersion4: boolean): number | undefined {
  for (let at = 0; at + FRAME_HEADER_BYTES <= body.length; ) {
    const name = latin1Text(body.subarray(at, at + 4));
    if (!/^[A-Z0-9]{4}$/.test(name)) return undefined; // Padding follows the last frame.
    const size = isVersion4 ? readSynchsafe(body, at + 4) : readU32(body, at + 4);
    const data = body.subarray(at + FRAME_HEADER_BYTES, at + FRAME_HEADER_BYTES + size);
    if (data.length < size) return undefined;
    if (name === "PRIV" && size === OWNER.length + 8 && latin1Text(data.subarray(0, OWNER.length)) === OWNER)
      return (readU32(data, OWNER.length) * 2 ** 32 + readU32(data, OWNER.length + 4)) % TICKS_MODULUS;
    at += FRAME_HEADER_BYTES + size;
  }
  return undefined;
}

/** Reads a synchsafe integer (ID3v2.4 6.2): the top bit of each byte is 0, so that sizes never look like an audio sync word. */
function readSynchsafe(bytes: Uint8Array, at: number): number {
  let value = 0;
  for (let i = 0; i < 4; i++) value = value * 128 + (bytes[at + i]! & 0x7f);
  return value;
}
