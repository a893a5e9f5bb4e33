import { orAborted } from "../async/abort.ts";
import { deferred } from "../async/deferred.ts";
import type { PeerAddress } from "../base/address.ts";
import { DecodeError, messageOf, SluiceError } from "../base/errors.ts";
import type { Infohash } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import { URGENCY } from "../base/rate-limit.ts";
import type {
  Candidate,
  CandidateOrigin,
  SwarmFigures,
  SwarmInput,
  SwarmSetup,
} from "../protocol/swarm/contract.ts";
import { NO_FIGURES } from "../protocol/swarm/figures.ts";
import type { AudioRequest, Media } from "../remux/contract.ts";
import type { TcpHandlers, TcpSocket } from "../runtime/contract.ts";
import type { ContentFolder } from "../storage/cache-contract.ts";
import { fileOfMetadata, infoOfMetadata, isLiveMetadata, unsignedLiveFile } from "../storage/known-file.ts";
import { OwnFile } from "../storage/own-file.ts";
import type { TransferBuffers } from "../storage/piece-buffers.ts";
import type { LiveTransportFile } from "../wire/live/transport-file.ts";
import { makePeerId } from "../wire/peer/peer-id.ts";
import type { Info, TransportFile } from "../wire/torrent/metainfo.ts";
import { readDhtNodes } from "../wire/torrent/metainfo.ts";
import { fileInBucket } from "./bucket-pieces.ts";
import type {
  ActiveTransfer,
  ByteSource,
  ContentFile,
  TransferContent,
  TransferDependencies,
} from "./contract.ts";
import { Driver } from "./driver.ts";
import { KnownContent, noSuchFile } from "./known-content.ts";
import { LocalTrackers } from "./local-trackers.ts";
import { WebSeeds } from "./web-seeds/web-seeds.ts";

/**
 * Called when the content turns out to be a live stream; `peers` are the peers known by then. The transfer does nothing
 * afterwards: its owner stops it.
 */
export type LiveFound = (file: LiveTransportFile, peers: readonly Candidate[]) => void;

/** Fetches the files of one infohash from its swarm. */
export class SwarmTransfer implements ActiveTransfer {
  readonly infohash: Infohash;
  readonly #dependencies: TransferDependencies;
  readonly #content: TransferContent;
  readonly #onStop: () => void;
  readonly #liveFound: LiveFound | undefined;
  readonly #announcer: LocalTrackers;
  readonly #log: Log;
  readonly #stopped = new AbortController();
  readonly #buffers: TransferBuffers;
  readonly #webSeeds: WebSeeds;
  /** Inputs that arrived before the swarm was created. */
  readonly #pendingInputs: SwarmInput[] = [];
  readonly #begun: Promise<void>;
  readonly #ready = deferred<void>();
  #known: KnownContent | undefined;
  /** A transport file of version 2 without its piece layers, which are requested from peers. */
  #incomplete: TransportFile | undefined;
  /** A transport file that arrived while the metadata was being fetched. */
  #given: TransportFile | undefined;
  /** The metadata, if it is that of a live stream. */
  #liveMetadata: Uint8Array | undefined;
  #driver: Driver | undefined;
  #isIdle = false;
  #leaveFinder: () => void = () => {};
  #stopping: Promise<void> | undefined;

