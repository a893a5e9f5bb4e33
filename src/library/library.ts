import { createAccessControl } from "../accounts/access-control.ts";
import type { AccessControl, Accounts } from "../accounts/account-contract.ts";
import { type AccountsDependencies, createAccounts } from "../accounts/accounts.ts";
import { createYielder } from "../async/event-loop.ts";
import type { Sha1 } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import type { UnixSeconds } from "../base/time.ts";
import { type Leases, SOLE_LEASES } from "../cluster/cluster-contract.ts";
import type { ChannelHealth, Health } from "../health/health-contract.ts";
import { HealthRecords } from "../health/health-records.ts";
import { MAX_ORDERED, SourceOrders } from "../health/source-orders.ts";
import type { Outbound } from "../outbound/outbound.ts";
import type { Clock, Files, KeyValueStore, Runtime } from "../runtime/contract.ts";
import type { StartWorker } from "../runtime/worker-contract.ts";
import type { ExportOptions, ExternalPlaylists, Images, Item, ItemQuery, Items, Tasks } from "./contract.ts";
import { createLanguageReader } from "./draft-languages.ts";
import { exportItems, logoUrl } from "./export.ts";
import { createExternalPlaylists } from "./external-playlists.ts";
import type { BroadcastRefresher } from "./external-refresher.ts";
import { createGuide } from "./guide/guide.ts";
import type { Guide } from "./guide/guide-contract.ts";
import { exportedChannelId, exportGuide } from "./guide/guide-export.ts";
import { createGuideReader, createWorkerReader } from "./guide/guide-reading.ts";
import { type GuideReview, reviewGuide } from "./guide/guide-review.ts";
import { type FoundProgrammes, searchProgrammes } from "./guide/programme-search.ts";
import { type Reminder, reminderOf } from "./guide/reminder.ts";
import { guidesOf } from "./guides.ts";
import { createImages } from "./images.ts";
import { createImporter, type ImportOptions } from "./import.ts";
import { openImportGuides } from "./import-guides.ts";
import { openImportJournal } from "./import-journal.ts";
import { contentKey } from "./item-figures.ts";
import { createItems } from "./items.ts";
import { createSourceRows } from "./source-rows.ts";
import { createTasks } from "./tasks.ts";
import { createWatched, type Watched } from "./watched.ts";

/** The stored data of the engine: playlists, external playlists, access and accounts. Routes use only this interface. */
export interface Library {
  readonly items: Items;
  readonly externalPlaylists: ExternalPlaylists;
  readonly tasks: Tasks;
  readonly access: AccessControl;
  readonly accounts: Accounts;
  readonly images: Images;
  /** The films that users have begun to watch. */
  readonly watched: Watched;
  /** The programme guides of the channels. */
  readonly guide: Guide;
  /** How the channels play, as visits in the background found. */
  readonly health: ChannelHealth;
  /** Returns the health of an item's content; undefined if it was never visited. */
  healthOf(item: Item): Health | undefined;
  /** Returns the sources of an item's channel in the order in which they are tried, at most `limit`. */
  sourcesOf(item: Item, limit: number): Promise<readonly Item[]>;
  /** Puts these sources of an item's channel first from now on; none: automatic. Rejects with `too_many`. */
  pinSources(item: Item, order: readonly Item[]): Promise<void>;
  /** Streams the guide of the items that match the query as XMLTV; pull drives it. */
  exportGuide(query: ItemQuery): ReadableStream<Uint8Array>;
  /** Searches the present and later programmes of the enabled items for a text in their titles and subtitles. */
  searchProgrammes(query: string): Promise<FoundProgrammes>;
  /** Lists the channels whose channel in the guides is uncertain. */
  reviewGuide(): Promise<GuideReview>;
  /** Returns a calendar file for the programme of an item that starts at `start`, if there is one; `url` plays the channel. */
  reminder(item: Item, start: UnixSeconds, url: string): Promise<Reminder | undefined>;
  /**
   * Reads the whole body, then imports the playlist in the background and resolves to the task id. Rejects with
   * `not_a_playlist`, `too_large` or `too_many`.
   */
  importPlaylist(body: ReadableStream<Uint8Array>, options: ImportOptions): Promise<number>;
  /** The channel id of an item in the exported guide, and the URL of its logo or an empty text; `base` is `http://host:port`. */
  exportedNames(item: Item, base: string): { readonly channelId: string; readonly logo: string };
  /** Streams items as a playlist; pull drives it. */
  exportPlaylist(options: ExportOptions): ReadableStream<Uint8Array>;
  /** Fetches the URLs of the program guides that the playlist at `url` names. */
  guidesOf(
    url: string,
    options: { readonly allowPrivateUrls: boolean; readonly signal?: AbortSignal },
  ): Promise<string[]>;
  /** Ends refreshes and imports and closes the store. */
  close(): Promise<void>;
}

