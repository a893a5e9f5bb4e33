import { messageOf, SluiceError } from "../base/errors.ts";
import type { UnixSeconds } from "../base/time.ts";
import type { KeyValueStore } from "../runtime/contract.ts";
import type { ExternalPlaylist, ExternalPlaylists } from "./contract.ts";
import { NO_OWNER } from "./contract.ts";
import { type ExternalRecord, MAX_NAME_LENGTH, MAX_URL_LENGTH } from "./external-record.ts";
import { ExternalRefresher, type RefresherDependencies } from "./external-refresher.ts";
import { type ExternalStore, openExternalStore } from "./external-store.ts";
import { boundedInterval } from "./refresh-times.ts";

/** More than users have; each costs a record and its fetches. */
const MAX_PLAYLISTS = 1_000;

/** External playlists with the operations that only the library uses. */
interface ExternalPlaylistStore extends ExternalPlaylists {
  /** The program guides that a list names, or all lists. */
  guides(id?: number): readonly string[];
  /** Starts no more refreshes; running ones end with the tasks. */
  close(): void;
}

/** Loads the records, continues interrupted work and starts the refreshes that are due. */
export async function createExternalPlaylists(
  dependencies: Omit<RefresherDependencies, "records"> & { readonly store: KeyValueStore },
): Promise<ExternalPlaylistStore> {
  const records = await openExternalStore(dependencies.store, dependencies.log);
  const refresher = new ExternalRefresher({ ...dependencies, records });
  const playlists = new StoredPlaylists({ ...dependencies, records, refresher });
  const finishDeletions = async () => {
    for (const record of [...records.all()]) if (record.isGoing) await playlists.finishDelete(record.id);
  };
  await finishDeletions();
  refresher.begin();
  records.onChangedElsewhere(() => refresher.check());
  dependencies.leases.onEngineGone(() => {
    refresher.resume();
    finishDeletions().catch((error: unknown) =>
      dependencies.log.warn("cannot delete an external playlist", { reason: messageOf(error) }),
    );
  });
  return playlists;
}

type Dependencies = Omit<RefresherDependencies, "records"> & {
  readonly records: ExternalStore;
  readonly refresher: ExternalRefresher;
};

class StoredPlaylists implements ExternalPlaylistStore {
  readonly #dependencies: Dependencies;

  constructor(dependencies: Dependencies) {
    this.#dependencies = dependencies;
  }

