import type { Infohash } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import type { Broadcasts } from "../live/broadcast/broadcast-contract.ts";
import type { Outbound } from "../outbound/outbound.ts";
import { acquire, readFile } from "../playback/access.ts";
import { channelStream, sessionSource } from "../playback/channel-stream.ts";
import type {
  AcquireOptions,
  ChooseRange,
  FileRead,
  PlaybackRequest,
  ReadOptions,
  RemuxForPlayer,
  Session,
  SessionActivity,
  SharedPlayback,
  SubtitleLease,
  TransferActivity,
  TransferLease,
} from "../playback/contract.ts";
import { PlayedChannels } from "../playback/diagnosis/channel-rows.ts";
import type { Diagnosis } from "../playback/diagnosis/contract.ts";
import { peerDiscoveryRows } from "../playback/diagnosis/peer-discovery-rows.ts";
import { diagnoseStream } from "../playback/diagnosis/stream-diagnosis.ts";
import type { EngineFigures } from "../playback/holds.ts";
import { Holds } from "../playback/holds.ts";
import type { SegmentBody } from "../playback/segment-body.ts";
import { SegmentCache } from "../playback/segment-cache.ts";
import { Sessions } from "../playback/sessions.ts";
import { SharedSessions } from "../playback/shared-sessions.ts";
import { type NamedSound, silentSounds } from "../playback/silent-sounds.ts";
import { convertSubtitles, openSubtitles } from "../playback/subtitle-lease.ts";
import { WaitingStarts } from "../playback/waiting-starts.ts";
import type { AudioTranscoder } from "../remux/audio/transcoder.ts";
import type { AudioConversion } from "../remux/contract.ts";
import type { Runtime } from "../runtime/contract.ts";
import type {
  CacheFigures,
  ContentSelector,
  EngineSettings,
  Hold,
  Inspector,
  Transfer,
  TransferContent,
  Transfers,
} from "../transfer/contract.ts";
import type { SegmentName } from "../transfer/segment-source.ts";
import type { TransportFile } from "../wire/torrent/metainfo.ts";
import { CacheDesk } from "./cache-desk.ts";
import { createContentResolver } from "./content.ts";
import { createInspector } from "./inspect.ts";
import { type ChannelRequest, OpenedChannels } from "./opened-channels.ts";
import { WebPeers } from "./web-peers.ts";

