import { hostname } from "node:os";
import { codecProgram } from "#codec-scripts";
import { createApp } from "../../routes/app.ts";
import { createChannelOpener } from "../../routes/channel-list.ts";
import type { RestoreService, SettingsService } from "../../routes/http/dependencies.ts";
import { createSignedLinks } from "../../routes/http/signed-links.ts";
import { createPageRoutes } from "../../routes/page.ts";
import { ActivityFeed } from "../activity/activity.ts";
import { LogRing } from "../activity/log-ring.ts";
import type { PeerAddress } from "../base/address.ts";
import { toHex } from "../base/bytes.ts";
import { messageOf, SluiceError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { after } from "../base/time.ts";
import { encodeUtf8 } from "../base/utf8.ts";
import { SOLE_LEASES } from "../cluster/cluster-contract.ts";
import { createEngineProxy } from "../cluster/engine-proxy.ts";
import { FoundDevices } from "../devices/found-devices.ts";
import { createDownloads } from "../downloads/downloads.ts";
import { createEngine, type Engine } from "../engine/engine.ts";
import { freeDiskCache } from "../engine/open-disk-cache.ts";
import { createTransfers } from "../engine/transfers.ts";
import { createBroadcastLists } from "../live/broadcast/broadcast-lists.ts";
import { createBroadcasts } from "../live/broadcast/broadcasts.ts";
import { confineRuntime, withOwnNetworks } from "../net/confined/confined.ts";
import { logConfinement } from "../net/confined/self-test.ts";
import { RemoteContact } from "../net/remote-contact.ts";
import { createOutbound } from "../outbound/outbound.ts";
import { AudioTranscoder } from "../remux/audio/transcoder.ts";
import { BuiltinCodecs } from "../remux/codecs/builtin-codecs.ts";
import type { AudioCodecs } from "../remux/codecs/codecs.ts";
import { FfmpegCodecs } from "../remux/codecs/ffmpeg-codecs.ts";
import type { OpenMedia } from "../remux/contract.ts";
import type { Clock, HttpHandler, HttpListener, Runtime, TcpListener } from "../runtime/contract.ts";
import { openToRead } from "../runtime/files.ts";
import { engineSettings } from "../settings/config.ts";
import type { Config } from "../settings/settings.ts";
import { VERSION } from "../settings/version.ts";
import type { WebAssets } from "../web/assets.ts";
import { SignalingServer } from "../web/signaling.ts";
import { viewerArchive } from "../web/static-viewer.ts";
import { SwarmRooms } from "../web/swarm-rooms.ts";
import { tunerIdOf } from "../wire/tuner/discovery.ts";
import { accessSettings } from "./access-settings.ts";
import { backupDownloads } from "./backup.ts";
import { KeptBroadcasts, LateLists } from "./broadcast-desk.ts";
import { broadcastRequest } from "./broadcast-request.ts";
import { diagnose } from "./diagnose.ts";
import { createDlnaServer } from "./dlna-server.ts";
import { openEncoder, openFfmpeg } from "./ffmpeg.ts";
import { HttpListeners, type ListenAddress, withListenAdvice } from "./http-listeners.ts";
import { createLocalPlayers } from "./local-players.ts";
import { LoopLag } from "./loop-lag.ts";
import { openLibrary } from "./open-library.ts";
import { Operations } from "./operations.ts";
import { announcedAddresses, ownLookup, ownTrackers } from "./own-addresses.ts";
import { createPlayers, portForDevices } from "./players-desk.ts";
import { KeptRelays } from "./relay-desk.ts";
import { makeRelayPass } from "./relay-pass.ts";
import { startProber } from "./start-prober.ts";
import { listenForTcpClients } from "./tcp-api.ts";
import { startTuner } from "./tuner-server.ts";

/** After this time the modules of {@link loadMedia} are loaded, so that the first player does not wait for them. */
const LOAD_MEDIA_AFTER_MS = 1000;

/** How often a draining engine looks whether its players have left. */
const DRAIN_CHECK_MS = 250;

/** What {@link openService} needs. */
export interface ServiceOptions {
  readonly runtime: Runtime;
  readonly webAssets: WebAssets;
  readonly config: Config;
  readonly log: Log;
  /** The latest lines of `log`, for the page; only `sluice serve` provides it. */
  readonly logRing?: LogRing;
  /** Changes settings while the engine runs; only `sluice serve` provides it. */
  readonly settings?: SettingsService;
  /** Restores backups; only `sluice serve` provides it. */
  readonly restore?: RestoreService;
  /** Stops the program; only `sluice serve` provides it. */
  readonly stop?: () => void;
  /** Opens standard input; only `sluice broadcast -` provides it. */
  readonly pipe?: () => ReadableStream<Uint8Array>;
}

/** A running engine with its library and HTTP interface. */
export interface Service {
  readonly engine: Engine;
  readonly p2pPort: number;
  /** Answers a request of the HTTP interface; `origin` decides what it may do. */
  readonly fetch: HttpHandler;
  /**
   * Starts the HTTP interface. `host` is an IP address or a name. Rejects with `port_busy` if another program uses the port,
   * with `bad_parameter` if this machine cannot listen there.
   */
  listen(at: ListenAddress): Promise<HttpListener>;
  /** Changes the settings that a running engine can change; see `isLive`. */
  apply(config: Config): void;
  /** Starts the TCP API at the address of the HTTP interface, if it is on. Rejects like `listen`. */
  listenForTcpClients(http: PeerAddress): Promise<TcpListener | undefined>;
  /** Sends new players to other engines, and resolves when all players have left, at the latest after `ms`. */
  drain(ms: number): Promise<void>;
  /** Ends all sessions, sends `stopped` to the trackers and closes the database. */
  close(): Promise<void>;
}

/**
 * Starts an engine with its library, and prepares the HTTP interface. Rejects with `port_busy` if another program uses the
 * peer port, with `bad_configuration` if another engine uses a database that engines cannot share.
 */
export async function openService(options: ServiceOptions): Promise<Service> {
  const { config, log } = options;
  const contact = new RemoteContact(options.runtime.clock);
  const machine = contact.watch(options.runtime);
  const settings = engineSettings(config);
  const runtime = confineRuntime(machine, settings.reach, log.named("p2p"));
  void logConfinement(machine, settings.reach, log.named("p2p"));
  const outbound = createOutbound(withOwnNetworks(runtime, machine), log);
  const lists = new LateLists();
  const open = () => openLibrary(runtime, config, outbound, log, lists);
  const { library, store, cluster, deviceId, openChannelMedia, ...records } = await open().catch(
    async (error: unknown) => {
      // The cache may be what fills the disk, and nothing else of this engine can be removed without loss.
      const freed = isDiskFull(error) ? await freeDiskCache(runtime, settings, log) : 0;
      if (freed === 0) throw error;
      log.warn("the disk was full: removed cached content to start", { bytes: freed });
      return open();
    },
  );
  const transcoder = new AudioTranscoder(await openCodecs(config, runtime.clock));
  const openMedia: OpenMedia = async (source, mediaOptions) =>
    (await loadMedia()).openMedia(source, mediaOptions, transcoder);
  const transfers = await createTransfers(runtime, settings, log, openMedia, (infohash) =>
    records.downloadRecords.has(infohash),
  ).catch(async (error) => {
    await library.close();
    throw withListenAdvice(error, "--p2p-host", "--p2p-port");
  });
  const engine = createEngine({
    runtime,
    settings,
    log,
    transfers,
    transcoder,
    outbound,
    proxyProblem: runtime.proxyProblem,
    createBroadcasts: (open) =>
      createBroadcasts({
        // The connection to a broadcast's source is not peer traffic, so it does not use the proxy or interface of peers.
        runtime: { ...runtime, net: machine.net },
        settings,
        log,
        outbound,
        unixMs: Date.now,
        openFile: openToRead,
        pipe: () => options.pipe?.() ?? nothingPiped(),
        lock: runtime.lock,
        openEncoder: () => openEncoder(process.env),
        open,
      }),
  });
  const addresses = () => announcedAddresses(config, transfers.p2pPort);
  lists.bind(
    createBroadcastLists({
      broadcasts: engine.broadcasts,
      outbound,
      log: log.named("broadcast"),
      defaults: () => ({
        trackers: [...settings.trackers, ...ownTrackers(config.tracker, addresses())],
        addresses: addresses(),
      }),
    }),
  );
  const broadcasts = new KeptBroadcasts({
    broadcasts: engine.broadcasts,
    records: records.broadcastRecords,
    clock: runtime.clock,
    log: log.named("broadcast"),
    relayPass: async (name) => (await makeRelayPass(runtime, config.dataDir, name)).text,
    requestOf: (asked) =>
      broadcastRequest(asked, {
        lookup: ownLookup(machine, config),
        ownAddresses: addresses(),
        tracker: config.tracker,
      }),
  });
  const relays = new KeptRelays({
    ...runtime,
    engine,
    records: records.relayRecords,
    log: log.named("relay"),
  });
  await Promise.all([broadcasts.restore(), relays.restore()]).catch(async (error) => {
    await Promise.all([engine.stop(), library.close()]);
    throw error;
  });
  const media = await openChannelMedia(createChannelOpener(engine, library), openMedia, {
    share: (file, path) => engine.shareFile(file, path),
    peerAddresses: addresses,
  }).catch(async (error) => {
    await Promise.all([engine.stop(), library.close()]);
    throw error;
  });
  const downloads = await createDownloads({
    ...runtime,
    engine,
    records: records.downloadRecords,
    log: log.named("downloads"),
  });
  const { clock } = runtime;
  const leases = cluster ?? SOLE_LEASES;
  const prober = startProber(config, { clock, engine, library, leases, log: log.named("probe") });
  cluster?.measure(() => {
    const { players, transfers } = engine.figures();
    return { players, contents: transfers.map(({ infohash }) => infohash) };
  });
  const tunerId = tunerIdOf(deviceId);
  const dlna =
    config.dlna === "on"
      ? createDlnaServer(machine, config, { deviceId, machineName: hostname(), log: log.named("dlna") })
      : undefined;
  const players = createPlayers({
    local: createLocalPlayers(process.env, process.platform, log),
    devices:
      config.casting === "on"
        ? new FoundDevices(machine, config.deviceInterfaces, log.named("devices"))
        : undefined,
    isLocalForNetwork: config.localPlayers === "intranet",
    fetch: (request, origin) => handler(request, origin),
    portAt: (host) => portForDevices(listeners.portAt(host), library.access),
  });
  const { allowedHosts, privateUrls } = config;
  const activity = new ActivityFeed({
    clock: runtime.clock,
    engine,
    log: options.logRing ?? new LogRing(),
  });
  const loopLag = new LoopLag(runtime.clock);
  const operations = new Operations({
    ...{ engine, store, cluster, loopLag, version: VERSION, dataDir: config.dataDir },
    files: runtime.files,
    clock: runtime.clock,
    log: log.named("http"),
    runtime: `${runtime.name} ${runtime.version}`,
    process: processUsage,
  });
  let statReader: string | undefined;
  const access = accessSettings(config, hostname());
  const app = createApp({
    engine,
    library,
    players,
    ...(cluster && { cluster }),
    ...(config.clusterProxy === "on" && { engineProxy: createEngineProxy(runtime) }),
    ...(config.linkKey !== "" && { signedLinks: createSignedLinks(config.linkKey, clock.unixSeconds) }),
    ...(options.stop && { drain: options.stop }),
    ...{ broadcasts, relays, downloads },
    recordings: media.recordings,
    ...(media.catchUp && { catchUp: media.catchUp }),
    ...(options.settings && { settings: options.settings }),
    ...(options.restore && { restore: options.restore }),
    ...(config.store !== "memory" && { backup: backupDownloads(machine, config, log) }),
    ...(config.tuner === "on" && { tunerId }),
    ...(dlna && { mediaServer: dlna.mediaServer }),
    servesXtream: config.xtream === "on",
    ...(transfers.tracker && { tracker: transfers.tracker }),
    deviceId,
    activity,
    operations,
    diagnose: () => diagnose(machine, config, engine, statReader),
    statRead(userAgent) {
      statReader = userAgent;
    },
    hasRemoteContact: () => contact.isRecent,
    networkUrls: () => listeners.networkUrls(),
    version: VERSION,
    allowedHosts,
    privateUrls,
    access,
    platform: platformName(process.platform),
  });
  const digest = (text: string) => toHex(runtime.sha1(encodeUtf8(text)));
  const signaling = new SignalingServer(runtime.randomBytes, runtime.clock);
  const rooms = new SwarmRooms(runtime.randomBytes, runtime.clock);
  app.route(
    "/",
    createPageRoutes({
      ...{ engine, access, digest, signaling, rooms, viewerArchive },
      assets: options.webAssets,
      viewers: config,
    }),
  );
  const handler: HttpHandler = (request, origin, acceptWebSocket) =>
    app.fetch(request, { origin, acceptWebSocket });
  let [stopTuner, stopDlna] = [() => {}, () => {}];
  const findableTuner = (httpPort: number) =>
    startTuner({
      ...{ runtime: machine, tunerId, httpPort, engine, library, privateUrls },
      log: log.named("tuner"),
    });
  const listeners = new HttpListeners(
    { serve: runtime.serve, lookup: machine.lookup, clock: runtime.clock },
    config,
    handler,
    library.access,
  );
  // The first player reports a failure to load.
  const cancelLoading = clock.at(after(clock.now(), LOAD_MEDIA_AFTER_MS), () => loadMedia().catch(() => {}));
  return {
    engine,
    p2pPort: transfers.p2pPort,
    fetch: handler,
    apply(changed) {
      Object.assign(settings, engineSettings(changed));
      transfers.settingsChanged();
    },
    async listen(at) {
      const listener = await listeners.listen(at);
      if (config.tuner === "on") stopTuner = findableTuner(listener.address.port);
      if (dlna) stopDlna = dlna.announce(listener.address.port, () => library.access.allowsIntranet);
      return listener;
    },
    async listenForTcpClients({ host, port }) {
      if (config.tcpApiPort === 0) return undefined;
      const { networks } = machine.surroundings;
      const deps = { runtime: machine, fetch: handler, httpPort: port, networks, log: log.named("tcp-api") };
      return listenForTcpClients(deps, { host, port: config.tcpApiPort }).catch((error: unknown) => {
        throw withListenAdvice(error, "--host", "--tcp-api-port");
      });
    },
    async drain(ms) {
      operations.closing();
      log.info("draining: new players go to other engines", { players: engine.figures().players });
      await cluster
        ?.drain()
        .catch((error: unknown) =>
          log.warn("other engines do not know that this one is draining", { reason: messageOf(error) }),
        );
      const end = after(clock.now(), ms);
      while (engine.figures().players > 0 && clock.now() < end)
        await new Promise<void>((resolve) => clock.at(after(clock.now(), DRAIN_CHECK_MS), resolve));
    },
    async close() {
      operations.closing();
      loopLag.close();
      cancelLoading();
      activity.close();
      stopTuner();
      stopDlna();
      players.close();
      broadcasts.close();
      relays.close();
      await Promise.all([
        downloads.close(),
        media.recordings.close(),
        media.catchUp?.close(),
        prober?.close(),
      ]);
      await cluster?.close();
      await Promise.all([engine.stop(), library.close()]);
    },
  };
}

async function openCodecs({ transcoder }: Config, clock: Clock): Promise<AudioCodecs> {
  return transcoder === "ffmpeg"
    ? new FfmpegCodecs(await openFfmpeg(process.env))
    : new BuiltinCodecs(codecProgram, clock);
}

/** Loads the readers and writers of media files: mediabunny, mux.js and 50 modules, a sixth of the start. */
function loadMedia(): Promise<typeof import("../remux/open-media.ts")> {
  return import("../remux/open-media.ts");
}

function processUsage() {
  const { user, system } = process.cpuUsage();
  return { cpuSeconds: (user + system) / 1e6, residentBytes: process.memoryUsage.rss() };
}

function nothingPiped(): never {
  throw new SluiceError(
    "bad_parameter",
    "source -: standard input is not available here; use a URL, an address or a file",
  );
}

/** Returns the platform name that the HTTP interface reports; it knows three. */
export function platformName(system: string): "linux" | "win32" | "android" {
  return system === "win32" || system === "android" ? system : "linux";
}

function isDiskFull(error: unknown): boolean {
  if (error instanceof SluiceError) return error.code === "disk_full";
  return error instanceof Error && "code" in error && (error.code === "ENOSPC" || error.code === "EDQUOT");
}
