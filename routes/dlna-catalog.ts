import type {
  CatalogEntry,
  CatalogFolder,
  CatalogItem,
  CatalogPage,
  MediaCatalog,
} from "../src/devices/media-server-contract.ts";
import type { Item, ItemQuery } from "../src/library/contract.ts";
import type { Library } from "../src/library/library.ts";
import type { Recording, Recordings } from "../src/recordings/recording-contract.ts";

/** The root (ContentDirectory:1 2.7.4.2). */
const ROOT = "0";
/** Old televisions of Samsung ask for these ids: videos, which are everything here; pictures and music, of which there are none. */
const ALIASES: Readonly<Record<string, string>> = { V: ROOT };
const EMPTY: Readonly<Record<string, string>> = { I: "Pictures", A: "Music" };

/** A folder whose entries are items of the playlist. */
interface ItemFolder {
  readonly title: string;
  readonly query: ItemQuery;
}

/** Dependencies of {@link createCatalog}. */
export interface CatalogDependencies {
  readonly library: Pick<Library, "items" | "externalPlaylists" | "exportedNames">;
  readonly recordings: Pick<Recordings, "list"> | undefined;
  /** `http://host:port` as the player addressed the engine. */
  readonly base: string;
}

/**
 * The playlist, its favourites, the external playlists and the recordings as folders.
 *
 * CHOICE(dlna-folders): items that are hidden from players are left out; films are offered as MPEG-TS, which every television plays.
 */
export function createCatalog({ library, recordings, base }: CatalogDependencies): MediaCatalog {
  const { items, externalPlaylists } = library;

  const folderOf = async (id: string): Promise<ItemFolder | undefined> => {
    if (id === "all") return { title: "All channels and films", query: { isEnabled: true } };
    if (id === "favourites") return { title: "Favourites", query: { isEnabled: true, isFavorite: true } };
    const list = /^list-(\d{1,15})$/.exec(id)?.[1];
    if (list === undefined) return undefined;
    const found = await externalPlaylists.get(Number(list));
    return found && { title: found.name, query: { isEnabled: true, externalPlaylistId: found.id } };
  };
  const itemFolder = async (id: string): Promise<CatalogFolder | undefined> => {
    const folder = await folderOf(id);
    if (folder === undefined) return undefined;
    const { total } = await items.query({ ...folder.query, limit: 0 });
    return { kind: "folder", id, parentId: ROOT, title: folder.title, childCount: total };
  };
  const recordingsFolder = (): CatalogFolder => {
    const childCount = recorded().length;
    return { kind: "folder", id: "recordings", parentId: ROOT, title: "Recordings", childCount };
  };
  const recorded = () => (recordings?.list() ?? []).filter(({ bytes }) => bytes > 0);
  const rootFolders = async (): Promise<CatalogFolder[]> => {
    const lists = (await externalPlaylists.list()).map(({ id }) => itemFolder(`list-${id}`));
    const folders = await Promise.all([itemFolder("favourites"), itemFolder("all"), ...lists]);
    const found = folders.filter((folder) => folder !== undefined);
    return recordings === undefined ? found : [...found, recordingsFolder()];
  };
  const itemEntry = (item: Item, parentId: string): CatalogItem => {
    const { logo } = library.exportedNames(item, base);
    return {
      kind: item.isLive === 0 ? "film" : "channel",
      id: `item-${item.id}`,
      parentId,
      title: item.displayTitle || item.title,
      url: `${base}/dlna/media/item-${item.id}.ts`,
      pictureUrl: logo || undefined,
    };
  };
  const recordingEntry = ({ id, title, channel, bytes, start, stop, state }: Recording): CatalogItem => ({
    kind: "film",
    id: `recording-${id}`,
    parentId: "recordings",
    title: title === channel ? title : `${title} (${channel})`,
    url: `${base}/dlna/media/recording-${id}.ts`,
    bytes,
    durationSeconds: state === "done" ? stop - start : undefined,
  });
  const pageOf = (entries: readonly CatalogEntry[], start: number, count: number): CatalogPage => ({
    total: entries.length,
    entries: entries.slice(start, start + count),
  });

  return {
    async entry(asked) {
      const id = ALIASES[asked] ?? asked;
      if (id === ROOT) {
        const childCount = (await rootFolders()).length;
        return { kind: "folder", id: asked, parentId: "-1", title: "Sluice", childCount };
      }
      const empty = EMPTY[id];
      if (empty !== undefined) return { kind: "folder", id, parentId: ROOT, title: empty, childCount: 0 };
      if (id === "recordings" && recordings) return recordingsFolder();
      const [, kind, number] = /^(item|recording)-(\d{1,15})$/.exec(id) ?? [];
      if (kind === "recording") {
        const found = recorded().find((recording) => recording.id === Number(number));
        return found && recordingEntry(found);
      }
      if (kind === undefined) return itemFolder(id);
      const item = await items.get(Number(number));
      return item && item.deletedAt === null && item.isEnabled ? itemEntry(item, "all") : undefined;
    },

    async children(asked, start, count) {
      const id = ALIASES[asked] ?? asked;
      if (id === ROOT) return pageOf(await rootFolders(), start, count);
      if (EMPTY[id] !== undefined) return { total: 0, entries: [] };
      if (id === "recordings" && recordings) return pageOf(recorded().map(recordingEntry), start, count);
      const folder = await folderOf(id);
      if (folder === undefined) return undefined;
      const { total, items: found } = await items.query({ ...folder.query, offset: start, limit: count });
      return { total, entries: found.map((item) => itemEntry(item, id)) };
    },
  };
}
