import { SerialQueue } from "../../async/serial-queue.ts";
import { messageOf, SluiceError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { after, type UnixSeconds } from "../../base/time.ts";
import type { Outbound } from "../../outbound/outbound.ts";
import type { Clock, Files, KeyValueStore, Runtime } from "../../runtime/contract.ts";
import type { Item, Items } from "../contract.ts";
import { nextAfterFailure, nextAfterSuccess, saneNext } from "../refresh-times.ts";
import type { Progress, TaskRunner } from "../tasks.ts";
import type {
  Guide,
  GuideChannel,
  GuideMatch,
  GuideSource,
  KeyedProgramme,
  ListedProgramme,
  Programme,
} from "./guide-contract.ts";
import { fetchGuide } from "./guide-fetch.ts";
import { GuideFile } from "./guide-file.ts";
import { GuideMatches } from "./guide-matches.ts";
import type { ReadGuide } from "./guide-reading.ts";
import { GuideSources, type SourceRecord } from "./guide-sources.ts";
import { PresentProgrammes } from "./present-programmes.ts";

export interface GuideDependencies {
  readonly store: KeyValueStore;
  /** The records of this engine alone, if other engines share `store`. */
  readonly ownStore?: KeyValueStore | undefined;
  readonly clock: Clock;
  readonly files: Files;
  readonly discarded?: Runtime["discarded"];
  readonly readGuide: ReadGuide;
  /** The folder of the library, which need not exist. */
  readonly folder: string;
  readonly outbound: Pick<Outbound, "open">;
  readonly tasks: TaskRunner;
  readonly items: Pick<Items, "figures">;
  /** The guides that the user's lists name. */
  readonly listed: () => readonly string[];
  readonly log: Log;
}

const MAX_SOURCES = 50;
/** Guides change once or twice a day. */
const UPDATE_SECONDS = 12 * 3_600;
/** Due times are checked at this interval, because the wall clock may be set and the machine may sleep. */
const CHECK_MS = 60_000;

/** Opens the stored guides and starts to refresh those that are due. */
export async function createGuide(
  dependencies: GuideDependencies,
): Promise<Guide & { close(): Promise<void> }> {
  const { store, ownStore, log } = dependencies;
  const sources = await GuideSources.load(store, ownStore, log);
  const guide = new FileGuide(dependencies, sources, await GuideMatches.load(dependencies));
  guide.begin();
  return guide;
}

class FileGuide implements Guide {
  readonly #parts: GuideDependencies;
  readonly #sources: GuideSources;
  readonly #matches: GuideMatches;
  readonly #files = new Map<number, GuideFile>();
  /** One refresh at a time: each may use a core. */
  readonly #queue = new SerialQueue();
  readonly #refreshing = new Set<number>();
  #present = new PresentProgrammes();
  #cancelCheck: () => void = () => {};
  #isClosed = false;

  constructor(parts: GuideDependencies, sources: GuideSources, matches: GuideMatches) {
    this.#parts = parts;
    this.#sources = sources;
    this.#matches = matches;
  }

  /** Opens the files in the background, so that a large guide does not delay the start. */
  begin(): void {
    void this.#queue.run(async () => {
      for (const record of this.#sources.all()) await this.#open(record);
      this.#check();
    });
    this.#sources.follow(() => void this.#queue.run(() => this.#dropUnlisted()).catch(() => {}));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelCheck();
    await this.#queue.run(async () => {
      for (const file of this.#files.values()) await file.close();
      this.#files.clear();
    });
  }

  sources(): GuideSource[] {
    return this.#sources
      .all()
      .filter(({ isRemoved }) => !isRemoved)
      .map(({ id, url, origin, lastUpdate, problem }) => {
        const file = this.#files.get(id);
        const programmeCount = file?.programmeCount ?? 0;
        return {
          id,
          url,
          origin,
          lastUpdate,
          problem,
          programmeCount,
          channelCount: file?.channels.length ?? 0,
        };
      });
  }

  get hasProgrammes(): boolean {
    return this.#files.size > 0;
  }

  async addSource(
    url: string,
    { allowPrivateUrls }: { readonly allowPrivateUrls: boolean },
  ): Promise<number> {
    if (!/^https?:\/\//i.test(url) || !URL.canParse(url) || url.length > 2_000)
      throw new SluiceError("bad_parameter", "expected the URL of a programme guide (XMLTV), http or https");
    const known = this.#sources.all().find((record) => record.url === url);
    if (!known && this.#sources.all().length >= MAX_SOURCES)
      throw new SluiceError("too_many", `the limit of ${MAX_SOURCES} programme guides is reached`);
    const record = known ?? (await this.#sources.add({ url, origin: "user", allowPrivateUrls }));
    if (known) await this.#sources.change(known.id, { isRemoved: false, origin: "user", allowPrivateUrls });
    this.#start([record.id]);
    return record.id;
  }

  async removeSource(id: number): Promise<void> {
    const record = this.#sources.get(id);
    if (record === undefined || record.isRemoved)
      throw new SluiceError("unknown_item", `there is no programme guide ${id}`);
    await this.#queue.run(async () => {
      await this.#drop(record);
      const isListed = this.#parts.listed().includes(record.url);
      if (isListed)
        await this.#sources.change(id, { isRemoved: true, generation: 0, lastUpdate: 0 as UnixSeconds });
      else await this.#sources.delete(id);
    });
  }

  refresh(): number {
    return this.#start(this.sources().map(({ id }) => id));
  }

  match(item: Item): GuideMatch | undefined {
    return this.#matches.of(item);
  }

  candidates(item: Item, query: string): GuideChannel[] {
    return this.#matches.candidates(item, query);
  }

  isChosen(item: Item): boolean {
    return this.#matches.isChosen(item);
  }

  choose(item: Item, key: string | null | undefined): Promise<void> {
    return this.#matches.choose(item, key);
  }

  async nowAndNext(item: Item): Promise<readonly ListedProgramme[]> {
    const channel = this.match(item)?.channel;
    if (channel === undefined) return [];
    return this.#present.of(channel.key, this.#parts.clock.unixSeconds(), (from, to, limit) =>
      this.#programmesOf(channel, from, to, limit),
    );
  }

  async programmes(item: Item, from: UnixSeconds, to: UnixSeconds, limit: number): Promise<Programme[]> {
    const channel = this.match(item)?.channel;
    return channel === undefined ? [] : this.#programmesOf(channel, from, to, limit);
  }

  async *search(
    keys: readonly string[],
    part: string,
    from: UnixSeconds,
  ): AsyncGenerator<KeyedProgramme[] | undefined, void> {
    const channels = this.#matches.channels;
    for (const [id, file] of [...this.#files]) {
      const prefix = `${id}/`;
      const ids = keys.filter((key) => key.startsWith(prefix)).map((key) => channels.get(key)?.id ?? "");
      try {
        for await (const found of file.search(ids, part, from))
          yield found.map(({ channel, programme }) => ({ key: prefix + channel, programme }));
      } catch (error) {
        // As above.
        this.#parts.log.debug("cannot search a programme guide", { reason: messageOf(error) });
        yield undefined;
      }
    }
  }

  async #programmesOf(
    { key, id }: GuideChannel,
    from: UnixSeconds,
    to: UnixSeconds,
    limit: number,
  ): Promise<Programme[]> {
    const file = this.#files.get(Number(key.slice(0, key.indexOf("/"))));
    try {
      return (await file?.between(id, from, to, limit)) ?? [];
    } catch (error) {
      // A refresh may have replaced the file meanwhile; a damaged one is replaced by the next refresh.
      this.#parts.log.debug("cannot read a programme guide", { reason: messageOf(error) });
      return [];
    }
  }

  /** Starts the refreshes that are due and schedules the next check. */
  #check(): void {
    if (this.#isClosed) return;
    const { clock } = this.#parts;
    this.#cancelCheck = clock.at(after(clock.now(), CHECK_MS), () => this.#check());
    void this.#followLists()
      .then(() => {
        const now = clock.unixSeconds();
        const due = this.#sources.all().filter(({ id, isRemoved, nextUpdate }) => {
          return !isRemoved && !this.#refreshing.has(id) && saneNext(nextUpdate, now, UPDATE_SECONDS) <= now;
        });
        if (due.length > 0 && !this.#isClosed) this.#start(due.map(({ id }) => id));
      })
      .catch((error: unknown) =>
        this.#parts.log.warn("cannot refresh the programme guides", { reason: messageOf(error) }),
      );
  }

  /** Closes the files of guides that another engine has removed, and fetches those that it has added. */
  async #dropUnlisted(): Promise<void> {
    for (const id of [...this.#files.keys()]) {
      const record = this.#sources.get(id);
      if (record !== undefined && !record.isRemoved) continue;
      const file = this.#files.get(id);
      this.#files.delete(id);
      this.#channelsChanged();
      await file?.close();
      const folder = `${this.#parts.folder}/guide`;
      for (const name of await this.#parts.files.list(folder))
        if (name.startsWith(`${id}-`)) await this.#parts.files.remove(`${folder}/${name}`);
    }
    this.#cancelCheck();
    this.#check();
  }

  /** Adds the guides that lists name, and drops those that no list names any more. */
  async #followLists(): Promise<void> {
    const listed = new Set(this.#parts.listed());
    const known = this.#sources.all();
    for (const record of known)
      if (record.origin === "list" && !listed.has(record.url)) {
        await this.#drop(record);
        await this.#sources.delete(record.id);
      }
    for (const url of listed) {
      if (known.some((record) => record.url === url) || this.#sources.all().length >= MAX_SOURCES) continue;
      await this.#sources.add({ url, origin: "list", allowPrivateUrls: false });
    }
  }

  #start(ids: readonly number[]): number {
    const task = this.#parts.tasks.start({
      category: "content",
      title: "Refreshing the programme guides",
      actions: ["reload_playlist", "reload_epg_sources"],
      run: (progress) => this.#queue.run(() => this.#refreshAll(ids, progress)),
    });
    // Only now: if too many tasks run, the next check tries again.
    for (const id of ids) this.#refreshing.add(id);
    return task;
  }

  async #refreshAll(ids: readonly number[], progress: Progress): Promise<string> {
    let failed = 0;
    for (const id of ids) {
      const record = this.#sources.get(id);
      if (record && !record.isRemoved && !this.#isClosed && !(await this.#refreshOne(record, progress)))
        failed++;
      this.#refreshing.delete(id);
    }
    const count = this.sources().reduce((sum, { programmeCount }) => sum + programmeCount, 0);
    if (failed === ids.length && failed > 0)
      throw new SluiceError("url_unreachable", "no programme guide could be refreshed");
    return `${count} programmes${failed > 0 ? `; ${failed} of ${ids.length} guides could not be refreshed` : ""}`;
  }

  /** A failed refresh keeps the programmes of the refresh before it. */
  async #refreshOne(record: SourceRecord, progress: Progress): Promise<boolean> {
    const { clock, log } = this.#parts;
    const { id } = record;
    const generation = record.generation + 1;
    try {
      const { file, etag } = await fetchGuide(this.#parts, record, this.#path(id, generation), {
        signal: progress.signal,
        onProgrammes: (count) => progress.report(count, null, "programmes"),
      });
      const now = clock.unixSeconds();
      const done = {
        lastUpdate: now,
        nextUpdate: nextAfterSuccess(now, UPDATE_SECONDS),
        failures: 0,
        problem: null,
      };
      await this.#sources.change(id, { ...done, etag, ...(file && { generation }) });
      if (file) await this.#replace(record, file);
      return true;
    } catch (error) {
      if (progress.signal.aborted) throw error;
      const failures = record.failures + 1;
      const nextUpdate = nextAfterFailure(clock.unixSeconds(), UPDATE_SECONDS, failures, 0);
      await this.#sources.change(id, { failures, nextUpdate, problem: messageOf(error).slice(0, 300) });
      log.warn("cannot refresh a programme guide", {
        host: new URL(record.url).hostname,
        reason: messageOf(error),
      });
      return false;
    }
  }

  async #replace(record: SourceRecord, file: GuideFile): Promise<void> {
    const previous = this.#files.get(record.id);
    this.#files.set(record.id, file);
    this.#channelsChanged();
    await previous?.close();
    await this.#parts.files.remove(this.#path(record.id, record.generation));
  }

  async #open(record: SourceRecord): Promise<void> {
    if (record.generation === 0 || record.isRemoved) return;
    try {
      this.#files.set(
        record.id,
        await GuideFile.open(this.#parts.files, this.#path(record.id, record.generation)),
      );
      this.#channelsChanged();
    } catch (error) {
      this.#parts.log.warn("cannot read a stored programme guide; it is fetched again", {
        reason: messageOf(error),
      });
      await this.#sources.change(record.id, { nextUpdate: 0 as UnixSeconds, etag: "" });
    }
  }

  async #drop({ id, generation }: SourceRecord): Promise<void> {
    const file = this.#files.get(id);
    this.#files.delete(id);
    this.#channelsChanged();
    await file?.close();
    await this.#parts.files.remove(this.#path(id, generation));
  }

  #path(id: number, generation: number): string {
    return `${this.#parts.folder}/guide/${id}-${generation}.jsonl`;
  }

  #channelsChanged(): void {
    this.#matches.useChannels(() => this.#allChannels());
    // Not cleared: a read of the replaced file that is still running must not fill it.
    this.#present = new PresentProgrammes();
  }

  /** Guides that the user added come first. */
  *#allChannels(): Generator<GuideChannel> {
    const byUser = ({ origin }: SourceRecord) => (origin === "user" ? 0 : 1);
    for (const { id } of this.#sources.all().sort((a, b) => byUser(a) - byUser(b) || a.id - b.id))
      for (const channel of this.#files.get(id)?.channels ?? [])
        yield { key: `${id}/${channel.id}`, id: channel.id, names: channel.names, icon: channel.icon };
  }
}
