import { addressText, type PeerAddress } from "../base/address.ts";
import { messageOf } from "../base/errors.ts";
import type { Infohash } from "../base/ids.ts";
import type { LiveTransferContent } from "../live/live-content.ts";
import { PendingStops } from "../net/pending-stops.ts";
import type { Candidate, CandidateOrigin, SwarmFigures } from "../protocol/swarm/contract.ts";
import type { AudioRequest, Media } from "../remux/contract.ts";
import type { TcpHandlers, TcpSocket } from "../runtime/contract.ts";
import type {
  ByteSource,
  ContentFile,
  LiveControl,
  PeerTransfer,
  Transfer,
  TransferContent,
  TransferDependencies,
} from "../transfer/contract.ts";
import type { LiveContent } from "../transfer/live-content.ts";
import { SwarmTransfer } from "../transfer/transfer.ts";
import type { LiveTransportFile } from "../wire/live/transport-file.ts";
import type { TransportFile } from "../wire/torrent/metainfo.ts";

/** Opens a live transfer. The caller stops it; it starts when `before` has resolved. */
type OpenLive = (content: LiveTransferContent, before: Promise<void>) => PeerTransfer;

/** Trackers or peers kept for a later live transfer; a swarm takes no more. */
const MAX_ADDED = 100;
/** Origins from which private content accepts peers (BEP 27). */
const PRIVATE_ORIGINS: ReadonlySet<CandidateOrigin> = new Set(["tracker", "magnet"]);

/**
 * A transfer of content that is either files or a live stream. If only the infohash is known, it starts as a file swarm,
 * which asks peers for the metadata. If the metadata (or a transport file given later) describes a live stream, a live
 * transfer takes over with the peers and trackers known by then. Sessions see the same transfer throughout.
 */
export class EitherTransfer implements PeerTransfer {
  readonly infohash: Infohash;
  readonly #deps: TransferDependencies;
  readonly #content: TransferContent;
  readonly #openLive: OpenLive;
  readonly #before: Promise<void>;
  readonly #onStop: () => void;
  readonly #pendingStops: PendingStops;
  readonly #files: SwarmTransfer | undefined;
  readonly #addedTrackers: (readonly string[])[] = [];
  readonly #addedLocalTrackers: string[] = [];
  readonly #addedPeers: Candidate[] = [];
  #live: PeerTransfer | undefined;
  #isIdle = false;
  #wantsHistory = false;
  #stopping: Promise<void> | undefined;

