import { hostname } from "node:os";
import { codecScript } from "#codec-scripts";
import { createApp } from "../../routes/app.ts";
import { createChannelOpener } from "../../routes/channel-list.ts";
import type { AccessSettings, SettingsService } from "../../routes/http/dependencies.ts";
import { createPageRoutes } from "../../routes/page.ts";
import { TUNER_COUNT } from "../../routes/tuner.ts";
import type { AccessControl } from "../accounts/account-contract.ts";
import { ActivityFeed } from "../activity/activity.ts";
import { LogRing } from "../activity/log-ring.ts";
import { orAborted } from "../async/abort.ts";
import type { PeerAddress } from "../base/address.ts";
import { toHex } from "../base/bytes.ts";
import { SluiceError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { after } from "../base/time.ts";
import { encodeUtf8 } from "../base/utf8.ts";
import { FoundDevices } from "../devices/found-devices.ts";
import { createEngine, type Engine } from "../engine/engine.ts";
import { freeDiskCache } from "../engine/open-disk-cache.ts";
import { createTransfers } from "../engine/transfers.ts";
import { type BroadcastLists, createBroadcastLists } from "../live/broadcast/broadcast-lists.ts";
import { createBroadcasts } from "../live/broadcast/broadcasts.ts";
import { confineRuntime, withOwnNetworks } from "../net/confined/confined.ts";
import { logConfinement } from "../net/confined/self-test.ts";
import { RemoteContact } from "../net/remote-contact.ts";
import { startTunerDiscovery } from "../net/tuner-discovery.ts";
import { createOutbound } from "../outbound/outbound.ts";
import { AudioTranscoder } from "../remux/audio/transcoder.ts";
import { BuiltinCodecs } from "../remux/codecs/builtin-codecs.ts";
import type { AudioCodecs } from "../remux/codecs/codecs.ts";
import { FfmpegCodecs } from "../remux/codecs/ffmpeg-codecs.ts";
import type { OpenMedia } from "../remux/contract.ts";
import type { HttpHandler, HttpListener, Runtime, TcpListener } from "../runtime/contract.ts";
import { openToRead } from "../runtime/files.ts";
import { engineSettings } from "../settings/config.ts";
import type { Config } from "../settings/settings.ts";
import { VERSION } from "../settings/version.ts";
import type { WebAssets } from "../web/assets.ts";
import { SignalingServer } from "../web/signaling.ts";
import { tunerIdOf } from "../wire/tuner.ts";
import { backupDownloads } from "./backup.ts";
import { KeptBroadcasts } from "./broadcast-desk.ts";
import { broadcastRequest } from "./broadcast-request.ts";
import { diagnose } from "./diagnose.ts";
import { createDlnaServer } from "./dlna-server.ts";
import { openEncoder, openFfmpeg } from "./ffmpeg.ts";
import { HttpListeners, withListenAdvice } from "./http-listeners.ts";
import { createLocalPlayers } from "./local-players.ts";
import { LoopLag } from "./loop-lag.ts";
import { openLibrary } from "./open-library.ts";
import { Operations } from "./operations.ts";
import { announcedAddresses, ownLookup, ownTrackers } from "./own-addresses.ts";
import { createPlayers } from "./players-desk.ts";
import { startProber } from "./start-prober.ts";
import { listenForTcpClients } from "./tcp-api.ts";

/** After this time the modules of {@link loadMedia} are loaded, so that the first player does not wait for them. */
const LOAD_MEDIA_AFTER_MS = 1000;

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
  listen(at: { host: string; port: number }): Promise<HttpListener>;
  /** Changes the settings that a running engine can change; see `isLive`. */
  apply(config: Config): void;
  /** Starts the TCP API at the address of the HTTP interface, if it is on. Rejects like `listen`. */
  listenForTcpClients(http: PeerAddress): Promise<TcpListener | undefined>;
  /** Ends all sessions, sends `stopped` to the trackers and closes the database. */
  close(): Promise<void>;
}

