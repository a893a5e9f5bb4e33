import * as v from "valibot";
import { SluiceError } from "../base/errors.ts";
import type { KeyValueStore } from "../runtime/contract.ts";
import { MAX_TITLE, MAX_URL } from "./limits.ts";

const PREFIX = "watched/";
/** More films than a user continues; the oldest ones are forgotten. */
const MAX_FILMS = 100;
/** More profiles than a household has. */
const MAX_PROFILES = 32;

const seconds = v.pipe(v.number(), v.minValue(0), v.maxValue(1e7));

const filmRecord = v.object({
  infohash: v.pipe(v.string(), v.regex(/^[0-9a-f]{40}$/)),
  fileIndex: v.pipe(v.number(), v.safeInteger(), v.minValue(0), v.maxValue(1e6)),
  title: v.pipe(v.string(), v.maxLength(MAX_TITLE)),
  /** What plays the film: a link, or `item:` and the id of a playlist item. */
  link: v.pipe(v.string(), v.minLength(1), v.maxLength(2 * MAX_URL)),
  /** Where the user stopped, in seconds. */
  position: seconds,
  duration: seconds,
  /** UNIX time. */
  updatedAt: v.pipe(v.number(), v.safeInteger()),
});

/** A film that a user has begun to watch. */
export type WatchedFilm = v.InferOutput<typeof filmRecord>;

/** The films that users have begun to watch, by profile. */
export interface Watched {
  /** Returns the films of a profile, the latest first. */
  list(profile: string): Promise<readonly WatchedFilm[]>;
  /** Returns the names of the profiles that have a film. */
  profiles(): Promise<readonly string[]>;
  /** Stores where a user stopped. Rejects with `bad_parameter` if a text is too long, and with `too_many` for too many profiles. */
  keep(profile: string, film: WatchedFilm): Promise<void>;
  /** Forgets one film, or all of the profile. */
  forget(profile: string, film?: Pick<WatchedFilm, "infohash" | "fileIndex">): Promise<void>;
}

/** Creates the records in the library's store, with keys `watched/<profile>/<infohash>/<file>`. */
export function createWatched(store: KeyValueStore): Watched {
  const folderOf = (profile: string) => `${PREFIX}${encodeURIComponent(profile)}/`;
  const keyOf = (profile: string, { infohash, fileIndex }: Pick<WatchedFilm, "infohash" | "fileIndex">) =>
    `${folderOf(profile)}${infohash}/${fileIndex}`;
  const list = async (profile: string) => {
    const films: WatchedFilm[] = [];
    for await (const [, value] of store.list(folderOf(profile))) {
      const parsed = v.safeParse(filmRecord, value);
      if (parsed.success) films.push(parsed.output);
    }
    return films.sort((a, b) => b.updatedAt - a.updatedAt);
  };
  const profiles = async () => {
    const names = new Set<string>();
    for await (const [key] of store.list(PREFIX)) names.add(decodeURIComponent(key.split("/")[1]!));
    return [...names];
  };
  return {
    list,
    profiles,
    async keep(profile, film) {
      const parsed = v.safeParse(filmRecord, film);
      if (!parsed.success) throw new SluiceError("bad_parameter", parsed.issues[0].message);
      const known = await list(profile);
      if (known.length === 0 && (await profiles()).length >= MAX_PROFILES)
        throw new SluiceError("too_many", `${MAX_PROFILES} profiles`);
      const key = keyOf(profile, film);
      const others = known.filter((each) => keyOf(profile, each) !== key);
      await store.commit({
        set: [[key, parsed.output]],
        delete: others.slice(MAX_FILMS - 1).map((each) => keyOf(profile, each)),
      });
    },
    async forget(profile, film) {
      const films = film === undefined ? await list(profile) : [film];
      await store.commit({ delete: films.map((each) => keyOf(profile, each)) });
    },
  };
}
