import { createStore, delMany, getMany, keys, set } from "idb-keyval";
import { concatBytes } from "../../../base/bytes.ts";
import type { PieceSink } from "../../../live/contract.ts";
import {
  type PieceVerification,
  type StoredPiece,
  verifiedPieces,
} from "../../../live/window/verified-pieces.ts";
import type { WholePiece } from "../../../protocol/live/contract.ts";
import type { PieceHeader } from "../../../wire/live/header.ts";

/** How long pieces are kept, and their limit: 2 minutes of 2 Mbit/s. */
export const ARCHIVE_MS = 120_000;
export const ARCHIVE_BYTES = 32 * 1024 * 1024;
/** Pieces are written together in transactions of this length. A page that is closed loses at most one of them. */
const BATCH_MS = 250;
/** Old records are removed together. */
const REMOVED_AT_ONCE = 20;
/** A page starts without the stored pieces if the browser does not return them within this time. */
const RESTORE_TIMEOUT_MS = 1_000;

/** A store of records that outlives the page. Each method rejects if the browser forbids it, or if its quota is exhausted. */
export interface Records {
  keys(): Promise<readonly unknown[]>;
  /** Resolves with the values of the keys, undefined for each that is unknown. */
  get(keys: readonly string[]): Promise<readonly unknown[]>;
  set(key: string, value: unknown): Promise<void>;
  remove(keys: readonly string[]): Promise<void>;
}

/** Opens the records in IndexedDB. */
export function openRecords(): Records {
  const store = createStore("sluice-live", "pieces");
  return {
    keys: () => keys(store),
    get: (names) => getMany([...names], store),
    set: (name, value) => set(name, value, store),
    remove: (names) => delMany([...names], store),
  };
}

interface PieceArchiveOptions extends PieceVerification {
  readonly records: Records;
  /** Receives the pieces, those that are restored first. */
  readonly next: PieceSink;
  /** UNIX time in ms. */
  readonly now: () => number;
  /** Differs in each page, so that two pages of one stream do not replace each other's records. */
  readonly pageId: string;
  /** How many pieces {@link PieceArchive.newest} has at most. */
  readonly newestCount: number;
}

/** A record of ours, or one that was restored. */
interface OwnRecord {
  readonly name: string;
  readonly atMs: number;
  readonly bytes: number;
}

/** Keeps the last pieces of a stream in the browser, so that a page that is reloaded starts with them, and can go back to them. */
export class PieceArchive implements PieceSink {
  readonly #options: PieceArchiveOptions;
  /** The number of pieces that earlier pages had stored. */
  storedPieces = 0;
  #newest: WholePiece[] = [];
  #batch: StoredPiece[] = [];
  #batchBytes = 0;
  #batchFromMs = 0;
  /** Oldest first. */
  #own: OwnRecord[] = [];
  #serial = 0;
  #isFailed = false;
  #writing = Promise.resolve();

  constructor(options: PieceArchiveOptions) {
    this.#options = options;
  }

