import { SerialQueue } from "../async/serial-queue.ts";
import { messageOf, SluiceError } from "../base/errors.ts";
import type { Infohash } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import { after } from "../base/time.ts";
import type { OwnLimits, PeerLimits } from "../net/peer-limits.ts";
import type { AcquireOptions, TransferLease } from "../playback/contract.ts";
import type { Clock } from "../runtime/contract.ts";
import type {
  CacheFigures,
  ContentDescription,
  ContentFile,
  ContentSelector,
  Inspector,
  Transfer,
} from "../transfer/contract.ts";
import type { ChosenFiles, Download, DownloadRequest, Downloads } from "./download-contract.ts";
import { type DownloadRecords, MAX_RANGES, rangesOf, type StoredDownload } from "./download-records.ts";

/** Downloads at the same time: more would share the same connections and take longer until the first is complete. */
const MAX_RUNNING = 3;
/** Each record stays in memory. */
const MAX_DOWNLOADS = 1_000;
/** A failed download is tried again after this time: a disk may be emptied meanwhile. */
const RETRY_MS = 60_000;
/** Bytes per read. They are discarded: what is read stays in the cache. */
const READ_BYTES = 256 * 1024;

/** Dependencies of {@link createDownloads}. */
export interface DownloadsDependencies {
  readonly clock: Clock;
  readonly records: DownloadRecords;
  readonly engine: {
    acquire(selector: ContentSelector, options?: AcquireOptions): Promise<TransferLease>;
    readonly inspect: Pick<Inspector, "describe" | "keep">;
    cacheFigures(): Promise<CacheFigures>;
    readonly cache: { sizes(): ReadonlyMap<Infohash, number> | undefined };
    readonly limits: Pick<PeerLimits, "limitSwarm" | "limitsOf">;
    deleteContent(infohash: Infohash): Promise<void>;
  };
  readonly log: Log;
}

/** The state of a download that is not stored. */
interface Activity {
  /** Changes by the user, one after another. It is not fetched until all are done. */
  readonly changes: SerialQueue;
  pendingChanges: number;
  problem: string | null;
  /** Cancels the next attempt after a failure; undefined if none is planned. */
  cancelRetry: (() => void) | undefined;
  run: { readonly abort: AbortController; readonly ended: Promise<void>; transfer?: Transfer } | undefined;
}

/** Continues the stored downloads. */
export async function createDownloads(
  parts: DownloadsDependencies,
): Promise<Downloads & { close(): Promise<void> }> {
  const downloads = new CachedDownloads(parts);
  await downloads.begin();
  return downloads;
}

class CachedDownloads implements Downloads {
  readonly #parts: DownloadsDependencies;
  readonly #activities = new Map<Infohash, Activity>();
  #isClosed = false;

  constructor(parts: DownloadsDependencies) {
    this.#parts = parts;
  }

  async begin(): Promise<void> {
    const { records, engine, log } = this.#parts;
    const cached = engine.cache.sizes();
    for (const { infohash, limits, size, isComplete } of records.all()) {
      engine.limits.limitSwarm(infohash, limits);
      const heldBytes = cached?.get(infohash) ?? 0;
      if (!isComplete || cached === undefined || heldBytes >= size) continue;
      // The user has deleted files, or a full disk was freed before the records could be read.
      log.warn("a download lacks data that the disk cache had; it is fetched again", { infohash });
      await records.update(infohash, { isComplete: false, heldBytes }).catch((error: unknown) => {
        log.warn("cannot store the state of a download", { infohash, reason: messageOf(error) });
      });
    }
    this.#startNext();
  }

