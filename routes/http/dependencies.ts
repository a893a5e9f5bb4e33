import type { Activity } from "../../src/activity/activity-contract.ts";
import type { Infohash } from "../../src/base/ids.ts";
import type { Network } from "../../src/base/network.ts";
import type { CatchUp } from "../../src/catch-up/catch-up-contract.ts";
import type { Cluster, EngineProxy } from "../../src/cluster/cluster-contract.ts";
import type { MediaServer } from "../../src/devices/media-server-contract.ts";
import type { Downloads } from "../../src/downloads/download-contract.ts";
import type { Engine } from "../../src/engine/engine.ts";
import type { BroadcastOptions } from "../../src/library/contract.ts";
import type { Library } from "../../src/library/library.ts";
import type { Broadcast } from "../../src/live/broadcast/broadcast-contract.ts";
import type { Diagnosis } from "../../src/playback/diagnosis/contract.ts";
import type { Recordings } from "../../src/recordings/recording-contract.ts";
import type {
  AcceptWebSocket,
  RequestOrigin,
  TextSocket,
  TextSocketHandlers,
} from "../../src/runtime/contract.ts";
import type { Forwarded } from "./access-proxy.ts";
import type { SignedLinks } from "./signed-links.ts";

/** The services and settings that the routes use. */
export interface RouteDependencies {
  readonly engine: Engine;
  readonly library?: Library;
  /** Local players that can open content. */
  readonly players?: Players;
  /** The engines that share the database; absent if it is a database of this engine alone. */
  readonly cluster?: Cluster;
  /** Requests media of other engines for players. If absent, players are redirected to these. */
  readonly engineProxy?: EngineProxy;
  /** Signs and verifies links to `/live/` and `/vod/`. If absent, these need no signature. */
  readonly signedLinks?: SignedLinks;
  /** Stops the engine after its players have gone, or after the setting `drain-time`. */
  readonly drain?: () => void;
  /** Starts and stops broadcasts of this engine. If absent, broadcasting is unavailable. */
  readonly broadcasts?: BroadcastService;
  /** Streams that the engine relays. If absent, it cannot relay streams. */
  readonly relays?: RelayService;
  /** Lists and changes the settings. If absent, they cannot be changed while the engine runs. */
  readonly settings?: SettingsService;
  /** Makes a backup of the database, as text; the first chunk rejects with `too_many` while another one is made. If absent, there is no
   * database that could be saved. */
  readonly backup?: () => AsyncIterable<Uint8Array>;
  /** Restores a backup. If absent, it can be restored only by the command line. */
  readonly restore?: RestoreService;
  /** The id of the network tuner, 8 hexadecimal digits. If absent, the tuner is off. */
  readonly tunerId?: string;
  /** Keeps channels for catch-up. If absent, catch-up is off. */
  readonly catchUp?: CatchUp;
  /** Records channels. If absent, recording is unavailable. */
  readonly recordings?: Recordings;
  /** Content that the user keeps. If absent, downloads are unavailable. */
  readonly downloads?: Downloads;
  /** The DLNA media server. If absent, it is off. */
  readonly mediaServer?: MediaServer;
  /** Serves the Xtream Codes API; default false. */
  readonly servesXtream?: boolean;
  /** The engine's own tracker, if it is enabled. */
  readonly tracker?: TrackerService;
  /** Live data for `/api/events`. If absent, that path does not exist. */
  readonly activity?: Activity;
  /** Diagnoses the engine. If absent, `/api/diagnosis` does not exist. */
  readonly diagnose?: () => Promise<Diagnosis>;
  /** What operators watch. If absent, `/readyz` and `/metrics` do not exist. */
  readonly operations?: OperationsService;
  /** Called with the user agent of each program that reads the status of a session. */
  readonly statRead?: (userAgent: string) => void;
  /** Returns whether a host of the Internet answered recently. */
  readonly hasRemoteContact?: () => boolean;
  /** Returns the URLs at which other devices reach this engine, such as `http://192.168.1.5:6878/`; empty if it listens on loopback only. */
  readonly networkUrls?: () => readonly string[];
  /** A random identifier of this installation, 40 hexadecimal digits. Sent only to same-origin pages and to programs. */
  readonly deviceId?: string;
  /** The version of this program, such as `0.1.0`. */
  readonly version: string;
  /** Further accepted Host names and addresses: `tv.lan` with any port, or `tv.lan:80` with this port only. */
  readonly allowedHosts?: readonly string[];
  /** Which clients may name URLs of this host and its network; default `local`. */
  readonly privateUrls?: "local" | "intranet";
  readonly access?: AccessSettings;
  /** The operating system that `get_version` reports; default `linux`. */
  readonly platform?: "linux" | "win32" | "android";
}

