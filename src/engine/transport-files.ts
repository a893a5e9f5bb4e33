import { messageOf, SluiceError } from "../base/errors.ts";
import type { ContentId, Infohash } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import type { Files } from "../runtime/contract.ts";
import { MAX_LIVE_FILE_BYTES } from "../wire/live-limits.ts";
import { MAX_INFO_BYTES, MAX_TRANSPORT_FILE_BYTES } from "../wire/metainfo.ts";
import { type FileChecks, type KnownFile, readKnownFile } from "./known-file.ts";

/** Of content that was opened, kept at most; the oldest go first. At 100 KB each they take 100 MB. */
const MAX_KEPT = 1_000;
/** Of those that somebody uploaded, kept at most: they never go, so one more is refused. */
const MAX_KEPT_FOR_GOOD = 10_000;
const NAME = /^([0-9a-f]{40})-([0-9a-f]{40})(\.kept)?\.(torrent|sluice)$/;
const ENDINGS = { vod: "torrent", live: "sluice" } as const;

/** One kept file: which content, which form of its transport file, and whether it is kept for good. */
interface Kept {
  readonly kind: KnownFile["kind"];
  readonly infohash: Infohash;
  readonly contentId: ContentId;
  readonly isForGood: boolean;
}

/** What this is made of. */
export interface TransportFilesParts extends FileChecks {
  readonly files: Files;
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
      const kind = match[4] === ENDINGS.live ? "live" : "vod";
      const isForGood = match[3] !== undefined;
      found.push({ kind, infohash, contentId, isForGood, modifiedMs: facts.modifiedMs });
    }
    // Where both forms of a file are there, the one that is kept for good counts: it comes last.
    found.sort((a, b) => Number(a.isForGood) - Number(b.isForGood) || a.modifiedMs - b.modifiedMs);
    return new TransportFiles(parts, new Map(found.map((kept) => [kept.contentId, kept])));
  }

  /** The infohash of the kept transport file whose SHA-1 this is. */
  infohashOf(contentId: ContentId): Infohash | undefined {
    return this.#kept.get(contentId)?.infohash;
  }

  /** The latest kept transport file of this content; of a live stream the latest that its key vouches for, where there is one. */
  async read(infohash: Infohash): Promise<KnownFile | undefined> {
    await this.#saving;
    let unsigned: KnownFile | undefined;
    for (const kept of this.#of(infohash)) {
      const known = await this.#read(kept);
      if (known && isVouchedFor(known)) return known;
      unsigned ??= known;
    }
    return unsigned;
  }

  /** Keeps `file`, in the background: losing it costs a fetch from peers, so a full disk is no reason to fail. */
  save(known: KnownFile): void {
    if (this.#kept.has(known.file.contentId)) return;
    const kept = keptOf(known, false);
    this.#kept.set(kept.contentId, kept);
    this.#saving = this.#saving.then(() => this.#write(kept, known));
  }

  /** Keeps `file` for good; durable when it resolves. Rejects with `too_many`, `disk_full`, or as the disk says it. */
  keep(known: KnownFile): Promise<void> {
    const keeping = this.#saving.then(() => this.#keepForGood(known));
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

  /** What is kept of this content, the latest first. */
  #of(infohash: Infohash): Kept[] {
    return [...this.#kept.values()].filter((kept) => kept.infohash === infohash).reverse();
  }

  async #write(kept: Kept, known: KnownFile): Promise<void> {
    const { files, log } = this.#parts;
    // So much else was opened in the meantime that it has had to go already.
    if (this.#kept.get(kept.contentId) !== kept) return;
    try {
      if (known.kind === "live" && !(await this.#makeWay(known))) {
        this.#kept.delete(kept.contentId);
        return;
      }
      await files.replace(this.#path(kept), known.file.bytes);
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

  /** Of live streams, files that nobody vouches for go where a signed one comes. False where this one is of no use for
   * that reason. */
  async #makeWay(known: KnownFile): Promise<boolean> {
    const { contentId, infohash } = known.file;
    for (const other of this.#of(infohash)) {
      if (other.contentId === contentId) continue;
      const read = await this.#read(other);
      if (!read) continue;
      if (isVouchedFor(read)) {
        if (!isVouchedFor(known)) return false;
      } else if (isVouchedFor(known) && !other.isForGood) {
        this.#kept.delete(other.contentId);
        await this.#parts.files.remove(this.#path(other));
      }
    }
    return true;
  }

  async #keepForGood(known: KnownFile): Promise<void> {
    const { files, log } = this.#parts;
    const { file } = known;
    const before = this.#kept.get(file.contentId);
    if (before?.isForGood) return;
    const count = [...this.#kept.values()].filter(({ isForGood }) => isForGood).length;
    if (count >= MAX_KEPT_FOR_GOOD)
      throw new SluiceError("too_many", `${MAX_KEPT_FOR_GOOD} transport files are kept; no more can be`);
    const kept = keptOf(known, true);
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

  async #read(kept: Kept): Promise<KnownFile | undefined> {
    const { files, log } = this.#parts;
    const limitBytes = kept.kind === "live" ? MAX_LIVE_FILE_BYTES : MAX_TRANSPORT_FILE_BYTES + MAX_INFO_BYTES;
    try {
      const bytes = await files.read(this.#path(kept), limitBytes);
      const known = bytes && readKnownFile(bytes, this.#parts, limitBytes);
      const isRight = known?.file.infohash === kept.infohash && known.file.contentId === kept.contentId;
      if (isRight && known.kind === kept.kind) return known;
      log.warn("kept transport file is not what its name says", { infohash: kept.infohash });
    } catch (error) {
      log.warn("kept transport file unreadable", { infohash: kept.infohash, reason: messageOf(error) });
    }
    this.#kept.delete(kept.contentId);
    return undefined;
  }

  #path({ kind, infohash, contentId, isForGood }: Kept): string {
    return `${this.#parts.folder}/${infohash}-${contentId}${isForGood ? ".kept" : ""}.${ENDINGS[kind]}`;
  }
}

function keptOf({ kind, file: { infohash, contentId } }: KnownFile, isForGood: boolean): Kept {
  return { kind, infohash, contentId, isForGood };
}

/** Whether all of a file is its maker's word. Those of files are never signed: the latest counts. */
function isVouchedFor(known: KnownFile): boolean {
  return known.kind === "vod" || known.file.isSigned;
}
