import type { PeerAddress } from "../base/address.ts";
import { messageOf, SluiceError } from "../base/errors.ts";
import type { Infohash } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import { URGENCY } from "../base/rate-limit.ts";
import { after, type Instant } from "../base/time.ts";
import type { Announcer } from "../net/announcer.ts";
import type { Dht, PeerFinder } from "../net/contract.ts";
import type { PeerLimits } from "../net/peer-limits.ts";
import type { Outbound } from "../outbound/outbound.ts";
import { FORK_TOLERANCE_MS } from "../protocol/live/limits.ts";
import type { SwarmFigures } from "../protocol/swarm/contract.ts";
import { NO_FIGURES } from "../protocol/swarm/figures.ts";
import type { Media } from "../remux/contract.ts";
import type { Clock, Runtime, TcpHandlers, TcpSocket } from "../runtime/contract.ts";
import type { ConnectionCount } from "../transfer/connection-count.ts";
import type {
  ByteSource,
  ContentFile,
  EngineSettings,
  LiveControl,
  PeerTransfer,
} from "../transfer/contract.ts";
import type { LiveContent } from "../transfer/live-content.ts";
import { LocalTrackers } from "../transfer/local-trackers.ts";
import type { SegmentSource } from "../transfer/segment-source.ts";
import type { PieceHeader } from "../wire/live/header.ts";
import type { Successor } from "../wire/live/successor.ts";
import type { LiveVariant } from "../wire/live/variants.ts";
import { makePeerId } from "../wire/peer/peer-id.ts";
import type { PieceSink } from "./contract.ts";
import { type LiveTransferContent, liveFiles } from "./live-content.ts";
import { LiveDriver } from "./live-driver.ts";
import { SuccessorSearch } from "./successor-search.ts";
import { fallbackOf } from "./web-fallback/web-fallback.ts";
import { LiveSource } from "./window/live-source.ts";
import { LiveWindow } from "./window/live-window.ts";
import { PieceLog } from "./window/piece-log.ts";

/** What all live transfers depend on. */
export interface LiveTransferDependencies {
  readonly runtime: Runtime;
  readonly settings: EngineSettings;
  readonly log: Log;
  readonly announcer: Pick<Announcer, "announce" | "scrape">;
  readonly finder: PeerFinder;
  /** Absent if the DHT is off. */
  readonly dht?: Pick<Dht, "publishMutable" | "getMutable">;
  readonly connections: ConnectionCount;
  readonly limits: PeerLimits;
  readonly random: Random;
  readonly p2pPort: number;
  readonly outbound: Pick<Outbound, "open">;
  /** The folder of the windows; undefined to keep them in memory only. */
  readonly liveFolder: string | undefined;
  /** Returns the disk limit of one stream's window: the limit is shared by all open streams. */
  readonly windowLimitBytes: () => number;
}

/** One live stream: its swarm, its window, and its playback. */
export class LiveTransfer implements PeerTransfer {
  readonly infohash: Infohash;
  readonly live: LiveControl;
  readonly #content: LiveContent;
  readonly #displayName: string | undefined;
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #announcer: LocalTrackers;
  readonly #window: LiveWindow;
  readonly #pieces: PieceLog;
  readonly #source: LiveSource;
  readonly #driver: LiveDriver;
  readonly #begun: Promise<void>;
  #stopping: Promise<void> | undefined;
  #isBegun = false;
  #isIdle = false;
  #leaveFinder: () => void = () => {};
  #stopHead: () => void = () => {};
  #forkedUntil: Instant | undefined;
  #isSucceeded = false;
  #rival: PieceHeader | undefined;
  #minutesAhead = 0;
  #variants: readonly LiveVariant[];
  #toldTrackers: readonly string[] = [];
  #successor: Successor | undefined;
  #stopSuccessor: () => void = () => {};
  #successorSearch: SuccessorSearch | undefined;