/** What operators watch of a running engine. */
export interface OperationsService {
  /** Checks whether the engine can serve players: its database, its disk. */
  readiness(): Promise<readonly ReadinessCheck[]>;
  /** Returns the current metrics in the Prometheus text format 0.0.4. */
  metrics(): Promise<string>;
  /** Counts and logs a request that was answered. */
  answered(request: AnsweredRequest): void;
}

/** One check of {@link OperationsService.readiness}. */
export interface ReadinessCheck {
  readonly name: string;
  readonly isOk: boolean;
  /** The state in one sentence; if the check failed, what to do. */
  readonly text: string;
}

/** A request whose response has begun. */
export interface AnsweredRequest {
  readonly method: string;
  /** Without the query, which may contain tokens. */
  readonly path: string;
  /** The `x-request-id` of the client or a proxy; undefined if it sent none. */
  readonly requestId: string | undefined;
  readonly status: number;
}

/** The engine's own tracker, as HTTP clients use it. */
export interface TrackerService {
  /** Whether it serves every infohash, not only this engine's own content. */
  readonly isOpen: boolean;
  /** Answers an announce. `query` is the raw query without `?`; an invalid one gets a bencoded failure reason. */
  announce(query: string, client: TrackerClient): Uint8Array<ArrayBuffer>;
  /** Answers a scrape, with the same `query`. */
  scrape(query: string, client: TrackerClient): Uint8Array<ArrayBuffer>;
  /** Serves a WebSocket client. */
  join(client: TrackerClient, socket: TextSocket): TextSocketHandlers;
}

interface TrackerClient {
  readonly host: string;
  /** A page of another site may have caused the request: the answer contains no local addresses. */
  readonly isForeign: boolean;
}

/** A device or program that plays content (interface: Player). */
export interface Player {
  readonly id: string;
  /** `proxy`: a program on this host, which has no protocol. */
  readonly type: "proxy" | "aircast";
  readonly protocol: "enginecast" | "chromecast" | null;
  readonly name: string;
  /** The URL of an image, or null. */
  readonly icon: string | null;
}

/** The players that this engine can start: programs of this host, and devices of the local network. */
export interface Players {
  /**
   * Lists the players that this client may use. `waits`: if no device is known, it waits up to 2 s for answers to a search; default true.
   */
  list(client: PlayerClient, options?: { readonly waits?: boolean }): Promise<readonly Player[]>;
  /**
   * Plays a URL of this engine in a player of `list`, with the rights of the client. Resolves when a device has begun to play. Rejects
   * with `unknown_player`, `player_failed` or `too_many`.
   */
  open(id: string, media: PlayerMedia, client: PlayerClient): Promise<void>;
  /** Controls a device that plays. Rejects with `unknown_player` or `player_failed`. */
  control(id: string, command: PlayerCommand): Promise<void>;
  /** Reads what a device does at present. Rejects with `unknown_player` or `player_failed`. */
  status(id: string): Promise<PlayerStatus>;
}

/** The client that asks for a player. */
export interface PlayerClient {
  readonly origin: RequestOrigin;
  /** True if it is on this host. */
  readonly isLocal: boolean;
}

