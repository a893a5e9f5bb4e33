import { z } from "zod";
import { SluiceError } from "../../src/base/errors.ts";
import { describeError } from "../http/errors.ts";
import { analysisResult, presentAnalysis } from "./analysis-result.ts";
import { DEFAULT_ITEM_COUNT, selectItems } from "./deferred-items.ts";
import type { ControlCall } from "./method.ts";
import { controlMethod, elementError, OPEN, PUBLIC } from "./method.ts";
import { bool, integerList, required, text, texts } from "./params.ts";
import { inspectOptions } from "./service-content.ts";

/** The maximum number of queries of `analyze_content_multi` and items of `analyze_deferred_playlist_items`. */
const MAX_ELEMENTS = 50;
/** The elements of one call that are analyzed at the same time, so that a call cannot use all of the engine's connections. */
const CONCURRENCY = 4;

/** Content analysis (interface: Content analysis result). */
export const analysisMethods = [
  controlMethod({
    name: "analyze_content",
    summary: "Determines the type of a link from its form and its server's response",
    ...OPEN,
    params: z.object({
      query: required(text).describe("A link of any kind, or an infohash of 40 hexadecimal digits"),
      title: text.describe("The title to return if the content has none"),
    }),
    result: analysisResult,
    run: async ({ query, title }, call) => analyzed(query, title, call),
  }),
  controlMethod({
    name: "analyze_content_multi",
    summary: "Analyzes several links; an error of one link does not affect the others",
    ...OPEN,
    params: z.object({ query: texts.describe(`A link; repeatable, at most ${MAX_ELEMENTS} times`) }),
    result: z.array(z.union([z.object({ result: analysisResult }), elementError])),
    async run({ query }, call) {
      if (query.length === 0) throw new SluiceError("missing_parameter", "query: expected text");
      atMost(query.length, "query");
      return mapConcurrently(query, (each) =>
        resultOrError(async () => ({ result: await analyzed(each, undefined, call) })),
      );
    },
  }),
  controlMethod({
    name: "analyze_deferred_playlist_items",
    summary: "Analyzes items whose content is not analyzed yet, and stores the results",
    ...PUBLIC,
    params: z.object({
      playlist_item_id: integerList.describe(
        `The id of an item; repeatable. Default: ${DEFAULT_ITEM_COUNT} items that are not analyzed yet`,
      ),
      use_media_groups: bool.describe("1: also the other sources of the same channels"),
    }),
    result: z.array(
      z.union([
        z.object({ playlist_item_id: z.int(), result: analysisResult }),
        elementError.extend({ playlist_item_id: z.int() }),
      ]),
    ),
    async run({ playlist_item_id, use_media_groups }, call) {
      atMost(playlist_item_id.length, "playlist_item_id");
      const selected = await selectItems(playlist_item_id, use_media_groups ?? false, MAX_ELEMENTS, call);
      return mapConcurrently(selected, async ({ id, analyze }) => ({
        playlist_item_id: id,
        ...(await resultOrError(async () => ({ result: presentAnalysis(await analyze()) }))),
      }));
    },
  }),
];

async function analyzed(query: string, title: string | undefined, call: ControlCall) {
  return presentAnalysis(await call.dependencies.engine.inspect.analyze(query, title, inspectOptions(call)));
}

/** Maps elements, `CONCURRENCY` at a time, and returns the results in the same order. Rejects with the first error. */
async function mapConcurrently<T, R>(elements: readonly T[], work: (element: T) => Promise<R>): Promise<R[]> {
  const results: R[] = new Array(elements.length);
  let next = 0;
  const worker = async () => {
    while (next < elements.length) {
      const index = next++;
      results[index] = await work(elements[index]!);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, worker));
  return results;
}

/** Converts a `SluiceError` to an element of the result (interface: Errors 3). */
async function resultOrError<T>(
  work: () => Promise<T>,
): Promise<T | { readonly error: { readonly message: string; readonly code: number } }> {
  try {
    return await work();
  } catch (thrown) {
    const error = describeError(thrown);
    if (!error) throw thrown;
    return { error: { message: error.text, code: error.code } };
  }
}

function atMost(count: number, name: string): void {
  if (count > MAX_ELEMENTS)
    throw new SluiceError("bad_parameter", `${name}: expected at most ${MAX_ELEMENTS} values, got ${count}`);
}