/** The engine, as the routes and the command line use it. Every request of a player goes through this interface. */
export interface Engine {
  readonly settings: EngineSettings;
  /**
   * Starts or joins a playback session. Resolves as soon as the infohash is known; the session then prepares itself in
   * the background. Rejects with `SluiceError` if the selector cannot be resolved.
   */
  start(request: PlaybackRequest, signal?: AbortSignal): Promise<Session>;
  /**
   * The same, but resolves within `withinMs`: with a session that waits for its content if that is not known by then. The
   * signal cancels the start only before that.
   */
  begin(request: PlaybackRequest, withinMs: number, signal?: AbortSignal): Promise<Session>;
  /**
   * Plays a live channel of several sources, best first, as one transport stream that survives the failure of a source; see
   * `channelStream`. `remux` connects the pieces of the content with their remuxer, `title` is the channel's in the diagnosis.
   */
  playChannel(
    sources: ChannelRequest["sources"],
    remux: RemuxForPlayer,
    options: { readonly title: string; readonly signal?: AbortSignal; readonly hasPattern?: boolean },
  ): Promise<ReadableStream<Uint8Array>>;
  /**
   * Starts or joins a session that plays such a channel, as {@link Engine.begin} does. All its players share one stream. `request` says
   * how it is played; the requests of the sources say what is converted.
   */
  beginChannel(
    channel: ChannelRequest,
    remux: RemuxForPlayer,
    request: Omit<PlaybackRequest, "selector">,
    options: { readonly withinMs: number; readonly signal?: AbortSignal },
  ): Promise<Session>;
  /** Calls `started` when a player or a background session starts, before its content is known, and again when its session exists; not for
   * a visit. Returns a function that ends this. */
  onStart(started: (isBackground: boolean) => void): () => void;
  /** Returns the session for these URL dependencies, or undefined if it has ended or never existed. */
  session(infohash: Infohash, key: string): Session | undefined;
  /** Returns the session of an MPEG-TS player that connects: brings it back if it has expired, and waits for its content. Rejects
   * with `SluiceError`. */
  reconnect(infohash: Infohash, key: string, signal?: AbortSignal): Promise<Session | undefined>;
  /** Returns the events of a session; after its end, until they have been fetched. */
  events(infohash: Infohash, key: string): Pick<Session, "nextEvent"> | undefined;
  /** Returns an HLS segment by its URL dependencies and renews its session. Rejects with `SluiceError`. */
  segment(infohash: Infohash, name: SegmentName, signal?: AbortSignal): Promise<Uint8Array<ArrayBuffer>>;
  /** The same for a response: a segment whose player stops reading leaves memory. */
  segmentBody(infohash: Infohash, name: SegmentName, signal?: AbortSignal): Promise<SegmentBody>;
  /** HLS whose URLs name no session. */
  readonly shared: SharedPlayback;
  /**
   * Opens an unmodified file of the content. `choose` receives the file and returns the byte range to send, or
   * undefined for none. Waits up to 8 s for the first bytes; the stream then holds the transfer until it ends. Rejects
   * with `SluiceError`.
   */
  read(infohash: Infohash, fileIndex: number, choose: ChooseRange, options?: ReadOptions): Promise<FileRead>;
  /** Opens the text subtitles of a file: those in it, and the subtitle files that belong to it. Rejects with `SluiceError`. */
  subtitles(infohash: Infohash, fileIndex: number, options?: ReadOptions): Promise<SubtitleLease>;
  /** Returns the audio of a stream that browsers cannot play with this conversion. Waits for its first bytes. Rejects with `SluiceError`. */
  silentSounds(
    transfer: Pick<Transfer, "segmentSource">,
    conversion: AudioConversion,
    signal: AbortSignal,
  ): Promise<readonly NamedSound[]>;
  /** Converts a subtitle file to WebVTT; the format is that of its name. Throws `bad_parameter` or `unsupported_content`. */
  convertSubtitles(name: string, file: Uint8Array): Promise<string>;
  /** Opens a transfer and waits for its file list, up to the time-outs in the settings. Rejects with `SluiceError`. */
  acquire(selector: ContentSelector, options?: AcquireOptions): Promise<TransferLease>;
  /** Shares a complete file of this machine with peers, until the hold is released. It is the only file of its transport file. */
  shareFile(file: TransportFile, path: string): Hold;
  /** Describes content without playing it. */
  readonly inspect: Inspector;
  /** The broadcasts of this engine. */
  readonly broadcasts: Broadcasts;
  figures(): EngineFigures;
  /** Calls `opened` when a transfer opens. Returns a function that ends this. */
  onTransferOpened(opened: () => void): () => void;
  /** Returns what each session and each transfer does. */
  activity(): EngineActivity;
  /** Returns how much of the content is held, in `cells` equal parts or one for each piece, each 0 to 9; empty if it has no pieces. */
  pieceMap(infohash: Infohash, cells: number): string;
  /** Ends the sessions of this content and stops its transfer. Throws `unknown_session` if it is not open, `bad_parameter` for a
   * broadcast of this engine. */
  stopTransfer(infohash: Infohash): void;
  /** Does the same if it is open, and deletes the content from the disk cache, also if the user keeps it. */
  deleteContent(infohash: Infohash): Promise<void>;
  readonly limits: Transfers["limits"];
  /** Describes the state of every transfer and the current problems. */
  diagnosis(): Promise<Diagnosis>;
  cacheFigures(): Promise<CacheFigures>;
  /** What the disk cache has, and its removal. */
  readonly cache: CacheDesk;
  /** The pages that are peers of live streams. */
  readonly webPeers: WebPeers;
  /** Ends all sessions and closes all transfers. Resolves when all records are stored. */
  stop(): Promise<void>;
}

/** What the operator sees. */
export interface EngineActivity {
  readonly sessions: readonly SessionActivity[];
  readonly transfers: readonly TransferActivity[];
}

/** Dependencies of the engine. The engine closes `transfers` when it stops. */
interface EngineDependencies {
  readonly runtime: Pick<Runtime, "clock" | "sha1" | "sha256" | "ed25519Verifier" | "randomBytes" | "lookup">;
  readonly settings: EngineSettings;
  readonly log: Log;
  readonly transfers: Transfers;
  readonly outbound: Pick<Outbound, "get" | "open">;
  /** Returns why the proxy does not work; undefined if it works or none is set. */
  readonly proxyProblem: () => string | undefined;
  /** Converts the audio of streams; absent: it is never converted. */
  readonly transcoder?: AudioTranscoder | undefined;
  /** Creates the broadcasts. Releasing a hold from `open` stops its transfer at once. */
  readonly createBroadcasts: (open: (content: TransferContent) => Hold) => Broadcasts;
}

