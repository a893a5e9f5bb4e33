import { latin1Text, readU32 } from "../base/bytes.ts";
import { isEbml } from "../media/ebml.ts";

/** Boxes an MP4 or QuickTime file may begin with (ISO 14496-12 4.2; old QuickTime has no `ftyp`). */
const FIRST_BOXES = new Set(["ftyp", "styp", "moov", "mdat", "free", "skip", "wide", "pnot", "sidx", "moof"]);
/** Distance and offset of the sync bytes in plain, Blu-ray and forward-error-corrected transport streams. */
const TS_SHAPES = [[188, 0], [192, 4], [204, 0]] as const; // biome-ignore format: a table

const AUDIO_ADVICE = "it is not remuxed; ask for the raw file under /files/";

/**
 * What container the first bytes of a file are of. For those we do not read, a sentence that says what came and what
 * to do instead.
 */
export function sniffContainer(head: Uint8Array): "mp4" | "matroska" | "mpegts" | `${string} ${string}` {
  if (isEbml(head)) return "matroska";
  if (head.length >= 8 && FIRST_BOXES.has(latin1Text(head.subarray(4, 8))) && looksLikeBox(head))
    return "mp4";
  if (isTransportStream(head)) return "mpegts";
  const magic = latin1Text(head.subarray(0, 12));
  if (magic.startsWith("ID3") || isMpegAudio(head))
    return `this is an MP3 or AAC audio file: ${AUDIO_ADVICE}`;
  if (magic.startsWith("fLaC")) return `this is a FLAC audio file: ${AUDIO_ADVICE}`;
  if (magic.startsWith("OggS")) return `this is an Ogg file: ${AUDIO_ADVICE}`;
  if (magic.startsWith("RIFF") && magic.slice(8) === "WAVE")
    return `this is a WAV audio file: ${AUDIO_ADVICE}`;
  if (magic.startsWith("RIFF")) return "AVI files are not remuxed; ask for the raw file under /files/";
  return "this is no media file we can remux: expected MPEG-TS, MP4, MOV, Matroska or WebM; the raw file is under /files/";
}

/** A box is at least its own head long; size 0 (to the end) and 1 (64 bits follow) are special. */
function looksLikeBox(head: Uint8Array): boolean {
  const size = readU32(head, 0);
  return size === 0 || size === 1 || size >= 8;
}

function isTransportStream(head: Uint8Array): boolean {
  for (const [distance, offset] of TS_SHAPES) {
    // Up to one packet of garbage in front is forgiven.
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
