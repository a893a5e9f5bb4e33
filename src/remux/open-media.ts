import type { RandomAccess } from "../base/byte-source.ts";
import { SluiceError } from "../base/errors.ts";
import { languageCode } from "../media/language.ts";
import type { AudioTranscoder } from "./audio/transcoder.ts";
import { BlockCache } from "./block-cache.ts";
import type { Media, OpenMediaOptions } from "./contract.ts";
import { openMatroska } from "./open-matroska.ts";
import { openMp4 } from "./open-mp4.ts";
import { asSluiceError } from "./packet-media.ts";
import { rawMedia } from "./raw-media.ts";
import { sniffFormat } from "./sniff.ts";
import { openTsFile } from "./ts-file.ts";

const TARGET_SECONDS = 6;
/** How many bytes identify the container: enough for five packets of 204 bytes after garbage. */
const SNIFF_BYTES = 4096;

/**
 * Opens a media file. The container is detected from the first bytes, not from the name. Reads only the head and the index.
 * Audio is converted if
 * `options` request it and a transcoder is given. Rejects with `SluiceError`: `unsupported_container`, `unsupported_codec`, `broken_media`, `cancelled`.
 */
export async function openMedia(
  source: RandomAccess,
  options: OpenMediaOptions = {},
  transcoder?: AudioTranscoder,
): Promise<Media> {
  try {
    return await asSluiceError(open(source, options, transcoder));
  } catch (error) {
    if (options.signal?.aborted)
      throw new SluiceError("cancelled", "the request was cancelled", { cause: error });
    throw error;
  }
}

async function open(
  source: RandomAccess,
  options: OpenMediaOptions,
  transcoder: AudioTranscoder | undefined,
): Promise<Media> {
  const cache = new BlockCache(source);
  const { signal } = options;
  const sniffed = Math.min(SNIFF_BYTES, source.size);
  const head = sniffed > 0 ? await cache.read(0, sniffed, signal) : new Uint8Array(0);
  const format = sniffFormat(head);
  if (format === "mpegts") return openTsFile(source, options, undefined, transcoder);
  const settings = {
    language: languageCode(options.audio?.language),
    targetSeconds: Math.max(1, options.targetSeconds ?? TARGET_SECONDS),
    signal,
    conversion: options.audio?.conversion,
    transcoder,
  };
  if (format === "mp4") return openMp4(cache, settings);
  if (format === "matroska") return openMatroska(cache, settings);
  if (format) return rawMedia(format);
  throw new SluiceError(
    "unsupported_container",
    "this media format is not supported: expected MPEG-TS, MP4, MOV, Matroska or WebM; the raw file is under /files/",
  );
}
