import { deferred } from "../../src/async/deferred.ts";
import type { ByteReader } from "../../src/base/byte-source.ts";
import { toHex } from "../../src/base/bytes.ts";
import type { DiagnosisRow } from "../../src/base/diagnosis.ts";
import { SluiceError } from "../../src/base/errors.ts";
import type { FileHash, Infohash } from "../../src/base/ids.ts";
import type { ItemName } from "../../src/base/item-name.ts";
import type { ByteRange } from "../../src/base/range.ts";
import { PeerLimits } from "../../src/net/peer-limits.ts";
import type { SwarmFigures } from "../../src/protocol/swarm/contract.ts";
import { NO_FIGURES } from "../../src/protocol/swarm/figures.ts";
import type { AudioRequest, Media } from "../../src/remux/contract.ts";
import type { TcpHandlers, TcpSocket } from "../../src/runtime/contract.ts";
import type { KnownFile } from "../../src/storage/known-file.ts";
import type { WindowStorage } from "../../src/transfer/channel-contract.ts";
import type {
  ActiveTransfer,
  ByteSource,
  CacheFigures,
  ContentFile,
  TransferContent,
  Transfers,
} from "../../src/transfer/contract.ts";
import { readerStream } from "../../src/transfer/reader-stream.ts";
import type { LiveTransportFile } from "../../src/wire/live/transport-file.ts";
import type { TransportFile } from "../../src/wire/torrent/metainfo.ts";
import { FakeMedia } from "./fake-media.ts";

/** A transfer whose files, data and failures the test controls. */
export class FakeTransfer implements ActiveTransfer {
  readonly content: TransferContent;
  readonly infohash: Infohash;
  readonly name: string;
  files: readonly ContentFile[] = [];
  figures: SwarmFigures = figuresOf({});
  media_ = new FakeMedia();
  /** Media calls wait for this promise, as if no data had arrived yet. */
  data = deferred();
  stopped = false;
  /** Set by tests of segment sources and live streams. */
  segmentSource: ActiveTransfer["segmentSource"];
  live: ActiveTransfer["live"];
  setIdle: NonNullable<ActiveTransfer["setIdle"]> = () => {};
  addedTrackers: string[] = [];
  readonly openRanges: ByteRange[] = [];
  readonly cancelled: unknown[] = [];
  #files = deferred();

  constructor(content: TransferContent) {
    this.content = content;
    this.infohash = content.infohash;
    this.name = content.displayName ?? content.transportFile?.info.name ?? content.infohash;
    if (content.transportFile)
      this.bringFiles(
        content.transportFile.info.files.map(({ path, length }) => ({ name: path.join("/"), size: length })),
      );
  }

  /** Simulates the arrival of the metadata. */
  bringFiles(files: readonly { name: string; size: number; mime?: string }[]): void {
    let offset = 0;
    this.files = files.map(({ name, size, mime = "video/mp4" }, index) => {
      const file = { index, name, size, offset, mime, isPlayable: /\.(?:mp4|mkv|ts)$/.test(name) };
      offset += size;
      return file;
    });
    this.#files.resolve();
  }

  /** Simulates the arrival of data: media can be opened and read. */
  bringData(): void {
    this.figures = figuresOf({
      connectedPeers: 2,
      downloaded: 3_000_000,
      bytesPerSecondDown: 2048,
      piecesHeld: 3,
      hasMetadata: true,
    });
    this.data.resolve();
  }

  ready(): Promise<void> {
    return this.#files.promise;
  }

  addTrackers(tiers: readonly (readonly string[])[]): void {
    this.addedTrackers.push(...tiers.flat());
  }

  addPeers(): void {}

  transportFile(): TransportFile | undefined {
    return this.content.transportFile;
  }

  async media(_fileIndex: number, { language }: AudioRequest): Promise<Media> {
    await this.data.promise;
    this.media_.languages.push(language);
    return this.media_;
  }

  progress(): number {
    return 12.7;
  }

  headBytes(): number {
    return 1024 * 1024;
  }

