import { resolvesWithin } from "../async/sleep.ts";
import { messageOf, SluiceError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { after, type Instant } from "../base/time.ts";
import { noFacts } from "../live/input/source-feed.ts";
import { PatternFeed } from "../live/input/source-pattern.ts";
import { nullPackets } from "../media/ts-packet.ts";
import { TsRestamper } from "../media/ts-restamp.ts";
import { TsEntry } from "../remux/ts-join.ts";
import type { Clock } from "../runtime/contract.ts";
import type { PlaybackRequest, RemuxForPlayer, Session } from "./contract.ts";
import type { ChannelReport } from "./diagnosis/channel-rows.ts";
import { HELD_HEADERS_MS } from "./guarded-stream.ts";
import { KEEP_ALIVE_PACKETS } from "./ts-stream.ts";

/** If the source that is played sends nothing for this time, the next one is opened beside it. */
const SILENT_MS = 3_000;
/** If a source has not delivered a key frame after this time, the next one is opened beside it. */
const START_MS = 8_000;
/** Sources that are open at the same time; a further one replaces the oldest. */
const MAX_OPEN = 2;
/** A source that failed is opened again after this time at the earliest. */
const RETRY_MS = 5_000;
/** For this time after a failure, sources without one are tried first. */
const FORGET_MS = 60_000;
/** Interval of null packets while the player waits. */
const KEEP_ALIVE_MS = 500;

/** A source of a channel. */
export interface ChannelSource {
  /** For the log. */
  readonly name: string;
  /** Opens it as one transport stream. Rejects if it cannot be played. */
  open(signal: AbortSignal): Promise<ReadableStream<Uint8Array>>;
}

/** Dependencies of {@link channelStream}. */
export interface ChannelDependencies {
  readonly clock: Clock;
  readonly log: Log;
  /** Ends the stream. */
  readonly ended: AbortSignal;
  /** Learns which source is played; closed with the stream. */
  readonly report?: ChannelReport;
  /** False: if all sources fail, the stream fails instead of showing the test pattern. Default true. */
  readonly hasPattern?: boolean;
}

/** Returns a source that plays content in a session of its own. `remux` connects the pieces with their remuxer. */
export function sessionSource(
  name: string,
  request: PlaybackRequest,
  start: (request: PlaybackRequest, signal: AbortSignal) => Promise<Session>,
  remux: RemuxForPlayer,
): ChannelSource {
  return {
    name,
    async open(signal) {
      // Sessions of one player id end each other.
      const session = await start({ ...request, playerId: undefined }, signal);
      try {
        await session.awaitStart(signal);
        const { body } = session;
        // A file that is a transport stream is played as it is.
        if (body?.mime === "video/mp2t") return body.open({ start: 0, end: body.size });
        return await session.transportStream(remux, signal);
      } catch (thrown) {
        session.stop();
        throw thrown;
      }
    },
  };
}

/**
 * Plays a channel of several sources, best first, as one transport stream. If the source that is played ends, fails or is silent for 3 s,
 * the next one is opened, and joined at its first key frame with continuous times and counters, so that the player does not notice. A
 * silent source stays open meanwhile: the one that delivers first is played. If all sources fail, the stream shows the test pattern
 * and tries them again in turn.
 *
 * CHOICE(channel-sources): there is no way back to a better source while the present one plays; the next start begins with the best.
 *
 * Resolves when the first data has arrived, or after 8 s. Rejects with the first problem if all sources fail before.
 */
export async function channelStream(
  dependencies: ChannelDependencies,
  sources: readonly ChannelSource[],
  signal?: AbortSignal,
): Promise<ReadableStream<Uint8Array>> {
  const channel = new Channel(dependencies, sources);
  const cancel = () => channel.close();
  signal?.addEventListener("abort", cancel);
  const first = channel.next();
  try {
    await resolvesWithin(first, dependencies.clock, HELD_HEADERS_MS);
  } catch (thrown) {
    channel.close();
    throw thrown;
  } finally {
    signal?.removeEventListener("abort", cancel);
  }
  channel.showsPattern = dependencies.hasPattern ?? true;
  let ready: Promise<Uint8Array | undefined> | undefined = first;
  let isCancelled = false;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        ready ??= channel.next();
        const isDue = await resolvesWithin(ready, dependencies.clock, KEEP_ALIVE_MS).catch((thrown) => {
          channel.close();
          throw thrown;
        });
        if (isCancelled) return;
        if (!isDue) return controller.enqueue(nullPackets(KEEP_ALIVE_PACKETS));
        const packets = await ready;
        ready = undefined;
        if (packets) controller.enqueue(packets);
        else controller.close();
      },
      cancel() {
        isCancelled = true;
        channel.close();
      },
    },
    { highWaterMark: 0 },
  );
}