  /**
   * Starts after `before` has resolved, because an earlier transfer of the same content must close its folder first.
   * `onStop` is called when the transfer begins to stop. Without `liveFound` the metadata of a live stream is an error.
   */
  constructor(
    dependencies: TransferDependencies,
    content: TransferContent,
    before: Promise<void>,
    onStop: () => void,
    liveFound?: LiveFound,
  ) {
    this.#dependencies = dependencies;
    this.#onStop = onStop;
    this.#liveFound = liveFound;
    this.#content = content;
    this.#announcer = new LocalTrackers(dependencies.announcer);
    this.#announcer.add(content.localTrackers ?? []);
    this.infohash = content.infohash;
    this.#log = dependencies.log.named(content.infohash.slice(0, 8));
    this.#buffers = dependencies.pool.forTransfer(() => this.#driver?.input({ kind: "buffers" }));
    this.#webSeeds = new WebSeeds({
      ...dependencies,
      infohash: content.infohash,
      log: this.#log,
      slots: dependencies.seedSlots,
      accept: (socket, first, name) => this.#driver!.accept(socket, first, name),
    });
    this.addWebSeeds(content);
    // The failure is in the log already; it must not become an unhandled rejection if no caller awaits `ready`.
    this.#ready.promise.catch(() => {});
    this.addPeers(content.peers, "magnet");
    this.#begun = before.then(() => this.#begin());
  }

  get name(): string {
    return this.#file?.info.name ?? this.#content.displayName ?? this.infohash;
  }

  get files(): readonly ContentFile[] {
    return this.#known?.files ?? [];
  }

  get figures(): SwarmFigures {
    return { ...(this.#driver?.figures() ?? NO_FIGURES), webSeedProblem: this.#webSeeds.problem };
  }

  /** Bytes on disk. */
  get cachedBytes(): number {
    return this.#known?.cachedBytes ?? 0;
  }

  transportFile(): TransportFile | undefined {
    return this.#known?.file;
  }

  ready(signal?: AbortSignal): Promise<void> {
    return orAborted(this.#ready.promise, signal);
  }

  source(fileIndex: number): ByteSource {
    return this.#knownFor(fileIndex).source(fileIndex);
  }

  media(fileIndex: number, audio: AudioRequest, signal?: AbortSignal): Promise<Media> {
    return this.#knownFor(fileIndex).media(fileIndex, audio, signal);
  }

  progress(fileIndex: number): number {
    return this.#knownFor(fileIndex).progress(fileIndex);
  }

  headBytes(fileIndex: number): number {
    return this.#knownFor(fileIndex).headBytes(fileIndex);
  }

  pieceMap(cells: number): string {
    return this.#known?.pieceMap(cells) ?? "";
  }

  addTrackers(tiers: readonly (readonly string[])[], localTrackers: readonly string[] = []): void {
    this.#announcer.add(localTrackers);
    if (tiers.length > 0) this.#input({ kind: "trackers", tiers });
  }

  addPeers(addresses: readonly PeerAddress[], origin: CandidateOrigin): void {
    if (addresses.length > 0) this.#input({ kind: "found", addresses, origin });
  }

  /** Adds the web seeds that a link or a transport file names. */
  addWebSeeds({ webSeeds = [], localWebSeeds, transportFile }: TransferContent): void {
    this.#webSeeds.add([...webSeeds, ...(transportFile?.webSeeds ?? [])], localWebSeeds);
  }

  /** Uses a transport file instead of the metadata of peers; does nothing if the metadata is known. */
  learn(file: TransportFile): void {
    if (this.#known) return;
    const { infoBytes, info } = file;
    if (!info.lacksLayers) this.#given = file;
    this.#input({ kind: "info", infoBytes, ...(!info.lacksLayers && { layout: info }) });
  }

  setIdle(isIdle: boolean): void {
    this.#isIdle = isIdle;
    this.#driver?.setIdle(isIdle);
    if (isIdle) this.#known?.releaseMemory();
  }

  /** Takes over an incoming connection; returns undefined if there is no swarm for it yet. */
  accept(socket: TcpSocket, first: Uint8Array | undefined): TcpHandlers | undefined {
    return this.#stopping ? undefined : this.#driver?.accept(socket, first);
  }

  stop(): Promise<void> {
    if (this.#stopping === undefined) {
      this.#stopping = this.#stop();
      this.#onStop();
    }
    return this.#stopping;
  }

  async #begin(): Promise<void> {
    const given = this.#content.transportFile;
    const kept = given && !given.info.lacksLayers ? undefined : await this.#keptFile();
    if (kept === "live") return;
    const file = kept ?? given;
    if (file?.info.lacksLayers) {
      if (!this.#stopping) this.#startIncomplete(file);
      return;
    }
    if (!file) void this.#findInBucket();
    const folder = file && (await this.#folder(file));
    if (this.#stopping) {
      await folder?.close();
      return;
    }
    this.#startSwarm(file && this.#setKnown(file, folder));
  }

  #folder({ infohash, info }: TransportFile): Promise<ContentFolder | undefined> | undefined {
    const { ownFile } = this.#content;
    const { cache, runtime } = this.#dependencies;
    return ownFile === undefined ? cache?.open(infohash, info) : OwnFile.open(runtime.files, ownFile, info);
  }

  async #keptFile(): Promise<TransportFile | "live" | undefined> {
    const known = await this.#dependencies.kept.read(this.infohash);
    if (known?.kind !== "live") return known?.file;
    if (this.#liveFound && !this.#stopping) this.#liveFound(known.file, []);
    return "live";
  }

  /** Asks the bucket for the transport file, at the same time as peers. */
  async #findInBucket(): Promise<void> {
    const { bucket, runtime } = this.#dependencies;
    if (!bucket) return;
    const file = await fileInBucket(bucket, this.infohash, runtime, this.#log, this.#stopped.signal);
    if (file && !this.#stopping) this.learn(file);
  }

  /** Starts as for a magnet: peers are asked for the piece layers that a transport file of version 2 lacks (BEP 52). */
  #startIncomplete(file: TransportFile): void {
    this.#incomplete = file;
    this.#dependencies.kept.save({ kind: "vod", file });
    this.#pendingInputs.unshift({ kind: "info", infoBytes: file.infoBytes });
    this.#startSwarm(undefined);
  }

  /** Creates the swarm and starts it. */
  #startSwarm(known: KnownContent | undefined): void {
    const { dht, finder, limits, connections, makeSwarm, p2pPort, random, runtime, settings } =
      this.#dependencies;
    const setup: SwarmSetup = {
      infohash: this.infohash,
      peerId: makePeerId(runtime.randomBytes(20)),
      ...(known && { info: { layout: known.file.info, infoBytes: known.file.infoBytes } }),
      readInfo: (infoBytes) => {
        if (isLiveMetadata(infoBytes)) this.#liveMetadata = infoBytes;
        return infoOfMetadata(infoBytes, runtime.sha256);
      },
      ...(known && { held: known.heldPieces() }),
      trackers: this.#trackers,
      listenPort: p2pPort,
      allowsHolePunching: settings.reach.utp,
      ...(dht && { dhtPort: dht.port }),
      sha1: runtime.sha1,
      sha256: runtime.sha256,
      random,
      limits: limits.forSwarm(this.infohash, () => (this.#isIdle ? URGENCY.idle : URGENCY.files)),
      buffers: this.#buffers,
    };
    const driver = new Driver({
      infohash: this.infohash,
      swarm: makeSwarm(setup, runtime.clock.now()),
      clock: runtime.clock,
      net: runtime.net,
      announcer: this.#announcer,
      connections,
      log: this.#log,
      hooks: {
        piece: (piece, bytes) => this.#piece(piece, bytes),
        block: (piece, begin, length) => this.#known?.block(piece, begin, length),
        metadata: (infoBytes, layout) => this.#metadata(infoBytes, layout),
        private: () => this.#leaveFinder(),
        node: (address) => dht?.addNodes([address]),
        failed: (reason, peers) => this.#failed(reason, peers),
        banned: (address) => this.#webSeeds.banned(address),
      },
    });
    this.#driver = driver;
    driver.start();
    for (const input of this.#pendingInputs.splice(0)) driver.input(input);
    // A magnet may be of private content, but that is known only after peers have sent the metadata.
    if (this.#file?.info.isPrivate !== true) {
      this.#addDhtNodes();
      this.#leaveFinder = finder.join({
        infohash: this.infohash,
        announces: true,
        peers: () => driver.figures().connectedPeers - driver.figures().webSeeds,
        found: (addresses, origin) => this.addPeers(addresses, origin),
      });
    }
    if (known) this.#isReady(known.file);
  }

  #isReady(file: TransportFile): void {
    this.#webSeeds.begin(file);
    this.#ready.resolve();
  }

  /** Peers of a link may run a DHT node at the same port, and a transport file may name nodes (BEP 5). */
  #addDhtNodes(): void {
    const { dht } = this.#dependencies;
    dht?.addNodes(this.#content.peers);
    if (this.#file) dht?.addNames(readDhtNodes(this.#file.bytes));
  }

  get #file(): TransportFile | undefined {
    return this.#known?.file ?? this.#incomplete;
  }

  /** Announce URLs by tier, of the transport file and of the link. */
  get #trackers(): (readonly string[])[] {
    return [...(this.#file?.trackers ?? []), ...this.#content.trackers];
  }

  #setKnown(file: TransportFile, folder: ContentFolder | undefined): KnownContent {
    this.#known = new KnownContent({
      ...this.#dependencies,
      file,
      folder,
      log: this.#log,
      webSeeds: this.#webSeeds,
      stopped: this.#stopped.signal,
      input: (input) => this.#input(input),
    });
    this.#dependencies.kept.save({ kind: "vod", file });
    return this.#known;
  }

  #metadata(infoBytes: Uint8Array, layout: Pick<Info, "layers" | "pieceHashes">): void {
    if (this.#known) return;
    const { runtime, cache } = this.#dependencies;
    const file = this.#given ?? fileOfMetadata(infoBytes, layout, this.#trackers, runtime);
    if (typeof file === "string") {
      this.#input({ kind: "stop" });
      this.#failed(file, []);
      return;
    }
    this.#setKnown(file, cache?.openFresh(file.infohash, file.info));
    if (file.info.isPrivate) this.#leaveFinder();
    this.#isReady(file);
  }

  #failed(reason: string, peers: readonly Candidate[]): void {
    if (this.#liveMetadata && this.#liveFound) {
      this.#foundLive(this.#liveMetadata, this.#liveFound, peers);
      return;
    }
    this.#log.warn("invalid metadata", { reason });
    this.#ready.reject(new SluiceError("bad_transport_file", `the metadata of this content is ${reason}`));
  }

  #foundLive(infoBytes: Uint8Array, liveFound: LiveFound, peers: readonly Candidate[]): void {
    let file: LiveTransportFile;
    try {
      file = unsignedLiveFile(infoBytes, this.#content.trackers, this.#dependencies.runtime);
    } catch (thrown) {
      if (!(thrown instanceof DecodeError)) throw thrown;
      this.#liveMetadata = undefined;
      this.#failed(thrown.message, []);
      return;
    }
    liveFound(file, peers);
  }

  #piece(piece: number, bytes: Uint8Array<ArrayBuffer>): void {
    this.#buffers.filled();
    this.#known!.put(piece, bytes);
  }

  #input(input: SwarmInput): void {
    if (this.#driver) this.#driver.input(input);
    else this.#pendingInputs.push(input);
  }

  #knownFor(fileIndex: number): KnownContent {
    if (this.#known) return this.#known;
    throw noSuchFile(fileIndex, 0);
  }

  async #stop(): Promise<void> {
    const reason = new SluiceError("session_stopped", "the transfer was stopped");
    this.#stopped.abort(reason);
    this.#ready.reject(reason);
    this.#known?.endReads(reason);
    await this.#begun.catch((error: unknown) =>
      this.#log.warn("the transfer did not start", { reason: messageOf(error) }),
    );
    this.#leaveFinder();
    this.#webSeeds.stop();
    const driverStopped = this.#driver?.stop();
    this.#buffers.close();
    // The `stopped` announces may take seconds and the caller may not wait that long, so the cache is closed first.
    await this.#known?.close();
    await driverStopped;
  }
}
