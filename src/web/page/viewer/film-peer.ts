import { orAborted, withLinkedAbort } from "../../../async/abort.ts";
import type { PeerAddress } from "../../../base/address.ts";
import { SluiceError } from "../../../base/errors.ts";
import type { Infohash } from "../../../base/ids.ts";
import { SILENT_LOG } from "../../../base/log.ts";
import { trimOldest } from "../../../base/trim-oldest.ts";
import { PeerLimits } from "../../../net/peer-limits.ts";
import { acceptPeers } from "../../../net/peer-listener.ts";
import { openFilm } from "../../../playback/film-source.ts";
import { Swarm } from "../../../protocol/swarm/swarm.ts";
import { openMedia } from "../../../remux/open-media.ts";
import type { TcpHandlers, TcpSocket } from "../../../runtime/contract.ts";
import { PieceBufferPool } from "../../../storage/piece-buffers.ts";
import { PieceMemory } from "../../../storage/piece-memory.ts";
import { ConnectionCount } from "../../../transfer/connection-count.ts";
import type { TransferDependencies } from "../../../transfer/contract.ts";
import { parseSegmentName, type SegmentSource } from "../../../transfer/segment-source.ts";
import { SwarmTransfer } from "../../../transfer/transfer.ts";
import { ServerSlots } from "../../../transfer/web-seeds/server-slots.ts";
import { ENGINE_OF_PAGE, pageAddress, pageIdOf } from "../../../wire/live/page-address.ts";
import type { TransportFile } from "../../../wire/torrent/metainfo.ts";
import type { FromWorker, ToWorker, ViewerFigures } from "./messages.ts";
import { CLOCK } from "./page-clock.ts";
import { sha1, sha256 } from "./page-crypto.ts";
import { findPages } from "./page-finder.ts";
import { PageNet } from "./page-net.ts";
import type { PagePeer } from "./worker-loop.ts";

/** Pieces in memory, for the player and for other pages. */
const MEMORY_BYTES = 96 * 1024 * 1024;
/** A home line of 10 Mbit/s up, shared with others of the household. */
const UPLOAD_BYTES_PER_SECOND = 1_000_000;
/** Connections that this page opens to others of the room, and all of its connections. */
const MAX_DIALED = 12;
const MAX_CONNECTIONS = 40;
/** Interval between two attempts to connect to the engine, and to a page, which may be banned. */
const ENGINE_RETRY_MS = 5_000;
const PAGE_RETRY_MS = 30_000;
/** Pages that are not connected again at once. */
const MAX_LEFT = 200;
/** A segment that the swarm does not bring within this time is requested over HTTP: the engine then fetches it for all. */
const PATIENCE_MS = 4_000;
/** The same after a segment that the swarm did not bring. */
const LOW_PATIENCE_MS = 500;

const refuse = () => Promise.reject(new Error("a page has no sockets"));

interface FilmPeerOptions {
  readonly file: TransportFile;
  readonly fileIndex: number;
  /** Of the engine. */
  readonly segmentSeconds: number;
  /** The HLS presentation of the file at the engine. */
  readonly hlsUrl: string;
  /** The URL of the swarm at the engine. */
  readonly url: string;
  post(message: FromWorker, transfer?: Transferable[]): void;
}

/**
 * A page as a peer of the swarm of a film: the transfer of the engine on the connections of the page. It makes the segments that the
 * engine would make, from verified pieces. Until the viewer exchanges data, and for segments that the swarm brings too late, it reads the
 * HLS presentation of the engine.
 */
export class FilmPeer implements PagePeer {
  readonly #options: FilmPeerOptions;
  readonly #net: PageNet;
  readonly #transfer: SwarmTransfer;
  readonly #accept: (socket: TcpSocket) => TcpHandlers;
  /** Open connections and those being opened, by host. */
  readonly #sockets = new Map<string, TcpSocket>();
  /** When the connection to a page ended, by host. */
  readonly #leftAt = new Map<string, number>();
  #source: Promise<SegmentSource> | undefined;
  /** Whether this page exchanges data. */
  #isSharing = false;
  #stopFinding: () => void = () => {};
  #patienceMs = PATIENCE_MS;
  #httpBytes = 0;