/** What a feed delivered; `packets` is undefined if it has ended. */
interface Delivery {
  readonly feed: Feed;
  readonly packets?: Uint8Array<ArrayBuffer> | undefined;
  readonly problem?: unknown;
}

class Channel {
  /** If false, the first problem is reported once all sources have failed; else the test pattern is shown. */
  showsPattern = false;
  readonly #dependencies: ChannelDependencies;
  readonly #sources: readonly ChannelSource[];
  readonly #restamper = new TsRestamper();
  /** Open sources, the oldest first. */
  #feeds: Feed[] = [];
  /** The one of them that was played last. */
  #playing: Feed | undefined;
  #pattern: Feed | undefined;
  readonly #failedAt = new Map<number, Instant>();
  #firstProblem: unknown;
  #version = 0;
  #wake: () => void = () => {};
  readonly #close = () => this.close();
  #isClosed = false;

  constructor(dependencies: ChannelDependencies, sources: readonly ChannelSource[]) {
    this.#dependencies = dependencies;
    this.#sources = sources;
    dependencies.ended.addEventListener("abort", this.#close);
  }

  close(): void {
    this.#isClosed = true;
    this.#dependencies.report?.close();
    this.#dependencies.ended.removeEventListener("abort", this.#close);
    for (const feed of this.#feeds) feed.close();
    this.#pattern?.close();
    this.#wake();
  }

  /** Resolves with the next packets; undefined after `close`. Silence counts only while a call waits. */
  async next(): Promise<Uint8Array | undefined> {
    const since = this.#dependencies.clock.now();
    while (!this.#isClosed) {
      this.#openDue(since);
      const delivery = await this.#delivery(since);
      const packets = delivery && !this.#isClosed ? this.#handle(delivery) : undefined;
      if (packets) return packets;
    }
    return undefined;
  }

  /** Opens the next source if no open one delivers in time, and the test pattern if there is none left to try. */
  #openDue(since: Instant): void {
    const now = this.#dependencies.clock.now();
    const overdue = this.#feeds.filter((feed) => this.#dueMs(feed, since) <= 0);
    if (overdue.length < this.#feeds.length) return;
    const index = this.#nextIndex(now);
    if (index === undefined && this.#feeds.length === 0 && !this.showsPattern) throw this.#firstProblem;
    if (index !== undefined) {
      if (this.#feeds.length >= MAX_OPEN) this.#fail(this.#feeds[0]!, "the source sends nothing");
      this.#feeds.push(new Feed(index, this.#sources[index]!, this.#entry(), now));
    }
    const isUntried = index !== undefined && !this.#hasFailed(index, now);
    if (isUntried || this.#pattern || !this.showsPattern) return;
    this.#dependencies.log.warn("no source of the channel delivers; showing the test pattern");
    this.#dependencies.report?.showsPattern();
    // After the pattern, the source that was played continues at a key frame.
    this.#playing?.restart(this.#entry());
    this.#playing = undefined;
    const pattern = { name: "test pattern", open: async () => this.#patternStream() };
    this.#pattern = new Feed(-1, pattern, this.#entry(), now);
  }

  /** Milliseconds until a feed counts as silent. */
  #dueMs(feed: Feed, since: Instant): number {
    const now = this.#dependencies.clock.now();
    return feed === this.#playing ? SILENT_MS - (now - since) : START_MS - (now - feed.openedAt);
  }

  #hasFailed(index: number, now: Instant): boolean {
    const failedAt = this.#failedAt.get(index);
    return failedAt !== undefined && now - failedAt < FORGET_MS;
  }

  /** The source to open next: the best without a recent failure, else the one whose failure is oldest. */
  #nextIndex(now: Instant): number | undefined {
    const closed = [...this.#sources.keys()].filter(
      (index) => !this.#feeds.some((feed) => feed.index === index),
    );
    const good = closed.find((index) => !this.#hasFailed(index, now));
    if (good !== undefined || !this.showsPattern) return good;
    const [oldest] = closed.sort((a, b) => this.#failedAt.get(a)! - this.#failedAt.get(b)!);
    return oldest !== undefined && now - this.#failedAt.get(oldest)! >= RETRY_MS ? oldest : undefined;
  }

  /** Waits for any feed; undefined if it is time to look at the sources again. */
  #delivery(since: Instant): Promise<Delivery | undefined> {
    const { clock } = this.#dependencies;
    const now = clock.now();
    const waits = [
      ...this.#feeds.map((feed) => this.#dueMs(feed, since)),
      ...[...this.#failedAt.values()].map((at) => RETRY_MS - (now - at)),
    ];
    return new Promise((resolve) => {
      const dueMs = Math.min(SILENT_MS, ...waits.filter((ms) => ms > 0));
      const cancel = clock.at(after(now, dueMs), () => resolve(undefined));
      const done = (delivery?: Delivery) => {
        cancel();
        resolve(delivery);
      };
      this.#wake = done;
      for (const feed of this.#feeds) feed.deliver(done);
      this.#pattern?.deliver(done);
    });
  }

  /** Returns the packets to send, if any. */
  #handle({ feed, packets, problem }: Delivery): Uint8Array | undefined {
    if (packets === undefined) {
      this.#fail(feed, problem === undefined ? "the source has ended" : messageOf(problem), problem);
      return undefined;
    }
    feed.take();
    if (feed !== this.#pattern) this.#play(feed);
    if (!feed.isJoined) this.#restamper.join(feed.entry.first!);
    feed.isJoined = true;
    this.#restamper.restamp(packets);
    return packets;
  }

  #play(feed: Feed): void {
    for (const other of this.#feeds) if (other !== feed) other.close();
    this.#pattern?.close();
    this.#pattern = undefined;
    this.#feeds = [feed];
    if (feed === this.#playing) return;
    this.#playing = feed;
    this.#dependencies.report?.plays(feed.index, feed.name);
    if (this.#failedAt.size > 0 || feed.index > 0)
      this.#dependencies.log.info("the channel plays another source", { source: feed.name });
    this.#failedAt.delete(feed.index);
  }

  #fail(feed: Feed, reason: string, problem: unknown = new SluiceError("start_timeout", reason)): void {
    feed.close();
    if (feed === this.#pattern) this.#pattern = undefined;
    const { clock, log, report } = this.#dependencies;
    // A delivery of a feed that was closed meanwhile.
    if (!this.#feeds.includes(feed)) return;
    this.#feeds = this.#feeds.filter((other) => other !== feed);
    if (feed === this.#playing) this.#playing = undefined;
    report?.failed(feed.name, reason);
    const isFirst = !this.#hasFailed(feed.index, clock.now());
    this.#firstProblem ??= problem;
    this.#failedAt.set(feed.index, clock.now());
    if (isFirst) log.warn("a source of the channel failed", { source: feed.name, reason });
  }

  #entry(): TsEntry {
    return new TsEntry(this.#version++);
  }

  #patternStream(): ReadableStream<Uint8Array> {
    const { clock, report } = this.#dependencies;
    const [startMs, startAt] = [1000 * clock.unixSeconds(), clock.now()];
    const unixMs = () => startMs + (clock.now() - startAt);
    const message = report && `NO SOURCE: ${report.title}`;
    const pattern = new PatternFeed({ clock, unixMs }, noFacts(), message);
    return new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          const packets = await pattern.next();
          if (packets) controller.enqueue(packets);
          else controller.close();
        },
        cancel: () => pattern.close(),
      },
      { highWaterMark: 0 },
    );
  }
}

/** The packets of one source from its first key frame on. One delivery is read ahead. */
class Feed {
  readonly index: number;
  readonly name: string;
  readonly openedAt: Instant;
  entry: TsEntry;
  /** True once its times follow those of the feed before. */
  isJoined = false;
  readonly #over = new AbortController();
  readonly #reader: Promise<ReadableStreamDefaultReader<Uint8Array>>;
  #reading = false;
  #ready: Delivery | undefined;
  #listener: (delivery: Delivery) => void = () => {};

  constructor(index: number, source: ChannelSource, entry: TsEntry, openedAt: Instant) {
    this.index = index;
    this.name = source.name;
    this.entry = entry;
    this.openedAt = openedAt;
    this.#reader = source.open(this.#over.signal).then((stream) => {
      const reader = stream.getReader();
      if (this.#over.signal.aborted) void reader.cancel().catch(() => {});
      return reader;
    });
    // Reported by the first read.
    this.#reader.catch(() => {});
  }

  /** Calls `listener` when the next delivery is there, and again until `take`; a later call replaces the listener. */
  deliver(listener: (delivery: Delivery) => void): void {
    this.#listener = listener;
    if (this.#ready) listener(this.#ready);
    if (this.#ready || this.#reading) return;
    this.#reading = true;
    void this.#read().then((delivery) => {
      this.#reading = false;
      this.#ready = delivery;
      this.#listener(delivery);
    });
  }

  /** Joins again, at the next key frame. */
  restart(entry: TsEntry): void {
    this.entry = entry;
    this.isJoined = false;
    this.#ready = undefined;
  }

  /** Consumes the delivery. */
  take(): void {
    this.#ready = undefined;
  }

  close(): void {
    if (this.#over.signal.aborted) return;
    this.#over.abort(new SluiceError("cancelled", "the channel plays another source"));
    void this.#reader.then((reader) => reader.cancel()).catch(() => {});
  }

  async #read(): Promise<Delivery> {
    try {
      const reader = await this.#reader;
      for (;;) {
        const { done, value } = await reader.read();
        if (done || this.#over.signal.aborted) return { feed: this };
        const packets = this.entry.push(value);
        if (packets.length > 0) return { feed: this, packets };
      }
    } catch (problem) {
      return { feed: this, problem };
    }
  }
}