/** What a player plays. */
export interface PlayerMedia {
  /** A playback URL of this engine, as the client addressed it. */
  readonly url: string;
  /** Shown by devices; undefined if the caller does not know it. */
  readonly title: string | undefined;
}

/** Seconds of a film, and a volume of 0 to 1. */
export type PlayerCommand =
  | { readonly kind: "play" | "pause" | "stop" }
  | { readonly kind: "seek"; readonly seconds: number }
  | { readonly kind: "volume"; readonly volume: number };

/** The state of a device. */
export interface PlayerStatus {
  readonly state: "playing" | "paused" | "buffering" | "idle";
  /** 0 to 1; undefined if the device does not report it. */
  readonly volume: number | undefined;
  readonly positionSeconds: number | undefined;
  readonly durationSeconds: number | undefined;
  /** The title that this engine sent to the device, as long as the device plays it. */
  readonly title: string | undefined;
}

/** The broadcasts of this engine, which restart with it. */
export interface BroadcastService {
  /** Resolves when the broadcast is on air and its record is stored. Rejects with `SluiceError` and stores nothing. */
  start(options: BroadcastOptions): Promise<BroadcastEntry>;
  /** Stops a broadcast and deletes its record. Rejects with `unknown_broadcast`. */
  stop(name: string): Promise<void>;
  list(): readonly BroadcastEntry[];
  /** Makes a pass for a relay of a broadcast, which is secret. Rejects with `bad_parameter`. */
  relayPass(name: string): Promise<string>;
}

/** A stream that this engine passes on to its viewers. */
export interface RelayEntry {
  readonly infohash: Infohash;
  readonly link: string;
  readonly hasPass: boolean;
  /** Undefined until the stream is joined. */
  readonly name: string | undefined;
  /** Empty if it works. */
  readonly problem: string;
  /** The engine cannot join the stream. */
  readonly isFailed: boolean;
  readonly peers: number;
  /** Peers that receive the stream from this engine. */
  readonly children: number;
  /** Undefined before the first piece. */
  readonly behindMs: number | undefined;
  readonly bytesPerSecondDown: number;
  readonly bytesPerSecondUp: number;
}

/** The relays of this engine, which restart with it. */
export interface RelayService {
  /**
   * Relays a stream. `pass`: the content of a relay pass. Resolves when its record is stored; joining continues in the background. Rejects with
   * `bad_parameter` or `too_many`.
   */
  start(link: string, pass: string | undefined): Promise<RelayEntry>;
  /** Ends a relay and deletes its record. Rejects with `bad_parameter`. */
  stop(infohash: Infohash): Promise<void>;
  list(): readonly RelayEntry[];
}

/** The settings of this engine: flags, variables and the config file. */
export interface SettingsService {
  list(): Promise<SettingsList>;
  /**
   * Writes changes to the config file; null restores the default. Some apply at once, the others after a restart. Rejects with `bad_parameter` for an
   * unknown or invalid setting and `access_denied` for one that only this host may change; nothing is written then.
   */
  change(changes: ReadonlyMap<string, string | null>, options: { readonly isHost: boolean }): Promise<void>;
  /** Restarts the engine within this process, after the response to the caller. */
  restart(): void;
}

/** Replaces the database of this engine with a backup of a client. */
export interface RestoreService {
  /**
   * Receives a backup, checks all of it, and counts what it and the present database contain. Changes nothing else. Rejects with `bad_parameter`,
   * `bad_configuration`, `too_large`, `too_many` or `disk_full`.
   */
  receive(
    body: AsyncIterable<Uint8Array>,
  ): Promise<{ readonly backup: BackupContents; readonly present: BackupContents }>;
  /** Restarts the engine with the received backup, after the response to the caller. Throws `bad_parameter` if there is none. */
  start(): void;
  /** The outcome of the last restore since the program started. */
  readonly outcome: RestoreOutcome | undefined;
}

