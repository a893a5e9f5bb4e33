import * as v from "valibot";
import { messageOf, SluiceError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { after, type UnixSeconds } from "../base/time.ts";
import type { Item, Items } from "../library/contract.ts";
import type { Clock, Files, KeyValueStore } from "../runtime/contract.ts";
import { recordStream } from "./recorder.ts";
import type { RecordedFile, Recording, RecordingRequest, Recordings } from "./recording-contract.ts";

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
  /** Plays the channel of an item as one transport stream. Rejects if no source of it delivers. */
  readonly open: (
    item: Item,
    options: { readonly allowPrivateUrls: boolean },
    signal: AbortSignal,
  ) => Promise<ReadableStream<Uint8Array>>;
  readonly log: Log;
}

const PREFIX = "recording/";
const MAX_RECORDINGS = 1_000;
/** Recordings that run at the same time; each of them plays a channel. */
const MAX_RUNNING = 8;
const MAX_SECONDS = 24 * 3_600;
/** Guides reach two weeks ahead. */
const MAX_AHEAD_SECONDS = 15 * 24 * 3_600;
/** Due times are checked at this interval at least, because the wall clock may be set and the machine may sleep. */
const CHECK_MS = 30_000;
const MAX_TEXT = 300;

const seconds = v.pipe(
  v.number(),
  v.safeInteger(),
  v.minValue(0),
  v.transform((value) => value as UnixSeconds),
);
const text = v.pipe(v.string(), v.maxLength(MAX_TEXT));
const storedRecording = v.object({
  id: v.pipe(v.number(), v.safeInteger(), v.minValue(1)),
  itemId: v.pipe(v.number(), v.safeInteger()),
  title: text,
  channel: text,
  start: seconds,
  stop: seconds,
  state: v.picklist(["planned", "recording", "done", "failed"]),
  problem: v.nullable(text),
  allowPrivateUrls: v.boolean(),
});
type StoredRecording = Readonly<v.InferOutput<typeof storedRecording>>;

/** A recording in memory. */
interface Entry {
  stored: StoredRecording;
  bytes: number;
  /** The problem of the moment while it runs. */
  problem: string | null;
  /** Set while it runs. */
  run: { readonly abort: AbortController; readonly ended: Promise<void> } | undefined;
}

/** Opens the stored recordings: continues those that were interrupted, and waits for those that are planned. */
export async function createRecordings(
  dependencies: RecordingsDependencies,
): Promise<Recordings & { close(): Promise<void> }> {
  const entries = new Map<number, Entry>();
  for await (const [key, value] of dependencies.store.list(PREFIX)) {
    const read = v.safeParse(storedRecording, value);
    if (!read.success) {
      dependencies.log.error("a record of a recording cannot be read", { key });
      continue;
    }
    const facts = await dependencies.files.stat(pathOf(dependencies.folder, read.output.id));
    entries.set(read.output.id, {
      stored: read.output,
      bytes: facts?.size ?? 0,
      problem: null,
      run: undefined,
    });
  }
  const recordings = new FileRecordings(dependencies, entries);
  recordings.begin();
  return recordings;
}

class FileRecordings implements Recordings {
  readonly #parts: RecordingsDependencies;
  readonly #entries: Map<number, Entry>;
  #cancelCheck: () => void = () => {};
  #isClosed = false;

  constructor(parts: RecordingsDependencies, entries: Map<number, Entry>) {
    this.#parts = parts;
    this.#entries = entries;
  }

  begin(): void {
    this.#check();
  }

