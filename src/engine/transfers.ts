import { messageOf } from "../base/errors.ts";
import type { ContentId, Infohash } from "../base/ids.ts";
import type { ItemName } from "../base/item-name.ts";
import type { Log } from "../base/log.ts";
import { createOutbound } from "../outbound/outbound.ts";
import type { OpenMedia } from "../remux/contract.ts";
import type { Runtime, TcpListener } from "../runtime/contract.ts";
import { pieceCheck } from "../swarm/piece-check.ts";
import { Swarm } from "../swarm/swarm.ts";
import { type Announcer, createAnnouncer } from "./announcer.ts";
import { ContentSearch, type FoundContent } from "./content-search.ts";
import type { ActiveTransfer, CacheFigures, EngineSettings, TransferContent, Transfers } from "./contract.ts";
import { ClockCheck } from "./diagnosis/clock-check.ts";
import type { DiagnosisRow } from "./diagnosis/contract.ts";
import { DiskCache } from "./disk-cache.ts";
import { EitherTransfer } from "./either-transfer.ts";
import type { WebContent } from "./http/web-content.ts";
import { type WebHouse, WebTransfer } from "./http/web-transfer.ts";
import { KeySearch } from "./key-search.ts";
import type { KnownFile } from "./known-file.ts";
import { ContentIdSwarms } from "./live/content-id-swarms.ts";
import { type LiveFolder, openLiveFolder } from "./live/live-folder.ts";
import { type LiveHouse, LiveTransfer } from "./live/live-transfer.ts";
import { listenForPeers } from "./peer-listener.ts";
import { PieceBufferPool } from "./piece-buffers.ts";
import { PieceMemory } from "./piece-memory.ts";
import { openReach, type Reach } from "./reach/reach.ts";
import { tellingPort } from "./reach/told-port.ts";
import type { TransferHouse } from "./transfer-house.ts";
import { TransportFiles } from "./transport-files.ts";
import { ServerSlots } from "./web-seeds/server-slots.ts";

/** Opens the P2P port, the cache and what is kept; rejects with `port_busy` where the port is taken. */
export async function createTransfers(
  runtime: Runtime,
  settings: EngineSettings,
  log: Log,
  openMedia: OpenMedia,
): Promise<Transfers> {
  const { files, clock, sha1, sha256, ed25519Verifier } = runtime;
  const p2pLog = log.named("p2p");
  const transfers = new Map<Infohash, EitherTransfer>();
  const reach = await openReach({
    runtime,
    settings,
    log: p2pLog,
    infohashes: () => [...transfers.keys(), ...(contentIds?.infohashes() ?? [])],
    isShared: (infohash) => transfers.get(infohash)?.isShared ?? contentIds?.isShared(infohash) ?? false,
  });
  let contentIds: ContentIdSwarms | undefined;
  const listener = await listenForPeers(
    {
      net: reach.peerNet,
      clock,
      log: p2pLog,
      adopt: (infohash, socket, first) =>
        transfers.get(infohash)?.accept(socket, first) ?? contentIds?.accept(infohash, socket, first),
    },
    { host: settings.p2pHost, port: reach.port },
  ).catch(async (error) => {
    await reach.close();
    throw error;
  });
  reach.opened(listener.address.port);
  const pool = new PieceBufferPool(settings.memoryLimitBytes);
  const memory = new PieceMemory(pool);
  const folder = `${settings.dataDir}/transport-files`;
  const kept = await TransportFiles.open({ files, sha1, sha256, ed25519Verifier, log, folder });
  const cache = await openCache(runtime, settings, log, memory);
  const clockCheck = new ClockCheck(clock);
  const outbound = clockCheck.watch(createOutbound(runtime, log));
  const announcer = tellingPort(createAnnouncer(runtime, outbound, p2pLog), reach.externalPort);
  const house: TransferHouse = {
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
    kept,
    connections: { open: 0, limit: settings.maxConnections },
    limits: reach.limits,
    random: Math.random,
    // What peers are told when a swarm begins: the router, or a VPN, may give another port than ours.
    get p2pPort() {
      return reach.externalPort();
    },
    makeSwarm: (setup, now) => new Swarm(setup, now),
  };
  const { random, p2pPort } = house;
  contentIds = new ContentIdSwarms({
    clock,
    log: p2pLog,
    random,
    randomBytes: runtime.randomBytes,
    listenPort: p2pPort,
    finder: reach.finder,
    ...(reach.dht && { dht: reach.dht }),
  });
  const liveFolder =
    settings.liveLimitBytes > 0
      ? await openLiveFolder(`${settings.dataDir}/live`, runtime, p2pLog)
      : undefined;
  const web = { clock, outbound, log: log.named("web"), openMedia, settings };
  return new OpenTransfers({
    house,
    transfers,
    listener,
    announcer,
    web,
    contentIds,
    liveFolder,
    reach,
    clockCheck,
  });
}

