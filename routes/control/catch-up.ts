import { z } from "zod";
import { SluiceError } from "../../src/base/errors.ts";
import type { CatchUp } from "../../src/catch-up/catch-up-contract.ts";
import type { RouteDependencies } from "../http/dependencies.ts";
import { itemOf } from "./guide.ts";
import { controlMethod, okResult, PRIVATE } from "./method.ts";
import { bool, integer, required } from "./params.ts";

const spanResult = z.object({ start: z.int().describe("UNIX time"), stop: z.int() });

/** Which channels are kept for catch-up, and what is kept of them. */
export const catchUpMethods = [
  controlMethod({
    name: "catch_up_list",
    summary: "Lists the channels that are kept for catch-up, and which times of them are kept",
    isExtra: true,
    ...PRIVATE,
    params: z.object({ id: integer.describe("An item: only its channel") }),
    result: z.object({
      is_kept: z
        .boolean()
        .nullable()
        .describe("Whether the channel of the item is kept; null without an item"),
      window: z.int().describe("Seconds that are kept; 0: catch-up is off (--catch-up)"),
      channels: z.array(
        z.object({
          item_id: z.int(),
          title: z.string(),
          bytes: z.int().describe("Space on the disk"),
          kept: z
            .array(spanResult)
            .describe("The times that are kept, oldest first; there is nothing between them"),
          problem: z.string().nullable().describe("Why nothing is kept at the moment"),
        }),
      ),
    }),
    run: async ({ id }, { dependencies: { catchUp }, library }) => ({
      is_kept: id === undefined ? null : (catchUp?.isKept(await itemOf(library, id)) ?? false),
      window: Math.round((catchUp?.windowMs ?? 0) / 1000),
      channels: (catchUp?.list(id === undefined ? undefined : await itemOf(library, id)) ?? []).map(
        ({ itemId, title, bytes, spans, problem }) => ({
          ...{ item_id: itemId, title, bytes, problem },
          kept: spans.map(({ startMs, endMs }) => ({
            start: Math.floor(startMs / 1000),
            stop: Math.floor(endMs / 1000),
          })),
        }),
      ),
    }),
  }),
  controlMethod({
    name: "catch_up_set",
    summary: "Turns catch-up of a channel on or off; off deletes what is kept",
    isExtra: true,
    ...PRIVATE,
    params: z.object({
      id: required(integer).describe("An item of the channel; all its sources are one channel"),
      value: required(bool),
    }),
    result: okResult,
    async run({ id, value }, { dependencies, library, allowPrivateUrls }) {
      const catchUp = catchUpOf(dependencies);
      const item = await itemOf(library, id);
      if (value) await catchUp.add(item, { allowPrivateUrls });
      else await catchUp.remove(item);
      return "ok";
    },
  }),
];

function catchUpOf({ catchUp }: RouteDependencies): CatchUp {
  if (catchUp === undefined)
    throw new SluiceError("bad_configuration", "catch-up is off; start the engine with --catch-up 24h");
  return catchUp;
}