  /** Starts when `before` has resolved: an earlier transfer of the same stream must have closed its folder. */
  constructor(dependencies: LiveTransferDependencies, content: LiveTransferContent, before: Promise<void>) {
    const { runtime, settings } = dependencies;
    const { live, infohash } = content;
    const { info } = live.file;
    this.#content = live;
    this.#clock = runtime.clock;
    // In an unsigned file, anyone may have added streams.
    this.#variants = (live.file.isSigned && live.file.variants) || [];
    this.#displayName = content.displayName;
    this.infohash = infohash;
    this.#log = dependencies.log.named(infohash.slice(0, 8));
    this.#announcer = new LocalTrackers(dependencies.announcer);
    this.#announcer.add(content.localTrackers ?? []);
    const { keepMs, offeredBytesPerSecond } = liveBudget(live, dependencies.limits.upload.bytesPerSecond);
    this.#window = new LiveWindow({
      files: runtime.files,
      clock: runtime.clock,
      folder: dependencies.liveFolder && `${dependencies.liveFolder}/${infohash}`,
      free: before,
      limitMs:
        live.role === "relay"
          ? Math.max(settings.liveWindowMs, 1000 * info.windowSeconds)
          : settings.liveWindowMs,
      limitBytes: dependencies.windowLimitBytes,
      segmentMs: info.segmentMs,
      pieceMs: info.pieceMs,
      log: this.#log,
    });
    this.#pieces = new PieceLog(this.#window);
    this.#source = new LiveSource({ window: this.#window, infohash, clock: runtime.clock });
    this.#driver = new LiveDriver({
      infohash,
      info,
      infoBytes: live.file.infoBytes,
      role: live.role,
      peerId: makePeerId(runtime.randomBytes(20)),
      runtime,
      random: dependencies.random,
      announcer: this.#announcer,
      // The trackers in the file are for viewers: a private source is not announced.
      trackers: live.only ? content.trackers : [...live.file.trackers, ...content.trackers],
      listenPort: dependencies.p2pPort,
      punches: settings.reach.utp,
      uploadBytesPerSecond: offeredBytesPerSecond,
      uploadLimit: live.uploadBytesPerSecond ?? 0,
      limits: dependencies.limits.forSwarm(this.infohash, () => (this.#isIdle ? URGENCY.idle : URGENCY.live)),
      lagMs: settings.liveLagMs,
      // In an unsigned file, anyone may have added relays.
      relays: live.file.isSigned ? live.file.relays : [],
      keepMs,
      ...(live.only && { only: live.only }),
      ...(live.mayShareEpoch && { mayShareEpoch: true }),
      ...(live.roleKey && { roleKey: live.roleKey }),
      connections: dependencies.connections,
      log: this.#log,
      sink: this.#isTransportStream ? this.#pieces : NO_SINK,
      forked: (seq, header) => this.#forkedAt(seq, header),
      moved: (successor) => {
        this.#successor = successor;
        this.#log.warn("this stream has moved to another key; open its new link", {
          infohash: successor.infohash,
        });
      },
      stated: ({ variants = [], trackers }) => {
        this.#variants = variants;
        this.#toldTrackers = trackers;
      },
      ahead: (minutes) => {
        this.#minutesAhead = minutes;
      },
      ...fallbackOf(dependencies, live, this.#log),
    });
    if (content.wantsHistory) this.fetchHistory();
    this.live = this.#control();
    this.#begun = before.then(() => {
      if (this.#stopping) return;
      this.#isBegun = true;
      this.#driver.start();
      this.addPeers([...content.peers, ...(live.knownPeers ?? [])]);
      if (info.isPrivate || live.only) return;
      this.#leaveFinder = this.#find(dependencies.finder);
      this.#searchSuccessor(dependencies);
      const { head } = live;
      if (live.successor && dependencies.dht) {
        const { successor } = live;
        this.#stopSuccessor = dependencies.dht.publishMutable(() => successor);
      }
      if (head && dependencies.dht) this.#stopHead = dependencies.dht.publishMutable(() => head);
    });
  }

  get name(): string {
    const { meta, info } = this.#content.file;
    return meta.title ?? this.#displayName ?? info.name;
  }

  get files(): readonly ContentFile[] {
    return liveFiles(this.#content.file);
  }

  get figures(): SwarmFigures {
    return this.#isBegun && !this.#stopping ? this.#driver.swarmFigures() : NO_FIGURES;
  }

  readonly segmentSource = async (signal: AbortSignal): Promise<SegmentSource> => {
    signal.throwIfAborted();
    if (this.#isTransportStream) return this.#source;
    throw new SluiceError(
      "unsupported_container",
      "this live stream is fragmented MP4; only MPEG-TS can be played",
    );
  };

  get #isTransportStream(): boolean {
    return this.#content.file.info.container !== "hls-fmp4";
  }

  async ready(signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    if (this.#stopping) throw stopped();
  }

  source(): ByteSource {
    throw new SluiceError("no_such_file", "a live stream has no file");
  }

  async media(): Promise<Media> {
    throw new SluiceError("no_such_file", "a live stream has no file");
  }

  progress(): number {
    return 0;
  }

  headBytes(): number {
    return this.#driver.figures().receivedBytes;
  }

  addTrackers(tiers: readonly (readonly string[])[], localTrackers: readonly string[] = []): void {
    this.#announcer.add(localTrackers);
    if (tiers.length > 0) this.#driver.addTrackers(tiers);
  }

  addPeers(addresses: readonly PeerAddress[]): void {
    if (addresses.length > 0) this.#driver.found(addresses);
  }

  transportFile(): undefined {
    return undefined;
  }

  fetchHistory(): void {
    this.#driver.fetchHistory();
  }

  setIdle(isIdle: boolean): void {
    if (this.#content.role !== "viewer" || this.#isIdle === isIdle) return;
    this.#isIdle = isIdle;
    if (!isIdle) this.#window.interrupted();
    this.#driver.setIdle(isIdle);
  }

  /** Takes over an incoming connection whose handshake `first` has been read. */
  accept(socket: TcpSocket, first: Uint8Array | undefined): TcpHandlers | undefined {
    return this.#stopping ? undefined : this.#driver.accept(socket, first);
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  /** A source goes on without a successor, because only its user decides. */
  #searchSuccessor({ dht }: LiveTransferDependencies): void {
    if (!dht || this.#content.role === "source") return;
    this.#successorSearch = new SuccessorSearch({
      ...{ dht, clock: this.#clock, log: this.#log, key: this.#content.file.info.publicKey },
      newestSeq: () => this.#driver.figures().lastSeq,
      found: (record) => this.#driver.succeed(record),
    });
  }

  #find(finder: PeerFinder): () => void {
    return finder.join({
      infohash: this.infohash,
      announces: true,
      peers: () => this.#driver.swarmFigures().connectedPeers,
      found: (addresses) => this.addPeers(addresses),
    });
  }

  #control(): LiveControl {
    const isForked = () => this.#isForked;
    const kept = () => this.#window.kept;
    const minutesAhead = () => this.#minutesAhead;
    const successor = () => this.#successor;
    const rival = () => this.#rival;
    const variants = () => this.#variants;
    const toldTrackers = () => this.#toldTrackers;
    return {
      content: this.#content,
      pieces: this.#pieces,
      uploadAllowance: (host) => this.#driver.uploadAllowance(host),
      produce: (header, chunks) => {
        if (!this.#stopping) this.#driver.produce(header, chunks);
        this.#pieces.piece(header.value, chunks, header.bytes);
      },
      tell: (stat) => {
        if (!this.#stopping) this.#driver.tell(stat);
      },
      expectSuccessor: () => {
        this.#isSucceeded = true;
      },
      get diskBytes() {
        return kept().diskBytes;
      },
      figures: () => this.#driver.figures(),
      reachablePeers: () => this.#driver.reachablePeers(),
      get isForked() {
        return isForked();
      },
      get rival() {
        return rival();
      },
      get toldTrackers() {
        return toldTrackers();
      },
      get variants() {
        return variants().filter(({ infohash }) => infohash !== this.content.file.infohash);
      },
      get successor() {
        return successor();
      },
      get minutesAhead() {
        return minutesAhead();
      },
    };
  }

  #forkedAt(seq: number, header: PieceHeader): void {
    // A repeated old header must not hide a current one.
    if (!this.#rival || header.timestampMs > this.#rival.timestampMs) this.#rival = header;
    this.#successorSearch?.suspect();
    const wasForked = this.#isForked;
    this.#forkedUntil = after(this.#clock.now(), FORK_TOLERANCE_MS);
    if (wasForked) return;
    this.#log.warn(
      this.#content.role === "source"
        ? "another program signs with the key of this stream; stop one of them"
        : "two programs sign this stream with one key, or its source is faulty; staying with the version that plays",
      { seq, epoch: header.epoch },
    );
  }

  /** Whether two versions of the stream were seen within the last minute. */
  get #isForked(): boolean {
    return this.#forkedUntil !== undefined && this.#clock.now() < this.#forkedUntil;
  }

  async #stop(): Promise<void> {
    await this.#begun.catch((error: unknown) =>
      this.#log.warn("stream did not start", { reason: messageOf(error) }),
    );
    this.#leaveFinder();
    this.#stopHead();
    this.#stopSuccessor();
    this.#successorSearch?.stop();
    const isSucceeded = this.#isSucceeded;
    if (this.#isBegun) await this.#driver.stop(isSucceeded);
    await this.#window.close();
  }
}