/** Creates the engine. Transfers and sessions start on request only. */
export function createEngine(dependencies: EngineDependencies): Engine {
  const { runtime, settings, transfers, proxyProblem, transcoder } = dependencies;
  const { clock } = runtime;
  const log = dependencies.log.named("engine");
  const played = new PlayedChannels(clock);
  const connect = ({ title, sources }: ChannelRequest, remux: RemuxForPlayer) => ({
    sources: sources.map(({ name, request }) =>
      sessionSource(name, request, (each, stop) => sessions.start(each, stop), remux),
    ),
    report: played.report(title, sources.length),
  });
  const channels = new OpenedChannels({ runtime, settings, transfers, log, connect });
  const resolve = channels.resolver(createContentResolver({ ...dependencies, log }));
  const endUnused: Sessions["endUnused"] = (candidates) => sessions.endUnused(candidates);
  const transferListeners = new Set<() => void>();
  const holds = new Holds({
    ...{ clock, transfers: channels, endUnused, log },
    opened: () => {
      for (const opened of [...transferListeners]) opened();
    },
    get idleMs() {
      return settings.transferIdleMs;
    },
    get maxTransfers() {
      return settings.maxTransfers;
    },
  });
  const segments = new SegmentCache();
  const access = { clock, settings, resolve, holds };
  const startListeners = new Set<(isBackground: boolean) => void>();
  const sessionStarts = ({ isVisit, isBackground = false }: PlaybackRequest) => {
    if (isVisit) return;
    for (const started of [...startListeners]) started(isBackground);
  };
  const sessions = new Sessions({
    ...access,
    ...{ runtime, segments, transfers, proxyProblem, transcoder, sessionStarts, log },
  });
  const broadcasts = dependencies.createBroadcasts((content) => holds.openOwned(content));
  const stopping = new AbortController();
  const cacheFigures = () => transfers.cacheFigures();
  const starts = new WaitingStarts({
    runtime,
    sessions,
    get sessionIdleMs() {
      return settings.sessionIdleMs;
    },
    cacheFigures,
  });
  return {
    settings,
    start: (request, signal) => sessions.start(request, signal),
    begin: (request, withinMs, signal) => starts.begin(request, withinMs, signal),
    playChannel(sources, remux, { title, signal, hasPattern = true }) {
      const { sources: opened, report } = connect({ title, sources }, remux);
      return channelStream({ clock, log, ended: stopping.signal, hasPattern, report }, opened, signal);
    },
    beginChannel(channel, remux, request, { withinMs, signal }) {
      const infohash = channels.add(channel, remux);
      return starts.begin({ ...request, selector: { kind: "infohash", infohash } }, withinMs, signal);
    },
    onStart(started) {
      startListeners.add(started);
      return () => startListeners.delete(started);
    },
    session: (infohash, key) => starts.get(infohash, key),
    events: (infohash, key) => starts.events(infohash, key),
    reconnect: (infohash, key, signal) => starts.reconnect(infohash, key, signal),
    segment: (infohash, name, signal) => sessions.segment(infohash, name, signal),
    segmentBody: (infohash, name, signal) => sessions.segmentBody(infohash, name, signal),
    shared: new SharedSessions({ runtime, sessions }),
    read: (infohash, fileIndex, choose, options) => readFile(access, infohash, fileIndex, choose, options),
    subtitles: (infohash, fileIndex, options) => openSubtitles(access, infohash, fileIndex, options),
    async silentSounds(transfer, conversion, signal) {
      const source = await transfer.segmentSource?.(signal, { output: "hls", audioLanguage: undefined });
      return source ? silentSounds(source, { conversion, transcoder, segments }, signal) : [];
    },
    convertSubtitles,
    acquire: (selector, options) => acquire(access, selector, options),
    shareFile: (transportFile, ownFile) =>
      holds.openOwned({
        ...{ infohash: transportFile.infohash, transportFile, ownFile },
        ...{ trackers: [], peers: [] },
      }),
    broadcasts,
    inspect: createInspector({ clock, outbound: dependencies.outbound, transfers, access }),
    async diagnosis() {
      const all = transfers.all();
      return {
        rows: [
          // A broadcast of this engine needs no peers to get its content from.
          ...peerDiscoveryRows(
            all.filter(({ live }) => live?.content.role !== "source").map((transfer) => transfer.figures),
          ),
          ...(await transfers.reachRows()),
          ...played.rows(),
        ],
        streams: all.map((transfer) =>
          diagnoseStream(transfer, sessions.playersBuffering(transfer.infohash)),
        ),
      };
    },
    figures: () => ({ ...sessions.figures(), transfers: holds.figures() }),
    onTransferOpened(opened) {
      transferListeners.add(opened);
      return () => transferListeners.delete(opened);
    },
    activity: () => ({
      sessions: sessions.activity(),
      transfers: holds
        .activity()
        .map((each) => ({ ...each, limits: transfers.limits.limitsOf(each.infohash) })),
    }),
    pieceMap: (infohash, cells) => transfers.get(infohash)?.pieceMap?.(cells) ?? "",
    stopTransfer(infohash) {
      void holds.stop(infohash);
      sessions.endOf(infohash);
    },
    async deleteContent(infohash) {
      if (transfers.get(infohash)) {
        const stopped = holds.stop(infohash);
        sessions.endOf(infohash);
        await stopped;
      }
      await transfers.cache?.removeContents([infohash]);
    },
    limits: transfers.limits,
    cacheFigures,
    cache: new CacheDesk(transfers),
    webPeers: new WebPeers({
      ...{ clock, transfers, segmentSeconds: settings.segmentSeconds },
      acquire: (selector, options) => acquire(access, selector, options),
    }),
    async stop() {
      stopping.abort();
      sessions.stopAll();
      await broadcasts.close();
      holds.close();
      await channels.close();
      segments.clear();
      await transfers.close();
    },
  };
}