  async list(): Promise<readonly ExternalPlaylist[]> {
    return [...this.#dependencies.records.all()]
      .filter(({ isGoing }) => !isGoing)
      .map((record) => this.#shown(record));
  }

  async get(id: number): Promise<ExternalPlaylist | undefined> {
    const record = this.#dependencies.records.get(id);
    return record && !record.isGoing ? this.#shown(record) : undefined;
  }

  async add(
    playlist: Parameters<ExternalPlaylists["add"]>[0],
    options: Parameters<ExternalPlaylists["add"]>[1],
  ): Promise<number> {
    const { records, clock, refresher } = this.#dependencies;
    if (records.size >= MAX_PLAYLISTS)
      throw new SluiceError("too_many", `at most ${MAX_PLAYLISTS} external playlists; delete some first`);
    checkTexts(playlist);
    const now = clock.unixSeconds();
    const updateInterval = checkedInterval(playlist.updateInterval);
    const { id } = await records.add({
      type: playlist.type,
      category: playlist.category,
      name: playlist.name,
      url: checkedUrl(playlist.url),
      login: playlist.login,
      password: playlist.password,
      updateInterval,
      updatedAt: now,
      lastUpdate: 0 as UnixSeconds,
      nextUpdate: (updateInterval === 0 ? 0 : now + updateInterval) as UnixSeconds,
      problem: null,
      owner: options.owner ?? NO_OWNER,
      allowPrivateUrls: options.allowPrivateUrls,
      etag: "",
      lastModified: "",
      guides: [],
      failures: 0,
      entryCount: 0,
      hasShrunk: false,
      isPending: options.updateNow,
      isGoing: false,
      nextKey: 1,
    });
    if (options.updateNow) refresher.tryStart(id);
    refresher.check();
    return id;
  }

  async edit(id: number, settings: Parameters<ExternalPlaylists["edit"]>[1]): Promise<void> {
    const { records, clock, refresher } = this.#dependencies;
    const record = this.#known(id);
    checkTexts({ login: record.login, password: record.password, ...settings });
    const updateInterval = checkedInterval(settings.updateInterval);
    const now = clock.unixSeconds();
    const next = updateInterval === 0 ? 0 : (record.lastUpdate || now) + updateInterval;
    await records.change(id, {
      category: settings.category,
      name: settings.name,
      updateInterval,
      ...(settings.login === undefined ? {} : { login: settings.login }),
      ...(settings.password === undefined ? {} : { password: settings.password }),
      updatedAt: now,
      nextUpdate: (updateInterval === 0 ? 0 : Math.max(next, now)) as UnixSeconds,
      // Forces the next fetch: items need the new category, and another login may get another list.
      etag: "",
      lastModified: "",
    });
    refresher.check();
  }

  async delete(id: number): Promise<void> {
    this.#known(id);
    // Stored first, so that the next start continues an interrupted deletion.
    await this.#dependencies.records.change(id, { isGoing: true });
    await this.finishDelete(id);
  }

  async finishDelete(id: number): Promise<void> {
    const { records, refresher, items, rows, broadcasts } = this.#dependencies;
    await refresher.stop(id);
    await broadcasts?.forget(id);
    await items.removeAll(id);
    await rows.clear(id);
    await records.remove(id);
  }

  async refresh(id: number): Promise<number> {
    this.#known(id);
    return this.#dependencies.refresher.start(id, true);
  }

  async refreshAll(): Promise<number> {
    return this.#dependencies.refresher.startAll();
  }

  guides(id?: number): readonly string[] {
    const { records } = this.#dependencies;
    if (id !== undefined) return records.get(id)?.guides ?? [];
    return [...new Set([...records.all()].flatMap(({ guides }) => guides))];
  }

  close(): void {
    this.#dependencies.refresher.close();
  }

  #known(id: number): ExternalRecord {
    const record = this.#dependencies.records.get(id);
    if (record && !record.isGoing) return record;
    throw new SluiceError("unknown_external_playlist", `external playlist ${id} does not exist`);
  }

  #shown(record: ExternalRecord): ExternalPlaylist {
    const { id, type, category, name, url, login, password } = record;
    const { updateInterval, updatedAt, lastUpdate, nextUpdate, problem } = record;
    const itemCount = this.#dependencies.items.countOf(id);
    const times = { updateInterval, updatedAt, lastUpdate, nextUpdate };
    return { id, type, category, name, url, login, password, ...times, problem, itemCount };
  }
}

/** Credentials stay in the URL; the outbound client sends them as a header. */
function checkedUrl(text: string): string {
  const scheme = URL.canParse(text) ? new URL(text).protocol : undefined;
  if (text.length <= MAX_URL_LENGTH && (scheme === "http:" || scheme === "https:")) return text;
  const found =
    scheme === undefined
      ? "text that is not a URL"
      : text.length > MAX_URL_LENGTH
        ? `more than ${MAX_URL_LENGTH} characters`
        : scheme;
  throw new SluiceError("bad_parameter", `url: expected an http or https URL, got ${found}`);
}

function checkedInterval(seconds: number): number {
  if (!Number.isFinite(seconds) || seconds < 0)
    throw new SluiceError("bad_parameter", "update_interval: expected seconds, 0 for never");
  return boundedInterval(seconds);
}

function checkTexts(texts: { category: string; name: string; login: string; password: string }): void {
  for (const name of ["category", "name", "login", "password"] as const)
    if (texts[name].length > MAX_NAME_LENGTH)
      throw new SluiceError("bad_parameter", `${name}: expected at most ${MAX_NAME_LENGTH} characters`);
}
