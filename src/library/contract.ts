import type { ContentId, Infohash } from "../base/ids.ts";
import type { UnixSeconds } from "../base/time.ts";
import type { M3uPlayer } from "../media/m3u-players.ts";

/** The owner of items without an owner (interface: Playlist methods). */
export const NO_OWNER = "_no_owner_";

/** An item of the playlist. `library/limits.ts` limits the length of its texts. */
export interface Item {
  /** From 1 on; never reused. */
  readonly id: number;
  readonly owner: string;
  readonly title: string;
  readonly displayTitle: string | null;
  readonly description: string;
  /** A URL, or empty. */
  readonly poster: string;
  readonly category: string | null;
  readonly subcategory: string;
  readonly tags: readonly string[];
  readonly content: ItemContent;
  /** 0 VOD, 1 live, -1 unknown. */
  readonly isLive: 0 | 1 | -1;
  readonly isFavorite: boolean;
  readonly isEnabled: boolean;
  /** Locked items are not changed or deleted by a refresh of their external playlist. */
  readonly isLocked: boolean;
  readonly autoSearch: boolean;
  /** When it was moved to the trash; null while it is active. */
  readonly deletedAt: UnixSeconds | null;
  /** Number of playable files in its transport file; null if unknown. */
  readonly fileCount: number | null;
  /** -1 if it is not from an external playlist. */
  readonly externalPlaylistId: number;
  /** Identifies the item in its external playlist across refreshes; null for items that the user added. */
  readonly sourceKey: string | null;
  /** Members that the user has changed; a refresh does not overwrite them. */
  readonly edited: readonly EditableMember[];
  readonly tvgId: string;
  readonly tvgName: string;
  readonly tvgLogo: string;
  /** Other attributes of its list entry that exports repeat, as `name=value`: catch-up, time shift, channel number. */
  readonly tvgExtra: readonly string[];
  /** Request headers that its list sets for its URL, as `name: value` with the name in lower case. Never exported or shown. */
  readonly httpHeaders: readonly string[];
  /** Three-letter language and two-letter country codes in lower case; null if unknown. */
  readonly languages: readonly string[] | null;
  readonly countries: readonly string[] | null;
  /** An uploaded logo (`Images`), or null. */
  readonly logo: string | null;
  readonly createdAt: UnixSeconds;
  readonly updatedAt: UnixSeconds;
}

/** The content of an item. */
export interface ItemContent {
  /** `bt` through a swarm; `hls`, `dash` and `http` are URLs of other servers. */
  readonly transport: "bt" | "hls" | "dash" | "http";
  readonly contentId: ContentId | null;
  readonly infohash: Infohash | null;
  /** The original magnet link, which may name trackers. */
  readonly magnet: string | null;
  /** URL of a transport file (`bt`), a manifest, or a media file. */
  readonly url: string | null;
}

/** The members that the user can change. */
export interface ItemChange {
  readonly title?: string;
  readonly description?: string;
  readonly poster?: string;
  readonly category?: string | null;
  readonly subcategory?: string;
  readonly tags?: readonly string[];
  readonly logo?: string;
  readonly isFavorite?: boolean;
  readonly isEnabled?: boolean;
  readonly isLocked?: boolean;
  readonly autoSearch?: boolean;
}
export type EditableMember = keyof ItemChange;

/** A new item; absent members get the defaults of an item that the user adds. */
export interface ItemDraft {
  readonly owner?: string;
  readonly title: string;
  readonly content: ItemContent;
  readonly displayTitle?: string | null;
  readonly description?: string;
  readonly poster?: string;
  readonly category?: string | null;
  readonly subcategory?: string;
  readonly tags?: readonly string[];
  readonly isLive?: 0 | 1 | -1;
  readonly autoSearch?: boolean;
  readonly fileCount?: number | null;
  readonly externalPlaylistId?: number;
  readonly sourceKey?: string | null;
  readonly tvgId?: string;
  readonly tvgName?: string;
  readonly tvgLogo?: string;
  readonly tvgExtra?: readonly string[];
  readonly httpHeaders?: readonly string[];
  readonly languages?: readonly string[] | null;
  readonly countries?: readonly string[] | null;
  readonly logo?: string | null;
}

/** A filter for items; absent members match everything. */
export interface ItemQuery {
  readonly owner?: string;
  readonly ids?: readonly number[];
  /** Part of the title; case and accents are ignored. */
  readonly name?: string;
  readonly category?: string;
  /** A subcategory, or a tag. */
  readonly subcategory?: string;
  /** A category, a subcategory, or a tag; of several, any. */
  readonly label?: string | readonly string[];
  /** True: only content of a swarm whose infohash is known. */
  readonly isSwarm?: boolean;
  /** The `hash` of `Items.figures` (sources of one channel) or the `hashV2` (items with the same content). */
  readonly hash?: string;
  readonly isFavorite?: boolean;
  readonly isEnabled?: boolean;
  readonly externalPlaylistId?: number;
  /** Default: `active`. */
  readonly state?: "active" | "trash";
  /** `title` (default): natural order, numbers by value. `added`: order of ids. */
  readonly sort?: "title" | "added";
  readonly offset?: number;
  readonly limit?: number;
}

