import { z } from "zod";
import { infohashOf } from "./activity.ts";
import { controlMethod, PRIVATE } from "./method.ts";
import { required, text } from "./params.ts";

/** A page shows no more rows, and the name of each is read from disk. */
const MAX_CONTENTS = 200;

const bytes = z.int().describe("Bytes");
const freed = z.int().describe("The number of freed bytes");

/** The disk cache by content. */
export const cacheMethods = [
  controlMethod({
    name: "get_cache",
    summary: `Returns what the disk cache has of each content; the ${MAX_CONTENTS} largest`,
    isExtra: true,
    ...PRIVATE,
    params: z.object({}),
    result: z.object({
      state: z
        .enum(["own", "shared", "off"])
        .describe("shared: another engine manages this cache; off: the cache limit is 0"),
      limit: bytes,
      free: bytes.describe("Free bytes on the disk of the cache"),
      used: bytes.describe("Bytes of all content, and of live streams that are open"),
      count: z.int().describe("The number of all contents"),
      contents: z.array(
        z.object({
          infohash: z.string(),
          name: z.string().nullable().describe("null if the transport file is not stored"),
          size: bytes.describe("Bytes on disk"),
          last_use: z.int().nullable().describe("UNIX seconds"),
          is_kept: z.boolean().describe("A download: it is never evicted"),
          is_open: z.boolean().describe("A transfer uses it, so it cannot be deleted"),
        }),
      ),
    }),
    async run(_, { dependencies: { engine } }) {
      const { limit, available, activeInUse, inactiveInUse } = await engine.cacheFigures();
      const { state, count, contents } = await engine.cache.list(MAX_CONTENTS);
      return {
        state,
        limit,
        free: available,
        used: activeInUse + inactiveInUse,
        count,
        contents: contents.map(({ infohash, name, bytes: size, lastRead, isOpen, isKept }) => ({
          infohash,
          name: name ?? null,
          size,
          last_use: lastRead === 0 ? null : lastRead,
          is_open: isOpen,
          is_kept: isKept,
        })),
      };
    },
  }),
  controlMethod({
    name: "cache_delete",
    summary: "Deletes content from the disk cache; it must not be open",
    isExtra: true,
    ...PRIVATE,
    params: z.object({ infohash: required(text).describe("40 hexadecimal digits") }),
    result: freed,
    run: ({ infohash }, { dependencies }) => dependencies.engine.cache.delete(infohashOf(infohash)),
  }),
  controlMethod({
    name: "cache_clear",
    summary: "Deletes all content that is neither open nor a download from the disk cache",
    isExtra: true,
    ...PRIVATE,
    params: z.object({}),
    result: freed,
    run: (_, { dependencies }) => dependencies.engine.cache.clear(),
  }),
];
