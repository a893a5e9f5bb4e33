import { Bits } from "../../base/bits.ts";
import type { TransportFile } from "../../wire/metainfo.ts";
import { webSeedFileUrl, webSeedPieceUrl } from "../../wire/web-seed-paths.ts";
import type { WebSeed } from "../../wire/web-seeds.ts";

/** A stretch of the content, half-open, and where its bytes are. */
export interface Stretch {
  readonly start: number;
  readonly end: number;
  /** `zeros`: padding, which no server has (BEP 47); `file`: by ranges of a URL; `parts`: each part has a URL of its own. */
  readonly kind: "zeros" | "file" | "parts";
  /** For a file: its number. */
  readonly fileIndex: number;
}

/** Where files are below the URL of a web seed (`webSeedPaths`): the same for all of them. */
export type SeedPaths = readonly (string | undefined)[];

/** Where one web seed has the bytes of the content. */
export class SeedMap {
  readonly file: TransportFile;
  readonly seed: WebSeed;
  /** By file: where it is below the URL; undefined where it can be nowhere. */
  readonly #paths: SeedPaths;
  /** Files that the server turned out not to have. */
  readonly #missing = new Set<number>();

  constructor(file: TransportFile, seed: WebSeed, paths: SeedPaths) {
    this.file = file;
    this.seed = seed;
    this.#paths = paths;
  }

  /** The server does not have this file. */
  lacks(fileIndex: number): void {
    this.#missing.add(fileIndex);
  }

  /** The pieces that the server has: those of which it has every byte. */
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

  /** The stretch that holds the byte at `offset`, which lies within the content. */
  at(offset: number): Stretch {
    const { files, pieceLength, length } = this.file.info;
    const fileIndex = this.#fileAt(offset);
    const file = files[fileIndex]!;
    const stretch = { start: file.offset, end: file.offset + file.length, fileIndex };
    if (this.seed.kind === "files") return { ...stretch, kind: file.isPad ? "zeros" : "file" };
    const start = offset - (offset % pieceLength);
    return { start, end: Math.min(start + pieceLength, length), kind: "parts", fileIndex };
  }

  /** The URL that has the bytes from `start` to `end` of a stretch. */
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

  /** The last file that begins at or before `offset` and is not empty. */
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
