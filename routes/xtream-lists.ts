import { latin1Text } from "../src/base/bytes.ts";
import { numberChannels } from "../src/base/channel-numbers.ts";
import { crc32Of } from "../src/base/crc32.ts";
import { SluiceError } from "../src/base/errors.ts";
import type { UnixSeconds } from "../src/base/time.ts";
import { encodeUtf8 } from "../src/base/utf8.ts";
import type { CatchUp } from "../src/catch-up/catch-up-contract.ts";
import type { Item } from "../src/library/contract.ts";
import type { Programme } from "../src/library/guide/guide-contract.ts";
import type { Library } from "../src/library/library.ts";
import { channelItems, inGroups } from "./channel-list.ts";
import { unixNow } from "./control/guide.ts";
import { catchUpDaysOf } from "./playlist-export.ts";

/** Entries of one answer; apps read the whole list into memory. */
const MAX_ENTRIES = 20_000;
/** Programmes of `get_short_epg` by default, and at most. */
const SHORT_EPG = 4;
const MAX_PROGRAMMES = 1_000;
const DAY_SECONDS = 86_400;
const crc32 = crc32Of(0xedb88320);

type Query = Readonly<Record<string, string>>;

/** The lists of the Xtream Codes API, from the playlist and the programme guides. */
export class XtreamLists {
  readonly #library: Library;
  readonly #catchUp: CatchUp | undefined;
  readonly #groups: readonly string[];

  /** With `groups`, the lists contain only items in one of these categories or tags. */
  constructor(
    { library, catchUp }: { readonly library: Library; readonly catchUp?: CatchUp },
    groups: readonly string[],
  ) {
    this.#library = library;
    this.#catchUp = catchUp;
    this.#groups = groups;
  }

  /** Returns the answer to an action of `player_api.php`, undefined for an unknown one. `base` is `http://host:port`. */
  async answer(action: string, query: Query, base: string): Promise<unknown> {
    switch (action) {
      case "get_live_categories":
        return categoriesOf(await this.#channels());
      case "get_vod_categories":
        return categoriesOf(await this.#films());
      case "get_live_streams":
        return this.#numberedChannels(query, base);
      case "get_vod_streams":
        return inCategory(await this.#films(), query).map((item, i) => this.#film(item, i + 1, base));
      case "get_vod_info":
        return this.#filmInfo(query.vod_id, base);
      case "get_series_categories":
      case "get_series":
        return [];
      case "get_short_epg":
        return this.#shortProgrammes(await this.item(query.stream_id), limitOf(query.limit, SHORT_EPG));
      case "get_simple_data_table":
        return this.#table(await this.item(query.stream_id));
      case "get_series_info":
        // Clients recognize an unknown series by its name.
        return { seasons: [], info: { name: null }, episodes: {} };
      default:
        return undefined;
    }
  }

  async #numberedChannels(query: Query, base: string) {
    const channels = await this.#channels();
    const numbers = new Map([...numberChannels(channels)].map(([number, { id }]) => [id, Number(number)]));
    return inCategory(channels, query).map((item) => {
      const number = numbers.get(item.id)!;
      // Apps expect a whole number.
      return this.#channel(item, Number.isInteger(number) ? number : item.id, base);
    });
  }

  #channels(): Promise<Item[]> {
    return channelItems(this.#library, MAX_ENTRIES, this.#groups);
  }

  async #films(): Promise<Item[]> {
    const films: Item[] = [];
    const reader = this.#library.items.read({ ...inGroups(this.#groups), isEnabled: true, sort: "added" });
    for (
      let some = await reader.next();
      some.length > 0 && films.length < MAX_ENTRIES;
      some = await reader.next()
    )
      films.push(...some.filter(({ isLive }) => isLive === 0));
    return films;
  }

  /** Returns an item by its id. Rejects with `unknown_item`, also if it is not in the groups. */
  async item(id = ""): Promise<Item> {
    const item = /^\d{1,15}$/.test(id) ? await this.#library.items.get(Number(id)) : undefined;
    if (item === undefined || item.deletedAt !== null || !isInGroups(item, this.#groups))
      throw new SluiceError("unknown_item", id.slice(0, 60));
    return item;
  }

  #channel(item: Item, number: number, base: string) {
    const { channelId, logo } = this.#library.exportedNames(item, base);
    const days = catchUpDaysOf(this.#catchUp, item);
    return {
      ...streamOf(item, number, "live", logo),
      epg_channel_id: this.#library.guide.match(item) ? channelId : item.tvgId || null,
      tv_archive: days === undefined ? 0 : 1,
      tv_archive_duration: days ?? 0,
    };
  }

  #film(item: Item, number: number, base: string) {
    const { logo: cover } = this.#library.exportedNames(item, base);
    const stream = streamOf(item, number, "movie", cover);
    return {
      ...stream,
      title: stream.name,
      plot: item.description,
      rating: "",
      rating_5based: 0,
      container_extension: "mp4",
    };
  }

  /** Describes a film. Clients recognize an unknown one by its empty list. */
  async #filmInfo(id: string | undefined, base: string) {
    const item = await this.item(id).catch(() => undefined);
    if (item === undefined) return { info: [], movie_data: [] };
    const { stream_icon: cover, num: _, ...film } = this.#film(item, 1, base);
    return {
      info: {
        name: film.name,
        movie_image: cover,
        cover_big: cover,
        // Clients read the first picture and the id without a check.
        backdrop_path: cover === "" ? [] : [cover],
        tmdb_id: "",
        plot: item.description,
        description: item.description,
      },
      movie_data: film,
    };
  }

  /** The present and the next programmes. CHOICE(xtream-short-epg): `end` is UNIX time here, and a date in the long list. */
  async #shortProgrammes(item: Item, limit: number) {
    const { epg_listings: listings } = await this.#programmes(item, 0, limit);
    return { epg_listings: listings.map((each) => ({ ...each, end: each.stop_timestamp })) };
  }