  /** Starts when `before` has resolved: an earlier transfer of the same content must have closed its folder first.
   * `onStop` is called when stopping begins. */
  constructor(
    deps: TransferDependencies,
    content: TransferContent,
    before: Promise<void>,
    openLive: OpenLive,
    onStop: () => void,
  ) {
    this.infohash = content.infohash;
    this.#deps = deps;
    this.#content = content;
    this.#wantsHistory = content.wantsHistory ?? false;
    this.#before = before;
    this.#openLive = openLive;
    this.#onStop = onStop;
    this.#pendingStops = new PendingStops(deps.announcer, deps.runtime.clock);
    const { live } = content;
    if (live) {
      this.#live = openLive({ ...content, live }, before);
      deps.kept.save({ kind: "live", file: live.file });
    } else {
      const found = (file: LiveTransportFile, peers: readonly Candidate[]) => this.#becomeLive(file, peers);
      const own = { ...deps, announcer: this.#pendingStops };
      this.#files = new SwarmTransfer(own, content, before, () => {}, found);
    }
  }

  get name(): string {
    return this.#current.name;
  }

  get files(): readonly ContentFile[] {
    return this.#current.files;
  }

  get figures(): SwarmFigures {
    return this.#current.figures;
  }

  get live(): LiveControl | undefined {
    return this.#current.live;
  }

  /** Whether DHT and local discovery may announce it: its metadata is known and it is not private (BEP 27). */
  get isShared(): boolean {
    const { info } = this.live?.content.file ?? this.transportFile() ?? {};
    return info !== undefined && !info.isPrivate;
  }

  get segmentSource(): Transfer["segmentSource"] {
    return this.#current.segmentSource;
  }

  /** Adds what another request for the same content supplies: a transport file, trackers, peers, web seeds. */
  learn(content: TransferContent): void {
    const { live, transportFile, trackers, localTrackers, peers } = content;
    if (live && !this.#live) this.#becomeLive(live.file, [], live);
    // Store the signed file even if the stream was joined without one.
    else if (live) this.#deps.kept.save({ kind: "live", file: live.file });
    const ofFile = live?.file.trackers ?? transportFile?.trackers ?? [];
    this.addTrackers([...ofFile, ...trackers], localTrackers);
    this.addPeers(peers, "magnet");
    if (content.wantsHistory) this.fetchHistory();
    if (!this.#live) this.#files?.addWebSeeds(content);
    if (transportFile && !this.#live) this.#files?.learn(transportFile);
  }

  async ready(signal?: AbortSignal): Promise<void> {
    for (;;) {
      const current = this.#current;
      try {
        return await current.ready(signal);
      } catch (thrown) {
        // The file swarm stopped because the live transfer took over: wait for that one.
        if (current === this.#current || signal?.aborted) throw thrown;
      }
    }
  }

  source(fileIndex: number): ByteSource {
    return this.#current.source(fileIndex);
  }

  media(fileIndex: number, audio: AudioRequest, signal?: AbortSignal): Promise<Media> {
    return this.#current.media(fileIndex, audio, signal);
  }

  progress(fileIndex: number): number {
    return this.#current.progress(fileIndex);
  }

  headBytes(fileIndex: number): number {
    return this.#current.headBytes(fileIndex);
  }

  pieceMap(cells: number): string {
    return this.#current.pieceMap?.(cells) ?? "";
  }

  addTrackers(tiers: readonly (readonly string[])[], localTrackers: readonly string[] = []): void {
    if (!this.#live) {
      addBounded(this.#addedTrackers, tiers);
      addBounded(this.#addedLocalTrackers, localTrackers);
    }
    this.#current.addTrackers(tiers, localTrackers);
  }

  addPeers(addresses: readonly PeerAddress[], origin: CandidateOrigin): void {
    if (!this.#live) {
      addBounded(
        this.#addedPeers,
        addresses.map((address) => ({ address, origin })),
      );
    }
    this.#current.addPeers(addresses, origin);
  }

  fetchHistory(): void {
    this.#wantsHistory = true;
    this.#live?.fetchHistory?.();
  }

  setIdle(isIdle: boolean): void {
    this.#isIdle = isIdle;
    this.#current.setIdle?.(isIdle);
  }

  transportFile(): TransportFile | undefined {
    return this.#current.transportFile();
  }

  accept(socket: TcpSocket, first: Uint8Array | undefined): TcpHandlers | undefined {
    return this.#stopping ? undefined : this.#current.accept(socket, first);
  }

  stop(): Promise<void> {
    if (this.#stopping === undefined) {
      this.#stopping = this.#stop();
      this.#onStop();
    }
    return this.#stopping;
  }

  get #current(): PeerTransfer {
    return this.#live ?? this.#files!;
  }

  #becomeLive(file: LiveTransportFile, peers: readonly Candidate[], live = this.#watching(file)): void {
    if (this.#stopping || this.#live) return;
    const { trackers, localTrackers = [], displayName } = this.#content;
    this.#deps.log.debug("the content is a live stream", { infohash: this.infohash, peers: peers.length });
    // Delay `stopped` announces: the live swarm continues with the same infohash, address and port.
    this.#pendingStops.hold();
    this.#files?.stop().catch((thrown) => {
      const reason = messageOf(thrown);
      this.#deps.log.warn("stopping the metadata swarm failed", { infohash: this.infohash, reason });
    });
    const allowed = [...peers, ...this.#addedPeers].filter(
      ({ origin }) => !file.info.isPrivate || PRIVATE_ORIGINS.has(origin),
    );
    const known = distinct([...(live.knownPeers ?? []), ...allowed.map(({ address }) => address)]);
    this.#live = this.#openLive(
      {
        infohash: this.infohash,
        live: { ...live, knownPeers: known.slice(0, MAX_ADDED) },
        trackers: [...trackers, ...this.#addedTrackers],
        localTrackers: [...localTrackers, ...this.#addedLocalTrackers],
        peers: this.#content.peers,
        wantsHistory: this.#wantsHistory,
        ...(displayName !== undefined && { displayName }),
      },
      this.#before,
    );
    if (this.#isIdle) this.#live.setIdle?.(true);
    this.#deps.kept.save({ kind: "live", file });
  }

  #watching(file: LiveTransportFile): LiveContent {
    const { liveRole = "viewer", roleKey } = this.#content;
    return { file, role: liveRole, ...(roleKey && { roleKey }) };
  }

  async #stop(): Promise<void> {
    await Promise.all([this.#files?.stop(), this.#live?.stop()]);
    await this.#pendingStops.send();
  }
}

/** Adds items up to `MAX_ADDED`. */
function addBounded<T>(list: T[], more: readonly T[]): void {
  for (const each of more) if (list.length < MAX_ADDED) list.push(each);
}

function distinct(addresses: readonly PeerAddress[]): PeerAddress[] {
  return [...new Map(addresses.map((address) => [addressText(address), address])).values()];
}
