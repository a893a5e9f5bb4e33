import type { DiagnosisRow } from "../base/diagnosis.ts";
import { SluiceError } from "../base/errors.ts";
import type { FileHash, Infohash } from "../base/ids.ts";
import type { ItemName } from "../base/item-name.ts";
import type { Log } from "../base/log.ts";
import { LiveTransfer, type LiveTransferDependencies } from "../live/live-transfer.ts";
import { type LiveFolder, openLiveFolder } from "../live/window/live-folder.ts";
import { type Announcer, announcingExternalPort, createAnnouncer } from "../net/announcer.ts";
import { acceptPeers, listenForPeers } from "../net/peer-listener.ts";
import { openReach, type Reach } from "../net/reach.ts";
import { Bucket } from "../outbound/bucket.ts";
import { createOutbound } from "../outbound/outbound.ts";
import { ClockCheck } from "../playback/diagnosis/clock-check.ts";
import { Swarm } from "../protocol/swarm/swarm.ts";
import type { OpenMedia } from "../remux/contract.ts";
import type { Runtime, TcpHandlers, TcpListener, TcpSocket } from "../runtime/contract.ts";
import type { KnownFile } from "../storage/known-file.ts";
import { PieceBufferPool } from "../storage/piece-buffers.ts";
import { PieceMemory } from "../storage/piece-memory.ts";
import { TransportFiles } from "../storage/transport-files.ts";
import { limitBucket } from "../transfer/bucket-limit.ts";
import type { WindowStorage } from "../transfer/channel-contract.ts";
import { ConnectionCount } from "../transfer/connection-count.ts";
import type {
  ActiveTransfer,
  CacheFigures,
  EngineSettings,
  TransferContent,
  TransferDependencies,
  Transfers,
  WebContent,
} from "../transfer/contract.ts";
import { ServerSlots } from "../transfer/web-seeds/server-slots.ts";
import { WebTransfer, type WebTransferDependencies } from "../web-content/web-transfer.ts";
import { EitherTransfer } from "./either-transfer.ts";
import { KeySearch } from "./key-search.ts";
import { openDiskCache } from "./open-disk-cache.ts";

/** The system chooses a port that is free for UDP; another program may have it for TCP. */
const PORT_ATTEMPTS = 5;

/**
 * Opens the P2P port, the disk cache and the stored transport files. The cache never evicts content for which `isKept` returns true. Rejects with `port_busy` if the port is in use.
 */
export async function createTransfers(
  runtime: Runtime,
  settings: EngineSettings,
  log: Log,
  openMedia: OpenMedia,
  isKept: (infohash: Infohash) => boolean = () => false,
): Promise<Transfers> {
  const { files, clock, sha1, sha256, ed25519Verifier } = runtime;
  const p2pLog = log.named("p2p");
  const transfers = new Map<Infohash, EitherTransfer>();
  const { reach, listener } = await openPeerPort(
    () =>
      openReach({
        runtime,
        settings,
        log: p2pLog,
        infohashes: () => [...transfers.keys()],
        isShared: (infohash) => transfers.get(infohash)?.isShared ?? false,
        adopt: (infohash, socket) => transfers.get(infohash)?.accept(socket, undefined),
      }),
    (opened) =>
      listenForPeers(
        {
          net: opened.peerNet,
          clock,
          log: p2pLog,
          adopt: (infohash, socket, first) => transfers.get(infohash)?.accept(socket, first),
        },
        { host: settings.p2pHost, port: opened.port },
      ),
    settings.p2pPort === 0 ? PORT_ATTEMPTS : 1,
  );
  reach.opened(listener.address.port);
  const pool = new PieceBufferPool(settings.memoryLimitBytes);
  const memory = new PieceMemory(pool, clock);
  const folder = `${settings.dataDir}/transport-files`;
  const kept = await TransportFiles.open({
    files,
    sha1,
    sha256,
    ed25519Verifier,
    log,
    folder,
    limitBytes: transportFilesLimit(settings.cacheLimitBytes),
    grown() {
      keptBytes = kept.bytes;
      cache?.limitChanged();
    },
  });
  let keptBytes = kept.bytes;
  const limitBytes = () => Math.max(0, settings.cacheLimitBytes - keptBytes);
  const cache = await openDiskCache(runtime, settings, log, {
    memoryChanged: () => memory.changed(),
    isKept,
    limitBytes,
  });
  const clockCheck = new ClockCheck(clock);
  const outbound = clockCheck.watch(createOutbound(runtime, log));
  const bucket = settings.bucket && new Bucket({ outbound, clock, sha256 }, settings.bucket);
  const stopped = new AbortController();
  if (bucket) void limitBucket(bucket, clock, log.named("bucket"), stopped.signal);
  const announcer = announcingExternalPort(
    createAnnouncer(runtime, outbound, p2pLog, reach.webrtc),
    reach.externalPort,
  );
  const shared: TransferDependencies = {
    runtime: { ...runtime, net: { ...runtime.net, ...reach.peerNet } },
    finder: reach.finder,
    ...(reach.dht && { dht: reach.dht }),
    settings,
    log: p2pLog,
    openMedia,
    announcer,
    outbound,
    seedSlots: new ServerSlots(),
    pool,
    memory,
    cache,
    bucket,
    kept,
    connections: new ConnectionCount(settings.maxConnections),
    limits: reach.limits,
    random: Math.random,
    // The port that peers connect to: a router or a VPN may map another port to the local one.
    get p2pPort() {
      return reach.externalPort();
    },
    makeSwarm: (setup, now) => new Swarm(setup, now),
  };
  const liveFolder =
    settings.liveLimitBytes > 0
      ? await openLiveFolder(`${settings.dataDir}/live`, runtime, p2pLog)
      : undefined;
  const web = { clock, outbound, log: log.named("web"), openMedia, settings };
  return new OpenTransfers({
    shared,
    transfers,
    listener,
    announcer,
    web,
    liveFolder,
    reach,
    clockCheck,
    stopped,
  });
}

