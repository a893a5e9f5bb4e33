import type { ContentId, Infohash } from "../base/ids.ts";
import type { UnixSeconds } from "../base/time.ts";

/** The owner of items that belong to nobody (interface: Playlist methods). */
export const NO_OWNER = "_no_owner_";

/** One thing of the playlist, as it is kept. Texts are bounded where they come in (`library/limits.ts`). */
export interface Item {
  /** From 1 on; never used again. */
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
  /** Not changed or deleted by a refresh, by clearing, or by calls on many items. */
  readonly isLocked: boolean;
  readonly autoSearch: boolean;
  /** When it went to the trash; null while it is active. */
  readonly deletedAt: UnixSeconds | null;
  /** How many playable files its transport file has; null where nobody has looked yet. */
  readonly fileCount: number | null;
  /** -1 where it is not from an external playlist. */
  readonly externalPlaylistId: number;
  /** What identifies it within its source over refreshes; null for items that the user added. */
  readonly sourceKey: string | null;
  /** Members that the user has changed: a refresh leaves them alone. */
  readonly edited: readonly EditableMember[];
  readonly tvgId: string;
  readonly tvgName: string;
  readonly tvgLogo: string;
  /** Three-letter language and two-letter country codes, lower case; null where nothing is said. */
  readonly languages: readonly string[] | null;
  readonly countries: readonly string[] | null;
  /** An uploaded logo (`Images`), or null. */
  readonly logo: string | null;
  readonly createdAt: UnixSeconds;
  readonly updatedAt: UnixSeconds;
}

/** What an item plays. */
export interface ItemContent {
  /** `bt` through a swarm; `hls`, `dash` and `http` are URLs of other servers. */
  readonly transport: "bt" | "hls" | "dash" | "http";
  readonly contentId: ContentId | null;
  readonly infohash: Infohash | null;
  /** The whole link, where the item came as one: it may name trackers. */
  readonly magnet: string | null;
  /** Of a transport file (`bt`), a manifest, or a media file. */
  readonly url: string | null;
}

/** What the user may change of one item. */
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

/** A new item: what is not said has the default of an item that the user added. */
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
  readonly languages?: readonly string[] | null;
  readonly countries?: readonly string[] | null;
  readonly logo?: string | null;
}

/** Which items are asked for; what is not said does not matter. */
export interface ItemQuery {
  readonly owner?: string;
  readonly ids?: readonly number[];
  /** Part of the title, whatever its case and accents. */
  readonly name?: string;
  readonly category?: string;
  /** A subcategory, or a tag. */
  readonly subcategory?: string;
  /** The `hash` of `Items.figures`: the sources of one channel. Or the `hashV2`: the items that play the same. */
  readonly hash?: string;
  readonly isFavorite?: boolean;
  readonly isEnabled?: boolean;
  readonly externalPlaylistId?: number;
  /** `active` unless said. */
  readonly state?: "active" | "trash";
  /** `title`: as people sort (numbers by value), unless said. `added`: the order in which they came. */
  readonly sort?: "title" | "added";
  readonly offset?: number;
  readonly limit?: number;
}

export interface ItemPage {
  /** How many there are without offset and limit. */
  readonly total: number;
  readonly items: readonly Item[];
}

/** What was found out about an item's content after it was added; what is not said stays as it is. */
export interface ItemFacts {
  readonly isLive?: 0 | 1 | -1;
  readonly fileCount?: number | null;
  readonly infohash?: Infohash;
  readonly contentId?: ContentId;
}

/** What the interface tells of an item beside what is kept of it (interface: Playlist item). */
export interface ItemFigures {
  /** 40 hex digits of the channel's name, without its quality: equal for all sources of one channel. */
  readonly hash: string;
  /** 40 hex digits of what it plays. */
  readonly hashV2: string;
  /** Whether there is anything for the auto search to find, or it is on. */
  readonly showAutosearch: boolean;
  /** A VOD of several playable files. */
  readonly isMultiVod: boolean;
  /** A transport file of several playable files. */
  readonly isMultiTfile: boolean;
  /** 1 for a URL of another server. */
  readonly isWrappedUrl: 0 | 1;
  /** The best one first. */
  readonly icons: readonly ItemIcon[];
}

/** A picture of an item: one that was uploaded (`Images`), or one of another server. */
export type ItemIcon =
  | { readonly type: "logo"; readonly imageId: string }
  | { readonly type: "logo" | "poster"; readonly url: string };

