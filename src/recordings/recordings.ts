import * as v from "valibot";
import type { PeerAddress } from "../base/address.ts";
import { messageOf, SluiceError } from "../base/errors.ts";
import type { Sha1 } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import { after, type UnixSeconds } from "../base/time.ts";
import { encodeUtf8 } from "../base/utf8.ts";
import type { CatchUp } from "../catch-up/catch-up-contract.ts";
import type { OpenChannel } from "../catch-up/channel-keeper.ts";
import type { Items } from "../library/contract.ts";
import type { OpenMedia } from "../remux/contract.ts";
import type { Clock, Files, KeyValueStore } from "../runtime/contract.ts";
import { MatroskaCopies } from "./matroska-copies.ts";
import { keptMedia, recordStream } from "./recorder.ts";
import type {
  Padding,
  RecordedFile,
  RecordedMedia,
  RecordedProgramme,
  Recording,
  RecordingRequest,
  Recordings,
} from "./recording-contract.ts";
import { OpenedRecordings } from "./recording-media.ts";
import {
  boundedProgramme,
  fileNameOf,
  MAX_PADDING_SECONDS,
  MAX_TEXT,
  nfoOf,
  type StoredRecording,
  storedRecording,
} from "./recording-record.ts";
import { type PlannerGuide, SeriesPlanner } from "./series.ts";
import { type RecordedMediaFile, SharedRecordings, type ShareFile } from "./shared-recordings.ts";

/** Dependencies of {@link createRecordings}. */
export interface RecordingsDependencies {
  readonly store: KeyValueStore;
  readonly clock: Clock;
  readonly files: Files;
  /** The folder of the library, which need not exist. */
  readonly folder: string;
  readonly items: Pick<Items, "get">;
  /** Limit of all recordings together, in bytes. */
  readonly limitBytes: number;
  readonly open: OpenChannel;
  readonly openMedia: OpenMedia;
  /** Finds the programmes of series. */
  readonly guide: PlannerGuide;
  /** The kept media of channels. If absent, catch-up is off. */
  readonly catchUp: Pick<CatchUp, "isKept" | "open" | "follow"> | undefined;
  readonly log: Log;
  readonly sha1: Sha1;
  readonly share: ShareFile;
  readonly peerAddresses: () => readonly PeerAddress[];
}

const PREFIX = "recording/";
const MAX_RECORDINGS = 1_000;
/** Recordings that run at the same time; each of them plays a channel. */
const MAX_RUNNING = 8;
/** Kept media of a time arrives at most this much later. */
const KEPT_LATE_SECONDS = 30;
const MAX_SECONDS = 24 * 3_600;
/** Guides reach two weeks ahead. */
const MAX_AHEAD_SECONDS = 15 * 24 * 3_600;
/** Due times are checked at this interval at least, because the wall clock may be set and the machine may sleep. */
const CHECK_MS = 30_000;

/** A recording in memory. */
interface Entry {
  stored: StoredRecording;
  bytes: number;
  /** The problem of the moment while it runs. */
  problem: string | null;
  /** Set while it runs. */
  run: { readonly abort: AbortController; readonly ended: Promise<void>; isKept: boolean } | undefined;
}

/** Opens the stored recordings: continues those that were interrupted, and waits for those that are planned. */
export async function createRecordings(
  dependencies: RecordingsDependencies,
): Promise<Recordings & { readonly series: SeriesPlanner; close(): Promise<void> }> {
  const entries = new Map<number, Entry>();
  for await (const [key, value] of dependencies.store.list(PREFIX)) {
    const read = v.safeParse(storedRecording, value);
    if (!read.success) {
      dependencies.log.error("a record of a recording cannot be read", { key });
      continue;
    }
    const facts = await dependencies.files.stat(pathOf(dependencies.folder, read.output));
    entries.set(read.output.id, {
      stored: read.output,
      ...{ bytes: facts?.size ?? 0, problem: null, run: undefined },
    });
  }
  const recordings = new FileRecordings(dependencies, entries);
  await recordings.loadFiles();
  await recordings.begin();
  return recordings;
}

