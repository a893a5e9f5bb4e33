import { latin1Text, readU32 } from "../base/bytes.ts";
import { readAdtsHeader } from "../media/aac.ts";
import { isEbml } from "../media/ebml.ts";

/** Boxes that an MP4 or QuickTime file can begin with (ISO 14496-12 4.2; old QuickTime has no `ftyp`). */
const FIRST_BOXES = new Set(["ftyp", "styp", "moov", "mdat", "free", "skip", "wide", "pnot", "sidx", "moof"]);
/** Distance and offset of the sync bytes in plain, Blu-ray and forward-error-corrected transport streams. */
const TS_SHAPES = [[188, 0], [192, 4], [204, 0]] as const; // biome-ignore format: a table

/** A container that is remuxed. */
type Container = "mp4" | "matroska" | "mpegts";

/** A format that is not remuxed: players get the file itself. */
export interface RawFormat {
  /** For messages, such as `AVI`. */
  readonly name: string;
  readonly mime: string;
}

/** Detects the format of a file from its first bytes; undefined if it is none that players support. */
export function sniffFormat(head: Uint8Array): Container | RawFormat | undefined {
  if (isEbml(head)) return "matroska";
  if (head.length >= 8 && FIRST_BOXES.has(latin1Text(head.subarray(4, 8))) && looksLikeBox(head))
    return "mp4";
  if (isTransportStream(head)) return "mpegts";
  return sniffRaw(head);
}

function sniffRaw(head: Uint8Array): RawFormat | undefined {
  const text = latin1Text(head);
  if (text.startsWith("fLaC")) return { name: "FLAC", mime: "audio/flac" };
  if (text.startsWith("OggS")) {
    const hasVideo = text.includes("\x80theora") || text.includes("\x01video");
    return { name: "Ogg", mime: hasVideo ? "video/ogg" : "audio/ogg" };
  }
  if (text.startsWith("RIFF") && text.startsWith("WAVE", 8)) return { name: "WAV", mime: "audio/wav" };
  if (text.startsWith("RIFF") && text.startsWith("AVI ", 8)) return { name: "AVI", mime: "video/x-msvideo" };
  if (text.startsWith("FLV\x01")) return { name: "FLV", mime: "video/x-flv" };
  if (text.startsWith(ASF_HEADER)) {
    const hasVideo = text.includes(ASF_VIDEO);
    return hasVideo ? { name: "WMV", mime: "video/x-ms-wmv" } : { name: "WMA", mime: "audio/x-ms-wma" };
  }
  if (text.startsWith("\0\0\x01\xba")) return { name: "MPEG-PS", mime: "video/mpeg" };
  if (readAdtsHeader(head, 0)) return { name: "AAC", mime: "audio/aac" };
  if (text.startsWith("ID3") || isMpegAudio(head)) return { name: "MP3", mime: "audio/mpeg" };
  return undefined;
}

/** The GUIDs of the header object and of video streams (Advanced Systems Format 10.1, 10.4). */
const ASF_HEADER = "\x30\x26\xb2\x75\x8e\x66\xcf\x11";
const ASF_VIDEO = "\xc0\xef\x19\xbc\x4d\x5b\xcf\x11\xa8\xfd\x00\x80\x5f\x5c\x44\x2b";

/** A box is at least as long as its head; size 0 means to the end of the file, 1 that a 64-bit size follows. */
function looksLikeBox(head: Uint8Array): boolean {
  const size = readU32(head, 0);
  return size === 0 || size === 1 || size >= 8;
}

function isTransportStream(head: Uint8Array): boolean {
  for (const [distance, offset] of TS_SHAPES) {
    // Up to one packet of garbage can precede the first sync byte.
    for (let at = offset; at < offset + distance; at++) if (hasSyncs(head, at, distance)) return true;
  }
  return false;
}

function hasSyncs(head: Uint8Array, first: number, distance: number): boolean {
  let found = 0;
  for (let at = first; at < head.length && found < 5; at += distance) {
    if (head[at] !== 0x47) return false;
    found++;
  }
  return found >= 3;
}

/** The sync word of MPEG audio or ADTS. */
function isMpegAudio(head: Uint8Array): boolean {
  return head.length >= 2 && head[0] === 0xff && (head[1]! & 0xe0) === 0xe0;
}