  source(fileIndex: number): ByteSource {
    const { size } = this.files[fileIndex]!;
    const bytesAt = ({ start, end }: ByteRange) =>
      Uint8Array.from({ length: end - start }, (_, i) => (start + i) & 0xff);
    return {
      size,
      read: async (range) => bytesAt(range),
      open: (range) => readerStream(this.#reader(range, bytesAt)),
      reader: (range) => this.#reader(range, bytesAt),
    };
  }

  #reader(range: ByteRange, bytesAt: (range: ByteRange) => Uint8Array): ByteReader {
    this.openRanges.push(range);
    let at = range.start;
    return {
      read: async (into) => {
        await this.data.promise;
        const part = bytesAt({ start: at, end: Math.min(range.end, at + Math.min(1000, into.length)) });
        into.set(part);
        at += part.length;
        return part.length;
      },
      close: (reason) => void this.cancelled.push(reason),
    };
  }

  async stop(): Promise<void> {
    this.stopped = true;
    this.#files.promise.catch(() => {});
    this.#files.reject(new SluiceError("session_stopped", "the transfer was stopped"));
  }
}

/** Transfers that never touch a network. */
export class FakeTransfers implements Transfers {
  readonly p2pPort = 0;
  readonly tracker = undefined;
  readonly opened: FakeTransfer[] = [];
  readonly kept: (TransportFile | LiveTransportFile)[] = [];
  /** The infohashes of keys, by `KEY SALT` in hex. */
  readonly keys = new Map<string, Infohash>();
  readonly limits = new PeerLimits({ uploadLimit: 0, downloadLimit: 0, limitLan: true });
  /** Called for each new transfer, to configure it. */
  prepare: (transfer: FakeTransfer) => void = () => {};
  isClosed = false;

  open(content: TransferContent): FakeTransfer {
    const known = this.get(content.infohash);
    if (known) {
      known.addTrackers(content.trackers);
      return known;
    }
    const transfer = new FakeTransfer(content);
    this.opened.push(transfer);
    const file = content.transportFile ?? content.live?.file;
    if (file) this.kept.push(file);
    this.prepare(transfer);
    return transfer;
  }

  get(infohash: Infohash): FakeTransfer | undefined {
    return this.all().find((transfer) => transfer.infohash === infohash);
  }

  all(): readonly FakeTransfer[] {
    return this.opened.filter(({ stopped }) => !stopped);
  }

  async knownTransportFile(infohash: Infohash): Promise<KnownFile | undefined> {
    const file = this.kept.find((kept) => kept.infohash === infohash);
    if (!file) return undefined;
    return "isSigned" in file ? { kind: "live", file } : { kind: "vod", file };
  }

  async infohashOfFile(hash: FileHash): Promise<Infohash | undefined> {
    return this.kept.find((file) => file.fileHash === hash)?.infohash;
  }

  async findByKey({ key, salt }: ItemName): Promise<Infohash> {
    const infohash = this.keys.get(`${toHex(key)} ${toHex(salt)}`);
    if (infohash) return infohash;
    throw new SluiceError("content_id_unknown", "the DHT has no item for this key");
  }

  async keep({ file }: KnownFile): Promise<void> {
    this.kept.push(file);
  }

  /** The connections that were accepted. */
  readonly accepted: { readonly infohash: Infohash; readonly socket: TcpSocket }[] = [];

  accept(infohash: Infohash, socket: TcpSocket): TcpHandlers {
    this.accepted.push({ infohash, socket });
    return { received() {}, drained() {}, closed() {} };
  }

  settingsChanged() {}

  async reachRows(): Promise<readonly DiagnosisRow[]> {
    return [{ name: "Port", level: "ok", text: "Peers can call us." }];
  }

  keptInfohashes(): readonly Infohash[] {
    return this.kept.map(({ infohash }) => infohash).reverse();
  }

  cache: Transfers["cache"] = undefined;

  async cacheFigures(): Promise<CacheFigures> {
    return { available: 1e9, limit: 2e9, activeInUse: 111, inactiveInUse: 222, memoryInUse: 333 };
  }

  windowStorage(): WindowStorage {
    const unused = async () => {
      throw new Error("this window has no folder");
    };
    return {
      files: { open: unused, remove: unused },
      folder: undefined,
      limitBytes: () => 0,
      release() {},
    };
  }

  async close(): Promise<void> {
    this.isClosed = true;
  }
}

function figuresOf(given: Partial<SwarmFigures>): SwarmFigures {
  return { ...NO_FIGURES, pieceCount: 10, ...given };
}