  list(): Recording[] {
    return [...this.#entries.values()].map(presented).sort((a, b) => a.start - b.start || a.id - b.id);
  }

  async add(request: RecordingRequest): Promise<Recording> {
    const { itemId, start, stop, allowPrivateUrls } = request;
    const now = this.#parts.clock.unixSeconds();
    const isPossible = start < stop && stop > now && stop - start <= MAX_SECONDS;
    if (!isPossible || start > now + MAX_AHEAD_SECONDS)
      throw new SluiceError(
        "bad_parameter",
        "expected a time of at most 24 hours that ends in the future and starts within 15 days",
      );
    const same = [...this.#entries.values()].find(
      ({ stored }) => stored.itemId === itemId && stored.start === start && stored.stop > now,
    );
    if (same !== undefined) return presented(same);
    if (this.#entries.size >= MAX_RECORDINGS)
      throw new SluiceError("too_many", `the limit of ${MAX_RECORDINGS} recordings is reached; delete some`);
    const stored: StoredRecording = {
      ...{ itemId, start, stop, allowPrivateUrls },
      title: request.title.slice(0, MAX_TEXT),
      channel: request.channel.slice(0, MAX_TEXT),
      id: Math.max(0, ...this.#entries.keys()) + 1,
      state: "planned",
      problem: null,
    };
    const entry: Entry = { stored, bytes: 0, problem: null, run: undefined };
    this.#entries.set(stored.id, entry);
    try {
      await this.#keep(entry, {});
    } catch (error) {
      this.#entries.delete(stored.id);
      throw error;
    }
    this.#check();
    return presented(entry);
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
    await this.#parts.store.commit({ delete: [keyOf(id)] });
    this.#entries.delete(id);
    await this.#parts.files.remove(this.#path(id));
  }

  async open(id: number): Promise<RecordedFile | undefined> {
    const entry = this.#known(id);
    if (entry.bytes === 0) return undefined;
    const file = await this.#parts.files.open(this.#path(id));
    return {
      recording: presented(entry),
      read: (at, into) => file.read(at, into),
      close: () => file.close(),
    };
  }

  /** Interrupted recordings continue with the next start of the engine. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelCheck();
    const running = [...this.#entries.values()].map(({ run }) => run);
    for (const run of running) run?.abort.abort();
    await Promise.all(running.map((run) => run?.ended));
  }

  #known(id: number): Entry {
    const entry = this.#entries.get(id);
    if (entry === undefined) throw new SluiceError("unknown_item", `there is no recording ${id}`);
    return entry;
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
      if (stop <= now) entry.run?.abort.abort();
      if (stop <= now && entry.run === undefined) this.#start(entry, () => this.#missed(entry));
      if (stop > now && start <= now && entry.run === undefined && this.#runningCount < MAX_RUNNING)
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
    entry.run = { abort, ended };
  }

  /** Its time passed while the engine did not run, or while too many others did. */
  async #missed(entry: Entry): Promise<void> {
    const problem = "the engine did not record at that time";
    await this.#keep(entry, entry.bytes > 0 ? { state: "done" } : { state: "failed", problem });
  }

  async #record(entry: Entry, abort: AbortController): Promise<void> {
    const { items, open, log } = this.#parts;
    const { id, itemId, title, allowPrivateUrls } = entry.stored;
    await this.#keep(entry, { state: "recording" });
    log.info("recording", { id, title });
    const problem = await recordStream(
      { ...this.#parts, freeBytes: () => this.#freeBytes() },
      {
        path: this.#path(id),
        signal: abort.signal,
        async open(signal) {
          const item = await items.get(itemId);
          if (item === undefined || item.deletedAt !== null)
            throw new SluiceError("unknown_item", "the channel is not in the playlist any more");
          return open(item, { allowPrivateUrls }, signal);
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

  #freeBytes(): number {
    let used = 0;
    for (const { bytes } of this.#entries.values()) used += bytes;
    return this.#parts.limitBytes - used;
  }

  async #keep(entry: Entry, change: Partial<StoredRecording>): Promise<void> {
    const stored = { ...entry.stored, ...change };
    await this.#parts.store.commit({ set: [[keyOf(stored.id), stored]] });
    entry.stored = stored;
  }

  #path(id: number): string {
    return pathOf(this.#parts.folder, id);
  }
}

function presented({ stored, bytes, problem }: Entry): Recording {
  const { allowPrivateUrls: _, ...shown } = stored;
  return { ...shown, bytes, problem: stored.problem ?? (stored.state === "recording" ? problem : null) };
}

function keyOf(id: number): string {
  return `${PREFIX}${id}`;
}

function pathOf(folder: string, id: number): string {
  return `${folder}/recordings/${id}.ts`;
}