export interface ItemPage {
  /** Number of matches without offset and limit. */
  readonly total: number;
  readonly items: readonly Item[];
}

/** What the index knows of an item: `channel` and `content` are the first 16 digits of the hashes of {@link ItemFigures}. */
export interface ItemOutline {
  readonly id: number;
  readonly channel: string;
  readonly content: string;
  readonly hasInfohash: boolean;
}

/** Reads items in batches. Between two calls it holds no items, because a slow client may read a list for hours. */
export interface ItemReader {
  /** Returns the next items, at most 100; empty at the end. */
  next(): Promise<readonly Item[]>;
}

/** Facts about an item's content that were found after it was added; absent members stay unchanged. */
export interface ItemFacts {
  readonly isLive?: 0 | 1 | -1;
  readonly fileCount?: number | null;
  readonly infohash?: Infohash;
  readonly contentId?: ContentId;
}

/** Computed properties of an item (interface: Playlist item). */
export interface ItemFigures {
  /** Hash of the channel's name without its quality, 40 hex digits: equal for all sources of a channel. */
  readonly hash: string;
  /** Hash of the content, 40 hex digits. */
  readonly hashV2: string;
  /** True if auto search is on or could find another source. */
  readonly showAutosearch: boolean;
  /** A VOD of several playable files. */
  readonly isMultiVod: boolean;
  /** A transport file of several playable files. */
  readonly isMultiTfile: boolean;
  /** 1 for a URL of another server. */
  readonly isWrappedUrl: 0 | 1;
  /** Best first. */
  readonly icons: readonly ItemIcon[];
}

/** A picture of an item: uploaded (`Images`), or a URL of another server. */
export type ItemIcon =
  | { readonly type: "logo"; readonly imageId: string }
  | { readonly type: "logo" | "poster"; readonly url: string };

/** The user's playlist items. Changes are durable when they resolve. Rejects with `unknown_item` for an unknown id. */
export interface Items {
  get(id: number): Promise<Item | undefined>;
  query(query: ItemQuery): Promise<ItemPage>;
  /** The matches within offset and limit, from the index alone. */
  outline(query: ItemQuery): Promise<readonly ItemOutline[]>;
  /** Returns {@link ItemFigures.hashV2} of content with this infohash. */
  contentHash(infohash: Infohash): string;
  /** All matches, for lists that are sent while they are read. An item whose place in the order changes meanwhile may be left
   * out or come twice. */
  read(query: ItemQuery): ItemReader;
  add(draft: ItemDraft): Promise<Item>;
  /** Changes an item and records which members the user has edited. */
  update(id: number, change: ItemChange): Promise<Item>;
  /** Changes items. Resolves to the number of changed items. */
  updateMany(ids: readonly number[], change: ItemChange): Promise<number>;
  /** Stores facts about an item's content. This is not a user edit: `updatedAt` stays. */
  learn(id: number, facts: ItemFacts): Promise<Item>;
  /** The owner's active items that are sources of the same channel, starting with this one (`use_media_groups`). */
  group(id: number): Promise<readonly number[]>;
  /**
   * The other active and enabled sources of an item's channel, at most `limit`, best first: favorites, then live swarms, then the
   * most recently updated. An item with auto search plays the first of them.
   */
  otherSources(id: number, limit: number): Promise<readonly Item[]>;
  /** Computed properties of an item; reads no records. */
  figures(item: Item): ItemFigures;
  /** Moves items to the trash. Resolves to the number of moved items. */
  delete(ids: readonly number[], owner?: string): Promise<number>;
  restore(id: number, owner: string): Promise<void>;
  clearTrash(owner?: string): Promise<void>;
  /** Deletes an owner's active items permanently. */
  clear(owner: string): Promise<void>;
}

/** A list that is fetched from a URL repeatedly (interface: External playlist). */
export interface ExternalPlaylist {
  readonly id: number;
  readonly type: "content" | "broadcast";
  readonly category: string;
  readonly name: string;
  readonly url: string;
  readonly login: string;
  readonly password: string;
  /** Seconds; 0: never automatically. */
  readonly updateInterval: number;
  readonly updatedAt: UnixSeconds;
  /** 0: never. */
  readonly lastUpdate: UnixSeconds;
  readonly nextUpdate: UnixSeconds;
  /** Why the last refresh failed, or null. */
  readonly problem: string | null;
  readonly itemCount: number;
}

type ExternalPlaylistSettings = Pick<
  ExternalPlaylist,
  "category" | "name" | "updateInterval" | "login" | "password"
>;

