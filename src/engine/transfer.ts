import type { PeerAddress } from "../base/address.ts";
import { DecodeError, messageOf, SluiceError } from "../base/errors.ts";
import type { ContentId, Infohash } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import { URGENCY } from "../base/rate-limit.ts";
import type { Media } from "../remux/contract.ts";
import type { TcpHandlers, TcpSocket } from "../runtime/contract.ts";
import type { Candidate, CandidateOrigin, SwarmFigures, SwarmInput, SwarmSetup } from "../swarm/contract.ts";
import { NO_FIGURES } from "../swarm/figures.ts";
import { pieceCheck } from "../swarm/piece-check.ts";
import { readFileNodes } from "../wire/file-nodes.ts";
import type { LiveTransportFile } from "../wire/live-transport.ts";
import type { Info, TransportFile } from "../wire/metainfo.ts";
import { makePeerId } from "../wire/peer-id.ts";
import { createByteSource } from "./byte-source.ts";
import type { ContentFolder } from "./cache-folder.ts";
import { contentFiles, headBytes, heldBytes, heldPieces } from "./content-files.ts";
import type { ActiveTransfer, ByteSource, ContentFile, TransferContent } from "./contract.ts";
import { deferred } from "./deferred.ts";
import { Demand } from "./demand.ts";
import { Driver } from "./driver.ts";
import { HomeTrackers } from "./home-trackers.ts";
import { fileOfMetadata, infoOfMetadata } from "./known-file.ts";
import { isLiveMetadata, unsignedLiveFile } from "./live/live-content.ts";
import type { TransferBuffers } from "./piece-buffers.ts";
import { PieceStore } from "./piece-store.ts";
import { ReadLanes } from "./read-lanes.ts";
import { orAborted } from "./segment-cache.ts";
import { SharedMedia } from "./shared-media.ts";
import type { TransferHouse } from "./transfer-house.ts";
import { WebSeeds } from "./web-seeds/web-seeds.ts";

/** What is there once the files are known. */
interface Known {
  readonly file: TransportFile;
  readonly files: readonly ContentFile[];
  readonly store: PieceStore;
  readonly folder: ContentFolder | undefined;
  readonly demand: Demand;
}

/** Hears that this content is a live stream and not files, and which peers are known. Nothing more comes of the transfer
 * that says so: whoever made it stops it. */
export type LiveFound = (file: LiveTransportFile, peers: readonly Candidate[]) => void;

/** One content: its swarm, its pieces, and what reads them. */
export class SwarmTransfer implements ActiveTransfer {
  readonly infohash: Infohash;
  readonly #house: TransferHouse;
  readonly #content: TransferContent;
  readonly #leave: () => void;
  readonly #liveFound: LiveFound | undefined;
  readonly #announcer: HomeTrackers;
  readonly #log: Log;
  readonly #stopped = new AbortController();
  readonly #buffers: TransferBuffers;
  readonly #webSeeds: WebSeeds;
  readonly #lanes = new Map<number, ReadLanes>();
  readonly #media = new Map<string, SharedMedia>();
  readonly #waiting: SwarmInput[] = [];
  readonly #begun: Promise<void>;
  readonly #ready = deferred<void>();
  #known: Known | undefined;
  /** A transport file that came while the metadata was being fetched. */
  #given: TransportFile | undefined;
  /** Metadata that turned out to be that of a live stream. */
  #liveMetadata: Uint8Array | undefined;
  #driver: Driver | undefined;
  #leaveFinder: () => void = () => {};
  #stopping: Promise<void> | undefined;

