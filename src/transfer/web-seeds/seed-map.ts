import { Bits } from "../../base/bits.ts";
import type { TransportFile } from "../../wire/torrent/metainfo.ts";
import { webSeedFileUrl, webSeedPieceUrl } from "../../wire/torrent/web-seed-paths.ts";
import type { WebSeed } from "../../wire/torrent/web-seeds.ts";

/** A range `[start, end)` of the content that one file or piece of the web seed holds. */
export interface Stretch {
  readonly start: number;
  readonly end: number;
  /** `zeros`: padding, which is not on the server (BEP 47); `file`: ranges of one URL; `parts`: each range has its own URL (BEP 17). */
  readonly kind: "zeros" | "file" | "parts";
  /** Index of the file. */
  readonly fileIndex: number;
}

/** What a server has of the content, and under which URLs. */
export type SeedLayout = Pick<SeedMap, "file" | "seed" | "pieces" | "at" | "url" | "markMissing">;

/** Paths of the files below the URL of any web seed, from `webSeedPaths`. */
export type SeedPaths = readonly (string | undefined)[];

/** Maps positions in the content to URLs of one web seed. */
export class SeedMap {
  readonly file: TransportFile;
  readonly seed: WebSeed;
  /** By file index; undefined if the file has no valid path. */
  readonly #paths: SeedPaths;
  /** Indexes of files that the server does not have. */
  readonly #missing = new Set<number>();

  constructor(file: TransportFile, seed: WebSeed, paths: SeedPaths) {
    this.file = file;
    this.seed = seed;
    this.#paths = paths;
  }

  /** Records that the server does not have this file. */
  markMissing(fileIndex: number): void {
    this.#missing.add(fileIndex);
  }

  /** Returns the pieces of which the server has every byte. */
  pieces(): Bits {
    const { pieceCount, pieceLength, files } = this.file.info;
    const bits = new Bits(pieceCount);
    bits.setAll();
    if (this.seed.kind === "pieces") return bits;
    for (const [i, { offset, length, isPad }] of files.entries()) {
      if (isPad || length === 0 || (this.#paths[i] !== undefined && !this.#missing.has(i))) continue;
      const last = Math.ceil((offset + length) / pieceLength);
      for (let piece = Math.floor(offset / pieceLength); piece < last; piece++) bits.clear(piece);
    }
    return bits;
  }

  /** Returns the stretch that contains the byte at `offset`. */
  at(offset: number): Stretch {
    const { files, pieceLength, length } = this.file.info;
    const fileIndex = this.#fileAt(offset);
    const file = files[fileIndex]!;
    const stretch = { start: file.offset, end: file.offset + file.length, fileIndex };
    if (this.seed.kind === "files") return { ...stretch, kind: file.isPad ? "zeros" : "file" };
    const start = offset - (offset % pieceLength);
    return { start, end: Math.min(start + pieceLength, length), kind: "parts", fileIndex };
  }

  /** Returns the URL of the bytes `[start, end)` of a stretch. */
  url(stretch: Stretch, start: number, end: number): string {
    const { seed, file } = this;
    if (stretch.kind === "file")
      return webSeedFileUrl(seed.url, this.#paths[stretch.fileIndex]!, this.#isOneFile);
    const piece = Math.floor(start / file.info.pieceLength);
    return webSeedPieceUrl(seed.url, file.infohash, piece, start - stretch.start, end - stretch.start);
  }

  get #isOneFile(): boolean {
    return this.#paths.length === 1 && this.#paths[0]?.includes("/") === false;
  }

  /** Returns the last non-empty file that starts at or before `offset`. */
  #fileAt(offset: number): number {
    const { files } = this.file.info;
    let low = 0;
    let high = files.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (files[middle]!.offset <= offset) low = middle;
      else high = middle - 1;
    }
    while (files[low]!.length === 0) low--;
    return low;
  }
}