class FileRecordings implements Recordings {
  readonly #parts: RecordingsDependencies;
  readonly #entries: Map<number, Entry>;
  #planner: SeriesPlanner | undefined;
  #cancelCheck: () => void = () => {};
  readonly #opened: OpenedRecordings;
  readonly #copies: MatroskaCopies;
  readonly shares: SharedRecordings;
  #isClosed = false;

  constructor(parts: RecordingsDependencies, entries: Map<number, Entry>) {
    this.#parts = parts;
    this.#entries = entries;
    this.#opened = new OpenedRecordings(parts.openMedia);
    this.#copies = new MatroskaCopies({ ...parts, freeBytes: () => this.#freeBytes() });
    this.shares = new SharedRecordings({ ...parts, find: (id) => this.#complete(id) });
  }

  async loadFiles(): Promise<void> {
    for (const { stored, bytes } of this.#entries.values()) {
      await this.#copies.load(stored.id, pathOf(this.#parts.folder, stored, "mkv"), stored.hasMatroska);
      if (stored.state === "done" && bytes > 0) await this.shares.load(stored.id);
    }
  }

  async begin(): Promise<void> {
    const { guide, ...parts } = this.#parts;
    this.#planner = await SeriesPlanner.load({
      ...{ ...parts, guide: guide.guide, recordings: this },
      searchProgrammes: (query) => guide.searchProgrammes(query),
    });
    this.#check();
  }

  get series(): SeriesPlanner {
    return this.#planner!;
  }