/** The user's lists. Every change is durable when it resolves. Rejects with `unknown_item` where an id is not there. */
export interface Items {
  get(id: number): Promise<Item | undefined>;
  query(query: ItemQuery): Promise<ItemPage>;
  /** All that fit, a batch at a time, for lists that are sent while they are read. */
  each(query: ItemQuery): AsyncIterable<Item>;
  add(draft: ItemDraft): Promise<Item>;
  /** Changes one item; a locked one too, for the user named it. Remembers which members the user has changed. */
  update(id: number, change: ItemChange): Promise<Item>;
  /** Changes many; locked ones stay as they are (but for `isLocked`). Resolves to how many were changed. */
  updateMany(ids: readonly number[], change: ItemChange): Promise<number>;
  /** Remembers what was found out about its content. No edit of the user's: `updatedAt` stays. */
  learn(id: number, facts: ItemFacts): Promise<Item>;
  /** The active items of its owner that are sources of one channel with this one, itself first (`use_media_groups`). */
  group(id: number): Promise<readonly number[]>;
  /**
   * What to play for an item with auto search: the best other active and enabled source of its channel (favourites first,
   * then live ones from a swarm, then the one updated last). Undefined where there is no other.
   */
  bestMatch(id: number): Promise<Item | undefined>;
  /** What the interface tells beside. Costs no reading. */
  figures(item: Item): ItemFigures;
  /** To the trash. One id: a locked item too. Resolves to how many went. */
  delete(ids: readonly number[], owner?: string): Promise<number>;
  restore(id: number, owner: string): Promise<void>;
  clearTrash(owner?: string): Promise<void>;
  /** Deletes all active items of an owner for good, but for locked ones. */
  clear(owner: string): Promise<void>;
}

/** One list that is fetched from elsewhere again and again (interface: External playlist). */
export interface ExternalPlaylist {
  readonly id: number;
  readonly type: "content" | "broadcast";
  readonly category: string;
  readonly name: string;
  readonly url: string;
  readonly login: string;
  readonly password: string;
  /** Seconds; 0: never by itself. */
  readonly updateInterval: number;
  readonly updatedAt: UnixSeconds;
  /** 0: never. */
  readonly lastUpdate: UnixSeconds;
  readonly nextUpdate: UnixSeconds;
  /** Why the last refresh failed, or null. */
  readonly problem: string | null;
  readonly itemCount: number;
}

export type ExternalPlaylistSettings = Pick<
  ExternalPlaylist,
  "category" | "name" | "updateInterval" | "login" | "password"
>;

/** Lists of other servers. Rejects with `unknown_external_playlist` where an id is not there. */
export interface ExternalPlaylists {
  list(): Promise<readonly ExternalPlaylist[]>;
  get(id: number): Promise<ExternalPlaylist | undefined>;
  /** Keeps it; its first refresh goes on in the background unless `updateNow` is false. */
  add(
    playlist: ExternalPlaylistSettings & Pick<ExternalPlaylist, "type" | "url">,
    options: { readonly updateNow: boolean; readonly allowPrivateUrls: boolean; readonly owner?: string },
  ): Promise<number>;
  edit(
    id: number,
    settings: Omit<ExternalPlaylistSettings, "login" | "password"> &
      Partial<Pick<ExternalPlaylist, "login" | "password">>,
  ): Promise<void>;
  /** Deletes it and what came from it, but for locked items. */
  delete(id: number): Promise<void>;
  /** Starts a refresh, or joins the one that runs; resolves to its task. */
  refresh(id: number): Promise<number>;
  refreshAll(): Promise<number>;
}

/** Work that goes on after its request was answered. */
export interface Task {
  readonly id: number;
  readonly category: "content" | "broadcast" | "";
  /** What is being done, for people, with its progress: `Importing channels.m3u: 12,000 items`. */
  readonly message: string;
  readonly state: "running" | "done" | "failed";
  readonly problem: string | null;
  /** How much has been done, and of how much where that is known. */
  readonly done: number;
  readonly total: number | null;
  /** What a page should load anew when it is over. */
  readonly actions: readonly string[];
  readonly startedAt: UnixSeconds;
  readonly endedAt: UnixSeconds | null;
}