  list(): Download[] {
    return this.#parts.records
      .all()
      .map((stored) => this.#present(stored))
      .sort((a, b) => b.addedAt - a.addedAt);
  }

  async add({ selector, files, allowPrivateUrls, signal }: DownloadRequest): Promise<Download> {
    const { records, engine, clock } = this.#parts;
    const content = await engine.inspect.describe(selector, { allowPrivateUrls, signal });
    const { infohash, transportFile, name } = content;
    if (content.type === "live" || content.transportType !== "bt" || transportFile === undefined)
      throw new SluiceError(
        "unsupported_content",
        "only BitTorrent files can be downloaded; record a live stream instead",
      );
    const ranges = files.length === 0 ? null : rangesOf(files);
    const size = chosenFiles(content.files, ranges).reduce((sum, file) => sum + file.size, 0);
    const known = records.get(infohash);
    if (!known && records.all().length >= MAX_DOWNLOADS)
      throw new SluiceError("too_many", `${MAX_DOWNLOADS} downloads are kept; delete one first`);
    checkRanges(content, ranges);
    await this.#requireSpace(infohash, size);
    await engine.inspect.keep(transportFile);
    await this.#change(infohash, () => {
      const { limits, addedAt } = records.get(infohash) ?? {
        limits: engine.limits.limitsOf(infohash),
        addedAt: clock.unixSeconds(),
      };
      const state = { heldBytes: 0, isPaused: false, isComplete: false };
      return records.set({
        infohash,
        name,
        addedAt,
        files: ranges,
        size,
        allowPrivateUrls,
        limits,
        ...state,
      });
    });
    return this.#present(records.known(infohash));
  }

  async pause(infohash: Infohash): Promise<Download> {
    const { records } = this.#parts;
    await this.#change(infohash, () => records.update(infohash, { isPaused: true }));
    return this.#present(records.known(infohash));
  }

  async resume(infohash: Infohash): Promise<Download> {
    const { records } = this.#parts;
    await this.#change(infohash, () => records.update(infohash, { isPaused: false }));
    return this.#present(records.known(infohash));
  }

  async limit(infohash: Infohash, limits: OwnLimits): Promise<void> {
    const { engine, records } = this.#parts;
    engine.limits.limitSwarm(infohash, limits);
    if (records.has(infohash)) await records.update(infohash, { limits });
  }

  async remove(infohash: Infohash, leavesData: boolean): Promise<void> {
    const { engine, records } = this.#parts;
    records.known(infohash);
    await this.#change(infohash, async () => {
      await records.delete(infohash);
      if (!leavesData) await engine.deleteContent(infohash);
    });
  }

  /** Running downloads continue with the next start of the engine. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#activities.values()].map((activity) => this.#interrupt(activity)));
  }

  #activity(infohash: Infohash): Activity {
    const known = this.#activities.get(infohash);
    if (known) return known;
    const activity: Activity = {
      ...{ changes: new SerialQueue(), pendingChanges: 0 },
      ...{ problem: null, cancelRetry: undefined, run: undefined },
    };
    this.#activities.set(infohash, activity);
    return activity;
  }

  /** Stops fetching, runs `work`, which changes the record, and then continues as the record says. */
  async #change(infohash: Infohash, work: () => Promise<void>): Promise<void> {
    const activity = this.#activity(infohash);
    activity.pendingChanges++;
    try {
      await activity.changes.run(async () => {
        await this.#interrupt(activity);
        await work();
      });
    } finally {
      activity.pendingChanges--;
      if (activity.pendingChanges === 0 && !this.#parts.records.has(infohash))
        this.#activities.delete(infohash);
      this.#startNext();
    }
  }

  #present(stored: StoredDownload): Download {
    const { infohash, name, addedAt, files, size, limits, isComplete, isPaused } = stored;
    const activity = this.#activities.get(infohash);
    const problem = activity?.problem ?? null;
    const transfer = activity?.run?.transfer;
    const heldBytes = isComplete ? size : transfer ? heldOf(transfer, files) : stored.heldBytes;
    const running = activity?.run ? "downloading" : problem === null ? "waiting" : "failed";
    const state = isComplete ? "complete" : isPaused ? "paused" : running;
    return { infohash, name, addedAt, files, state, problem, size, heldBytes, limits };
  }

  /** Stops fetching, and forgets the last problem. */
  async #interrupt(activity: Activity): Promise<void> {
    activity.cancelRetry?.();
    activity.cancelRetry = undefined;
    activity.run?.abort.abort();
    await activity.run?.ended;
    activity.problem = null;
  }

  #startNext(): void {
    if (this.#isClosed) return;
    let running = [...this.#activities.values()].filter(({ run }) => run !== undefined).length;
    for (const { infohash, isPaused, isComplete } of this.#parts.records.all()) {
      if (running >= MAX_RUNNING) return;
      const activity = this.#activity(infohash);
      if (isPaused || isComplete || activity.run || activity.cancelRetry) continue;
      if (activity.pendingChanges > 0) continue;
      this.#start(infohash, activity);
      running++;
    }
  }

  #start(infohash: Infohash, activity: Activity): void {
    const { clock, log } = this.#parts;
    const abort = new AbortController();
    const ended = this.#fetch(infohash, activity, abort.signal)
      .catch((error: unknown) => {
        if (abort.signal.aborted) return undefined;
        // The user stopped its transfer.
        if (error instanceof SluiceError && error.code === "session_stopped")
          return this.#parts.records.update(infohash, { isPaused: true });
        throw error;
      })
      .catch((error: unknown) => {
        activity.problem = messageOf(error);
        log.warn("a download failed", { infohash, reason: activity.problem });
        activity.cancelRetry = clock.at(after(clock.now(), RETRY_MS), () => {
          activity.cancelRetry = undefined;
          this.#startNext();
        });
      })
      .finally(() => {
        activity.run = undefined;
        this.#startNext();
      });
    activity.run = { abort, ended };
  }

  async #fetch(infohash: Infohash, activity: Activity, signal: AbortSignal): Promise<void> {
    const { engine, records, log } = this.#parts;
    const { allowPrivateUrls, files, size } = records.known(infohash);
    await this.#requireSpace(infohash, size);
    const lease = await engine.acquire({ kind: "infohash", infohash }, { allowPrivateUrls, signal });
    const { transfer } = lease;
    try {
      activity.problem = null;
      if (activity.run) activity.run.transfer = transfer;
      // Transfers with a player come first.
      lease.rest(true);
      const chosen = chosenFiles(transfer.files, files);
      for (const file of chosen) await readThrough(transfer, file, signal);
      if (chosen.some(({ index }) => transfer.progress(index) < 100))
        throw new SluiceError(
          "disk_full",
          "a part could not be stored; check whether the disk of the cache is full",
        );
      await records.update(infohash, { isComplete: true, heldBytes: size });
      log.info("download complete", { infohash, bytes: size });
    } finally {
      const heldBytes = heldOf(transfer, files);
      lease.release();
      if (!records.known(infohash).isComplete) await records.update(infohash, { heldBytes });
    }
  }

  /** Throws `disk_full` unless all downloads, with this one of `size` bytes, fit into the cache. */
  async #requireSpace(infohash: Infohash, size: number): Promise<void> {
    const { records, engine } = this.#parts;
    const others = records.all().filter((other) => other.infohash !== infohash);
    const needed = others.reduce((sum, other) => sum + other.size, size);
    const { limit, available, activeInUse, inactiveInUse } = await engine.cacheFigures();
    const advice = "choose fewer files, delete a download, or";
    if (needed > limit)
      throw new SluiceError(
        "disk_full",
        `the downloads need ${megabytes(needed)}, the disk cache may use ${megabytes(limit)}; ${advice} raise cache-limit`,
      );
    if (needed > available + activeInUse + inactiveInUse)
      throw new SluiceError(
        "disk_full",
        `the downloads need ${megabytes(needed)}, the disk has ${megabytes(available)} free; ${advice} free disk space`,
      );
  }
}

