import { SluiceError } from "../base/errors.ts";
import { isPlayableName, mimeOf } from "../base/mime.ts";
import type { SwarmInput } from "../protocol/swarm/contract.ts";
import { pieceCheck } from "../protocol/swarm/piece-check.ts";
import { type AudioRequest, audioKey, type Media } from "../remux/contract.ts";
import type { ContentFolder } from "../storage/cache-contract.ts";
import { PieceStore } from "../storage/piece-store.ts";
import type { Info, TransportFile } from "../wire/torrent/metainfo.ts";
import { BucketPieces } from "./bucket-pieces.ts";
import { createByteSource } from "./byte-source.ts";
import type { ByteSource, ContentFile, TransferDependencies } from "./contract.ts";
import { Demand } from "./demand.ts";
import { ReadLanes } from "./read-lanes.ts";
import { SharedMedia } from "./shared-media.ts";
import type { WebSeeds } from "./web-seeds/web-seeds.ts";

/** Dependencies of {@link KnownContent}. */
export interface KnownContentDependencies
  extends Pick<
    TransferDependencies,
    "runtime" | "settings" | "openMedia" | "pool" | "memory" | "bucket" | "log"
  > {
  readonly file: TransportFile;
  /** The folder of the disk cache; undefined: pieces stay in memory only. */
  readonly folder: ContentFolder | undefined;
  /** The web seeds of the content; the bucket is one of them. */
  readonly webSeeds: WebSeeds;
  /** Fires when the transfer stops. */
  readonly stopped: AbortSignal;
  /** Passes an input to the swarm. */
  readonly input: (input: SwarmInput) => void;
}

/** Content whose transport file is known: its files, its pieces, and the readers of both. */
export class KnownContent {
  readonly file: TransportFile;
  readonly files: readonly ContentFile[];
  readonly #dependencies: KnownContentDependencies;
  readonly #store: PieceStore;
  readonly #demand: Demand;
  readonly #lanes = new Map<number, ReadLanes>();
  readonly #bucket: BucketPieces | undefined;
  readonly #media = new Map<string, SharedMedia>();

