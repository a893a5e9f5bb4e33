import type { AccessControl, AccountLimits, Accounts } from "../../src/accounts/account-contract.ts";
import { SluiceError } from "../../src/base/errors.ts";
import type { UnixSeconds } from "../../src/base/time.ts";
import type { Health } from "../../src/health/health-contract.ts";
import type {
  ExportOptions,
  ExternalPlaylist,
  ExternalPlaylists,
  Image,
  Images,
  Item,
  Task,
} from "../../src/library/contract.ts";
import type { Guide, GuideSource } from "../../src/library/guide/guide-contract.ts";
import { reviewGuide } from "../../src/library/guide/guide-review.ts";
import { searchProgrammes } from "../../src/library/guide/programme-search.ts";
import { reminderOf } from "../../src/library/guide/reminder.ts";
import type { ImportOptions } from "../../src/library/import.ts";
import { contentKey } from "../../src/library/item-figures.ts";
import type { Library } from "../../src/library/library.ts";
import { createWatched } from "../../src/library/watched.ts";
import { FakeClock } from "../engine/fake-clock.ts";
import { FakeItems } from "./fake-items.ts";
import { MapStore } from "./map-store.ts";

const PNG_HEAD = [0x89, 0x50, 0x4e, 0x47];

/** Calls that the fake has recorded. */
export interface FakeLibrary extends Library {
  readonly items: FakeItems;
  /** Imported lists with their options. */
  readonly imported: { text: string; options: ImportOptions }[];
  readonly exported: ExportOptions[];
  /** Ids of refreshed external playlists, in order. */
  readonly refreshed: number[];
  readonly taskList: Task[];
  /** Pictures of other servers, by URL. */
  readonly web: Map<string, Image>;
  /** Program guides by the URL of their list. */
  readonly guides: Map<string, string[]>;
  /** The ids of the sources that were put in order last. */
  pinned: readonly number[];
  /** The health of contents, by the key of `ChannelHealth`. */
  readonly visited: Map<string, Health>;
  /** True if the last call allowed private addresses. */
  allowedPrivate: boolean | undefined;
}

/** The token of a fake library. */
export const FAKE_TOKEN = "f".repeat(64);

/** A minimal library in memory, for tests of its users. */
export function fakeLibrary(): FakeLibrary {
  const taskList: Task[] = [];
  const newTask = (message: string): number => {
    const id = taskList.length + 1;
    const actions = ["reload_playlist"];
    const over = {
      state: "done",
      problem: null,
      done: 1,
      total: 1,
      startedAt: now(),
      endedAt: now(),
    } as const;
    taskList.push({ id, category: "content", message, actions, ...over });
    return id;
  };
  const refreshed: number[] = [];
  const visited = new Map<string, Health>();
  const library: FakeLibrary = {
    items: new FakeItems(now),
    externalPlaylists: fakeExternalPlaylists(refreshed, newTask, (value) => {
      library.allowedPrivate = value;
    }),
    tasks: {
      list: (category) => taskList.filter((task) => category === undefined || task.category === category),
      get: (id) => taskList.find((task) => task.id === id),
    },
    access: fakeAccess(),
    accounts: fakeAccounts(),
    watched: createWatched(new MapStore()),
    images: fakeImages((url) => library.web.get(url)),
    async importPlaylist(body, options) {
      const text = await new Response(body).text();
      if (text.trimStart().startsWith("<")) throw new SluiceError("not_a_playlist", "a web page came");
      library.imported.push({ text, options });
      return newTask(`Importing ${options.name}`);
    },
    guide: fakeGuide(),
    health: { get: (content) => visited.get(content), add: async () => {} },
    healthOf: (item) => visited.get(contentKey(library.items.figures(item))),
    async sourcesOf(item, limit) {
      const others = await library.items.otherSources(item.id, limit - 1);
      const sources = item.autoSearch ? [...others, item] : [item, ...others];
      const place = ({ id }: Item) => (library.pinned.includes(id) ? library.pinned.indexOf(id) : 1_000);
      return sources.sort((a, b) => place(a) - place(b));
    },
    async pinSources(_, order) {
      library.pinned = order.map(({ id }) => id);
    },
    pinned: [],
    visited,
    exportGuide: () => new Blob(["<tv></tv>\n"]).stream(),
    searchProgrammes: (query) =>
      searchProgrammes({ items: library.items, guide: library.guide, clock: new FakeClock() }, query),
    reviewGuide: () => reviewGuide({ items: library.items, guide: library.guide, clock: new FakeClock() }),
    reminder: (item, start, url) =>
      reminderOf({ items: library.items, guide: library.guide, clock: new FakeClock() }, item, start, url),
    exportedNames: ({ id, tvgId, tvgLogo }) => ({ channelId: tvgId || `item.${id}`, logo: tvgLogo }),
    exportPlaylist(options) {
      library.exported.push(options);
      return new Blob(["#EXTM3U\n"]).stream();
    },
    async guidesOf(url, { allowPrivateUrls }) {
      library.allowedPrivate = allowPrivateUrls;
      const guides = library.guides.get(url);
      if (!guides) throw new SluiceError("url_unreachable", `nothing answers at ${url}`);
      return guides;
    },
    close: async () => {},
    imported: [],
    exported: [],
    refreshed,
    taskList,
    web: new Map(),
    guides: new Map(),
    allowedPrivate: undefined,
  };
  return library;
}

