import type { PeerAddress } from "../../base/address.ts";
import { messageOf, SluiceError } from "../../base/errors.ts";
import type { ContentId, Infohash } from "../../base/ids.ts";
import type { Log } from "../../base/log.ts";
import type { Random } from "../../base/random.ts";
import { URGENCY } from "../../base/rate-limit.ts";
import type { Outbound } from "../../outbound/outbound.ts";
import type { Media } from "../../remux/contract.ts";
import type { Runtime, TcpHandlers, TcpSocket } from "../../runtime/contract.ts";
import type { SwarmFigures } from "../../swarm/contract.ts";
import { NO_FIGURES } from "../../swarm/figures.ts";
import type { PieceHeader } from "../../wire/live-header.ts";
import { makePeerId } from "../../wire/peer-id.ts";
import type { Announcer } from "../announcer.ts";
import type { ByteSource, ContentFile, EngineSettings } from "../contract.ts";
import type { ConnectionCount } from "../driver.ts";
import type { PeerTransfer } from "../either-transfer.ts";
import { HomeTrackers } from "../home-trackers.ts";
import type { Dht, PeerFinder } from "../reach/contract.ts";
import type { PeerLimits } from "../reach/peer-limits.ts";
import type { SegmentSource } from "../segment-source.ts";
import type { ContentIdSwarms, StopServing } from "./content-id-swarms.ts";
import type { LiveContent, LiveControl, PieceSink } from "./contract.ts";
import { liveBudget } from "./live-budget.ts";
import { type LiveTransferContent, liveFiles } from "./live-content.ts";
import { LiveDriver } from "./live-driver.ts";
import { LiveSource } from "./live-source.ts";
import { LiveWindow } from "./live-window.ts";
import { fallbackOf } from "./web-fallback.ts";

/** What all live transfers share. */
export interface LiveHouse {
  readonly runtime: Runtime;
  readonly settings: EngineSettings;
  readonly log: Log;
  readonly announcer: Pick<Announcer, "announce" | "scrape">;
  readonly finder: PeerFinder;
  /** Absent where it is off. */
  readonly dht?: Pick<Dht, "keepMutable">;
  readonly connections: ConnectionCount;
  readonly limits: PeerLimits;
  readonly random: Random;
  readonly p2pPort: number;
  readonly contentIds: ContentIdSwarms;
  readonly outbound: Pick<Outbound, "open">;
  /** Where windows are kept; undefined: in memory only. */
  readonly liveFolder: string | undefined;
  /** Disk for the window of one stream: the limit is shared by all that are open. */
  readonly windowLimitBytes: () => number;
}

/** One live stream: its swarm, what is kept of it, and what is played of it. */
export class LiveTransfer implements PeerTransfer {
  readonly infohash: Infohash;
  readonly live: LiveControl;
  readonly #content: LiveContent;
  readonly #displayName: string | undefined;
  readonly #log: Log;
  readonly #announcer: HomeTrackers;
  readonly #window: LiveWindow;
  readonly #source: LiveSource;
  readonly #driver: LiveDriver;
  readonly #begun: Promise<void>;
  #stopping: Promise<void> | undefined;
  #isBegun = false;
  #stopServing: StopServing = async () => {};
  #leaveFinder: () => void = () => {};
  #stopHead: () => void = () => {};
  #isForked = false;
  #isSucceeded = false;
  #rival: PieceHeader | undefined;
  #minutesAhead = 0;