/** Opens the P2P port, for UDP and then for TCP. If another program has it for TCP, tries again, `attempts` times in all. */
async function openPeerPort(
  open: () => Promise<Reach>,
  listen: (reach: Reach) => Promise<TcpListener>,
  attempts: number,
): Promise<{ readonly reach: Reach; readonly listener: TcpListener }> {
  const reach = await open();
  try {
    return { reach, listener: await listen(reach) };
  } catch (error) {
    await reach.close();
    if (attempts <= 1 || !(error instanceof SluiceError && error.code === "port_busy")) throw error;
    return openPeerPort(open, listen, attempts - 1);
  }
}

/** Transport files of opened content are part of the disk cache. Without a cache a few are stored, so that hashes of files are known. */
function transportFilesLimit(cacheLimitBytes: number): number {
  return Math.min(Math.max(cacheLimitBytes / 8, 16 * 1024 * 1024), 128 * 1024 * 1024);
}

interface OpenTransfersDependencies {
  readonly shared: TransferDependencies;
  /** By infohash; also used by the listener, to route incoming connections. */
  readonly transfers: Map<Infohash, EitherTransfer>;
  readonly listener: TcpListener;
  readonly announcer: Announcer;
  readonly web: WebTransferDependencies;
  /** Undefined: live streams are stored in memory only. */
  readonly liveFolder: LiveFolder | undefined;
  readonly reach: Reach;
  readonly clockCheck: ClockCheck;
  /** Ends work in the background when the engine stops. */
  readonly stopped: AbortController;
}

class OpenTransfers implements Transfers {
  readonly #deps: OpenTransfersDependencies;
  readonly #shared: TransferDependencies;
  readonly #live: LiveTransferDependencies;
  readonly #transfers: Map<Infohash, EitherTransfer>;
  readonly #keySearch: KeySearch;
  readonly #acceptPeer: ReturnType<typeof acceptPeers>;
  /** Live streams that are made here, and their number so far. */
  readonly #windows = { open: 0, made: 0 };
  readonly #webTransfers = new Map<Infohash, WebTransfer>();
  /** Transfers that are stopping; a new transfer of the same content waits for them. */
  readonly #stopping = new Map<Infohash, Promise<void>>();

  constructor(deps: OpenTransfersDependencies) {
    const { shared, transfers, liveFolder } = deps;
    this.#deps = deps;
    this.#shared = shared;
    this.#transfers = transfers;
    const { runtime, log } = shared;
    // A limit of its own: pages that send no handshake must not displace peers of the P2P port.
    this.#acceptPeer = acceptPeers({ clock: runtime.clock, log, adopt: () => undefined });
    this.#keySearch = new KeySearch({ clock: shared.runtime.clock, ...(shared.dht && { dht: shared.dht }) });
    const live = () => this.all().filter((transfer) => transfer.live !== undefined).length;
    const windowLimitBytes = () => shared.settings.liveLimitBytes / Math.max(1, live() + this.#windows.open);
    const { outbound } = deps.web;
    this.#live = {
      ...shared,
      outbound,
      windowLimitBytes,
      liveFolder: liveFolder?.path,
      get p2pPort() {
        return shared.p2pPort;
      },
    };
  }

  get p2pPort(): number {
    return this.#deps.listener.address.port;
  }

  get tracker(): Transfers["tracker"] {
    return this.#deps.reach.tracker;
  }