  list(): Recording[] {
    return [...this.#entries.values()]
      .map((entry) => this.#presented(entry))
      .sort((a, b) => a.start - b.start || a.id - b.id);
  }

  async add(request: RecordingRequest): Promise<Recording> {
    const { itemId, allowPrivateUrls, seriesId = null, padding = { before: 0, after: 0 } } = request;
    const now = this.#parts.clock.unixSeconds();
    const { start, stop } = padded(request, padding);
    const isPossible = start < stop && stop - start <= MAX_SECONDS && start <= now + MAX_AHEAD_SECONDS;
    const isPadded = [padding.before, padding.after].every((s) => s >= 0 && s <= MAX_PADDING_SECONDS);
    if (!isPossible || !isPadded || (stop <= now && !(await keptMedia(this.#parts, { itemId, start, stop }))))
      throw new SluiceError(
        "bad_parameter",
        "expected a time of at most 24 hours that ends in the future, or is kept for catch-up, and starts within 15 days",
      );
    const same = [...this.#entries.values()].find(
      ({ stored }) => stored.itemId === itemId && stored.start === start && stored.stop >= stop,
    );
    if (same !== undefined && same.stored.state !== "failed") return this.#presented(same);
    if (this.#entries.size >= MAX_RECORDINGS)
      throw new SluiceError("too_many", `the limit of ${MAX_RECORDINGS} recordings is reached; delete some`);
    const id = Math.max(0, ...this.#entries.keys()) + 1;
    const about = {
      ...{ itemId, start, stop, allowPrivateUrls, seriesId, padding },
      title: request.title.slice(0, MAX_TEXT),
      channel: request.channel.slice(0, MAX_TEXT),
      programme: request.programme ? boundedProgramme(request.programme) : null,
    };
    const more = { id, state: "planned", problem: null, keptFromMs: null, hasMatroska: false } as const;
    const entry: Entry = {
      stored: { ...about, ...more, file: fileNameOf(about, id) },
      ...{ bytes: 0, problem: null, run: undefined },
    };
    this.#entries.set(id, entry);
    try {
      await this.#keep(entry, {});
    } catch (error) {
      this.#entries.delete(id);
      throw error;
    }
    this.#check();
    return this.#presented(entry);
  }

  async change(id: number, programme: RecordedProgramme): Promise<void> {
    const entry = this.#known(id);
    const { state, padding } = entry.stored;
    if (state !== "planned" && state !== "recording") return;
    const { start, stop } = padded(programme, padding);
    // What has begun keeps its start.
    const times = state === "planned" ? { start, stop } : { stop };
    await this.#keep(entry, { programme: boundedProgramme(programme), ...times });
    this.#check();
  }

  async stop(id: number): Promise<void> {
    const entry = this.#known(id);
    if (entry.stored.state === "planned") return this.remove(id);
    entry.run?.abort.abort();
    await entry.run?.ended;
  }

  async remove(id: number): Promise<void> {
    const entry = this.#known(id);
    entry.run?.abort.abort();
    await entry.run?.ended;
    await this.shares.stop(id);
    const { store, files, folder } = this.#parts;
    // First, because a copy that becomes complete stores the record again.
    await this.#copies.remove(id, pathOf(folder, entry.stored, "mkv"));
    await store.commit({ delete: [keyOf(id)] });
    this.#entries.delete(id);
    for (const ending of ["ts", "nfo"]) await files.remove(pathOf(folder, entry.stored, ending));
  }

  async open(id: number): Promise<RecordedFile | undefined> {
    const entry = this.#known(id);
    return entry.bytes === 0 ? undefined : this.#openFile(entry, "ts", entry.bytes);
  }

  async openMatroska(id: number): Promise<RecordedFile | undefined> {
    const [entry, copy] = [this.#known(id), this.#copies.get(id)];
    return copy?.state === "ready" ? this.#openFile(entry, "mkv", copy.bytes) : undefined;
  }

  async #openFile(entry: Entry, ending: string, bytes: number): Promise<RecordedFile> {
    const file = await this.#parts.files.open(pathOf(this.#parts.folder, entry.stored, ending));
    const read = (at: number, into: Uint8Array<ArrayBuffer>) => file.read(at, into);
    return { recording: this.#presented(entry), bytes, read, close: () => file.close() };
  }

  async convert(id: number): Promise<void> {
    const entry = this.#known(id);
    const { path, bytes } = this.#complete(id);
    const to = pathOf(this.#parts.folder, entry.stored, "mkv");
    const complete = () => this.#keep(entry, { hasMatroska: true });
    await this.#copies.start({ stored: entry.stored, from: path, to, complete }, bytes);
  }

  async media(id: number, bytes?: number): Promise<RecordedMedia | undefined> {
    return this.#opened.media(this.#presented(this.#known(id)), bytes, () => this.open(id));
  }

  /** Interrupted recordings continue with the next start of the engine. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelCheck();
    await this.#planner?.close();
    const running = [...this.#entries.values()].map(({ run }) => run);
    for (const run of running) run?.abort.abort();
    await Promise.all([this.#copies.close(), this.shares.close(), ...running.map((run) => run?.ended)]);
  }

  #known(id: number): Entry {
    const entry = this.#entries.get(id);
    if (entry === undefined) throw new SluiceError("unknown_item", `there is no recording ${id}`);
    return entry;
  }

  /** The file of a recording that is over. */
  #complete(id: number): RecordedMediaFile {
    const { stored, bytes } = this.#known(id);
    if (stored.state !== "done" || bytes === 0)
      throw new SluiceError("bad_parameter", "only a recording that is over can be copied or shared");
    const { folder } = this.#parts;
    return { path: pathOf(folder, stored), torrentPath: pathOf(folder, stored, "torrent"), bytes };
  }

  /** Begins and ends the recordings that are due, and schedules the next check. */
  #check(): void {
    if (this.#isClosed) return;
    const { clock } = this.#parts;
    const now = clock.unixSeconds();
    let waitMs = CHECK_MS;
    for (const entry of this.#entries.values()) {
      const { state, start, stop } = entry.stored;
      if (state !== "planned" && state !== "recording") continue;
      const lateSeconds = entry.run?.isKept ? KEPT_LATE_SECONDS : 0;
      if (stop + lateSeconds <= now) entry.run?.abort.abort();
      if (stop <= now && entry.run === undefined && state === "recording" && entry.stored.keptFromMs === null)
        this.#start(entry, () => this.#missed(entry));
      else if (start <= now && entry.run === undefined && this.#runningCount < MAX_RUNNING)
        this.#start(entry, (abort) => this.#record(entry, abort));
      for (const at of [start, stop]) if (at > now) waitMs = Math.min(waitMs, 1000 * (at - now));
    }
    this.#cancelCheck();
    this.#cancelCheck = clock.at(after(clock.now(), waitMs), () => this.#check());
  }

  get #runningCount(): number {
    return [...this.#entries.values()].filter(({ run }) => run !== undefined).length;
  }

  #start(entry: Entry, work: (abort: AbortController) => Promise<void>): void {
    const abort = new AbortController();
    const ended = work(abort)
      .catch((error: unknown) =>
        this.#parts.log.error("a recording failed", { id: entry.stored.id, reason: messageOf(error) }),
      )
      .finally(() => {
        entry.run = undefined;
      });
    entry.run = { abort, ended, isKept: false };
  }

  /** Its time passed while the engine did not run, or while too many others did. */
  async #missed(entry: Entry): Promise<void> {
    const problem = "the engine did not record at that time";
    await this.#keep(entry, entry.bytes > 0 ? { state: "done" } : { state: "failed", problem });
  }

  async #record(entry: Entry, abort: AbortController): Promise<void> {
    const { log, files, folder, clock } = this.#parts;
    const { id, title, stop } = entry.stored;
    const media = await keptMedia(this.#parts, entry.stored);
    if (entry.run) entry.run.isKept = media !== undefined;
    const isResumed = media !== undefined && entry.stored.keptFromMs === media.fromMs;
    const keptFromMs = media !== undefined && (isResumed || entry.bytes === 0) ? media.fromMs : null;
    if (stop <= clock.unixSeconds() && keptFromMs === null) return this.#missed(entry);
    await this.#keep(entry, { state: "recording", keptFromMs });
    await files.replace(pathOf(folder, entry.stored, "nfo"), encodeUtf8(nfoOf(entry.stored)));
    log.info("recording", { id, title });
    let isFirst = keptFromMs !== null;
    const problem = await recordStream(
      { ...this.#parts, freeBytes: () => this.#freeBytes() },
      {
        path: pathOf(folder, entry.stored),
        signal: abort.signal,
        isOver: () => entry.stored.stop <= clock.unixSeconds(),
        open: async (signal, bytes) => {
          const isContinuation = isFirst;
          isFirst = false;
          const stream = isContinuation && media ? media.from(bytes) : this.#openLive(entry, signal);
          return { stream: await stream, isContinuation };
        },
        progress(bytes, current) {
          entry.bytes = bytes;
          entry.problem = current?.slice(0, MAX_TEXT) ?? null;
        },
      },
    ).catch((error: unknown) => messageOf(error).slice(0, MAX_TEXT));
    // Closing the engine does not end the recording.
    if (this.#isClosed && problem === null) return;
    const isEmpty = entry.bytes === 0;
    const reason = problem ?? (isEmpty ? (entry.problem ?? "the channel sent nothing") : null);
    await this.#keep(entry, { state: isEmpty ? "failed" : "done", problem: reason });
    log.info("recording ended", { id, bytes: entry.bytes });
  }

  async #openLive({ stored }: Entry, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    const item = await this.#parts.items.get(stored.itemId);
    if (item === undefined || item.deletedAt !== null)
      throw new SluiceError("unknown_item", "the channel is not in the playlist any more");
    return this.#parts.open(item, stored, signal);
  }

  #freeBytes(): number {
    let used = this.#copies.bytes;
    for (const { bytes } of this.#entries.values()) used += bytes;
    return this.#parts.limitBytes - used;
  }

  #presented({ stored, bytes, problem }: Entry): Recording {
    const { allowPrivateUrls: _, file: _file, keptFromMs: _from, hasMatroska: _has, ...shown } = stored;
    return {
      ...{ ...shown, bytes, matroska: this.#copies.get(stored.id) ?? null },
      problem: stored.problem ?? (stored.state === "recording" ? problem : null),
    };
  }

  async #keep(entry: Entry, change: Partial<StoredRecording>): Promise<void> {
    const stored = { ...entry.stored, ...change };
    await this.#parts.store.commit({ set: [[keyOf(stored.id), stored]] });
    entry.stored = stored;
  }
}

function padded(
  { start, stop }: { readonly start: UnixSeconds; readonly stop: UnixSeconds },
  { before, after: behind }: Padding,
): { start: UnixSeconds; stop: UnixSeconds } {
  return { start: (start - before) as UnixSeconds, stop: (stop + behind) as UnixSeconds };
}

function keyOf(id: number): string {
  return `${PREFIX}${id}`;
}

function pathOf(folder: string, { id, file }: Pick<StoredRecording, "id" | "file">, ending = "ts"): string {
  return `${folder}/recordings/${file ?? id}.${ending}`;
}