async function openCache(
  { files, clock, sha1, sha256, lock }: Runtime,
  { cacheLimitBytes, dataDir }: EngineSettings,
  log: Log,
  memory: PieceMemory,
): Promise<DiskCache | undefined> {
  if (cacheLimitBytes === 0) return undefined;
  const path = `${dataDir}/cache`;
  const memoryChanged = () => memory.changed();
  try {
    return await DiskCache.open({
      files,
      clock,
      isRight: pieceCheck(sha1, sha256),
      log,
      path,
      limitBytes: cacheLimitBytes,
      lock: async () => {
        await (await files.open(`${path}.lock`)).close(); // Makes the data folder, which the lock needs.
        return lock(`${path}.lock`);
      },
      memoryChanged,
    });
  } catch (error) {
    log.warn("no disk cache: pieces are kept in memory only", { reason: messageOf(error) });
    return undefined;
  }
}

interface OpenTransfersParts {
  readonly house: TransferHouse;
  /** By infohash; the listener looks here for whom a peer calls. */
  readonly transfers: Map<Infohash, EitherTransfer>;
  readonly listener: TcpListener;
  readonly announcer: Announcer;
  readonly web: WebHouse;
  readonly contentIds: ContentIdSwarms;
  /** Undefined: live streams are kept in memory only. */
  readonly liveFolder: LiveFolder | undefined;
  readonly reach: Reach;
  readonly clockCheck: ClockCheck;
}

class OpenTransfers implements Transfers {
  readonly #parts: OpenTransfersParts;
  readonly #house: TransferHouse;
  readonly #live: LiveHouse;
  readonly #transfers: Map<Infohash, EitherTransfer>;
  readonly #search: ContentSearch;
  readonly #keySearch: KeySearch;
  readonly #webTransfers = new Map<Infohash, WebTransfer>();
  /** Transfers on their way out: one of the same content waits for them. */
  readonly #leaving = new Map<Infohash, Promise<void>>();

