import { z } from "zod";
import { SluiceError } from "../../src/base/errors.ts";
import { unixNow } from "./guide.ts";
import { controlMethod, okResult, PRIVATE } from "./method.ts";
import { decimal, integer, required, text } from "./params.ts";

/** Longer names of profiles are refused. */
const MAX_PROFILE = 64;
/** No film is longer: 115 days. */
const MAX_SECONDS = 1e7;

const profile = text.describe(
  "Name of the profile of the user, at most 64 characters; default: the one without a name",
);
const infohash = required(text).describe("40 hexadecimal digits");
const fileIndex = required(integer).describe("The file of the content");

/** The methods for films that a user has begun to watch. */
export const watchedMethods = [
  controlMethod({
    name: "watched_get_list",
    summary: "Lists the films that a user has begun to watch, the latest first, at most 100",
    isExtra: true,
    ...PRIVATE,
    params: z.object({ profile }),
    result: z.array(
      z.object({
        infohash: z.string(),
        file_index: z.int(),
        title: z.string(),
        link: z.string().describe("What plays it: a link, or item: and the id of a playlist item"),
        position: z.number().describe("Seconds"),
        duration: z.number().describe("Seconds"),
        updated_at: z.int().describe("UNIX time"),
      }),
    ),
    async run({ profile }, { library }) {
      const films = await library.watched.list(nameOf(profile));
      return films.map(({ fileIndex, updatedAt, ...film }) => ({
        ...film,
        file_index: fileIndex,
        updated_at: updatedAt,
      }));
    },
  }),
  controlMethod({
    name: "watched_get_profiles",
    summary: "Lists the names of the profiles that have begun to watch a film, at most 32",
    isExtra: true,
    ...PRIVATE,
    params: z.object({}),
    result: z.array(z.string()),
    run: (_, { library }) => library.watched.profiles(),
  }),
  controlMethod({
    name: "watched_set",
    summary: "Stores where a user stopped watching a film",
    isExtra: true,
    ...PRIVATE,
    params: z.object({
      profile,
      infohash,
      file_index: fileIndex,
      title: required(text),
      link: required(text).describe("What plays it: a link, or item: and the id of a playlist item"),
      position: required(decimal(0, MAX_SECONDS)).describe("Seconds"),
      duration: required(decimal(0, MAX_SECONDS)).describe("Seconds"),
    }),
    result: okResult,
    async run({ profile, file_index, infohash, title, link, position, duration }, { library }) {
      const film = {
        infohash: infohash.toLowerCase(),
        fileIndex: file_index,
        title,
        link,
        position,
        duration,
      };
      await library.watched.keep(nameOf(profile), { ...film, updatedAt: unixNow() });
      return "ok";
    },
  }),
  controlMethod({
    name: "watched_delete",
    summary: "Forgets a film that a user has begun to watch, or all films of a profile",
    isExtra: true,
    ...PRIVATE,
    params: z.object({
      profile,
      infohash: text.describe("Default: all films"),
      file_index: integer,
    }),
    result: okResult,
    async run({ profile, infohash, file_index = 0 }, { library }) {
      const film = infohash && { infohash: infohash.toLowerCase(), fileIndex: file_index };
      await library.watched.forget(nameOf(profile), film || undefined);
      return "ok";
    },
  }),
];

function nameOf(profile = ""): string {
  if (profile.length > MAX_PROFILE)
    throw new SluiceError("bad_parameter", `profile: at most ${MAX_PROFILE} characters`);
  return profile;
}