  /** Begins as soon as `before` has resolved: an earlier transfer of the same stream must have closed its folder. */
  constructor(house: LiveHouse, content: LiveTransferContent, before: Promise<void>) {
    const { runtime, settings } = house;
    const { live, infohash } = content;
    const { info } = live.file;
    this.#content = live;
    this.#displayName = content.displayName;
    this.infohash = infohash;
    this.#log = house.log.named(infohash.slice(0, 8));
    this.#announcer = new HomeTrackers(house.announcer);
    this.#announcer.add(content.homeTrackers ?? []);
    const { keepMs, offeredBytesPerSecond } = liveBudget(live, house.limits.upload.bytesPerSecond);
    this.#window = new LiveWindow({
      files: runtime.files,
      clock: runtime.clock,
      folder: house.liveFolder && `${house.liveFolder}/${infohash}`,
      free: before,
      limitMs:
        live.role === "relay"
          ? Math.max(settings.liveWindowMs, 1000 * info.windowSeconds)
          : settings.liveWindowMs,
      limitBytes: house.windowLimitBytes,
      segmentMs: info.segmentMs,
      pieceMs: info.pieceMs,
      log: this.#log,
    });
    this.#source = new LiveSource({ window: this.#window, infohash, clock: runtime.clock });
    this.#driver = new LiveDriver({
      infohash,
      info,
      infoBytes: live.file.infoBytes,
      role: live.role,
      peerId: makePeerId(runtime.randomBytes(20)),
      runtime,
      random: house.random,
      announcer: this.#announcer,
      // Those in the file are for the viewers: a private source is announced to nobody.
      trackers: live.only ? content.trackers : [...live.file.trackers, ...content.trackers],
      listenPort: house.p2pPort,
      punches: settings.reach.utp,
      uploadBytesPerSecond: offeredBytesPerSecond,
      uploadLimit: live.uploadBytesPerSecond ?? 0,
      limits: house.limits.forSwarm(URGENCY.live),
      lagMs: settings.liveLagMs,
      // In a file that nobody has signed anybody may have listed himself.
      relays: live.file.isSigned ? live.file.relays : [],
      keepMs,
      ...(live.only && { only: live.only }),
      ...(live.mayHaveTwin && { mayHaveTwin: true }),
      connections: house.connections,
      log: this.#log,
      sink: this.#isTransportStream ? this.#window : NO_SINK,
      forked: (seq, header) => this.#forkedAt(seq, header),
      ahead: (minutes) => {
        this.#minutesAhead = minutes;
      },
      ...fallbackOf(house, live, this.#log),
    });
    this.live = this.#control();
    this.#begun = before.then(() => {
      if (this.#stopping) return;
      this.#isBegun = true;
      this.#driver.start();
      // Of a file that nobody has signed there may be others: its id leads to nothing that counts. A private source gives
      // its file to nobody, and tells no tracker where it is.
      if (live.file.isSigned && !live.only)
        this.#stopServing = house.contentIds.serve(live.file, info.isPrivate ? undefined : this.#announcer);
      this.addPeers([...content.peers, ...(live.knownPeers ?? [])]);
      if (info.isPrivate || live.only) return;
      this.#leaveFinder = this.#find(house.finder);
      const { head } = live;
      if (head && house.dht) this.#stopHead = house.dht.keepMutable(() => head);
    });
  }

  get name(): string {
    const { meta, info } = this.#content.file;
    return meta.title ?? this.#displayName ?? info.name;
  }

  get files(): readonly ContentFile[] {
    return liveFiles(this.#content.file);
  }

  /** Of a file that nobody signed there may be others: its id leads nowhere. */
  get contentId(): ContentId | undefined {
    const { isSigned, contentId } = this.#content.file;
    return isSigned ? contentId : undefined;
  }

  get figures(): SwarmFigures {
    return this.#isBegun && !this.#stopping ? this.#driver.swarmFigures() : NO_FIGURES;
  }

  readonly segmentSource = async (signal: AbortSignal): Promise<SegmentSource> => {
    signal.throwIfAborted();
    if (this.#isTransportStream) return this.#source;
    throw new SluiceError(
      "unsupported_container",
      "this live stream is fragmented MP4; only MPEG-TS is played",
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
    throw new SluiceError("no_such_file", "this is a live stream, which has no file of its own");
  }

  async media(): Promise<Media> {
    throw new SluiceError("no_such_file", "this is a live stream, which has no file of its own");
  }

  progress(): number {
    return 0;
  }

  headBytes(): number {
    return this.#driver.figures().receivedBytes;
  }

  addTrackers(tiers: readonly (readonly string[])[], homeTrackers: readonly string[] = []): void {
    this.#announcer.add(homeTrackers);
    if (tiers.length > 0) this.#driver.addTrackers(tiers);
  }

  addPeers(addresses: readonly PeerAddress[]): void {
    if (addresses.length > 0) this.#driver.found(addresses);
  }

  transportFile(): undefined {
    return undefined;
  }

  /** Takes over an incoming connection whose handshake `first` has been read. */
  accept(socket: TcpSocket, first: Uint8Array): TcpHandlers | undefined {
    return this.#stopping ? undefined : this.#driver.accept(socket, first);
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
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
    const minutesAhead = () => this.#minutesAhead;
    const rival = () => this.#rival;
    return {
      content: this.#content,
      produce: (header, chunks) => {
        if (!this.#stopping) this.#driver.produce(header, chunks);
        this.#window.piece(header.value, chunks);
      },
      tell: (stat) => {
        if (!this.#stopping) this.#driver.tell(stat);
      },
      expectSuccessor: () => {
        this.#isSucceeded = true;
      },
      figures: () => this.#driver.figures(),
      reachablePeers: () => this.#driver.reachablePeers(),
      get isForked() {
        return isForked();
      },
      get rival() {
        return rival();
      },
      get minutesAhead() {
        return minutesAhead();
      },
    };
  }

  #forkedAt(seq: number, header: PieceHeader): void {
    // What is told again from long ago must not hide what is of now.
    if (!this.#rival || header.timestampMs > this.#rival.timestampMs) this.#rival = header;
    if (this.#isForked) return;
    this.#isForked = true;
    this.#log.warn(
      this.#content.role === "source"
        ? "another program signs with the key of this stream"
        : "the source has signed two pieces of one number: its key is in other hands, or it is broken",
      { seq, epoch: header.epoch },
    );
  }

  async #stop(): Promise<void> {
    await this.#begun.catch((error: unknown) => this.#log.warn("never began", { reason: messageOf(error) }));
    this.#leaveFinder();
    this.#stopHead();
    const isSucceeded = this.#isSucceeded;
    if (this.#isBegun) await Promise.all([this.#driver.stop(isSucceeded), this.#stopServing(isSucceeded)]);
    await this.#window.close();
  }
}

/** What cannot be played here is passed on all the same. */
const NO_SINK: PieceSink = { piece() {}, skip() {}, restarted() {} };

function stopped(): SluiceError {
  return new SluiceError("session_stopped", "the transfer was stopped");
}