  constructor(parts: OpenTransfersParts) {
    const { house, transfers, contentIds, liveFolder } = parts;
    this.#parts = parts;
    this.#house = house;
    this.#transfers = transfers;
    this.#search = new ContentSearch({
      ...house,
      trackers: house.settings.trackers,
      hasFinder: house.settings.reach.dht || house.settings.reach.lsd,
    });
    this.#keySearch = new KeySearch({ clock: house.runtime.clock, ...(house.dht && { dht: house.dht }) });
    const live = () => this.all().filter((transfer) => transfer.live !== undefined).length;
    const windowLimitBytes = () => house.settings.liveLimitBytes / Math.max(1, live());
    const { outbound } = parts.web;
    this.#live = {
      ...house,
      outbound,
      contentIds,
      windowLimitBytes,
      liveFolder: liveFolder?.path,
      get p2pPort() {
        return house.p2pPort;
      },
    };
  }

  get p2pPort(): number {
    return this.#parts.listener.address.port;
  }

  get tracker(): Transfers["tracker"] {
    return this.#parts.reach.tracker;
  }

  open(content: TransferContent): ActiveTransfer {
    if (content.web) return this.#openWeb(content.infohash, content.web);
    const known = this.#transfers.get(content.infohash);
    if (known) {
      known.learn(content);
      return known;
    }
    const before = this.#leaving.get(content.infohash) ?? Promise.resolve();
    const transfer: EitherTransfer = new EitherTransfer(
      this.#house,
      content,
      before,
      (live, after) => new LiveTransfer(this.#live, live, after),
      () => this.#leave(transfer),
    );
    this.#transfers.set(content.infohash, transfer);
    return transfer;
  }

  get(infohash: Infohash): ActiveTransfer | undefined {
    return this.#transfers.get(infohash) ?? this.#webTransfers.get(infohash);
  }

  all(): readonly ActiveTransfer[] {
    return [...this.#transfers.values(), ...this.#webTransfers.values()];
  }

  knownTransportFile(infohash: Infohash): Promise<KnownFile | undefined> {
    return this.#house.kept.read(infohash);
  }

  async knownContentId(contentId: ContentId): Promise<Infohash | undefined> {
    return this.#house.kept.infohashOf(contentId);
  }

  findContent(contentId: ContentId, signal?: AbortSignal): Promise<FoundContent | undefined> {
    return this.#search.find(contentId, signal);
  }

  findByKey(name: ItemName, signal?: AbortSignal): Promise<Infohash> {
    return this.#keySearch.find(name, signal);
  }

  keep(known: KnownFile): Promise<void> {
    return this.#house.kept.keep(known);
  }

  keptInfohashes(): readonly Infohash[] {
    return this.#house.kept.infohashes();
  }

  async cacheFigures(): Promise<CacheFigures> {
    const { runtime, settings, cache, pool } = this.#house;
    const available = (await runtime.files.freeBytes(settings.dataDir)) ?? 0;
    const { activeBytes, inactiveBytes } = cache?.figures() ?? { activeBytes: 0, inactiveBytes: 0 };
    return {
      available,
      limit: settings.cacheLimitBytes,
      activeInUse: activeBytes,
      inactiveInUse: inactiveBytes,
      memoryInUse: pool.inUseBytes,
    };
  }

  async reachRows(): Promise<readonly DiagnosisRow[]> {
    const { reach, clockCheck } = this.#parts;
    const clock = clockCheck.row();
    return [...(await reach.rows()), ...(clock ? [clock] : [])];
  }

  async close(): Promise<void> {
    const { kept, cache } = this.#house;
    const { listener, announcer, contentIds, liveFolder, reach } = this.#parts;
    await Promise.all([
      listener.close(),
      this.#search.close(),
      this.#keySearch.close(),
      ...this.all().map((transfer) => transfer.stop()),
    ]);
    await Promise.all([...this.#leaving.values(), contentIds.close()]);
    announcer.close();
    await reach.close();
    await liveFolder?.close();
    await kept.close();
    await cache?.close();
  }

  #openWeb(infohash: Infohash, content: WebContent): WebTransfer {
    const known = this.#webTransfers.get(infohash);
    known?.learn(content);
    if (known) return known;
    const transfer = new WebTransfer(this.#parts.web, infohash, content, () =>
      this.#webTransfers.delete(infohash),
    );
    this.#webTransfers.set(infohash, transfer);
    return transfer;
  }

  #leave(transfer: EitherTransfer): void {
    const { infohash } = transfer;
    if (this.#transfers.get(infohash) === transfer) this.#transfers.delete(infohash);
    const gone = () => {
      if (this.#leaving.get(infohash) === leaving) this.#leaving.delete(infohash);
    };
    // However it ended, and whoever stopped it is told why: the next one begins.
    const leaving: Promise<void> = transfer.stop().then(gone, gone);
    this.#leaving.set(infohash, leaving);
  }
}