  constructor(dependencies: KnownContentDependencies) {
    const { file, folder, runtime, settings, pool, memory, input } = dependencies;
    this.#dependencies = dependencies;
    this.file = file;
    this.files = contentFiles(file.info);
    this.#store = new PieceStore({
      layout: file.info,
      pool,
      memory,
      disk: folder,
      isRight: pieceCheck(runtime.sha1, runtime.sha256),
      dropped: (piece) => input({ kind: "dropped", piece }),
    });
    folder?.serve(this.#store);
    this.#demand = new Demand(
      this.#store,
      {
        want: (reader, range, urgentBytes) => input({ kind: "want", reader, range, urgentBytes }),
        unwant: (reader) => input({ kind: "unwant", reader }),
      },
      settings.memoryLimitBytes,
    );
    const { bucket, webSeeds, log } = dependencies;
    this.#bucket =
      bucket &&
      new BucketPieces({
        bucket,
        file,
        webSeeds,
        clock: runtime.clock,
        log,
        held: this.heldPieces(),
        read: (piece) => this.block(piece, 0, this.#store.pieceBytes(piece)),
      });
  }

  /** Size of the cache folder in bytes. */
  get cachedBytes(): number {
    return this.#dependencies.folder?.bytes ?? 0;
  }

  /** Indexes of the pieces in memory or on disk. */
  *heldPieces(): Iterable<number> {
    const { layout, held } = this.#store;
    for (let piece = 0; piece < layout.pieceCount; piece++) if (held.has(piece)) yield piece;
  }

  /** Returns the held share of each of `cells` equal runs of pieces, as digits: 0 nothing, 9 everything. */
  pieceMap(cells: number): string {
    const { layout, held } = this.#store;
    const count = Math.min(cells, layout.pieceCount);
    let map = "";
    for (let cell = 0; cell < count; cell++) {
      const from = Math.floor((cell * layout.pieceCount) / count);
      const to = Math.floor(((cell + 1) * layout.pieceCount) / count);
      let have = 0;
      for (let piece = from; piece < to; piece++) if (held.has(piece)) have++;
      map += have === 0 ? 0 : have === to - from ? 9 : 1 + Math.floor((8 * have) / (to - from));
    }
    return map;
  }

  /** Stores a verified piece. */
  put(piece: number, bytes: Uint8Array<ArrayBuffer>): void {
    this.#store.put(piece, bytes);
    this.#bucket?.verified(piece);
  }

  /** Frees the memory of pieces that can be read from disk again: no player is left. */
  releaseMemory(): void {
    this.#store.releaseSaved();
  }

  /** Returns a copy of `length` bytes of a piece from `begin`; undefined if the piece is not held. */
  block(piece: number, begin: number, length: number) {
    const cut = (bytes: Uint8Array | undefined) => bytes?.slice(begin, begin + length);
    const view = this.#store.peek(piece);
    if (view) return cut(view);
    return this.#store.held.has(piece) ? this.#store.load(piece).then(cut) : undefined;
  }

  /** Returns the bytes of a file. Throws `no_such_file`. */
  source(fileIndex: number): ByteSource {
    const { offset, size } = this.#file(fileIndex);
    const { runtime, stopped } = this.#dependencies;
    const demand = this.#demand;
    let lanes = this.#lanes.get(fileIndex);
    if (lanes === undefined) {
      lanes = new ReadLanes(demand, runtime.clock, offset + size);
      this.#lanes.set(fileIndex, lanes);
    }
    return createByteSource({ demand, offset, size, stopped, lanes });
  }

  /** Opens the media of a file, shared by all callers with the same audio request. Throws `no_such_file`. */
  media(fileIndex: number, audio: AudioRequest, signal?: AbortSignal): Promise<Media> {
    const key = `${fileIndex} ${audioKey(audio)}`;
    let shared = this.#media.get(key);
    if (shared === undefined) {
      const { openMedia, settings } = this.#dependencies;
      const source = this.source(fileIndex);
      shared = new SharedMedia(openMedia, source, audio, settings.segmentSeconds);
      this.#media.set(key, shared);
    }
    return shared.get(signal);
  }

  /** Returns the held share of a file, 0 to 100. Throws `no_such_file`. */
  progress(fileIndex: number): number {
    const file = this.#file(fileIndex);
    if (file.size === 0) return 100;
    let bytes = 0;
    for (const [piece, from, to] of this.#piecesOf(file)) if (this.#store.held.has(piece)) bytes += to - from;
    return (100 * bytes) / file.size;
  }

  /** Returns how many bytes from the start of a file are held without a gap. Throws `no_such_file`. */
  headBytes(fileIndex: number): number {
    let bytes = 0;
    for (const [piece, from, to] of this.#piecesOf(this.#file(fileIndex))) {
      if (!this.#store.held.has(piece)) break;
      bytes += to - from;
    }
    return bytes;
  }

  /** Closes the media with `reason` and ends read-ahead. */
  endReads(reason: SluiceError): void {
    for (const media of this.#media.values()) media.close(reason);
    for (const lanes of this.#lanes.values()) lanes.close();
  }

  /** Writes what the disk cache still needs, then discards the pieces in memory. */
  async close(): Promise<void> {
    await this.#bucket?.close();
    await this.#dependencies.folder?.close();
    this.#store.close();
  }

  #file(fileIndex: number): ContentFile {
    const file = this.files[fileIndex];
    if (file) return file;
    throw noSuchFile(fileIndex, this.files.length);
  }

  /** The pieces that overlap `file`, each with the overlap as a range of the content. */
  *#piecesOf({ offset, size }: ContentFile): Iterable<readonly [piece: number, from: number, to: number]> {
    const { pieceLength } = this.#store.layout;
    const end = offset + size;
    for (let piece = Math.floor(offset / pieceLength); piece * pieceLength < end; piece++)
      yield [piece, Math.max(offset, piece * pieceLength), Math.min(end, (piece + 1) * pieceLength)];
  }
}

/** Lists the files of content for players. Pad files and symbolic links (BEP 47) are not playable. */
export function contentFiles(info: Info): ContentFile[] {
  return info.files.map(({ path, length, offset, isPad, isSymlink }, index) => {
    const name = path.join("/");
    const isPlayable = !isPad && !isSymlink && length > 0 && isPlayableName(name);
    return { index, name, size: length, offset, mime: mimeOf(name), isPlayable };
  });
}

/** Builds the error for a file index outside `[0, count)`. */
export function noSuchFile(fileIndex: number, count: number): SluiceError {
  return new SluiceError("no_such_file", `expected a file index below ${count}, got ${fileIndex}`);
}