/** Fetches a file from its first missing byte on. */
async function readThrough(transfer: Transfer, file: ContentFile, signal: AbortSignal): Promise<void> {
  const start = transfer.headBytes(file.index);
  if (start >= file.size) return;
  const reader = transfer.source(file.index).reader({ start, end: file.size }, { signal });
  const buffer = new Uint8Array(READ_BYTES);
  while ((await reader.read(buffer)) > 0) signal.throwIfAborted();
}

function heldOf(transfer: Transfer, files: ChosenFiles): number {
  const held = chosenFiles(transfer.files, files).map(
    ({ index, size }) => (transfer.progress(index) / 100) * size,
  );
  return Math.floor(held.reduce((sum, bytes) => sum + bytes, 0));
}

function chosenFiles(files: readonly ContentFile[], ranges: ChosenFiles): readonly ContentFile[] {
  if (ranges === null) return files;
  return files.filter(({ index }) => ranges.some(([first, last]) => first <= index && index <= last));
}

function checkRanges({ files }: ContentDescription, ranges: ChosenFiles): void {
  if (ranges === null) return;
  if (ranges.length > MAX_RANGES)
    throw new SluiceError("too_many", `at most ${MAX_RANGES} groups of adjacent files can be chosen`);
  for (const index of [ranges[0]![0], ranges.at(-1)![1]])
    if (index < 0 || index >= files.length)
      throw new SluiceError(
        "no_such_file",
        `expected a file index from 0 to ${files.length - 1}, got ${index}`,
      );
}

function megabytes(bytes: number): string {
  return `${Math.ceil(bytes / 1e6)} MB`;
}
