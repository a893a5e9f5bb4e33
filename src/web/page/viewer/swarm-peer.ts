import { withLinkedAbort } from "../../../async/abort.ts";
import { deferred } from "../../../async/deferred.ts";
import type { PeerAddress } from "../../../base/address.ts";
import { toHex } from "../../../base/bytes.ts";
import { SluiceError } from "../../../base/errors.ts";
import { SILENT_LOG } from "../../../base/log.ts";
import { URGENCY } from "../../../base/rate-limit.ts";
import { LiveDriver } from "../../../live/live-driver.ts";
import { LiveSource } from "../../../live/window/live-source.ts";
import { LiveWindow } from "../../../live/window/live-window.ts";
import { PieceLog } from "../../../live/window/piece-log.ts";
import { decodePieces } from "../../../live/window/verified-pieces.ts";
import { PeerLimits } from "../../../net/peer-limits.ts";
import { acceptPeers } from "../../../net/peer-listener.ts";
import type { TcpHandlers, TcpSocket } from "../../../runtime/contract.ts";
import { ConnectionCount } from "../../../transfer/connection-count.ts";
import type { ListedSegment } from "../../../transfer/piece-segments.ts";
import { SHARED_MANIFEST_URLS } from "../../../transfer/segment-source.ts";
import { ENGINE_OF_PAGE, pageAddress, pageIdOf } from "../../../wire/live/page-address.ts";
import type { LiveTransportFile } from "../../../wire/live/transport-file.ts";
import { makePeerId } from "../../../wire/peer/peer-id.ts";
import { EarlierSegments } from "./earlier-segments.ts";
import type { FromWorker, ToWorker, ViewerFigures } from "./messages.ts";
import { CLOCK } from "./page-clock.ts";
import { ed25519Verifier, sha256 } from "./page-crypto.ts";
import { findPages } from "./page-finder.ts";
import { PageNet } from "./page-net.ts";
import { ARCHIVE_BYTES, ARCHIVE_MS, openRecords, PieceArchive } from "./piece-archive.ts";
import { PieceExchange, type TakePieces } from "./piece-exchange.ts";
import type { PagePeer } from "./worker-loop.ts";

/** Media that is later than this is skipped: a page has a short buffer, and its engine has every piece. */
const LAG_MS = 2_500;
/** Pieces are kept this long for other pages. */
const KEEP_MS = 15_000;
/** As for other viewers: a home connection rarely uploads more than twice the bitrate. */
const UPLOAD_SHARE = 2;
/** Parents for 16 stripes, and spares. */
const MAX_CONNECTIONS = 40;
/** Response to a blocking reload (RFC 8216bis 6.2.5.2) or to a part that does not exist yet. */
const LOAD_TIMEOUT_MS = 20_000;

interface SwarmPeerOptions {
  readonly file: LiveTransportFile;
  /** The URL of the swarm at the engine. */
  readonly url: string;
  /** The last segments that the engine has. */
  readonly segments: readonly ListedSegment[];
  /** Sends to the page. */
  post(message: FromWorker, transfer?: Transferable[]): void;
}

/** A page as a peer of a live swarm: the live driver of the engine on the connections of the page. */
export class SwarmPeer implements PagePeer {
  readonly #file: LiveTransportFile;
  readonly #url: string;
  readonly #net: PageNet;
  readonly #window: LiveWindow;
  readonly #archive: PieceArchive;
  readonly #recent = deferred<Uint8Array>();
  readonly #earlier: EarlierSegments;
  readonly #exchange: PieceExchange;
  readonly #source: LiveSource;
  readonly #accept: (socket: TcpSocket) => TcpHandlers;
  /** The present driver, its id among other pages, whether it has offered upload in its handshakes, and whether it does now. */
  #joined: { driver: LiveDriver; id: string | undefined; offers: boolean; uploads: boolean } | undefined;
  #stopFinding: () => void = () => {};
  /** Of drivers that have stopped. */
  #past = { banned: 0, skippedPieces: 0 };
  #httpBytes = 0;

