import { MATROSKA, MP4, QTFF, WEBM } from "mediabunny";
import type { RandomAccess } from "../base/byte-source.ts";
import { SluiceError } from "../base/errors.ts";
import { languageCode } from "../media/language.ts";
import { BlockCache } from "./block-cache.ts";
import type { Media, OpenMediaOptions } from "./contract.ts";
import { DemuxPool } from "./demux-pool.ts";
import { openMatroska } from "./open-matroska.ts";
import { openMp4 } from "./open-mp4.ts";
import { asSluiceError } from "./packet-media.ts";
import { sniffContainer } from "./sniff.ts";
import { openTsFile } from "./ts-file.ts";

const TARGET_SECONDS = 6;
/** What can be told from so many bytes decides; five packets of 204 bytes fit. */
const SNIFF_BYTES = 4096;

/**
 * Opens a media file by what its first bytes say, whatever its name: reads the head and the index, nothing more.
 * Rejects with `SluiceError`: `unsupported_container`, `unsupported_codec`, `broken_media`, `cancelled`.
 */
export async function openMedia(source: RandomAccess, options: OpenMediaOptions = {}): Promise<Media> {
  try {
    return await asSluiceError(open(source, options));
  } catch (error) {
    if (options.signal?.aborted)
      throw new SluiceError("cancelled", "the request was cancelled", { cause: error });
    throw error;
  }
}

async function open(source: RandomAccess, options: OpenMediaOptions): Promise<Media> {
  const cache = new BlockCache(source);
  const { signal } = options;
  const sniffed = Math.min(SNIFF_BYTES, source.size);
  const head = sniffed > 0 ? await cache.read(0, sniffed, signal) : new Uint8Array(0);
  const container = sniffContainer(head);
  if (container === "mpegts") return openTsFile(source, options);
  const wishes = {
    language: languageCode(options.preferredAudioLanguage),
    targetSeconds: Math.max(1, options.targetSeconds ?? TARGET_SECONDS),
    signal,
  };
  if (container === "mp4" || container === "matroska") {
    const pool = new DemuxPool(cache, container === "mp4" ? [MP4, QTFF] : [MATROSKA, WEBM]);
    try {
      return await (container === "mp4" ? openMp4 : openMatroska)(cache, pool, wishes);
    } catch (error) {
      pool.close();
      throw error;
    }
  }
  throw new SluiceError("unsupported_container", container);
}
