import { addressText, type PeerAddress } from "../base/address.ts";
import { messageOf } from "../base/errors.ts";
import type { ContentId, Infohash } from "../base/ids.ts";
import type { Media } from "../remux/contract.ts";
import type { TcpHandlers, TcpSocket } from "../runtime/contract.ts";
import type { Candidate, CandidateOrigin, SwarmFigures } from "../swarm/contract.ts";
import type { LiveTransportFile } from "../wire/live-transport.ts";
import type { TransportFile } from "../wire/metainfo.ts";
import type { ActiveTransfer, ByteSource, ContentFile, Transfer, TransferContent } from "./contract.ts";
import { HeldGoodbyes } from "./held-goodbyes.ts";
import type { LiveContent, LiveControl } from "./live/contract.ts";
import type { LiveTransferContent } from "./live/live-content.ts";
import { SwarmTransfer } from "./transfer.ts";
import type { TransferHouse } from "./transfer-house.ts";

/** A transfer that peers call, too. */
export interface PeerTransfer extends ActiveTransfer {
  /** Takes over an incoming connection whose handshake `first` has been read; undefined where there is no swarm for it. */
  accept(socket: TcpSocket, first: Uint8Array): TcpHandlers | undefined;
}

/** Opens a live stream. Its owner stops it; it begins when `before` has resolved. */
export type OpenLive = (content: LiveTransferContent, before: Promise<void>) => PeerTransfer;

/** Of what links and other transfers told, kept for a live swarm that is still to come: as many as a swarm takes. */
const MAX_ADDED = 100;
/** Origins that private content takes peers of (BEP 27): trackers, and who gave the link. */
const PRIVATE_ORIGINS: ReadonlySet<CandidateOrigin> = new Set(["tracker", "magnet"]);

/**
 * Content of which only the infohash is known: files, or a live stream. It begins as the swarm of files, which asks peers
 * for the metadata. Where that is a live stream's (or somebody brings its transport file), a live transfer takes over, with
 * the peers and trackers that are known by then. Who plays sees one transfer all the time.
 */
export class EitherTransfer implements PeerTransfer {
  readonly infohash: Infohash;
  readonly #house: TransferHouse;
  readonly #content: TransferContent;
  readonly #openLive: OpenLive;
  readonly #before: Promise<void>;
  readonly #leave: () => void;
  readonly #goodbyes: HeldGoodbyes;
  readonly #files: SwarmTransfer | undefined;
  readonly #addedTrackers: (readonly string[])[] = [];
  readonly #addedHomeTrackers: string[] = [];
  readonly #addedPeers: Candidate[] = [];
  #live: PeerTransfer | undefined;
  #stopping: Promise<void> | undefined;

