import { z } from "zod";
import { playOrder } from "../../src/base/play-order.ts";
import type { Analysis, ContentDescription, ContentFile } from "../../src/transfer/contract.ts";
import { analysisResult, presentAnalysis } from "./analysis-result.ts";

const fileResult = z.object({
  index: z.int().describe("The value of _idx of the playback endpoints"),
  filename: z.string(),
  infohash: z.string().optional(),
  type: z.enum(["live", "vod"]).optional(),
  mime: z.string().optional(),
  transport_type: z.enum(["bt", "hls", "wrapper"]).optional(),
  size: z.int().optional().describe("Bytes"),
});

/** The schema of the result of `get_media_files` (interface: Media files description). */
export const mediaFilesResult = z.object({
  name: z.string(),
  infohash: z.string(),
  type: z.enum(["live", "vod"]),
  transport_type: z.enum(["bt", "hls", "wrapper"]),
  transport_file_cache_key: z.string().nullable(),
  transport_file_data: z.string().optional().describe("Base64, with dump_transport_file=1"),
  files: z.array(fileResult),
  mime: z.string().describe("The MIME type of the default file"),
  size: z
    .int()
    .describe(
      "The size of the default file in bytes; for a live stream that of the part that viewers can seek in",
    ),
  wrapper_data: z
    .object({ type: z.enum(["hls", "http"]), mime: z.string(), data: z.string().describe("The URL") })
    .optional()
    .describe("With expand_wrapper=1, for content of web servers that is named by its URL"),
  analysis: analysisResult.optional().describe("With analyze_content=1: the result of analyze_content"),
});

interface MediaFilesOptions {
  readonly apiVersion: 1 | 2 | 3;
  readonly isBrief: boolean;
  readonly withTransportFile: boolean;
  readonly analysis: Analysis | undefined;
  /** The URL that the content is at, if the client asks for it and knows it. */
  readonly wrappedUrl: string | undefined;
}

/**
 * Converts a content description to the result of `get_media_files`.
 *
 * CHOICE(media-files): each file has `mime` and `size`, and the top level repeats those of the file that plays by default. Version 1
 * has the older shape, an object keyed by index, and lists playable files only, because its clients play what they find.
 */
export function presentMediaFiles(description: ContentDescription, options: MediaFilesOptions): unknown {
  const { infohash, type, transportType } = description;
  const { files } = description;
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
    const playable = files.filter((file) => file.isPlayable);
    const listed = playable.length > 0 ? playable : files;
    const entries = listed.map((file) => [file.index, options.isBrief ? file.name : full(file)]);
    return Object.fromEntries(entries);
  }
  const [main] = playOrder(files);
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
    wrapper_data: wrapperOf(description, options.wrappedUrl, main?.mime),
    analysis: options.analysis && presentAnalysis(options.analysis),
  };
}

/**
 * CHOICE(expand-wrapper): deployed engines describe a URL by a transport file that wraps it, and `expand_wrapper` returns what
 * is inside. This engine has no such files: `wrapper_data` is the URL itself, only for the client that named the content by it.
 */
function wrapperOf(
  { transportType }: ContentDescription,
  url: string | undefined,
  mime = "application/octet-stream",
) {
  if (url === undefined || transportType === "bt") return undefined;
  return { type: transportType === "hls" ? "hls" : "http", mime, data: url };
}

/** Bytes converted per call of `fromCharCode`, limited because each byte is an argument. */
const SLICE_BYTES = 8192;

function base64Of(bytes: Uint8Array): string {
  let binary = "";
  for (let at = 0; at < bytes.length; at += SLICE_BYTES)
    binary += String.fromCharCode(...bytes.subarray(at, at + SLICE_BYTES));
  return btoa(binary);
}
