import { sleep } from "../async/sleep.ts";
import { Bits } from "../base/bits.ts";
import { messageOf, SluiceError } from "../base/errors.ts";
import type { Infohash } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import type { Bucket } from "../outbound/bucket.ts";
import { pieceBytesOf } from "../protocol/swarm/piece-check.ts";
import type { Clock } from "../runtime/contract.ts";
import { type FileChecks, readKnownFile } from "../storage/known-file.ts";
import { MAX_INFO_BYTES, MAX_TRANSPORT_FILE_BYTES, type TransportFile } from "../wire/torrent/metainfo.ts";
import type { WebSeed } from "../wire/torrent/web-seeds.ts";
import type { SeedLayout, Stretch } from "./web-seeds/seed-map.ts";
import type { WebSeeds } from "./web-seeds/web-seeds.ts";

/** Pause after a failed upload; playback does not depend on uploads. */
const PAUSE_MS = 60_000;

/** Dependencies of {@link BucketPieces}. */
interface BucketPiecesDependencies {
  readonly bucket: Bucket;
  readonly file: TransportFile;
  readonly webSeeds: Pick<WebSeeds, "addBucket" | "bucketHas">;
  readonly clock: Clock;
  readonly log: Log;
  /** Pieces that were on disk when the content was opened. */
  readonly held: Iterable<number>;
  /** Returns a copy of a piece; undefined if it is not held any more. */
  readonly read: (piece: number) => Uint8Array | Promise<Uint8Array | undefined> | undefined;
}

/**
 * The pieces of one content in the bucket: one object each, named `<infohash>/<piece>`, and the transport file. The swarm reads them as from
 * a web seed, so they are verified like pieces of peers, and a bucket that is slow or down delays nothing. New pieces are uploaded in the
 * background, one at a time, from memory or disk: a queue of numbers, not of bytes.
 */
export class BucketPieces implements SeedLayout {
  readonly file: TransportFile;
  readonly seed: WebSeed;
  readonly #dependencies: BucketPiecesDependencies;
  readonly #log: Log;
  readonly #stored: Bits;
  readonly #queue = new Set<number>();
  readonly #closed = new AbortController();
  #work: Promise<void>;
  #isWorking = true;
  #hasFailed = false;

  constructor(dependencies: BucketPiecesDependencies) {
    const { bucket, file, log } = dependencies;
    this.#dependencies = dependencies;
    this.#log = log.named("bucket");
    this.file = file;
    this.seed = { url: bucket.url(file.infohash), kind: "files" };
    this.#stored = new Bits(file.info.pieceCount);
    for (const piece of dependencies.held) this.#queue.add(piece);
    this.#work = this.#begin();
  }

  /** A piece was received and verified. */
  verified(piece: number): void {
    if (this.#stored.has(piece)) return;
    this.#queue.add(piece);
    if (this.#isWorking) return;
    this.#isWorking = true;
    this.#work = this.#upload();
  }

  /** Ends uploads; what was not uploaded is uploaded when the content is opened again. */
  async close(): Promise<void> {
    this.#closed.abort(new SluiceError("cancelled", "the content was closed"));
    await this.#work;
  }

  pieces(): Bits {
    const pieces = new Bits(this.#stored.length);
    pieces.load(this.#stored.bytes);
    return pieces;
  }

  /** Each piece is a file of its own. */
  at(offset: number): Stretch {
    const { info } = this.file;
    const fileIndex = Math.floor(offset / info.pieceLength);
    const start = fileIndex * info.pieceLength;
    return { start, end: start + pieceBytesOf(info, fileIndex), kind: "file", fileIndex };
  }

  url({ fileIndex }: Stretch): string {
    return `${this.seed.url}/${fileIndex}`;
  }

  markMissing(piece: number): void {
    this.#stored.clear(piece);
  }

  /** Finds out what the bucket has; then the swarm reads from it, and the rest is uploaded. */
  async #begin(): Promise<void> {
    const { bucket, webSeeds, file } = this.#dependencies;
    const hasFile = await this.#attempt(() => this.#list());
    if (hasFile === undefined) return;
    webSeeds.addBucket(this, (url) => bucket.sign(url));
    // A bucket with a limit removes the content whose transport file is the oldest.
    if (!hasFile || bucket.place.limitBytes !== undefined)
      await this.#attempt((signal) => bucket.put(fileKey(file.infohash), file.bytes, signal));
    await this.#upload();
  }

  /** Lists the stored pieces. Returns true if the transport file is among them. */
  async #list(): Promise<boolean> {
    const { infohash, info } = this.file;
    let hasFile = false;
    for await (const { key, bytes } of this.#dependencies.bucket.list(`${infohash}/`, this.#closed.signal)) {
      if (key === fileKey(infohash)) hasFile = true;
      const piece = Number(/^\/(\d{1,9})$/.exec(key.slice(infohash.length))?.[1] ?? info.pieceCount);
      if (piece < info.pieceCount && bytes === pieceBytesOf(info, piece)) this.#stored.set(piece);
    }
    return hasFile;
  }

  async #upload(): Promise<void> {
    for (const piece of this.#queue) {
      this.#queue.delete(piece);
      if (!this.#stored.has(piece)) await this.#attempt((signal) => this.#uploadPiece(piece, signal));
      if (this.#closed.signal.aborted) break;
    }
    this.#isWorking = false;
  }

  async #uploadPiece(piece: number, signal: AbortSignal): Promise<void> {
    const { bucket, read, webSeeds } = this.#dependencies;
    const release = await bucket.uploads.take(signal);
    try {
      const bytes = await read(piece);
      if (!bytes) return;
      await bucket.put(`${this.file.infohash}/${piece}`, bytes, signal);
      this.#stored.set(piece);
      webSeeds.bucketHas(piece);
    } finally {
      release();
    }
  }

  /** Calls `act` until it succeeds, with pauses. Returns undefined if the content is closed. */
  async #attempt<T>(act: (signal: AbortSignal) => Promise<T>): Promise<T | undefined> {
    const { signal } = this.#closed;
    while (!signal.aborted) {
      try {
        const result = await act(signal);
        if (this.#hasFailed) this.#log.info("the bucket is available again");
        this.#hasFailed = false;
        return result;
      } catch (error) {
        if (signal.aborted) break;
        if (!this.#hasFailed)
          this.#log.warn("cannot use the bucket; playback continues without it", {
            reason: messageOf(error),
          });
        this.#hasFailed = true;
        await sleep(this.#dependencies.clock, PAUSE_MS, signal);
      }
    }
    return undefined;
  }
}

/** Returns the transport file of content from the bucket, verified by its infohash; undefined if the bucket does not have it or fails. */
export async function fileInBucket(
  bucket: Bucket,
  infohash: Infohash,
  checks: FileChecks,
  log: Log,
  signal: AbortSignal,
): Promise<TransportFile | undefined> {
  const limitBytes = MAX_TRANSPORT_FILE_BYTES + MAX_INFO_BYTES;
  try {
    const bytes = await bucket.get(fileKey(infohash), limitBytes, signal);
    const known = bytes && readKnownFile(bytes, checks, limitBytes);
    if (known?.kind === "vod" && known.file.infohash === infohash && !known.file.info.lacksLayers)
      return known.file;
  } catch (error) {
    log.debug("cannot read a transport file from the bucket", { reason: messageOf(error) });
  }
  return undefined;
}

function fileKey(infohash: Infohash): string {
  return `${infohash}/content.torrent`;
}