/** For containers that cannot be played: their pieces are only relayed. */
const NO_SINK: PieceSink = { piece() {}, skip() {}, restarted() {} };

function stopped(): SluiceError {
  return new SluiceError("session_stopped", "the transfer was stopped");
}

/** What a live stream may use of this machine. */
interface LiveBudget {
  /** How long the swarm keeps pieces in memory for other peers. */
  readonly keepMs: number;
  /** The upload capacity that we announce to peers. */
  readonly offeredBytesPerSecond: number;
}

/** Enough for late and new peers; older pieces are on disk. */
const KEEP_MS = 30_000;
const MIN_KEEP_MS = 8_000;
/** Memory limit for pieces, even if each has the maximum size. */
const KEEP_BYTES = 96 * 1024 * 1024;
/** A home connection rarely uploads more than twice the bitrate, and a peer that announces too much makes others late. */
const VIEWER_SHARE = 2;
/** Sources and relays usually run where upload is plentiful. */
const SERVER_SHARE = 8;

/** Returns the budget of one stream. `uploadLimit` is the user's limit in bytes per second, 0 for none. */
function liveBudget(content: LiveContent, uploadLimit: number): LiveBudget {
  const { role, file, uploadBytesPerSecond } = content;
  const { pieceMs, maxPieceBytes, bytesPerSecond } = file.info;
  const keptMs = (KEEP_BYTES / maxPieceBytes) * pieceMs;
  const limit = uploadBytesPerSecond || uploadLimit || Number.POSITIVE_INFINITY;
  const share = role === "viewer" ? VIEWER_SHARE : SERVER_SHARE;
  return {
    keepMs: Math.max(MIN_KEEP_MS, Math.min(KEEP_MS, keptMs)),
    offeredBytesPerSecond: Math.floor(Math.min(limit, share * bytesPerSecond)),
  };
}