  /** The programmes of the past day, or of all days that are kept, and the later ones. */
  #table(item: Item) {
    const days = catchUpDaysOf(this.#catchUp, item) ?? 1;
    return this.#programmes(item, days * DAY_SECONDS, MAX_PROGRAMMES);
  }

  async #programmes(item: Item, beforeSeconds: number, limit: number) {
    const now = unixNow();
    const [from, to] = [now - beforeSeconds, now + 7 * DAY_SECONDS] as [UnixSeconds, UnixSeconds];
    const found = await this.#library.guide.programmes(item, from, to, limit);
    const { channelId } = this.#library.exportedNames(item, "");
    return {
      epg_listings: found.map((programme) => ({
        ...listing(programme, channelId, now),
        has_archive: this.#hasArchive(item, programme, now) ? 1 : 0,
      })),
    };
  }

  /** Returns true for a programme that has begun and of which something is kept. */
  #hasArchive(item: Item, { start, stop }: Programme, now: number): boolean {
    const span = { startMs: 1000 * start, endMs: 1000 * stop };
    return start < now && (this.#catchUp?.spans(item, span).length ?? 0) > 0;
  }
}

/** Returns a UNIX time as text, in UTC: `2026-11-23 20:15:00`. */
export function xtreamTime(seconds: number): string {
  return new Date(1000 * seconds).toISOString().slice(0, 19).replace("T", " ");
}

function streamOf(item: Item, number: number, type: "live" | "movie", icon: string) {
  const category = categoryIdOf(categoryOf(item));
  return {
    num: number,
    name: item.displayTitle || item.title,
    stream_type: type,
    stream_id: item.id,
    stream_icon: icon,
    added: String(item.createdAt),
    is_adult: "0",
    category_id: String(category),
    category_ids: [category],
    custom_sid: "",
    direct_source: "",
  };
}

function listing(programme: Programme, channelId: string, now: number) {
  const { start, stop, title, description } = programme;
  return {
    id: String(start),
    epg_id: channelId,
    title: base64Of(title),
    lang: "",
    start: xtreamTime(start),
    end: xtreamTime(stop),
    description: base64Of(description),
    channel_id: channelId,
    start_timestamp: String(start),
    stop_timestamp: String(stop),
    stop: xtreamTime(stop),
    now_playing: start <= now && now < stop ? 1 : 0,
  };
}

function isInGroups({ category, subcategory, tags }: Item, groups: readonly string[]): boolean {
  return groups.length === 0 || groups.some((name) => [category, subcategory, ...tags].includes(name));
}

function inCategory(items: readonly Item[], { category_id: wanted = "" }: Query): readonly Item[] {
  if (wanted === "") return items;
  return items.filter((item) => String(categoryIdOf(categoryOf(item))) === wanted);
}

function categoriesOf(items: readonly Item[]) {
  const names = new Set(items.map(categoryOf));
  return [...names].map((name) => ({
    category_id: String(categoryIdOf(name)),
    category_name: name,
    parent_id: 0,
  }));
}

/** An item is in one category: its first group. */
function categoryOf({ tags, subcategory, category }: Item): string {
  return tags.find((tag) => tag !== "radio") || subcategory || category || "Other";
}

/** Ids follow from the names, so that they are the same in the next answer, whatever else the list contains. */
function categoryIdOf(name: string): number {
  return (crc32(encodeUtf8(name)) >>> 1) + 1;
}

function limitOf(text: string | undefined, usual: number): number {
  const limit = /^\d{1,6}$/.test(text ?? "") ? Number(text) : usual;
  return Math.min(Math.max(1, limit), MAX_PROGRAMMES);
}

function base64Of(text: string): string {
  return btoa(latin1Text(encodeUtf8(text)));
}
