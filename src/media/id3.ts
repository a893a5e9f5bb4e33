import { latin1Text } from "../base/bytes.ts";
import { TICKS_MODULUS } from "./timestamps.ts";

/** What stands before audio that has no container (ID3v2.3, ID3v2.4). */
export interface Id3Head {
  /** Bytes of all tags. */
  readonly length: number;
  /** The PTS of the first frame (RFC 8216 3.4); undefined where it is not said. */
  readonly ticks: number | undefined;
}

const HEADER_BYTES = 10;
const FRAME_HEADER_BYTES = 10;
/** More tags in a row are no audio. */
const MAX_TAGS = 16;
const OWNER = "com.apple.streaming.transportStreamTimestamp\0";

/** Reads the tags at the start of `bytes`; those that are cut end what is read. */
export function readId3(bytes: Uint8Array): Id3Head {
  let length = 0;
  let ticks: number | undefined;
  for (let tags = 0; tags < MAX_TAGS; tags++) {
    const head = bytes.subarray(length, length + HEADER_BYTES);
    if (head.length < HEADER_BYTES || latin1Text(head.subarray(0, 3)) !== "ID3") break;
    const bodyBytes = sevenBits(head, 6);
    const end = length + HEADER_BYTES + bodyBytes + (head[5]! & 0x10 ? HEADER_BYTES : 0);
    if (end > bytes.length) break;
    const body = bytes.subarray(length + HEADER_BYTES, length + HEADER_BYTES + bodyBytes);
    ticks ??= ticksIn(body, head[3]! >= 4);
    length = end;
  }
  return { length, ticks };
}

function ticksIn(body: Uint8Array, isVersion4: boolean): number | undefined {
  for (let at = 0; at + FRAME_HEADER_BYTES <= body.length; ) {
    const name = latin1Text(body.subarray(at, at + 4));
    if (!/^[A-Z0-9]{4}$/.test(name)) return undefined; // Padding.
    const size = isVersion4 ? sevenBits(body, at + 4) : eightBits(body, at + 4);
    const data = body.subarray(at + FRAME_HEADER_BYTES, at + FRAME_HEADER_BYTES + size);
    if (data.length < size) return undefined;
    if (name === "PRIV" && size === OWNER.length + 8 && latin1Text(data.subarray(0, OWNER.length)) === OWNER)
      return (eightBits(data, OWNER.length) * 2 ** 32 + eightBits(data, OWNER.length + 4)) % TICKS_MODULUS;
    at += FRAME_HEADER_BYTES + size;
  }
  return undefined;
}

/** Sizes in tags leave the top bit of each byte free, so that none looks like a frame of audio. */
function sevenBits(bytes: Uint8Array, at: number): number {
  let value = 0;
  for (let i = 0; i < 4; i++) value = value * 128 + (bytes[at + i]! & 0x7f);
  return value;
}

function eightBits(bytes: Uint8Array, at: number): number {
  let value = 0;
  for (let i = 0; i < 4; i++) value = value * 256 + bytes[at + i]!;
  return value;
}