/** A guide with one channel, `1/news`, for items whose title contains “news”. */
function fakeGuide(): Guide {
  const channel = { key: "1/news", id: "news", names: ["News"], icon: "" };
  const sources: GuideSource[] = [];
  const chosen = new Map<number, string | null>();
  const match: Guide["match"] = ({ id, title }) => {
    if (chosen.has(id)) return chosen.get(id) === null ? undefined : { channel, reason: "chosen" };
    return /news/i.test(title) ? { channel, reason: "name" } : undefined;
  };
  const guide: Guide = {
    hasProgrammes: true,
    sources: () => sources,
    async addSource(url) {
      const id = sources.length + 1;
      const counts = { lastUpdate: now(), channelCount: 1, programmeCount: 2, problem: null };
      sources.push({ id, url, origin: "user", ...counts });
      return id;
    },
    async removeSource(id) {
      const at = sources.findIndex((source) => source.id === id);
      if (at < 0) throw new SluiceError("unknown_item", `there is no programme guide ${id}`);
      sources.splice(at, 1);
    },
    refresh: () => 1,
    match,
    candidates: () => [channel],
    isChosen: ({ id }) => chosen.has(id),
    async choose({ id }, key) {
      if (key === undefined) chosen.delete(id);
      else chosen.set(id, key);
    },
    async *search(keys, part, from) {
      const [programme] = await guide.programmes(
        { title: "news" } as Parameters<typeof match>[0],
        from,
        (from + 1) as UnixSeconds,
        1,
      );
      if ("show".includes(part)) yield keys.map((key) => ({ key, programme: programme! }));
    },
    nowAndNext: (item) => guide.programmes(item, now(), (now() + 86_400) as UnixSeconds, 2),
    async programmes(item, from, to, limit) {
      if (match(item) === undefined) return [];
      const texts = { title: "Show", subtitle: "", description: "", categories: [], icon: "", episode: "" };
      const start = Math.floor(from / 3600) * 3600;
      const all = Array.from({ length: limit }, (_, i) => ({
        ...texts,
        start: (start + i * 3600) as UnixSeconds,
        stop: (start + (i + 1) * 3600) as UnixSeconds,
      }));
      return all.filter((programme) => programme.start < to);
    },
  };
  return guide;
}

function now(): UnixSeconds {
  return 1_780_000_000 as UnixSeconds;
}

function fakeExternalPlaylists(
  refreshed: number[],
  newTask: (message: string) => number,
  noteAllowed: (value: boolean) => void,
): ExternalPlaylists {
  const playlists = new Map<number, ExternalPlaylist>();
  const known = (id: number): ExternalPlaylist => {
    const playlist = playlists.get(id);
    if (!playlist) throw new SluiceError("unknown_external_playlist", String(id));
    return playlist;
  };
  let next = 1;
  return {
    list: async () => [...playlists.values()],
    get: async (id) => playlists.get(id),
    async add(playlist, { updateNow, allowPrivateUrls }) {
      noteAllowed(allowPrivateUrls);
      const id = next++;
      const never = 0 as UnixSeconds;
      const times = { updatedAt: now(), lastUpdate: never, nextUpdate: never };
      playlists.set(id, { id, ...playlist, ...times, problem: null, itemCount: 0 });
      if (updateNow) refreshed.push(id);
      return id;
    },
    async edit(id, settings) {
      playlists.set(id, { ...known(id), ...settings });
    },
    async delete(id) {
      known(id);
      playlists.delete(id);
    },
    async refresh(id) {
      refreshed.push(known(id).id);
      return newTask(`Refreshing ${known(id).name}`);
    },
    async refreshAll() {
      refreshed.push(...playlists.keys());
      return newTask("Refreshing all");
    },
  };
}

function fakeAccess(): AccessControl {
  const access = {
    allowsIntranet: true,
    allowsRemote: false,
    async setAllowsIntranet(value: boolean) {
      access.allowsIntranet = value;
    },
    onSwitched: () => {},
    async setAllowsRemote(value: boolean) {
      access.allowsRemote = value;
    },
    token: async () => FAKE_TOKEN,
    isToken: async (token: string) => token === FAKE_TOKEN,
    renewToken: async () => FAKE_TOKEN,
  };
  return access;
}

/** One account: `viewer@example.org`, `correct horse`. */
function fakeAccounts(): Accounts {
  let login: string | null = null;
  let limits: AccountLimits = { maxStreams: 0, groups: [] };
  const nothing = async () => {};
  return {
    async signInByPassword(email, password) {
      const isRight = email === "viewer@example.org" && password === "correct horse";
      if (isRight) login = email;
      return isRight;
    },
    signInByGoogle: async () => false,
    isPassword: async (email, password) => email === "viewer@example.org" && password === "correct horse",
    async signOut() {
      login = null;
    },
    status: async () => ({ method: login ? "engine" : "none", login, authToken: login && "signed" }),
    add: nothing,
    setPassword: nothing,
    setLimits: async (_, changed) => {
      limits = changed;
    },
    limits: async () => limits,
    remove: nothing,
    list: async () => ["viewer@example.org"],
  };
}

function fakeImages(onTheWeb: (url: string) => Image | undefined): Images {
  const kept = new Map<string, Image>();
  return {
    async put(bytes) {
      if (PNG_HEAD.some((byte, i) => bytes[i] !== byte)) throw new SluiceError("bad_image", "no PNG");
      const id = (kept.size + 1).toString(16).padStart(40, "0");
      kept.set(id, { mime: "image/png", bytes: bytes.slice() });
      return id;
    },
    get: async (id) => kept.get(id),
    fetch: async (url) => onTheWeb(url),
  };
}
