import { z } from "zod";
import { SluiceError } from "../../src/base/errors.ts";
import { type Infohash, parseInfohash } from "../../src/base/ids.ts";
import { clientNetworkOf } from "../http/access.ts";
import { ItemTitles } from "../http/known-items.ts";
import { controlMethod, okResult, PRIVATE } from "./method.ts";
import { integer, required, text } from "./params.ts";
import { activitySchema, presentActivity } from "./present-activity.ts";

/** More cells than a page has room for. */
const MAX_CELLS = 1_000;
const DEFAULT_CELLS = 300;

const contentParams = { infohash: required(text).describe("40 hexadecimal digits") };

/** What the engine does now, and how to stop it. */
export const activityMethods = [
  controlMethod({
    name: "get_activity",
    summary: "Returns what each session and each transfer does; /api/events sends it live",
    isExtra: true,
    ...PRIVATE,
    params: z.object({}),
    result: activitySchema,
    async run(_, { dependencies, library, context }) {
      const isHost = clientNetworkOf(context.env.origin) === "local";
      const { sessions, transfers } = presentActivity(dependencies.engine.activity(), isHost);
      return { sessions, transfers: await new ItemTitles().name(transfers, library.items) };
    },
  }),
  controlMethod({
    name: "get_piece_map",
    summary: "Returns which parts of open content the engine holds",
    isExtra: true,
    ...PRIVATE,
    params: z.object({
      ...contentParams,
      cells: integer.describe(`The number of parts, at most ${MAX_CELLS}; default ${DEFAULT_CELLS}`),
    }),
    result: z.string().describe("One digit for each part: 0 nothing, 9 everything; empty for a stream"),
    run: async ({ infohash, cells = DEFAULT_CELLS }, { dependencies }) =>
      dependencies.engine.pieceMap(infohashOf(infohash), Math.min(Math.max(cells, 1), MAX_CELLS)),
  }),
  controlMethod({
    name: "transfer_stop",
    summary: "Ends the sessions of this content and stops its transfer; the cache keeps it",
    isExtra: true,
    ...PRIVATE,
    params: z.object(contentParams),
    result: okResult,
    async run({ infohash }, { dependencies }) {
      dependencies.engine.stopTransfer(infohashOf(infohash));
      return "ok";
    },
  }),
];

/** Parses the parameter `infohash`. Throws `bad_parameter`. */
export function infohashOf(given: string): Infohash {
  const infohash = parseInfohash(given);
  if (infohash === undefined)
    throw new SluiceError("bad_parameter", "infohash: expected 40 hexadecimal digits");
  return infohash;
}