export interface Tasks {
  /** Running ones, and those that ended less than a minute ago. */
  list(category?: string): readonly Task[];
  get(id: number): Task | undefined;
}

/** Who may ask: the switches and the access token (interface: Authentication). */
export interface AccessControl {
  readonly allowsIntranet: boolean;
  readonly allowsRemote: boolean;
  setAllowsIntranet(value: boolean): Promise<void>;
  setAllowsRemote(value: boolean): Promise<void>;
  /** The access token: 64 hex digits, made when it is first asked for, the same until it is renewed. */
  token(): Promise<string>;
  /** Compared in constant time. */
  isToken(token: string): Promise<boolean>;
  /** Makes a new token; the old one is good for nothing from then on. */
  renewToken(): Promise<string>;
}

/** What `check_auth` tells. */
export interface AuthStatus {
  readonly method: "none" | "engine" | "google";
  readonly login: string | null;
  /** A signed token that others can check, while somebody is signed in. */
  readonly authToken: string | null;
}

/** Local accounts, and who is signed in. */
export interface Accounts {
  /** Whether that was right. `asker` is the address that asks, for the limit on attempts. */
  signInByPassword(email: string, password: string, asker: string): Promise<boolean>;
  signInByGoogle(idToken: string, asker: string): Promise<boolean>;
  signOut(): Promise<void>;
  status(): Promise<AuthStatus>;
  /** Rejects with `bad_parameter` where there is one already, or where the password is too short. */
  add(email: string, password: string): Promise<void>;
  setPassword(email: string, password: string): Promise<void>;
  remove(email: string): Promise<void>;
  list(): Promise<readonly string[]>;
}

/** A picture that was uploaded or fetched, of a type that browsers show and nothing else. */
export interface Image {
  readonly mime: "image/png" | "image/jpeg" | "image/gif" | "image/webp";
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** Logos. */
export interface Images {
  /** Keeps a picture; resolves to its id (the SHA-1 of its bytes). Rejects with `bad_image`. */
  put(bytes: Uint8Array): Promise<string>;
  get(id: string): Promise<Image | undefined>;
  /** A picture of another server, cached; undefined where it cannot be had or is none. */
  fetch(
    url: string,
    options: { readonly allowPrivateUrls: boolean; readonly signal?: AbortSignal },
  ): Promise<Image | undefined>;
}

/** How items are written for players (interface-compatible `/playlist/get`). */
export interface ExportOptions {
  readonly query: ItemQuery;
  readonly format: "m3u" | "acestream" | "json";
  /** Such as `http://192.168.1.5:6878`. */
  readonly base: string;
  readonly protocol: "http" | "hls";
  /** Written into every URL, as they are: `transcode_audio=0` … */
  readonly urlParameters: readonly (readonly [name: string, value: string])[];
  readonly skipAutoSearch: boolean;
  /** A random `pid` in every URL. */
  readonly generatePlayerId: boolean;
}

/** What a list is imported as. */
export interface ImportOptions {
  readonly name: string;
  readonly owner: string;
  readonly category: string | null;
}

/** What shall be broadcast, in the user's words: read from the command line or a control method, and kept for the next start. */
export interface BroadcastWish {
  /** Whose key is used. */
  readonly name: string;
  /** A URL, `udp://…`, a file or `-`; null for the test pattern. */
  readonly source: string | null;
  readonly isLooped: boolean;
  /** It stands by, for when nobody else is on air with this key. */
  readonly isStandby?: boolean;
  readonly title: string | null;
  readonly description: string | null;
  readonly categories: readonly string[];
  readonly languages: readonly string[];
  readonly countries: readonly string[];
  readonly logo: string | null;
  readonly trackers: readonly string[];
  /** `host:port`, as all addresses here. */
  readonly relays: readonly string[];
  readonly isPrivate: boolean;
  /** Bytes a second to all peers together; null for no limit of its own. */
  readonly uploadLimit: number | null;
  /** Bits a second; null where nobody knows. */
  readonly bitsPerSecond: number | null;
  readonly manifests: readonly string[];
  readonly addresses: readonly string[];
}

/** The broadcasts that shall be there whenever the engine runs, by name. */
export interface BroadcastRecords {
  /** What cannot be read is left out, and said. */
  list(): Promise<BroadcastWish[]>;
  /** Durable when it resolves. */
  keep(wish: BroadcastWish): Promise<void>;
  forget(name: string): Promise<void>;
}