export interface RestoreOutcome {
  readonly records: number;
  /** Why the backup was not restored; the database is then unchanged. */
  readonly problem: string | undefined;
}

/** How many of each kind a backup contains. */
export interface BackupContents {
  readonly channels: number;
  readonly playlists: number;
  readonly guides: number;
  readonly accounts: number;
  readonly broadcasts: number;
  readonly recordings: number;
  /** Films with a position at which to resume. */
  readonly watched: number;
  /** All records, also those of no kind above. */
  readonly records: number;
  /** Logos, transport files, and files of broadcasts. */
  readonly files: number;
}

export interface SettingsList {
  /** Path of the config file, or undefined if the user has no folder for it. */
  readonly file: string | undefined;
  /** True if the running engine uses other values than the next start would. */
  readonly needsRestart: boolean;
  /** Why the last restart with changed settings failed; the engine then runs with the previous settings. */
  readonly problem: string | undefined;
  readonly settings: readonly SettingEntry[];
}

export interface SettingEntry {
  readonly name: string;
  readonly group: string;
  /** One line. */
  readonly help: string;
  /** As the user wrote it; undefined if the default applies or if it is a secret. */
  readonly value: string | undefined;
  readonly defaultText: string;
  /** Completes "expected …". */
  readonly expected: string;
  /** All accepted values, if they are few. */
  readonly values: readonly string[] | undefined;
  readonly isSecret: boolean;
  /** Where the value comes from; undefined if the default applies. A flag or a variable overrides the config file. */
  readonly from: "flag" | "variable" | "file" | undefined;
  readonly isHostOnly: boolean;
  /** A change applies without a restart. */
  readonly isLive: boolean;
}

/** A broadcast, on air or not. */
export interface BroadcastEntry {
  readonly name: string;
  /** Undefined if the broadcast comes from a subscribed list. */
  readonly options: BroadcastOptions | undefined;
  /** Undefined while the broadcast cannot start. */
  readonly broadcast: Broadcast | undefined;
  /** Why the broadcast is not on air; the engine retries. */
  readonly problem: string | undefined;
}

/** The settings that decide which clients and pages are admitted (docs/design/access.md). */
export interface AccessSettings {
  /** Host names of this machine. */
  readonly ownNames?: readonly string[];
  /** Proxies whose X-Forwarded-For, -Proto and -Host headers are trusted. */
  readonly trustedProxies?: readonly Network[];
  /** Further networks whose clients count as `intranet`. */
  readonly intranetNetworks?: readonly Network[];
  /** Origins of other sites whose pages may call with a token, such as `https://tv.example`. */
  readonly allowedOrigins?: readonly string[];
}

/** A file of a form (RFC 7578), held in memory: `multipart.ts` limits its size. */
export interface UploadedFile {
  /** Only for display; never used as a path. */
  readonly filename: string;
  /** The type that the client reports; not trusted. */
  readonly mime: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** Uploaded files by name. */
export type Files = Readonly<Record<string, UploadedFile>>;

/** The environment of every route. */
export interface RouteEnv {
  readonly Bindings: {
    /** The client; behind a trusted proxy, once the access middleware has read its headers, the client that it names. */
    readonly origin: RequestOrigin;
    /** The headers of that proxy; set only by the access middleware. */
    readonly forwarded?: Forwarded | undefined;
    /** The request headers of the played item; set only by play links. */
    readonly contentHeaders?: Readonly<Record<string, string>> | undefined;
    /** A play link of the user's own item: see `ContentSelector.isOwn`. */
    readonly isOwnLink?: boolean | undefined;
    /** The files of a form; set only by control calls. */
    readonly files?: Files | undefined;
    /** Set on tracker paths: whether a page of another site may have caused the request. */
    readonly isForeign?: boolean;
    /** Present if the request asks for a WebSocket upgrade. */
    readonly acceptWebSocket?: AcceptWebSocket | undefined;
  };
}