  constructor(options: FilmPeerOptions) {
    const { file, url, post } = options;
    this.#options = options;
    const web = url.replace(/^http/, "ws");
    this.#net = new PageNet({
      ...{ url: web, post },
      accept: (socket) => this.#accepted(socket),
      introduced: (address) => this.#dial(address),
    });
    const content = { infohash: file.infohash, transportFile: file, trackers: [], peers: [], webSeeds: [] };
    this.#transfer = new SwarmTransfer(this.#dependencies(), content, Promise.resolve(), () => {});
    this.#accept = acceptPeers({
      ...{ clock: CLOCK, log: SILENT_LOG },
      adopt: (infohash: Infohash, socket, first) =>
        infohash === file.infohash ? this.#transfer.accept(socket, first) : undefined,
    });
  }

  async begin(): Promise<void> {
    await this.#transfer.ready();
  }

  async share(id: string | undefined, uploads: boolean): Promise<void> {
    this.#stopFinding();
    this.#stopFinding = () => {};
    this.#isSharing = id !== undefined && uploads;
    if (id === undefined || !uploads) {
      for (const socket of [...this.#sockets.values()]) socket.close();
      return;
    }
    const keepEngine = setInterval(() => this.#dial(ENGINE_OF_PAGE), ENGINE_RETRY_MS);
    this.#dial(ENGINE_OF_PAGE);
    const stopFinding = findPages({
      ...{ url: this.#options.url, id, pages: () => this.figures().pages },
      found: (ids) => {
        // Of two pages, the one with the smaller id connects.
        for (const each of ids.filter((other) => other > id)) {
          const address = pageAddress(each);
          const leftAt = address && this.#leftAt.get(address.host);
          const isDue = leftAt === undefined || CLOCK.now() - leftAt > PAGE_RETRY_MS;
          if (address && isDue && this.#sockets.size < MAX_DIALED) this.#dial(address);
        }
      },
    });
    this.#stopFinding = () => {
      clearInterval(keepEngine);
      stopFinding();
    };
  }

  channel(message: Extract<ToWorker, { readonly channel: number }>): void {
    this.#net.received(message);
  }

  async load(path: string, signal: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
    const name = parseSegmentName(path.split("?")[0] ?? "");
    if (!name || !this.#isSharing || this.#transfer.figures.connectedPeers === 0)
      return this.#fetch(path, signal);
    try {
      const bytes = await withLinkedAbort(signal, AbortSignal.timeout(this.#patienceMs), async (limited) => {
        this.#source ??= this.#open();
        const source = await orAborted(this.#source, limited);
        const index = await source.find(name.kind, name.number, limited);
        return source.make(name.kind, index, name.track, limited);
      });
      this.#patienceMs = PATIENCE_MS;
      return bytes.slice();
    } catch (error) {
      if (signal.aborted) throw error;
      this.#patienceMs = LOW_PATIENCE_MS;
      return this.#fetch(path, signal);
    }
  }

  figures(): ViewerFigures {
    const { traffic, isEngineConnected, isRefused } = this.#net;
    const { peers, bannedPeers } = this.#transfer.figures;
    return {
      ...traffic,
      fromEngine: traffic.fromEngine + this.#httpBytes,
      pages: peers.filter(({ address }) => pageIdOf(address) !== undefined).length,
      ...{ isEngineConnected, isRefused, uploads: this.#isSharing, children: 0, banned: bannedPeers },
      ...{
        skippedPieces: 0,
        restoredPieces: 0,
        earlierFromPages: 0,
        earlierFromEngine: 0,
        delayMs: undefined,
        hasEnded: false,
      },
    };
  }

  /** Connects to the engine or to a page, unless it is connected. */
  #dial(address: PeerAddress): void {
    const { host } = address;
    if (!this.#isSharing || this.#sockets.has(host)) return;
    let handlers: TcpHandlers | undefined;
    const socket = this.#net.connect(address, {
      opened: () => {
        handlers = this.#transfer.accept(socket, undefined);
        if (!handlers) socket.close();
      },
      received: (bytes) => handlers?.received(bytes),
      drained: () => handlers?.drained(),
      closed: (reason) => {
        if (this.#sockets.get(host) === socket) this.#sockets.delete(host);
        this.#leftAt.set(host, CLOCK.now());
        trimOldest(this.#leftAt, MAX_LEFT);
        handlers?.closed(reason);
      },
    });
    this.#sockets.set(host, socket);
  }

  #accepted(socket: TcpSocket): TcpHandlers {
    const { host } = socket.remote;
    const handlers = this.#accept(socket);
    if (!this.#isSharing) socket.close();
    else this.#sockets.set(host, socket);
    return {
      ...handlers,
      closed: (reason) => {
        if (this.#sockets.get(host) === socket) this.#sockets.delete(host);
        handlers.closed(reason);
      },
    };
  }

  /** Opens the file for all requests, so it does not stop with the first of them. */
  async #open(): Promise<SegmentSource> {
    const file = this.#transfer.files[this.#options.fileIndex];
    if (!file) throw new SluiceError("no_such_file", "the content lacks the file");
    // As the engine does for its HLS presentation, so that the segments are the same.
    const request = { output: "hls", container: "auto", audioLanguage: undefined } as const;
    const never = new AbortController().signal;
    const opening = openFilm(this.#transfer, file, request, never);
    opening.catch(() => {
      this.#source = undefined;
    });
    return opening;
  }

  async #fetch(path: string, signal: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
    const response = await fetch(new URL(path, this.#options.hlsUrl), { signal });
    if (!response.ok) throw new SluiceError("no_such_segment", (await response.text()).trim());
    const bytes = new Uint8Array(await response.arrayBuffer());
    this.#httpBytes += bytes.length;
    return bytes;
  }

  /** What the transfer of the engine depends on, without sockets, disk and trackers. */
  #dependencies(): TransferDependencies {
    const pool = new PieceBufferPool(MEMORY_BYTES);
    const randomBytes = (length: number) => crypto.getRandomValues(new Uint8Array(length));
    const dependencies: Partial<Record<keyof TransferDependencies, unknown>> = {
      runtime: { clock: CLOCK, sha1, sha256, randomBytes, net: { connect: this.#net.connect } },
      settings: {
        ...{ memoryLimitBytes: MEMORY_BYTES, reach: { utp: false } },
        segmentSeconds: this.#options.segmentSeconds,
      },
      ...{ log: SILENT_LOG, openMedia, pool, memory: new PieceMemory(pool, CLOCK), cache: undefined },
      announcer: { announce: refuse, scrape: refuse },
      finder: { join: () => () => {} },
      outbound: { open: refuse },
      seedSlots: new ServerSlots(),
      kept: { read: () => Promise.resolve(undefined), save() {} },
      connections: new ConnectionCount(MAX_CONNECTIONS),
      limits: new PeerLimits({ uploadLimit: UPLOAD_BYTES_PER_SECOND, downloadLimit: 0, limitLan: true }),
      ...{ random: Math.random, p2pPort: 0 },
      makeSwarm: (...given: ConstructorParameters<typeof Swarm>) => new Swarm(...given),
    };
    return dependencies as unknown as TransferDependencies;
  }
}
