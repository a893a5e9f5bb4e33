import { messageOf, SluiceError } from "../base/errors.ts";
import type { FileHash, Infohash } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import type { Files } from "../runtime/contract.ts";
import { MAX_LIVE_FILE_BYTES } from "../wire/live/limits.ts";
import { MAX_INFO_BYTES, MAX_TRANSPORT_FILE_BYTES } from "../wire/torrent/metainfo.ts";
import { type FileChecks, type KnownFile, readKnownFile } from "./known-file.ts";

/** Limit for content that was opened; the oldest are removed first. Their size has a limit, too. */
const MAX_KEPT = 1_000;
/** Files that wait to be written; beyond that a file is not stored, because a page may open content faster than a disk writes. */
const MAX_QUEUED_BYTES = 32 * 1024 * 1024;
/** Limit for uploaded files, which are never removed: one more is refused. */
const MAX_KEPT_FOR_GOOD = 10_000;
const NAME = /^([0-9a-f]{40})-([0-9a-f]{40})(\.kept)?\.(torrent|sluice)$/;
const ENDINGS = { vod: "torrent", live: "sluice" } as const;

/** One stored transport file. `isForGood`: the user uploaded it, so it is never removed automatically. */
interface Kept {
  readonly kind: KnownFile["kind"];
  readonly infohash: Infohash;
  readonly fileHash: FileHash;
  readonly isForGood: boolean;
  /** Size in bytes. */
  readonly size: number;
}

/** Dependencies of {@link TransportFiles}. */
interface TransportFilesDependencies extends FileChecks {
  readonly files: Files;
  readonly log: Log;
  /** The folder; it need not exist yet. */
  readonly folder: string;
  /** Limit for the sum of all files that the user did not upload. */
  readonly limitBytes: number;
  /** Called after {@link TransportFiles.bytes} has grown. */
  readonly grown?: () => void;
}

/**
 * Stores the transport files of opened content, so that a known infohash or file hash starts without asking peers. The file name
 * contains the infohash and the file hash, so the folder is its own index.
 */
export class TransportFiles {
  readonly #parts: TransportFilesDependencies;
  /** By file hash, oldest first. */
  readonly #kept: Map<FileHash, Kept>;
  #saving: Promise<void> = Promise.resolve();
  #queuedBytes = 0;

  private constructor(parts: TransportFilesDependencies, kept: Map<FileHash, Kept>) {
    this.#parts = parts;
    this.#kept = kept;
  }

  /** Opens the store and reads the names of its files. */
  static async open(parts: TransportFilesDependencies): Promise<TransportFiles> {
    const found: (Kept & { modifiedMs: number })[] = [];
    for (const name of await parts.files.list(parts.folder)) {
      const match = NAME.exec(name);
      const facts = match && (await parts.files.stat(`${parts.folder}/${name}`));
      if (!match || !facts) continue;
      const [infohash, fileHash] = [match[1] as Infohash, match[2] as FileHash];
      const kind = match[4] === ENDINGS.live ? "live" : "vod";
      const isForGood = match[3] !== undefined;
      found.push({ kind, infohash, fileHash, isForGood, size: facts.size, modifiedMs: facts.modifiedMs });
    }
    // If both variants of a file exist, the permanent one counts: it is sorted last.
    found.sort((a, b) => Number(a.isForGood) - Number(b.isForGood) || a.modifiedMs - b.modifiedMs);
    return new TransportFiles(parts, new Map(found.map((kept) => [kept.fileHash, kept])));
  }

  /** Size of all files that the user did not upload; they count as part of the disk cache. */
  get bytes(): number {
    return this.#evictable().reduce((sum, { size }) => sum + size, 0);
  }

  /** The infohash of the stored transport file with this SHA-1. */
  infohashOf(fileHash: FileHash): Infohash | undefined {
    return this.#kept.get(fileHash)?.infohash;
  }

  /** The latest stored transport file of this content; the latest signed one of a live stream, and the latest one with piece layers
   * of version 2, if there is one. */
  async read(infohash: Infohash): Promise<KnownFile | undefined> {
    await this.#saving;
    let incomplete: KnownFile | undefined;
    for (const kept of this.#of(infohash)) {
      const known = await this.#read(kept);
      if (known && isTrusted(known) && !lacksLayers(known)) return known;
      incomplete ??= known;
    }
    return incomplete;
  }