/**
 * Starts an engine with its library, and prepares the HTTP interface. Rejects with `port_busy` if another program uses the
 * peer port, with `bad_configuration` if another engine uses the database.
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
  const { library, store, deviceId, broadcastRecords, openChannelMedia } = await open().catch(
    async (error: unknown) => {
      // The cache may be what fills the disk, and nothing else of this engine can be removed without loss.
      const freed = isDiskFull(error) ? await freeDiskCache(runtime, settings, log) : 0;
      if (freed === 0) throw error;
      log.warn("the disk was full: removed cached content to start", { bytes: freed });
      return open();
    },
  );
  const transcoder = new AudioTranscoder(await openCodecs(config));
  const openMedia: OpenMedia = async (source, mediaOptions) =>
    (await loadMedia()).openMedia(source, mediaOptions, transcoder);
  const transfers = await createTransfers(runtime, settings, log, openMedia).catch(async (error) => {
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
    records: broadcastRecords,
    clock: runtime.clock,
    log: log.named("broadcast"),
    requestOf: (asked) =>
      broadcastRequest(asked, {
        lookup: ownLookup(machine, config),
        ownAddresses: addresses(),
        tracker: config.tracker,
      }),
  });
  await broadcasts.restore().catch(async (error) => {
    await Promise.all([engine.stop(), library.close()]);
    throw error;
  });
  const media = await openChannelMedia(createChannelOpener(engine, library), openMedia).catch(
    async (error) => {
      await Promise.all([engine.stop(), library.close()]);
      throw error;
    },
  );
  const prober = startProber(config, { clock: runtime.clock, engine, library, log: log.named("probe") });
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
    ...{ engine, store, loopLag, version: VERSION, dataDir: config.dataDir },
    files: runtime.files,
    clock: runtime.clock,
    log: log.named("http"),
    runtime: `${runtime.name} ${runtime.version}`,
    process: processUsage,
  });
  let statReader: string | undefined;
  const app = createApp({
    engine,
    library,
    players,
    broadcasts,
    recordings: media.recordings,
    ...(media.catchUp && { catchUp: media.catchUp }),
    ...(options.settings && { settings: options.settings }),
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
    access: accessSettings(config, hostname()),
    platform: platformName(process.platform),
  });
  const digest = (text: string) => toHex(runtime.sha1(encodeUtf8(text)));
  const signaling = new SignalingServer(runtime.randomBytes, runtime.clock);
  app.route("/", createPageRoutes({ engine, assets: options.webAssets, digest, signaling }));
  const handler: HttpHandler = (request, origin, acceptWebSocket) =>
    app.fetch(request, { origin, acceptWebSocket });
  let [stopTuner, stopDlna] = [() => {}, () => {}];
  const findableTuner = (httpPort: number) =>
    startTunerDiscovery({
      ...{ runtime: machine, tunerId, httpPort, log: log.named("tuner") },
      tunerCount: TUNER_COUNT,
      isAllowed: () => library.access.allowsIntranet,
    });
  const listeners = new HttpListeners(
    { serve: runtime.serve, lookup: machine.lookup, clock: runtime.clock },
    config,
    handler,
    library.access,
  );
  const { clock } = runtime;
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
    async close() {
      operations.closing();
      loopLag.close();
      cancelLoading();
      activity.close();
      stopTuner();
      stopDlna();
      players.close();
      broadcasts.close();
      await Promise.all([media.recordings.close(), media.catchUp?.close(), prober?.close()]);
      await Promise.all([engine.stop(), library.close()]);
    },
  };
}

/** Returns the port at which a device fetches content. Throws `player_failed` with the setting that prevents it. */
function portForDevices(port: number | undefined, { allowsIntranet }: AccessControl): number {
  if (port === undefined)
    throw new SluiceError(
      "player_failed",
      "devices cannot reach this engine; let it listen on its network with --host ::",
    );
  if (!allowsIntranet)
    throw new SluiceError(
      "player_failed",
      "devices may not use this engine; allow access from the local network",
    );
  return port;
}

async function openCodecs({ transcoder }: Config): Promise<AudioCodecs> {
  return transcoder === "ffmpeg"
    ? new FfmpegCodecs(await openFfmpeg(process.env))
    : new BuiltinCodecs(codecScript);
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

/** Returns who may use the interface. `machineName` is the host name of this machine. */
export function accessSettings(config: Config, machineName: string): Required<AccessSettings> {
  const { trustedProxies, intranetNetworks, allowedOrigins } = config;
  return { ownNames: namesOf(machineName), trustedProxies, intranetNetworks, allowedOrigins };
}

/**
 * `nas.example.org` is also called `nas`, `nas.local` in multicast DNS (RFC 6762), and `nas.home.arpa` (RFC 8375) or `nas.lan`
 * by home routers. No site of the Internet can have the last three names.
 */
function namesOf(machineName: string): string[] {
  const whole = machineName.toLowerCase();
  const short = whole.split(".")[0]!;
  return short === ""
    ? []
    : [...new Set([whole, short, ...["local", "home.arpa", "lan"].map((end) => `${short}.${end}`)])];
}

/** The broadcast lists of the library, which opens before the engine that broadcasts: calls wait until `bind`. */
class LateLists implements BroadcastLists {
  readonly #lists: Promise<BroadcastLists>;
  #resolve: (lists: BroadcastLists) => void = () => {};
  #bound: BroadcastLists | undefined;

  constructor() {
    this.#lists = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  bind(lists: BroadcastLists): void {
    this.#bound = lists;
    this.#resolve(lists);
  }

  async refresh(...[list, progress]: Parameters<BroadcastLists["refresh"]>): Promise<string> {
    const lists = await orAborted(this.#lists, progress.signal);
    return lists.refresh(list, progress);
  }

  /** Before `bind` no list has broadcasts. */
  async forget(id: number): Promise<void> {
    await this.#bound?.forget(id);
  }
}

function isDiskFull(error: unknown): boolean {
  if (error instanceof SluiceError) return error.code === "disk_full";
  return error instanceof Error && "code" in error && (error.code === "ENOSPC" || error.code === "EDQUOT");
}