  constructor({ file, url, segments, post }: SwarmPeerOptions) {
    this.#file = file;
    this.#url = url;
    const makeWindow = () => windowOf(file);
    this.#window = makeWindow();
    const log = new PieceLog(this.#window);
    const verification = { file, sha256, verify: ed25519Verifier(file.info.publicKey) };
    this.#archive = new PieceArchive({
      ...{ ...verification, records: openRecords(), next: log },
      now: Date.now,
      pageId: toHex(randomBytes(4)),
      newestCount: Math.ceil(KEEP_MS / file.info.pieceMs),
    });
    this.#earlier = new EarlierSegments({
      ...{ ...verification, listed: segments, limitMs: ARCHIVE_MS, makeWindow },
      fromPages: (...asked) => this.#exchange.fetch(...asked),
      fromEngine: (...asked) => this.#fetchPieces(...asked),
    });
    this.#source = new LiveSource({
      ...{ window: this.#window, infohash: file.infohash, clock: CLOCK, listedMs: ARCHIVE_MS },
      earlier: (first) => this.#earlier.before(first),
    });
    this.#accept = acceptPeers({
      ...{ clock: CLOCK, log: SILENT_LOG },
      adopt: (infohash, socket, first) =>
        infohash === file.infohash ? this.#joined?.driver.accept(socket, first) : undefined,
    });
    const web = url.replace(/^http/, "ws");
    this.#net = new PageNet({
      url: web,
      post,
      accept: (socket) => this.#exchange.accept(socket, this.#accept),
      introduced: (address) => this.#joined?.driver.found([address]),
    });
    this.#exchange = new PieceExchange({
      ...{ clock: CLOCK, bytesPerSecond: file.info.bytesPerSecond, connect: this.#net.connect },
      pages: () => this.#pages.filter((address) => this.#net.isInRoom(address)),
      maySend: () => this.#joined?.uploads ?? false,
      segment: (number) => log.segment(number),
    });
  }

  /** The connected pages. */
  get #pages(): readonly PeerAddress[] {
    const peers = this.#joined?.driver.swarmFigures().peers ?? [];
    return peers.flatMap(({ address }) => (pageIdOf(address) === undefined ? [] : [address]));
  }

  /** Plays what an earlier page has stored, and the last seconds that the engine has, so that playback starts before the swarm is joined. */
  async begin(): Promise<void> {
    const recent = this.#recent.promise.then((bytes) => decodePieces(bytes, this.#file));
    await this.#archive.restore(recent);
  }

  recent(bytes: ArrayBuffer | undefined): void {
    const received = bytes ? new Uint8Array(bytes) : new Uint8Array(0);
    this.#httpBytes += received.length;
    this.#recent.resolve(received);
  }

  async #fetchPieces(number: number, signal: AbortSignal, take: TakePieces): Promise<void> {
    const response = await fetch(`${this.#url}/pieces/${number}`, { signal, cache: "no-store" });
    if (!response.ok) throw new SluiceError("no_such_segment", (await response.text()).trim());
    const bytes = new Uint8Array(await response.arrayBuffer());
    this.#httpBytes += bytes.length;
    await take(bytes);
  }

  /** Joins the swarm with an `id` as a peer of other pages, else with the engine alone. A page that no longer uploads stays a peer: what it
   * receives from other pages need not come from the engine. */
  async share(id: string | undefined, uploads: boolean): Promise<void> {
    const joined = this.#joined;
    // Other peers ask only a page that has offered upload in its handshake.
    if (joined === undefined || id !== joined.id || !joined.offers) return this.#join(id, uploads);
    joined.uploads = uploads;
    joined.driver.offer(uploads ? this.#offeredBytesPerSecond : 0);
  }

  get #offeredBytesPerSecond(): number {
    return UPLOAD_SHARE * this.#file.info.bytesPerSecond;
  }

  async #join(id: string | undefined, uploads: boolean): Promise<void> {
    const before = this.#joined?.driver;
    this.#stopFinding();
    if (before) {
      this.#joined = undefined;
      this.#past.banned += before.swarmFigures().bannedPeers;
      this.#past.skippedPieces += before.figures().skippedPieces;
      await before.stop();
    }
    const { info, infohash, infoBytes } = this.#file;
    const offers = id !== undefined && uploads;
    const driver = new LiveDriver({
      ...{ infohash, info, infoBytes, role: "viewer", trackers: [] },
      peerId: makePeerId(randomBytes(20)),
      runtime: {
        clock: CLOCK,
        sha256,
        ed25519Verifier,
        randomBytes,
        net: { ...NO_LISTENING, connect: this.#net.connect },
      },
      random: Math.random,
      announcer: NO_TRACKERS,
      listenPort: id === undefined ? 0 : ENGINE_OF_PAGE.port,
      listensFor: (peer) => this.#net.isInRoom(peer),
      isAllowed: (address) =>
        address.host === ENGINE_OF_PAGE.host || (id !== undefined && isOther(address, id)),
      uploadBytesPerSecond: offers ? this.#offeredBytesPerSecond : 0,
      uploadLimit: 0,
      limits: new PeerLimits({ uploadLimit: 0, downloadLimit: 0, limitLan: false }).forSwarm(
        infohash,
        () => URGENCY.live,
      ),
      ...{ lagMs: LAG_MS, keepMs: KEEP_MS, connections: new ConnectionCount(MAX_CONNECTIONS) },
      ...{ log: SILENT_LOG, sink: this.#archive, restored: this.#archive.newest, forked() {} },
    });
    this.#joined = { driver, id, offers, uploads: offers };
    driver.start();
    driver.found([ENGINE_OF_PAGE]);
    if (id === undefined) return;
    this.#stopFinding = findPages({
      ...{ url: this.#url, id, pages: () => this.figures().pages },
      found: (ids) => driver.found(ids.flatMap((each) => pageAddress(each) ?? [])),
    });
  }

  /** Handles a message about a channel. */
  channel(message: Extract<ToWorker, { readonly channel: number }>): void {
    this.#net.received(message);
  }

  /** Returns a resource of the HLS presentation of the stream. Rejects with `SluiceError`. */
  async load(path: string, signal: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
    return withLinkedAbort(signal, AbortSignal.timeout(LOAD_TIMEOUT_MS), (limited) =>
      this.#load(path, limited),
    );
  }

  async #load(path: string, limited: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
    const [name = "", query = ""] = path.split("?");
    if (name === SHARED_MANIFEST_URLS.manifest) {
      const parameters = new URLSearchParams(query);
      const [segment, part] = [parameters.get("_HLS_msn"), parameters.get("_HLS_part")];
      const reload = { segment: Number(segment), part: part === null ? undefined : Number(part) };
      const place = { urls: SHARED_MANIFEST_URLS, ...(segment !== null && { reload }) };
      return new TextEncoder().encode(await this.#source.manifest(place, "main", limited));
    }
    const [, number, part] = /^(\d+)(?:\.p(\d+))?\.ts$/.exec(name) ?? [];
    if (number === undefined) throw new SluiceError("no_such_segment", "expected a segment or a part");
    const earlier = this.#earlier.find(Number(number));
    const first = this.#window.segments.find(({ isListable }) => isListable);
    if (earlier && (!first || earlier.number < first.facts.number))
      return this.#earlier.load(earlier, limited);
    const index = await this.#source.find("ts", Number(number), limited);
    // Hls.js gets the buffer itself, so the window keeps its own.
    const bytes =
      part === undefined
        ? await this.#source.make("ts", index, 0, limited)
        : await this.#source.live.part(index, Number(part), limited);
    return bytes.slice();
  }

  figures(): ViewerFigures {
    const driver = this.#joined?.driver;
    const swarm = driver?.swarmFigures();
    const edge = this.#window.edgeMs;
    return {
      ...this.#net.traffic,
      fromEngine: this.#net.traffic.fromEngine + this.#httpBytes,
      pages: this.#pages.length,
      isEngineConnected: this.#net.isEngineConnected,
      isRefused: this.#net.isRefused,
      uploads: this.#joined?.uploads ?? false,
      children: driver?.figures().children ?? 0,
      banned: this.#past.banned + (swarm?.bannedPeers ?? 0),
      skippedPieces: this.#past.skippedPieces + (driver?.figures().skippedPieces ?? 0),
      restoredPieces: this.#archive.storedPieces,
      earlierFromPages: this.#earlier.loaded.fromPages,
      earlierFromEngine: this.#earlier.loaded.fromEngine,
      delayMs: edge === undefined ? undefined : Math.round(Date.now() - edge),
      hasEnded: this.#window.hasEnded,
    };
  }
}

const NO_TRACKERS = {
  announce: () => Promise.resolve({ ok: false as const, reason: "a page has no trackers" }),
  scrape: () => Promise.resolve(undefined),
};
const refuse = () => Promise.reject(new Error("a page has no sockets"));
const NO_LISTENING = { listen: refuse, bindUdp: refuse };

/** Returns a window in memory. */
function windowOf({ info: { segmentMs, pieceMs } }: LiveTransportFile): LiveWindow {
  const noFiles = () => Promise.reject(new SluiceError("disk_full", "a page has no files"));
  return new LiveWindow({
    ...{ clock: CLOCK, log: SILENT_LOG, segmentMs, pieceMs },
    ...{ limitMs: ARCHIVE_MS, memoryBytes: ARCHIVE_BYTES, limitBytes: () => 0 },
    ...{ folder: undefined, free: Promise.resolve(), files: { open: noFiles, remove: noFiles } },
  });
}

function isOther(address: PeerAddress, own: string): boolean {
  const id = pageIdOf(address);
  return id !== undefined && id !== own;
}

function randomBytes(length: number): Uint8Array {
  return crypto.getRandomValues(new Uint8Array(length));
}
