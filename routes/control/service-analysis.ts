import { z } from "zod";
import { SluiceError } from "../../src/base/errors.ts";
import type { Analysis } from "../../src/engine/contract.ts";
import { explain } from "../errors.ts";
import { analyzeItems, UNNAMED_ITEMS } from "./deferred-items.ts";
import { inOrder } from "./in-order.ts";
import { type ControlCall, controlMethod } from "./method.ts";
import { bool, integerList, required, text, texts } from "./params.ts";
import { elementError } from "./results.ts";
import { inspectOptions } from "./service-content.ts";

/** Queries of one `analyze_content_multi`, and items of one `analyze_deferred_playlist_items`. */
const MAX_ELEMENTS = 50;

const analysisResult = z.object({
  content_type: z.enum(["transport_file", "hls", "hls_vode", "direct_content", "direct_stream", "playlist"]),
  transport_type: z.enum(["bt", "hls"]),
  content_id: z.string().nullable(),
  infohash: z.string().nullable(),
  item_url: z.string().nullable(),
  title: z.string(),
  is_live: z.int().describe("0 VOD, 1 live, -1 unknown"),
  categories: z.array(z.string()),
});

/** What links and items are (interface: Content analysis result). */
export const analysisMethods = [
  controlMethod({
    name: "analyze_content",
    summary: "What a link is: its form is looked at, and what its server answers",
    isPublic: true,
    isRemote: true,
    isOpenToPages: true,
    params: z.object({
      query: required(text).describe("A link of any kind, or 40 hexadecimal digits"),
      title: text.describe("The title to tell, where the content has none"),
    }),
    result: analysisResult,
    run: async ({ query, title }, call) => analyzed(query, title, call),
  }),
  controlMethod({
    name: "analyze_content_multi",
    summary: "The same for several links; one that cannot be looked at does not spoil the others",
    isPublic: true,
    isRemote: true,
    isOpenToPages: true,
    params: z.object({ query: texts.describe(`Given again for each link, at most ${MAX_ELEMENTS} times`) }),
    result: z.array(z.union([z.object({ result: analysisResult }), elementError])),
    async run({ query }, call) {
      if (query.length === 0) throw new SluiceError("missing_parameter", "query: expected text");
      atMost(query.length, "query");
      return inOrder(query, (each) =>
        element(async () => ({ result: await analyzed(each, undefined, call) })),
      );
    },
  }),
  controlMethod({
    name: "analyze_deferred_playlist_items",
    summary: "Looks at items whose content nobody has looked at yet, and remembers what they are",
    isPublic: true,
    isRemote: true,
    isOpenToPages: false,
    params: z.object({
      playlist_item_id: integerList.describe(
        `Given again for each item; where it is absent, ${UNNAMED_ITEMS} that need it`,
      ),
      use_media_groups: bool.describe("The other sources of the same channels as well"),
    }),
    result: z.array(
      z.union([
        z.object({ playlist_item_id: z.int(), result: analysisResult }),
        elementError.extend({ playlist_item_id: z.int() }),
      ]),
    ),
    async run({ playlist_item_id, use_media_groups }, call) {
      atMost(playlist_item_id.length, "playlist_item_id");
      const found = await analyzeItems(playlist_item_id, use_media_groups ?? false, MAX_ELEMENTS, call);
      return inOrder(found, async ({ id, analyze }) => ({
        playlist_item_id: id,
        ...(await element(async () => ({ result: presentAnalysis(await analyze()) }))),
      }));
    },
  }),
];

async function analyzed(query: string, title: string | undefined, call: ControlCall) {
  return presentAnalysis(await call.house.engine.inspect.analyze(query, title, inspectOptions(call)));
}

function presentAnalysis(analysis: Analysis): z.output<typeof analysisResult> {
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

/** One element of a list: what fails is told in its place (interface: Errors 3). */
async function element<T>(
  work: () => Promise<T>,
): Promise<T | { readonly error: { readonly message: string; readonly code: number } }> {
  try {
    return await work();
  } catch (thrown) {
    const error = explain(thrown);
    if (!error) throw thrown;
    return { error: { message: error.text, code: error.code } };
  }
}

function atMost(count: number, name: string): void {
  if (count > MAX_ELEMENTS)
    throw new SluiceError("bad_parameter", `${name}: expected at most ${MAX_ELEMENTS} of them, got ${count}`);
}
