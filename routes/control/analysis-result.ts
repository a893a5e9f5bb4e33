import { z } from "zod";
import type { Analysis } from "../../src/transfer/contract.ts";

/** The schema of a content analysis (interface: Content analysis result). */
export const analysisResult = z.object({
  content_type: z.enum(["transport_file", "hls", "hls_vode", "direct_content", "direct_stream", "playlist"]),
  transport_type: z.enum(["bt", "hls"]),
  content_id: z.string().nullable(),
  infohash: z.string().nullable(),
  item_url: z.string().nullable(),
  title: z.string(),
  is_live: z.int().describe("0 VOD, 1 live, -1 unknown"),
  categories: z.array(z.string()),
});

/** Converts an analysis to the result of a control method. */
export function presentAnalysis(analysis: Analysis): z.output<typeof analysisResult> {
  return {
    content_type: analysis.contentType,
    transport_type: analysis.transportType,
    content_id: analysis.contentId,
    infohash: analysis.infohash,
    item_url: analysis.itemUrl,
    title: analysis.title,
    is_live: analysis.isLive,
    categories: [...analysis.categories],
  };
}