  /** Stores a file in the background, unless it is too large. A failed write is only logged: peers have the file. */
  save(known: KnownFile): void {
    if (this.#kept.has(known.file.fileHash)) return;
    const kept = keptOf(known, false);
    if (kept.size > Math.min(this.#parts.limitBytes, MAX_QUEUED_BYTES - this.#queuedBytes)) return;
    this.#kept.set(kept.fileHash, kept);
    this.#queuedBytes += kept.size;
    this.#saving = this.#saving
      .then(() => this.#write(kept, known))
      .finally(() => {
        this.#queuedBytes -= kept.size;
      });
  }

  /** Stores a file permanently; durable when it resolves. Rejects with `too_many`, `disk_full`, or the error of the disk. */
  keep(known: KnownFile): Promise<void> {
    const keeping = this.#saving.then(() => this.#keepForGood(known));
    // The caller gets the error; later writes in the queue continue.
    this.#saving = keeping.catch(() => {});
    return keeping;
  }

  /** The infohashes of all stored files, latest first. */
  infohashes(): Infohash[] {
    return [...new Set([...this.#kept.values()].reverse().map(({ infohash }) => infohash))];
  }

  /** Resolves when all pending writes are done. */
  async close(): Promise<void> {
    await this.#saving;
  }

  /** The files that the user did not upload, oldest first. */
  #evictable(): Kept[] {
    return [...this.#kept.values()].filter(({ isForGood }) => !isForGood);
  }

  /** The stored files of this content, latest first. */
  #of(infohash: Infohash): Kept[] {
    return [...this.#kept.values()].filter((kept) => kept.infohash === infohash).reverse();
  }

  async #write(kept: Kept, known: KnownFile): Promise<void> {
    const { files, log } = this.#parts;
    // The entry was already removed because many others were added in the meantime.
    if (this.#kept.get(kept.fileHash) !== kept) return;
    try {
      if (known.kind === "live" && !(await this.#replaceUnsigned(known))) {
        this.#kept.delete(kept.fileHash);
        return;
      }
      await files.replace(this.#path(kept), known.file.bytes);
      const evictable = this.#evictable();
      let bytes = this.bytes;
      for (let i = 0; evictable.length - i > MAX_KEPT || bytes > this.#parts.limitBytes; i++) {
        const oldest = evictable[i]!;
        bytes -= oldest.size;
        this.#kept.delete(oldest.fileHash);
        await files.remove(this.#path(oldest));
      }
      this.#parts.grown?.();
    } catch (error) {
      this.#kept.delete(kept.fileHash);
      log.warn("cannot store a transport file", { infohash: kept.infohash, reason: messageOf(error) });
    }
  }

  /** Removes unsigned files of a live stream when a signed one arrives. Returns false if `known` itself is unsigned and a signed file
   * exists. */
  async #replaceUnsigned(known: KnownFile): Promise<boolean> {
    const { fileHash, infohash } = known.file;
    for (const other of this.#of(infohash)) {
      if (other.fileHash === fileHash) continue;
      const read = await this.#read(other);
      if (!read) continue;
      if (isTrusted(read)) {
        if (!isTrusted(known)) return false;
      } else if (isTrusted(known) && !other.isForGood) {
        this.#kept.delete(other.fileHash);
        await this.#parts.files.remove(this.#path(other));
      }
    }
    return true;
  }

  async #keepForGood(known: KnownFile): Promise<void> {
    const { files, log } = this.#parts;
    const { file } = known;
    const before = this.#kept.get(file.fileHash);
    if (before?.isForGood) return;
    const count = [...this.#kept.values()].filter(({ isForGood }) => isForGood).length;
    if (count >= MAX_KEPT_FOR_GOOD)
      throw new SluiceError("too_many", `${MAX_KEPT_FOR_GOOD} transport files are kept; no more can be`);
    const kept = keptOf(known, true);
    await files.replace(this.#path(kept), file.bytes);
    this.#kept.delete(file.fileHash);
    this.#kept.set(file.fileHash, kept);
    if (!before) return;
    // The permanent copy exists. If the other one cannot be removed, the next start finds it again; it does no harm.
    await files.remove(this.#path(before)).catch((error) => {
      log.warn("cannot remove the second copy of a transport file", {
        infohash: kept.infohash,
        reason: messageOf(error),
      });
    });
  }

  async #read(kept: Kept): Promise<KnownFile | undefined> {
    const { files, log } = this.#parts;
    const limitBytes = kept.kind === "live" ? MAX_LIVE_FILE_BYTES : MAX_TRANSPORT_FILE_BYTES + MAX_INFO_BYTES;
    try {
      const bytes = await files.read(this.#path(kept), limitBytes);
      const known = bytes && readKnownFile(bytes, this.#parts, limitBytes);
      const isRight = known?.file.infohash === kept.infohash && known.file.fileHash === kept.fileHash;
      if (isRight && known.kind === kept.kind) return known;
      log.warn("the content of a stored transport file does not match its name", { infohash: kept.infohash });
    } catch (error) {
      log.warn("cannot read a stored transport file", { infohash: kept.infohash, reason: messageOf(error) });
    }
    this.#kept.delete(kept.fileHash);
    return undefined;
  }

  #path({ kind, infohash, fileHash, isForGood }: Kept): string {
    return `${this.#parts.folder}/${infohash}-${fileHash}${isForGood ? ".kept" : ""}.${ENDINGS[kind]}`;
  }
}

function keptOf({ kind, file: { infohash, fileHash, bytes } }: KnownFile, isForGood: boolean): Kept {
  return { kind, infohash, fileHash, isForGood, size: bytes.length };
}

function lacksLayers(known: KnownFile): boolean {
  return known.kind === "vod" && known.file.info.lacksLayers === true;
}

/** Returns true if the file is signed by the broadcaster. Transport files of files are never signed and always count. */
function isTrusted(known: KnownFile): boolean {
  return known.kind === "vod" || known.file.isSigned;
}
