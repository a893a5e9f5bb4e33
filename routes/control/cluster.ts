import { z } from "zod";
import { SluiceError } from "../../src/base/errors.ts";
import { controlMethod, okResult, PRIVATE, PRIVATE_LOCAL } from "./method.ts";
import { integer, required, text } from "./params.ts";

const MAX_LINK_SECONDS = 366 * 86_400;

const engineShape = z.object({
  id: z.string(),
  address: z
    .string()
    .describe("Its URL for players and other engines; empty if other engines send it no players"),
  is_this: z.boolean(),
  is_draining: z.boolean(),
  players: z.int(),
  contents: z.int().describe("Open contents"),
  version: z.string(),
});

/** The engines that share a database, and signed links for caches. */
export const clusterMethods = [
  controlMethod({
    name: "get_cluster",
    summary:
      "Lists the engines that share the database, this one first; empty if the database is of this engine alone",
    ...PRIVATE,
    isExtra: true,
    params: z.object({}),
    result: z.object({ engines: z.array(engineShape) }),
    run: async (_, { dependencies: { cluster } }) => ({
      engines: (cluster?.engines() ?? []).map(({ isThis, isDraining, ...engine }) => ({
        ...engine,
        is_this: isThis,
        is_draining: isDraining,
      })),
    }),
  }),
  controlMethod({
    name: "drain",
    summary:
      "Stops the engine after its players have left, or after the setting `drain-time`; new players go to other engines meanwhile",
    ...PRIVATE_LOCAL,
    isExtra: true,
    params: z.object({}),
    result: okResult,
    async run(_, { dependencies: { drain } }) {
      if (drain === undefined)
        throw new SluiceError("unsupported_content", "only `sluice serve` can be stopped by this method");
      drain();
      return "ok";
    },
  }),
  controlMethod({
    name: "sign_link",
    summary: "Returns the path of a signed link to HLS without sessions; the link expires",
    ...PRIVATE,
    isExtra: true,
    params: z.object({
      path: required(text).describe("/live/<infohash> or /vod/<infohash>/<file index>"),
      seconds: required(integer).describe("How long it is valid, at most a year"),
    }),
    result: z.object({ path: z.string(), expires: z.int().describe("UNIX time") }),
    async run({ path, seconds }, { dependencies: { signedLinks } }) {
      if (signedLinks === undefined)
        throw new SluiceError("bad_configuration", "signed links need a key: set --link-key");
      const content = /^\/(?:live\/[0-9a-f]{40}|vod\/[0-9a-f]{40}\/\d{1,6})$/i.exec(path)?.[0].toLowerCase();
      if (content === undefined)
        throw new SluiceError(
          "bad_parameter",
          "path: expected /live/<infohash> or /vod/<infohash>/<file index>",
        );
      if (seconds < 1 || seconds > MAX_LINK_SECONDS)
        throw new SluiceError("bad_parameter", `seconds: expected 1 to ${MAX_LINK_SECONDS}`);
      const expires = Math.floor(Date.now() / 1000) + seconds;
      return { path: `${await signedLinks.sign(content, expires)}/index.m3u8`, expires };
    },
  }),
];