  /** Begins as soon as `before` has resolved: an earlier transfer of the same content must have closed its folder.
   * `leave` is called when it begins to stop. Without `liveFound` the metadata of a live stream is of no use. */
  constructor(
    house: TransferHouse,
    content: TransferContent,
    before: Promise<void>,
    leave: () => void,
    liveFound?: LiveFound,
  ) {
    this.#house = house;
    this.#leave = leave;
    this.#liveFound = liveFound;
    this.#content = content;
    this.#announcer = new HomeTrackers(house.announcer);
    this.#announcer.add(content.homeTrackers ?? []);
    this.infohash = content.infohash;
    this.#log = house.log.named(content.infohash.slice(0, 8));
    this.#buffers = house.pool.forTransfer(() => this.#driver?.input({ kind: "buffers" }));
    this.#webSeeds = new WebSeeds({
      ...house,
      infohash: content.infohash,
      log: this.#log,
      slots: house.seedSlots,
      accept: (socket, first, name) => this.#driver!.accept(socket, first, name),
    });
    this.addWebSeeds(content);
    // Whoever waits for `ready` hears of it; where nobody does, the failure is in the log already.
    this.#ready.promise.catch(() => {});
    this.addPeers(content.peers, "magnet");
    this.#begun = before.then(() => this.#begin());
  }

  get name(): string {
    return this.#known?.file.info.name ?? this.#content.displayName ?? this.infohash;
  }

  get files(): readonly ContentFile[] {
    return this.#known?.files ?? [];
  }

  get contentId(): ContentId | undefined {
    return this.#known?.file.contentId;
  }

  get figures(): SwarmFigures {
    return { ...(this.#driver?.figures() ?? NO_FIGURES), webSeedProblem: this.#webSeeds.problem };
  }

  /** Bytes on disk. */
  get cachedBytes(): number {
    return this.#known?.folder?.bytes ?? 0;
  }

  transportFile(): TransportFile | undefined {
    return this.#known?.file;
  }

  ready(signal?: AbortSignal): Promise<void> {
    return signal ? orAborted(this.#ready.promise, signal) : this.#ready.promise;
  }

  source(fileIndex: number): ByteSource {
    const { known, file } = this.#file(fileIndex);
    const { demand } = known;
    let lanes = this.#lanes.get(fileIndex);
    if (lanes === undefined) {
      lanes = new ReadLanes(demand, this.#house.runtime.clock, file.offset + file.size);
      this.#lanes.set(fileIndex, lanes);
    }
    const { offset, size } = file;
    return createByteSource({ demand, offset, size, stopped: this.#stopped.signal, lanes });
  }

  media(fileIndex: number, preferredAudioLanguage: string | undefined, signal?: AbortSignal): Promise<Media> {
    const key = `${fileIndex} ${preferredAudioLanguage ?? ""}`;
    let shared = this.#media.get(key);
    if (shared === undefined) {
      const { openMedia, settings } = this.#house;
      shared = new SharedMedia(
        openMedia,
        this.source(fileIndex),
        preferredAudioLanguage,
        settings.segmentSeconds,
      );
      this.#media.set(key, shared);
    }
    return shared.get(signal);
  }

  progress(fileIndex: number): number {
    const { known, file } = this.#file(fileIndex);
    return file.size === 0 ? 100 : (100 * heldBytes(known.store, file)) / file.size;
  }

  headBytes(fileIndex: number): number {
    const { known, file } = this.#file(fileIndex);
    return headBytes(known.store, file);
  }

  addTrackers(tiers: readonly (readonly string[])[], homeTrackers: readonly string[] = []): void {
    this.#announcer.add(homeTrackers);
    if (tiers.length > 0) this.#input({ kind: "trackers", tiers });
  }

  addPeers(addresses: readonly PeerAddress[], origin: CandidateOrigin): void {
    if (addresses.length > 0) this.#input({ kind: "found", addresses, origin });
  }

  /** The web seeds that a link or a transport file names. */
  addWebSeeds({ webSeeds = [], homeWebSeeds, transportFile }: TransferContent): void {
    this.#webSeeds.add([...webSeeds, ...(transportFile?.webSeeds ?? [])], homeWebSeeds);
  }

  /** The transport file of a magnet that was opened before: nothing where the metadata is there already. */
  learn(file: TransportFile): void {
    if (this.#known) return;
    this.#given = file;
    this.#input({ kind: "info", infoBytes: file.infoBytes, layout: file.info });
  }

  /** Takes over an incoming connection; undefined while there is no swarm to give it to. */
  accept(socket: TcpSocket, first: Uint8Array): TcpHandlers | undefined {
    return this.#stopping ? undefined : this.#driver?.accept(socket, first);
  }

  stop(): Promise<void> {
    if (this.#stopping === undefined) {
      this.#stopping = this.#stop();
      this.#leave();
    }
    return this.#stopping;
  }

  async #begin(): Promise<void> {
    const { cache } = this.#house;
    const file = this.#content.transportFile ?? (await this.#keptFile());
    if (file === "live") return;
    const folder = file && (await cache?.open(file.infohash, file.info));
    if (this.#stopping) {
      await folder?.close();
      return;
    }
    const known = file && this.#learn(file, folder);
    this.#drive(known);
  }

  async #keptFile(): Promise<TransportFile | "live" | undefined> {
    const known = await this.#house.kept.read(this.infohash);
    if (known?.kind !== "live") return known?.file;
    if (this.#liveFound && !this.#stopping) this.#liveFound(known.file, []);
    return "live";
  }

  /** Makes the swarm and lets it go. */
  #drive(known: Known | undefined): void {
    const { runtime, limits, connections, net, random } = { ...this.#house, ...this.#house.runtime };
    const trackers = [...(known?.file.trackers ?? []), ...this.#content.trackers];
    const setup: SwarmSetup = {
      infohash: this.infohash,
      peerId: makePeerId(runtime.randomBytes(20)),
      ...(known && { info: { layout: known.file.info, infoBytes: known.file.infoBytes } }),
      readInfo: (infoBytes) => {
        if (isLiveMetadata(infoBytes)) this.#liveMetadata = infoBytes;
        return infoOfMetadata(infoBytes, runtime.sha256);
      },
      ...(known && { held: heldPieces(known.store) }),
      trackers,
      listenPort: this.#house.p2pPort,
      punches: this.#house.settings.reach.utp,
      ...(this.#house.dht && { dhtPort: this.#house.dht.port }),
      sha1: runtime.sha1,
      sha256: runtime.sha256,
      random,
      limits: limits.forSwarm(URGENCY.files),
      buffers: this.#buffers,
    };
    this.#driver = new Driver({
      infohash: this.infohash,
      swarm: this.#house.makeSwarm(setup, runtime.clock.now()),
      clock: runtime.clock,
      net,
      announcer: this.#announcer,
      connections,
      log: this.#log,
      hooks: {
        piece: (piece, bytes) => this.#piece(piece, bytes),
        block: (piece, begin, length) => this.#block(piece, begin, length),
        metadata: (infoBytes, layout) => this.#metadata(infoBytes, layout),
        private: () => this.#leaveFinder(),
        node: (address) => this.#house.dht?.addNodes([address]),
        failed: (reason, peers) => this.#failed(reason, peers),
        banned: (address) => this.#webSeeds.banned(address),
      },
    });
    this.#driver.start();
    for (const input of this.#waiting.splice(0)) this.#driver.input(input);
    // Of a magnet it is not known yet whether it is private; without peers nobody would ever know.
    if (this.#known?.file.info.isPrivate !== true) {
      this.#nameNodes();
      this.#leaveFinder = this.#find(this.#driver);
    }
    if (known) this.#isReady(known.file);
  }

  #isReady(file: TransportFile): void {
    this.#webSeeds.begin(file);
    this.#ready.resolve();
  }

  /** Whoever has the content may have a node of the DHT at the same port; a transport file may name some. */
  #nameNodes(): void {
    const { dht } = this.#house;
    dht?.addNodes(this.#content.peers);
    if (this.#known) dht?.addNames(readFileNodes(this.#known.file.bytes));
  }

  #find(driver: Driver): () => void {
    return this.#house.finder.join({
      infohash: this.infohash,
      announces: true,
      peers: () => driver.figures().connectedPeers - driver.figures().webSeeds,
      found: (addresses, origin) => this.addPeers(addresses, origin),
    });
  }

  #learn(file: TransportFile, folder: ContentFolder | undefined): Known {
    const { pool, memory, runtime, settings, kept } = this.#house;
    const store = new PieceStore({
      layout: file.info,
      pool,
      memory,
      disk: folder,
      isRight: pieceCheck(runtime.sha1, runtime.sha256),
      dropped: (piece) => this.#input({ kind: "dropped", piece }),
    });
    folder?.serve(store);
    const demand = new Demand(
      store,
      {
        want: (reader, range, urgentBytes) => this.#input({ kind: "want", reader, range, urgentBytes }),
        unwant: (reader) => this.#input({ kind: "unwant", reader }),
      },
      settings.memoryLimitBytes,
    );
    this.#known = { file, files: contentFiles(file.info), store, folder, demand };
    kept.save({ kind: "vod", file });
    return this.#known;
  }

  #metadata(infoBytes: Uint8Array, layout: Pick<Info, "layers" | "pieceHashes">): void {
    if (this.#known) return;
    const { runtime, cache } = this.#house;
    const file = this.#given ?? fileOfMetadata(infoBytes, layout, this.#content.trackers, runtime);
    if (typeof file === "string") {
      this.#input({ kind: "stop" });
      this.#failed(file, []);
      return;
    }
    this.#learn(file, cache?.openFresh(file.infohash, file.info));
    if (file.info.isPrivate) this.#leaveFinder();
    this.#isReady(file);
  }

  #failed(reason: string, peers: readonly Candidate[]): void {
    if (this.#liveMetadata && this.#liveFound) {
      this.#foundLive(this.#liveMetadata, this.#liveFound, peers);
      return;
    }
    this.#log.warn("metadata of no use", { reason });
    this.#ready.reject(new SluiceError("bad_transport_file", `the metadata of this content is ${reason}`));
  }

  #foundLive(infoBytes: Uint8Array, liveFound: LiveFound, peers: readonly Candidate[]): void {
    let file: LiveTransportFile;
    try {
      file = unsignedLiveFile(infoBytes, this.#content.trackers, this.#house.runtime);
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
    this.#known!.store.put(piece, bytes);
  }

  #block(piece: number, begin: number, length: number) {
    const store = this.#known?.store;
    const cut = (bytes: Uint8Array | undefined) => bytes?.slice(begin, begin + length);
    const view = store?.peek(piece);
    if (view) return cut(view);
    return store?.held.has(piece) ? store.load(piece).then(cut) : undefined;
  }

  #input(input: SwarmInput): void {
    if (this.#driver) this.#driver.input(input);
    else this.#waiting.push(input);
  }

  #file(fileIndex: number): { known: Known; file: ContentFile } {
    const known = this.#known;
    const file = known?.files[fileIndex];
    if (known && file) return { known, file };
    const count = known?.files.length ?? 0;
    throw new SluiceError("no_such_file", `expected a file index below ${count}, got ${fileIndex}`);
  }

  async #stop(): Promise<void> {
    const reason = new SluiceError("session_stopped", "the transfer was stopped");
    this.#stopped.abort(reason);
    this.#ready.reject(reason);
    for (const media of this.#media.values()) media.close(reason);
    for (const lanes of this.#lanes.values()) lanes.close();
    await this.#begun.catch((error: unknown) => this.#log.warn("never began", { reason: messageOf(error) }));
    this.#leaveFinder();
    this.#webSeeds.stop();
    const goodbyes = this.#driver?.stop();
    this.#buffers.close();
    // Before the goodbyes are said, which may take seconds: whoever stops us gives us few.
    await this.#known?.folder?.close();
    this.#known?.store.close();
    await goodbyes;
  }
}