/** External playlists. Rejects with `unknown_external_playlist` for an unknown id. */
export interface ExternalPlaylists {
  list(): Promise<readonly ExternalPlaylist[]>;
  get(id: number): Promise<ExternalPlaylist | undefined>;
  /** Adds a playlist and resolves to its id; the first refresh runs in the background if `updateNow`. */
  add(
    playlist: ExternalPlaylistSettings & Pick<ExternalPlaylist, "type" | "url">,
    options: { readonly updateNow: boolean; readonly allowPrivateUrls: boolean; readonly owner?: string },
  ): Promise<number>;
  edit(
    id: number,
    settings: Omit<ExternalPlaylistSettings, "login" | "password"> &
      Partial<Pick<ExternalPlaylist, "login" | "password">>,
  ): Promise<void>;
  /** Deletes a playlist and its items. */
  delete(id: number): Promise<void>;
  /** Starts a refresh, or joins the running one; resolves to its task id. */
  refresh(id: number): Promise<number>;
  refreshAll(): Promise<number>;
}

/** Background work that continues after the response. */
export interface Task {
  readonly id: number;
  readonly category: "content" | "broadcast" | "";
  /** Description with progress for the user: `Importing channels.m3u: 12,000 items`. */
  readonly message: string;
  readonly state: "running" | "done" | "failed";
  readonly problem: string | null;
  /** Completed units of `total`; `total` is null if unknown. */
  readonly done: number;
  readonly total: number | null;
  /** What a page should reload when the task ends. */
  readonly actions: readonly string[];
  readonly startedAt: UnixSeconds;
  readonly endedAt: UnixSeconds | null;
}

export interface Tasks {
  /** Running tasks, and those that ended within the last minute. */
  list(category?: string): readonly Task[];
  get(id: number): Task | undefined;
}

/** An uploaded or fetched picture of a type that cannot contain scripts. */
export interface Image {
  readonly mime: "image/png" | "image/jpeg" | "image/gif" | "image/webp";
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** Logos. */
export interface Images {
  /** Stores a picture; resolves to its id, the SHA-1 of its bytes. Rejects with `bad_image`. */
  put(bytes: Uint8Array): Promise<string>;
  get(id: string): Promise<Image | undefined>;
  /** Fetches a picture through a cache; undefined if it is unavailable or not a picture. */
  fetch(
    url: string,
    options: { readonly allowPrivateUrls: boolean; readonly signal?: AbortSignal },
  ): Promise<Image | undefined>;
}

/** Options of a playlist export (interface: `/playlist/get`). */
export interface ExportOptions {
  readonly query: ItemQuery;
  readonly format: "m3u" | "acestream" | "json";
  /** Format `m3u`: writes only what this player reads; default: what any player reads. */
  readonly player?: M3uPlayer;
  /** Base URL of this engine: `http://192.168.1.5:6878`. */
  readonly base: string;
  readonly protocol: "http" | "hls";
  /** Added to every URL: `transcode_audio=0` … */
  readonly urlParameters: readonly (readonly [name: string, value: string])[];
  readonly skipAutoSearch: boolean;
  /** Adds a random `pid` to every URL. */
  readonly generatePlayerId: boolean;
  /** Format `json`: adds the present programme of each item and the next one. */
  readonly showsProgrammes?: boolean;
  /** Leaves out channels that did not play in their last visits. */
  readonly skipsDead?: boolean;
  /** Returns for how many days the past programmes of an item can be played; undefined if they cannot. */
  readonly catchUpDays?: (item: Item) => number | undefined;
  /** Returns the URL of an entry; default: a URL that names its content or its item. */
  readonly linkOf?: (item: Item) => string;
}

/** A broadcast as the user defines it by the command line or a control method; stored for the next start. */
export interface BroadcastOptions {
  /** Selects the signing key. */
  readonly name: string;
  /** A URL, `udp://…`, a file or `-`; null for the test pattern. */
  readonly source: string | null;
  readonly isLooped: boolean;
  /** Standby: broadcasts only while no other machine does with this key. */
  readonly isStandby?: boolean;
  /** The transport file of the stream that replaces this one. */
  readonly successorPath?: string;
  /** Replace the key at this start; not stored. */
  readonly isRotated?: boolean;
  readonly title: string | null;
  readonly description: string | null;
  readonly categories: readonly string[];
  readonly languages: readonly string[];
  readonly countries: readonly string[];
  readonly logo: string | null;
  readonly trackers: readonly string[];
  /** `host:port`. */
  readonly relays: readonly string[];
  readonly isPrivate: boolean;
  /** Bytes per second to all peers together; null: no limit for this broadcast. */
  readonly uploadLimit: number | null;
  /** Null if unknown. */
  readonly bitsPerSecond: number | null;
  readonly manifests: readonly string[];
  readonly addresses: readonly string[];
  /** Qualities to encode: `720p:3M,480p:1M`. */
  readonly renditions?: string;
  /** Sources of the same programme in other qualities, like `source`. */
  readonly variants?: readonly string[];
  /** The numbers of the programmes of a source with several, `1,2`: the first one is the stream, the others are its other qualities. */
  readonly programmes?: string;
}

/** The broadcasts that the engine starts whenever it runs, by name. */
export interface BroadcastRecords {
  /** Logs and skips records that cannot be read. */
  list(): Promise<BroadcastOptions[]>;
  /** Durable when it resolves. */
  keep(options: BroadcastOptions): Promise<void>;
  forget(name: string): Promise<void>;
}
