import { z } from "zod";
import type { ContentDescription, ContentFile } from "../../src/engine/contract.ts";

const fileResult = z.object({
  index: z.int().describe("The _idx of the playback endpoints"),
  filename: z.string(),
  infohash: z.string().optional(),
  type: z.enum(["live", "vod"]).optional(),
  mime: z.string().optional(),
  transport_type: z.enum(["bt", "hls", "wrapper"]).optional(),
  size: z.int().optional().describe("Bytes"),
});

/** The result of `get_media_files` (interface: Media files description). */
export const mediaFilesResult = z.object({
  name: z.string(),
  infohash: z.string(),
  type: z.enum(["live", "vod"]),
  transport_type: z.enum(["bt", "hls", "wrapper"]),
  transport_file_cache_key: z.string().nullable(),
  transport_file_data: z.string().optional().describe("Base64, with dump_transport_file=1"),
  files: z.array(fileResult),
  mime: z.string().describe("Of the file that plays where none is chosen"),
  size: z.int().describe("Bytes of that file"),
});

/** How the description is asked for. */
interface MediaFilesOptions {
  readonly apiVersion: 1 | 2 | 3;
  readonly isBrief: boolean;
  readonly withTransportFile: boolean;
}

/**
 * CHOICE(media-files): `mime` and `size` are told of each file, and once more of the main one. Only files that play are
 * listed; their index counts all files. Version 1 has the older shape: an object by index.
 */
export function presentMediaFiles(description: ContentDescription, options: MediaFilesOptions): unknown {
  const { infohash, type, transportType } = description;
  const playable = description.files.filter((file) => file.isPlayable);
  const files = playable.length > 0 ? playable : description.files;
  const full = (file: ContentFile) => ({
    infohash,
    type,
    filename: file.name,
    mime: file.mime,
    transport_type: transportType,
    index: file.index,
    size: file.size,
  });
  if (options.apiVersion === 1) {
    const entries = files.map((file) => [file.index, options.isBrief ? file.name : full(file)]);
    return Object.fromEntries(entries);
  }
  const main = files.reduce<ContentFile | undefined>(
    (best, file) => (best === undefined || file.size > best.size ? file : best),
    undefined,
  );
  const bytes = options.withTransportFile ? description.transportFile : undefined;
  return {
    name: description.name,
    infohash,
    type,
    transport_type: transportType,
    transport_file_cache_key: (bytes && description.contentId) ?? null,
    transport_file_data: bytes && base64Of(bytes),
    files: files.map((file) => (options.isBrief ? { index: file.index, filename: file.name } : full(file))),
    mime: main?.mime ?? "application/octet-stream",
    size: main?.size ?? 0,
  };
}

/** Bytes turned to text at a time: as many as fit the arguments of one call. */
const SLICE_BYTES = 8192;

function base64Of(bytes: Uint8Array): string {
  let binary = "";
  for (let at = 0; at < bytes.length; at += SLICE_BYTES)
    binary += String.fromCharCode(...bytes.subarray(at, at + SLICE_BYTES));
  return btoa(binary);
}