  /**
   * Passes on the pieces that an earlier page stored and those that `others` brings, and returns them, oldest first. Each is verified.
   * What takes too long is ignored.
   */
  async restore(others: Promise<readonly StoredPiece[]>): Promise<readonly WholePiece[]> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<readonly never[]>((resolve) => {
      timer = setTimeout(() => resolve([]), RESTORE_TIMEOUT_MS);
    });
    const read = this.#read().catch(() => {
      this.#isFailed = true; // The browser forbids it: the page works without.
      return [];
    });
    const [stored, received] = await Promise.all([
      Promise.race([read, late]),
      Promise.race([others.catch(() => []), late]),
    ]);
    clearTimeout(timer);
    this.storedPieces = stored.length;
    const pieces = verifiedPieces([...stored, ...received], this.#options);
    for (const { header, chunks } of pieces) this.#options.next.piece(header.value, chunks, header.bytes);
    this.#newest = pieces.slice(-this.#options.newestCount);
    return pieces;
  }

  /** The newest pieces, oldest first: with them another driver continues where the one before stopped. */
  get newest(): readonly WholePiece[] {
    return this.#newest.slice();
  }

  piece(header: PieceHeader, chunks: readonly Uint8Array[], signed: Uint8Array): void {
    this.#options.next.piece(header, chunks, signed);
    this.#newest.push({ header: { value: header, bytes: signed }, chunks });
    if (this.#newest.length > this.#options.newestCount) this.#newest.shift();
    if (this.#isFailed) return;
    const nowMs = this.#options.now();
    if (this.#batch.length === 0) this.#batchFromMs = nowMs;
    const media = concatBytes(chunks);
    this.#batch.push({ header: signed.slice(), media });
    this.#batchBytes += media.length;
    if (nowMs - this.#batchFromMs >= BATCH_MS) this.#write(nowMs);
  }

  skip(seq: number): void {
    this.#options.next.skip(seq);
  }

  restarted(): void {
    this.#options.next.restarted();
  }

  /** Resolves when everything so far is stored. */
  settled(): Promise<void> {
    return this.#writing;
  }

  #write(atMs: number): void {
    const { file, records, pageId } = this.#options;
    const name = `${file.infohash} ${atMs} ${pageId} ${this.#serial++}`;
    const batch = this.#batch;
    this.#own.push({ name, atMs, bytes: this.#batchBytes });
    this.#batch = [];
    this.#batchBytes = 0;
    const old = this.#takeOld(atMs);
    this.#writing = this.#writing.then(async () => {
      try {
        if (old.length > 0) await records.remove(old);
        await records.set(name, batch);
      } catch {
        // The quota is exhausted: other pages of this site need the space as well.
        this.#isFailed = true;
        await records.remove(this.#own.map((each) => each.name)).catch(() => {});
      }
    });
  }

  /** Takes the records beyond the limits from the list of ours, if there are enough of them. */
  #takeOld(nowMs: number): readonly string[] {
    let bytes = this.#own.reduce((sum, each) => sum + each.bytes, 0);
    let count = 0;
    for (const each of this.#own) {
      if (each.atMs >= nowMs - ARCHIVE_MS && bytes <= ARCHIVE_BYTES) break;
      bytes -= each.bytes;
      count++;
    }
    return count < REMOVED_AT_ONCE ? [] : this.#own.splice(0, count).map(({ name }) => name);
  }

  /** Reads the records of this stream, and removes outdated ones of all streams. */
  async #read(): Promise<readonly StoredPiece[]> {
    const { records, file, now } = this.#options;
    const nowMs = now();
    const outdated: string[] = [];
    const recent: { readonly name: string; readonly atMs: number }[] = [];
    for (const name of await records.keys()) {
      if (typeof name !== "string") continue;
      const [infohash, at] = name.split(" ");
      const atMs = Number(at);
      // A record of the future was made before the clock was set.
      if (!(atMs > nowMs - ARCHIVE_MS && atMs <= nowMs)) outdated.push(name);
      else if (infohash === file.infohash) recent.push({ name, atMs });
    }
    if (outdated.length > 0) await records.remove(outdated);
    recent.sort((a, b) => a.atMs - b.atMs);
    const values = await records.get(recent.map(({ name }) => name));
    const stored = values.map((value) =>
      Array.isArray(value) ? (value as unknown[]).filter(isStoredPiece) : [],
    );
    // After a timeout there are records of this page already.
    this.#own.unshift(
      ...recent.map((each, i) => ({
        ...each,
        bytes: stored[i]!.reduce((sum, { media }) => sum + media.length, 0),
      })),
    );
    return stored.flat();
  }
}

function isStoredPiece(value: unknown): value is StoredPiece {
  const { header, media } = (value ?? {}) as Partial<StoredPiece>;
  return header instanceof Uint8Array && media instanceof Uint8Array;
}
