import { messageOf, SluiceError } from "../base/errors.ts";
import type { ContentId, Infohash, Sha1 } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import type { Files } from "../runtime/contract.ts";
import {
  MAX_INFO_BYTES,
  MAX_TRANSPORT_FILE_BYTES,
  parseTransportFile,
  type TransportFile,
} from "../wire/metainfo.ts";

/** Of content that was opened, kept at most; the oldest go first. At 100 KB each they take 100 MB. */
const MAX_KEPT = 1_000;
/** Of those that somebody uploaded, kept at most: they never go, so one more is refused. */
const MAX_KEPT_FOR_GOOD = 10_000;
const NAME = /^([0-9a-f]{40})-([0-9a-f]{40})(\.kept)?\.torrent$/;

/** One kept file: which content, which form of its transport file, and whether it is kept for good. */
interface Kept {
  readonly infohash: Infohash;
  readonly contentId: ContentId;
  readonly isForGood: boolean;
}

/** What this is made of. */
export interface TransportFilesParts {
  readonly files: Files;
  readonly sha1: Sha1;
  readonly log: Log;
  /** The folder, which need not exist yet. */
  readonly folder: string;
}

/**
 * The transport files of content that was opened, kept so that an infohash or content id asked for again starts at
 * once. A name says the infohash and the content id, so the folder is its own index.
 */
export class TransportFiles {
  readonly #parts: TransportFilesParts;
  /** By content id, oldest first. */
  readonly #kept: Map<ContentId, Kept>;
  #saving: Promise<void> = Promise.resolve();

  private constructor(parts: TransportFilesParts, kept: Map<ContentId, Kept>) {
    this.#parts = parts;
    this.#kept = kept;
  }

  /** Reads the names of what is kept. */
  static async open(parts: TransportFilesParts): Promise<TransportFiles> {
    const found: (Kept & { modifiedMs: number })[] = [];
    for (const name of await parts.files.list(parts.folder)) {
      const match = NAME.exec(name);
      const facts = match && (await parts.files.stat(`${parts.folder}/${name}`));
      if (!match || !facts) continue;
      const [infohash, contentId] = [match[1] as Infohash, match[2] as ContentId];
      found.push({ infohash, contentId, isForGood: match[3] !== undefined, modifiedMs: facts.modifiedMs });
    }
    // Where both forms of a file are there, the one that is kept for good counts: it comes last.
    found.sort((a, b) => Number(a.isForGood) - Number(b.isForGood) || a.modifiedMs - b.modifiedMs);
    return new TransportFiles(parts, new Map(found.map((kept) => [kept.contentId, kept])));
  }

  /** The infohash of the kept transport file whose SHA-1 this is. */
  infohashOf(contentId: ContentId): Infohash | undefined {
    return this.#kept.get(contentId)?.infohash;
  }

  /** The latest kept transport file of this content. */
  async read(infohash: Infohash): Promise<TransportFile | undefined> {
    await this.#saving;
    const candidates = [...this.#kept.values()].filter((kept) => kept.infohash === infohash).reverse();
    for (const kept of candidates) {
      const file = await this.#read(kept);
      if (file) return file;
    }
    return undefined;
  }

  /** Keeps `file`, in the background: losing it costs a fetch from peers, so a full disk is no reason to fail. */
  save(file: TransportFile): void {
    if (this.#kept.has(file.contentId)) return;
    const kept = { infohash: file.infohash, contentId: file.contentId, isForGood: false };
    this.#kept.set(file.contentId, kept);
    this.#saving = this.#saving.then(() => this.#write(kept, file.bytes));
  }

  /** Keeps `file` for good; durable when it resolves. Rejects with `too_many`, `disk_full`, or as the disk says it. */
  keep(file: TransportFile): Promise<void> {
    const keeping = this.#saving.then(() => this.#keepForGood(file));
    // Whoever asked is told of a failure; those behind them in the queue have nothing to do with it.
    this.#saving = keeping.catch(() => {});
    return keeping;
  }

  /** The content of which there is a transport file, the latest first. */
  infohashes(): Infohash[] {
    return [...new Set([...this.#kept.values()].reverse().map(({ infohash }) => infohash))];
  }

  /** Resolves when all that was saved is on disk. */
  async close(): Promise<void> {
    await this.#saving;
  }

  async #write(kept: Kept, bytes: Uint8Array): Promise<void> {
    const { files, log } = this.#parts;
    // So much else was opened in the meantime that it has had to go already.
    if (this.#kept.get(kept.contentId) !== kept) return;
    try {
      await files.replace(this.#path(kept), bytes);
      const evictable = [...this.#kept.values()].filter(({ isForGood }) => !isForGood);
      for (const oldest of evictable.slice(0, Math.max(0, evictable.length - MAX_KEPT))) {
        this.#kept.delete(oldest.contentId);
        await files.remove(this.#path(oldest));
      }
    } catch (error) {
      this.#kept.delete(kept.contentId);
      log.warn("transport file not kept", { infohash: kept.infohash, reason: messageOf(error) });
    }
  }

  async #keepForGood(file: TransportFile): Promise<void> {
    const { files, log } = this.#parts;
    const before = this.#kept.get(file.contentId);
    if (before?.isForGood) return;
    const count = [...this.#kept.values()].filter(({ isForGood }) => isForGood).length;
    if (count >= MAX_KEPT_FOR_GOOD)
      throw new SluiceError("too_many", `${MAX_KEPT_FOR_GOOD} transport files are kept; no more can be`);
    const kept = { infohash: file.infohash, contentId: file.contentId, isForGood: true };
    await files.replace(this.#path(kept), file.bytes);
    this.#kept.delete(file.contentId);
    this.#kept.set(file.contentId, kept);
    if (!before) return;
    // It is kept, whatever becomes of the other copy: that one is found again at the next start, and does no harm.
    await files.remove(this.#path(before)).catch((error) => {
      log.warn("second copy of a transport file not removed", {
        infohash: kept.infohash,
        reason: messageOf(error),
      });
    });
  }

  async #read(kept: Kept): Promise<TransportFile | undefined> {
    const { files, sha1, log } = this.#parts;
    const limitBytes = MAX_TRANSPORT_FILE_BYTES + MAX_INFO_BYTES;
    try {
      const bytes = await files.read(this.#path(kept), limitBytes);
      const file = bytes && parseTransportFile(bytes, sha1, limitBytes);
      if (file?.infohash === kept.infohash && file.contentId === kept.contentId) return file;
      log.warn("kept transport file is not what its name says", { infohash: kept.infohash });
    } catch (error) {
      log.warn("kept transport file unreadable", { infohash: kept.infohash, reason: messageOf(error) });
    }
    this.#kept.delete(kept.contentId);
    return undefined;
  }

  #path({ infohash, contentId, isForGood }: Kept): string {
    return `${this.#parts.folder}/${infohash}-${contentId}${isForGood ? ".kept" : ""}.torrent`;
  }
}
