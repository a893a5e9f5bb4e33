import { SluiceError } from "../base/errors.ts";
import type { UnixSeconds } from "../base/time.ts";
import type { KeyValueStore } from "../runtime/contract.ts";
import type { ExternalPlaylist, ExternalPlaylists } from "./contract.ts";
import { NO_OWNER } from "./contract.ts";
import { type ExternalRecord, MAX_NAME_LENGTH, MAX_URL_LENGTH } from "./external-record.ts";
import { ExternalRefresher, type RefresherParts } from "./external-refresher.ts";
import { type ExternalStore, openExternalStore } from "./external-store.ts";
import { boundedInterval } from "./refresh-times.ts";

/** Nobody has more; each costs a record, a timer's look and a fetch. */
const MAX_PLAYLISTS = 1_000;

/** External playlists, with what only the library itself asks of them. */
export interface ExternalPlaylistStore extends ExternalPlaylists {
  /** The programme guides that the lists name: of one, or of all. */
  guides(id?: number): readonly string[];
  /** No refresh begins any more; those that run end with the tasks. */
  close(): void;
}

/** Reads the records, goes on with what was interrupted, and begins to refresh what is due. */
export async function createExternalPlaylists(
  parts: Omit<RefresherParts, "records"> & { readonly store: KeyValueStore },
): Promise<ExternalPlaylistStore> {
  const records = await openExternalStore(parts.store, parts.log);
  const refresher = new ExternalRefresher({ ...parts, records });
  const kept = new KeptPlaylists({ ...parts, records, refresher });
  for (const record of [...records.all()]) if (record.isGoing) await kept.finishDelete(record.id);
  refresher.begin();
  return kept;
}

type Parts = Omit<RefresherParts, "records"> & {
  readonly records: ExternalStore;
  readonly refresher: ExternalRefresher;
};

class KeptPlaylists implements ExternalPlaylistStore {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  async list(): Promise<readonly ExternalPlaylist[]> {
    return [...this.#parts.records.all()]
      .filter(({ isGoing }) => !isGoing)
      .map((record) => this.#shown(record));
  }

  async get(id: number): Promise<ExternalPlaylist | undefined> {
    const record = this.#parts.records.get(id);
    return record && !record.isGoing ? this.#shown(record) : undefined;
  }

  async add(
    playlist: Parameters<ExternalPlaylists["add"]>[0],
    options: Parameters<ExternalPlaylists["add"]>[1],
  ): Promise<number> {
    const { records, clock, refresher } = this.#parts;
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
    if (options.updateNow) refresher.startWherePossible(id);
    refresher.look();
    return id;
  }

  async edit(id: number, settings: Parameters<ExternalPlaylists["edit"]>[1]): Promise<void> {
    const { records, clock, refresher } = this.#parts;
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
      // What the list says must reach items that have the old category, and another login may see another list.
      etag: "",
      lastModified: "",
    });
    refresher.look();
  }

  async delete(id: number): Promise<void> {
    this.#known(id);
    // Kept first: a deletion that is interrupted goes on at the next start.
    await this.#parts.records.change(id, { isGoing: true });
    await this.finishDelete(id);
  }

  async finishDelete(id: number): Promise<void> {
    const { records, refresher, items, rows, broadcasts } = this.#parts;
    await refresher.stop(id);
    await broadcasts?.forget(id);
    await items.removeAll(id);
    await rows.clear(id);
    await records.remove(id);
  }

  async refresh(id: number): Promise<number> {
    this.#known(id);
    return this.#parts.refresher.start(id, true);
  }

  async refreshAll(): Promise<number> {
    return this.#parts.refresher.startAll();
  }

  guides(id?: number): readonly string[] {
    const { records } = this.#parts;
    if (id !== undefined) return records.get(id)?.guides ?? [];
    return [...new Set([...records.all()].flatMap(({ guides }) => guides))];
  }

  close(): void {
    this.#parts.refresher.close();
  }

  #known(id: number): ExternalRecord {
    const record = this.#parts.records.get(id);
    if (record && !record.isGoing) return record;
    throw new SluiceError("unknown_external_playlist", `there is no external playlist ${id}`);
  }

  #shown(record: ExternalRecord): ExternalPlaylist {
    const { id, type, category, name, url, login, password } = record;
    const { updateInterval, updatedAt, lastUpdate, nextUpdate, problem } = record;
    const itemCount = this.#parts.items.countOf(id);
    const times = { updateInterval, updatedAt, lastUpdate, nextUpdate };
    return { id, type, category, name, url, login, password, ...times, problem, itemCount };
  }
}

/** Credentials within the URL are left there: they are what the user gave, and the outbound client makes a header of them. */
function checkedUrl(text: string): string {
  const scheme = URL.canParse(text) ? new URL(text).protocol : undefined;
  if (text.length <= MAX_URL_LENGTH && (scheme === "http:" || scheme === "https:")) return text;
  const came =
    scheme === undefined
      ? "that is no URL"
      : text.length > MAX_URL_LENGTH
        ? "it is too long"
        : `${scheme} came`;
  throw new SluiceError("bad_parameter", `url: expected an http or https URL, ${came}`);
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