  open(content: TransferContent): ActiveTransfer {
    if (content.web) return this.#openWeb(content.infohash, content.web);
    const open = this.#transfers.get(content.infohash);
    if (open) {
      open.learn(content);
      return open;
    }
    const before = this.#stopping.get(content.infohash) ?? Promise.resolve();
    const transfer: EitherTransfer = new EitherTransfer(
      this.#shared,
      content,
      before,
      (live, after) => new LiveTransfer(this.#live, live, after),
      () => this.#removeStopping(transfer),
    );
    this.#transfers.set(content.infohash, transfer);
    return transfer;
  }

  get(infohash: Infohash): ActiveTransfer | undefined {
    return this.#transfers.get(infohash) ?? this.#webTransfers.get(infohash);
  }

  accept(infohash: Infohash, socket: TcpSocket): TcpHandlers {
    if (!this.#deps.reach.isAllowed(socket.remote.host)) {
      socket.close();
      return { received() {}, drained() {}, closed() {} };
    }
    return this.#acceptPeer(socket, (named, adopted, first) =>
      named === infohash ? this.#transfers.get(infohash)?.accept(adopted, first) : undefined,
    );
  }

  all(): readonly ActiveTransfer[] {
    return [...this.#transfers.values(), ...this.#webTransfers.values()];
  }

  knownTransportFile(infohash: Infohash): Promise<KnownFile | undefined> {
    return this.#shared.kept.read(infohash);
  }

  async infohashOfFile(hash: FileHash): Promise<Infohash | undefined> {
    return this.#shared.kept.infohashOf(hash);
  }

  findByKey(name: ItemName, signal?: AbortSignal): Promise<Infohash> {
    return this.#keySearch.find(name, signal);
  }

  keep(known: KnownFile): Promise<void> {
    return this.#shared.kept.keep(known);
  }

  keptInfohashes(): readonly Infohash[] {
    return this.#shared.kept.infohashes();
  }

  get cache(): Transfers["cache"] {
    return this.#shared.cache;
  }

  async cacheFigures(): Promise<CacheFigures> {
    const { runtime, settings, cache, pool } = this.#shared;
    const available = (await runtime.files.freeBytes(settings.dataDir)) ?? 0;
    const { activeBytes, inactiveBytes } = cache?.figures() ?? { activeBytes: 0, inactiveBytes: 0 };
    return {
      available,
      limit: settings.cacheLimitBytes,
      activeInUse: activeBytes + this.all().reduce((sum, { live }) => sum + (live?.diskBytes ?? 0), 0),
      inactiveInUse: inactiveBytes,
      memoryInUse: pool.inUseBytes,
    };
  }

  get limits(): Transfers["limits"] {
    return this.#shared.limits;
  }

  windowStorage(): WindowStorage {
    const { liveFolder, shared } = this.#deps;
    const windows = this.#windows;
    windows.open++;
    windows.made++;
    return {
      files: shared.runtime.files,
      folder: liveFolder && `${liveFolder.path}/channel-${windows.made}`,
      limitBytes: this.#live.windowLimitBytes,
      release() {
        windows.open--;
      },
    };
  }

  settingsChanged(): void {
    this.#deps.reach.limitsChanged();
    this.#shared.cache?.limitChanged();
  }

  async reachRows(): Promise<readonly DiagnosisRow[]> {
    const { reach, clockCheck } = this.#deps;
    const clock = clockCheck.row();
    return [...(await reach.rows()), ...(clock ? [clock] : [])];
  }

  async close(): Promise<void> {
    const { kept, cache } = this.#shared;
    const { listener, announcer, liveFolder, reach, stopped } = this.#deps;
    stopped.abort();
    await Promise.all([
      listener.close(),
      this.#keySearch.close(),
      ...this.all().map((transfer) => transfer.stop()),
    ]);
    await Promise.all(this.#stopping.values());
    announcer.close();
    await reach.close();
    await liveFolder?.close();
    await kept.close();
    await cache?.close();
  }

  #openWeb(infohash: Infohash, content: WebContent): WebTransfer {
    const open = this.#webTransfers.get(infohash);
    open?.learn(content);
    if (open) return open;
    const transfer = new WebTransfer(this.#deps.web, infohash, content, () =>
      this.#webTransfers.delete(infohash),
    );
    this.#webTransfers.set(infohash, transfer);
    return transfer;
  }

  #removeStopping(transfer: EitherTransfer): void {
    const { infohash } = transfer;
    if (this.#transfers.get(infohash) === transfer) this.#transfers.delete(infohash);
    const done = () => {
      if (this.#stopping.get(infohash) === stopping) this.#stopping.delete(infohash);
    };
    // The caller of `stop` handles its error; the next transfer starts either way.
    const stopping: Promise<void> = transfer.stop().then(done, done);
    this.#stopping.set(infohash, stopping);
  }
}