  /** Begins as soon as `before` has resolved: an earlier transfer of the same content must have closed its folder.
   * `leave` is called when it begins to stop. */
  constructor(
    house: TransferHouse,
    content: TransferContent,
    before: Promise<void>,
    openLive: OpenLive,
    leave: () => void,
  ) {
    this.infohash = content.infohash;
    this.#house = house;
    this.#content = content;
    this.#before = before;
    this.#openLive = openLive;
    this.#leave = leave;
    this.#goodbyes = new HeldGoodbyes(house.announcer, house.runtime.clock);
    const { live } = content;
    if (live) {
      this.#live = openLive({ ...content, live }, before);
      house.kept.save({ kind: "live", file: live.file });
    } else {
      const found = (file: LiveTransportFile, peers: readonly Candidate[]) => this.#becomeLive(file, peers);
      const own = { ...house, announcer: this.#goodbyes };
      this.#files = new SwarmTransfer(own, content, before, () => {}, found);
    }
  }

  get name(): string {
    return this.#now.name;
  }

  get files(): readonly ContentFile[] {
    return this.#now.files;
  }

  get contentId(): ContentId | undefined {
    return this.#now.contentId;
  }

  get figures(): SwarmFigures {
    return this.#now.figures;
  }

  get live(): LiveControl | undefined {
    return this.#now.live;
  }

  /** Whether others may be told that it is open here: it is known what it is, and it is not private (BEP 27). */
  get isShared(): boolean {
    const { info } = this.live?.content.file ?? this.transportFile() ?? {};
    return info !== undefined && !info.isPrivate;
  }

  get segmentSource(): Transfer["segmentSource"] {
    return this.#now.segmentSource;
  }

  /** What another opening of the same content brings. */
  learn(content: TransferContent): void {
    const { live, transportFile, trackers, homeTrackers, peers } = content;
    if (live && !this.#live) this.#becomeLive(live.file, [], live);
    // A signed file is worth keeping, also where the stream was joined without one.
    else if (live) this.#house.kept.save({ kind: "live", file: live.file });
    const ofFile = live?.file.trackers ?? transportFile?.trackers ?? [];
    this.addTrackers([...ofFile, ...trackers], homeTrackers);
    this.addPeers(peers, "magnet");
    if (!this.#live) this.#files?.addWebSeeds(content);
    if (transportFile && !this.#live) this.#files?.learn(transportFile);
  }

  async ready(signal?: AbortSignal): Promise<void> {
    for (;;) {
      const asked = this.#now;
      try {
        return await asked.ready(signal);
      } catch (thrown) {
        // The swarm of files ends when the live one begins: whoever waits goes on waiting.
        if (asked === this.#now || signal?.aborted) throw thrown;
      }
    }
  }

  source(fileIndex: number): ByteSource {
    return this.#now.source(fileIndex);
  }

  media(fileIndex: number, preferredAudioLanguage: string | undefined, signal?: AbortSignal): Promise<Media> {
    return this.#now.media(fileIndex, preferredAudioLanguage, signal);
  }

  progress(fileIndex: number): number {
    return this.#now.progress(fileIndex);
  }

  headBytes(fileIndex: number): number {
    return this.#now.headBytes(fileIndex);
  }

  addTrackers(tiers: readonly (readonly string[])[], homeTrackers: readonly string[] = []): void {
    if (!this.#live) {
      keep(this.#addedTrackers, tiers);
      keep(this.#addedHomeTrackers, homeTrackers);
    }
    this.#now.addTrackers(tiers, homeTrackers);
  }

  addPeers(addresses: readonly PeerAddress[], origin: CandidateOrigin): void {
    if (!this.#live) {
      keep(
        this.#addedPeers,
        addresses.map((address) => ({ address, origin })),
      );
    }
    this.#now.addPeers(addresses, origin);
  }

  transportFile(): TransportFile | undefined {
    return this.#now.transportFile();
  }

  accept(socket: TcpSocket, first: Uint8Array): TcpHandlers | undefined {
    return this.#stopping ? undefined : this.#now.accept(socket, first);
  }

  stop(): Promise<void> {
    if (this.#stopping === undefined) {
      this.#stopping = this.#stop();
      this.#leave();
    }
    return this.#stopping;
  }

  get #now(): PeerTransfer {
    return this.#live ?? this.#files!;
  }

  #becomeLive(file: LiveTransportFile, peers: readonly Candidate[], live = this.#watching(file)): void {
    if (this.#stopping || this.#live) return;
    const { trackers, homeTrackers = [], displayName } = this.#content;
    this.#house.log.debug("a live stream", { infohash: this.infohash, peers: peers.length });
    // From here on no goodbye is said: the live swarm goes on under the same infohash, address and port.
    this.#goodbyes.hold();
    const left = this.#files?.stop();
    left?.catch((thrown) => {
      const reason = messageOf(thrown);
      this.#house.log.warn("metadata swarm did not end well", { infohash: this.infohash, reason });
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
        homeTrackers: [...homeTrackers, ...this.#addedHomeTrackers],
        peers: this.#content.peers,
        ...(displayName !== undefined && { displayName }),
      },
      this.#before,
    );
    this.#house.kept.save({ kind: "live", file });
  }

  #watching(file: LiveTransportFile): LiveContent {
    return { file, role: this.#content.liveRole ?? "viewer" };
  }

  async #stop(): Promise<void> {
    await Promise.all([this.#files?.stop(), this.#live?.stop()]);
    await this.#goodbyes.say();
  }
}

/** Adds what fits into the bound. */
function keep<T>(list: T[], more: readonly T[]): void {
  for (const each of more) if (list.length < MAX_ADDED) list.push(each);
}

function distinct(addresses: readonly PeerAddress[]): PeerAddress[] {
  return [...new Map(addresses.map((address) => [addressText(address), address])).values()];
}