/** Dependencies of {@link createLibrary}. */
export interface LibraryDependencies {
  /** Owned and closed by the library. */
  readonly store: KeyValueStore;
  /** The records of this engine alone, if other engines share `store`; `store` by default. */
  readonly ownStore?: KeyValueStore;
  /** Makes background work run on one engine at a time; needed if other engines share `store`. */
  readonly leases?: Leases;
  readonly clock: Clock;
  readonly files: Files;
  /** See {@link Runtime}; absent if the runtime does nothing about it. */
  readonly discarded?: Runtime["discarded"];
  /** Programme guides are read in a worker; on this thread if absent. */
  readonly startWorker?: StartWorker;
  /** The folder for pictures, which need not exist. */
  readonly folder: string;
  readonly outbound: Outbound;
  readonly randomBytes: (length: number) => Uint8Array;
  readonly scrypt: AccountsDependencies["scrypt"];
  readonly sha1: Sha1;
  readonly random: Random;
  readonly log: Log;
  readonly google: AccountsDependencies["google"];
  /** The access token from the settings; if absent, one is generated and stored. */
  readonly fixedToken?: string | undefined;
  /** Absent if broadcasting is unavailable. */
  readonly broadcasts?: BroadcastRefresher;
}

/** Opens the library: reads all records, and continues refreshes that are due or were interrupted. */
export async function createLibrary(dependencies: LibraryDependencies): Promise<Library> {
  const { store, clock, outbound, randomBytes } = dependencies;
  const log = dependencies.log.named("library");
  const items = await createItems({ ...dependencies, log });
  const tasks = createTasks({ clock, log });
  const access = await createAccessControl(dependencies);
  const images = await createImages({ ...dependencies, log });
  const importGuides = await openImportGuides(store);
  const languages = createLanguageReader();
  const journal = await openImportJournal(dependencies.ownStore ?? store, tasks, log);
  const importPlaylist = createImporter({ items, tasks, clock, languages, guides: importGuides, journal });
  // Last, because it starts background work.
  const rows = createSourceRows(store, log, createYielder(clock));
  const externalPlaylists = await createExternalPlaylists({
    ...dependencies,
    leases: dependencies.leases ?? SOLE_LEASES,
    log,
    items,
    tasks,
    rows,
    languages,
  });
  const guides = (id: number | undefined) =>
    id === undefined
      ? [...new Set([...importGuides.all(), ...externalPlaylists.guides()])]
      : externalPlaylists.guides(id);
  const { startWorker, files } = dependencies;
  const readGuide = startWorker
    ? createWorkerReader(startWorker, dependencies.discarded)
    : createGuideReader(files);
  const listed = () => guides(undefined);
  const guide = await createGuide({ ...dependencies, log, tasks, items, listed, readGuide });
  const health = await HealthRecords.load(store, log);
  const keyOf = (item: Item) => contentKey(items.figures(item));
  const healthOf = (item: Item) => health.get(keyOf(item));
  const orders = await SourceOrders.load(store, health, log);
  return {
    items,
    health,
    healthOf,
    async sourcesOf(item, limit) {
      const others = await items.otherSources(item.id, MAX_ORDERED - 1);
      const sources = item.autoSearch ? [...others, item] : [item, ...others];
      return orders.sorted(items.figures(item).hash, sources, keyOf).slice(0, limit);
    },
    pinSources: (item, order) => orders.pin(items.figures(item).hash, order.map(keyOf)),
    externalPlaylists,
    tasks,
    access,
    accounts: createAccounts(dependencies),
    images,
    watched: createWatched(store),
    guide,
    exportGuide: (query) => exportGuide({ items, guide, clock }, query),
    searchProgrammes: (query) => searchProgrammes({ items, guide, clock }, query),
    reviewGuide: () => reviewGuide({ items, guide, clock }),
    reminder: (item, start, url) => reminderOf({ items, guide, clock }, item, start, url),
    importPlaylist,
    exportedNames: (item, base) => ({
      channelId: exportedChannelId(item, items.figures(item)),
      logo: logoUrl({ items }, item, base),
    }),
    exportPlaylist: (options) => exportItems({ items, randomBytes, guides, guide, healthOf }, options),
    guidesOf: (url, options) => guidesOf(outbound, url, options),
    async close() {
      externalPlaylists.close();
      await tasks.close();
      await guide.close();
      await store.close();
    },
  };
}
