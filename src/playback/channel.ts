import { messageOf, SluiceError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { after, type Instant } from "../base/time.ts";
import { noFacts } from "../live/input/source-feed.ts";
import { PatternFeed } from "../live/input/source-pattern.ts";
import { TsRestamper } from "../media/ts-restamp.ts";
import { SilentSound } from "../remux/streams/silent-sound.ts";
import { StablePids } from "../remux/streams/stable-pids.ts";
import type { Clock } from "../runtime/contract.ts";
import { type ChannelSource, type Delivery, Feed } from "./channel-feed.ts";
import type { ChannelReport } from "./diagnosis/channel-rows.ts";

/** If the source that is played sends nothing for this time, the next one is opened beside it. */
const SILENT_MS = 3_000;
/** The same for a source that cannot be reached any more; also the interval of looking whether it can. */
const UNREACHABLE_MS = 500;
/** If a source has not delivered a key frame after this time, the next one is opened beside it. */
const START_MS = 8_000;
/** Sources that are open at the same time; a further one replaces the oldest. */
const MAX_OPEN = 2;
/** A source that failed is opened again after this time at the earliest. */
const RETRY_MS = 5_000;
/** For this time after a failure, sources without one are tried first. */
const FORGET_MS = 60_000;
/** A better source is tried again when the present one has played well for this time; each failure of the better one doubles it. */
const STABLE_MS = 60_000;
const MAX_STABLE_MS = 30 * 60_000;
/** A better source must deliver its media in time for this long before it is played. */
const TRIAL_MS = 10_000;
const MIN_TRIAL_SPEED = 0.9;
/** A trial ends after this time in any case. */
const MAX_TRIAL_MS = 40_000;

/** Dependencies of {@link Channel}. */
export interface ChannelDependencies {
  readonly clock: Clock;
  readonly log: Log;
  /** Ends the stream. */
  readonly ended: AbortSignal;
  /** Reports which source is played, while the stream is open. */
  readonly report?: ChannelReport;
  /** False: if all sources fail, the stream fails instead of showing the test pattern. Default true. */
  readonly hasPattern?: boolean;
}

/** A better source that is watched before it is played. */
interface Trial {
  readonly feed: Feed;
  /** When it delivered first. */
  since: Instant | undefined;
  /** True if its next key frame is played. */
  isPassed: boolean;
}

/** Plays the sources of a channel; see `channelStream`. */
export class Channel {
  /** If false, the first problem is reported once all sources have failed; else the test pattern is shown. */
  showsPattern = false;
  /** How often another stream was joined so far; packets from `next` that follow one begin with tables and a key frame. */
  joints = 0;
  readonly #dependencies: ChannelDependencies;
  readonly #sources: readonly ChannelSource[];
  readonly #restamper = new TsRestamper();
  readonly #pids = new StablePids();
  readonly #silence = new SilentSound();
  /** Open sources, the oldest first. */
  #feeds: Feed[] = [];
  /** The one of them that was played last. */
  #playing: Feed | undefined;
  #pattern: Feed | undefined;
  #trial: Trial | undefined;
  #playingSince: Instant | undefined;
  readonly #failedAt = new Map<number, Instant>();
  readonly #failures = new Map<number, number>();
  /** The sources whose sound is converted, because players expect the codec of another source. */
  readonly #converted = new Set<number>();
  #firstProblem: unknown;
  #version = 0;
  #wake: () => void = () => {};
  readonly #close = () => this.close();
  #isClosed = false;

  constructor(dependencies: ChannelDependencies, sources: readonly ChannelSource[]) {
    this.#dependencies = dependencies;
    this.#sources = sources;
    dependencies.report?.open();
    dependencies.ended.addEventListener("abort", this.#close);
  }

  close(): void {
    this.#isClosed = true;
    this.#dependencies.report?.close();
    this.#dependencies.ended.removeEventListener("abort", this.#close);
    for (const feed of this.#feeds) feed.close();
    this.#pattern?.close();
    this.#trial?.feed.close();
    this.#wake();
  }

  /** Resolves with the next packets; undefined after `close`. Silence counts only while a call waits. */
  async next(): Promise<Uint8Array | undefined> {
    const since = this.#dependencies.clock.now();
    while (!this.#isClosed) {
      this.#openDue(since);
      this.#tryBetter();
      const delivery = await this.#delivery(since);
      const packets = delivery && !this.#isClosed ? this.#handle(delivery, since) : undefined;
      if (packets) return packets;
    }
    return undefined;
  }

  /** Opens the next source if no open one plays well, and the test pattern if there is none left to try. */
  #openDue(since: Instant): void {
    const now = this.#dependencies.clock.now();
    const isDelivering = this.#playing !== undefined && this.#dueMs(this.#playing, since) > 0;
    const hasFault = isDelivering && this.#playing?.watch.fault !== undefined;
    const waiting = this.#feeds.filter((feed) => this.#dueMs(feed, since) > 0);
    if (waiting.length > (hasFault ? 1 : 0)) return;
    const index = this.#trial?.feed.index ?? this.#nextIndex(now);
    // A source that delivers badly is better than one that failed a moment ago.
    if (hasFault && (index === undefined || this.#hasFailed(index, now))) return;
    if (index === undefined && this.#feeds.length === 0 && !this.showsPattern) throw this.#firstProblem;
    if (index !== undefined) {
      const oldest = this.#feeds.find((feed) => !hasFault || feed !== this.#playing);
      if (this.#feeds.length >= MAX_OPEN) this.#fail(oldest!, "the source sends nothing");
      this.#feeds.push(this.#takeTrial() ?? this.#open(index));
    }
    const isUntried = index !== undefined && !this.#hasFailed(index, now);
    if (isUntried || this.#pattern || !this.showsPattern) return;
    this.#dependencies.log.warn("no source of the channel delivers; showing the test pattern");
    this.#dependencies.report?.showsPattern();
    // After the pattern, the source that was played continues at a key frame.
    this.#playing?.restart(this.#version++);
    this.#playing = undefined;
    const pattern = { name: "test pattern", open: async () => this.#patternStream() };
    this.#pattern = new Feed(-1, pattern, this.#version++, now);
  }

  #open(index: number): Feed {
    const now = this.#dependencies.clock.now();
    return new Feed(index, this.#sources[index]!, this.#version++, now, this.#converted.has(index));
  }

  /** Watches a better source if the present one has played well for long, and plays it if it passes. */
  #tryBetter(): void {
    const playing = this.#playing;
    const now = this.#dependencies.clock.now();
    const { feed, since } = this.#trial ?? {};
    if (feed !== undefined) {
      const isLate = now - feed.openedAt > (since === undefined ? START_MS : MAX_TRIAL_MS);
      if (isLate || feed.watch.fault !== undefined) this.#endTrial(now);
      return;
    }
    if (!playing || this.#feeds.length !== 1 || playing.watch.fault !== undefined) return;
    if (now - (this.#playingSince ?? now) < STABLE_MS) return;
    const better = [...Array(playing.index).keys()].find((index) => now >= this.#mayReturnAt(index));
    if (better !== undefined) this.#trial = { feed: this.#open(better), since: undefined, isPassed: false };
  }

  /** When a source that failed may be tried again while another one plays well. */
  #mayReturnAt(index: number): number {
    const failures = this.#failures.get(index) ?? 0;
    const waitMs = Math.min(MAX_STABLE_MS, STABLE_MS * 2 ** Math.max(0, failures - 1));
    return failures === 0 ? 0 : (this.#failedAt.get(index) ?? 0) + waitMs;
  }

  #endTrial(now: Instant): void {
    const feed = this.#trial?.feed;
    this.#trial = undefined;
    if (feed === undefined) return;
    feed.close();
    this.#countFailure(feed.index, now);
  }

  /** Returns the feed of the trial, from its next key frame on. */
  #takeTrial(): Feed | undefined {
    const trial = this.#trial;
    this.#trial = undefined;
    trial?.feed.restart(this.#version++);
    return trial?.feed;
  }

  /** Handles what a source on trial delivered. It is not played yet. */
  #watchTrial(trial: Trial, { packets }: Delivery): void {
    const now = this.#dependencies.clock.now();
    const { feed } = trial;
    if (packets === undefined) {
      this.#endTrial(now);
      return;
    }
    feed.take();
    feed.watch.push(packets, now, 0);
    trial.since ??= now;
    const elapsedMs = now - trial.since;
    if (elapsedMs < TRIAL_MS || 1000 * feed.watch.mediaSeconds < MIN_TRIAL_SPEED * elapsedMs) return;
    trial.isPassed = true;
    feed.restart(this.#version++);
  }

  /** Milliseconds until a feed counts as silent. */
  #dueMs(feed: Feed, since: Instant): number {
    const now = this.#dependencies.clock.now();
    if (feed !== this.#playing) return START_MS - (now - feed.openedAt);
    return (feed.isUnreachable() ? UNREACHABLE_MS : SILENT_MS) - (now - since);
  }

  #hasFailed(index: number, now: Instant): boolean {
    const failedAt = this.#failedAt.get(index);
    return failedAt !== undefined && now - failedAt < FORGET_MS;
  }

  /** The source to open next: the best without a recent failure, else the one whose failure is oldest. */
  #nextIndex(now: Instant): number | undefined {
    const closed = [...this.#sources.keys()].filter(
      (index) => !this.#feeds.some((feed) => feed.index === index) && index !== this.#trial?.feed.index,
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
      const dueMs = Math.min(UNREACHABLE_MS, ...waits.filter((ms) => ms > 0));
      const cancel = clock.at(after(now, dueMs), () => resolve(undefined));
      const done = (delivery?: Delivery) => {
        cancel();
        resolve(delivery);
      };
      this.#wake = done;
      for (const feed of this.#feeds) feed.deliver(done);
      this.#pattern?.deliver(done);
      this.#trial?.feed.deliver(done);
    });
  }

  /** Returns the packets to send, if any. */
  #handle(delivery: Delivery, since: Instant): Uint8Array | undefined {
    const { feed, packets, problem } = delivery;
    const trial = this.#trial;
    if (packets && this.#convertSound(feed)) return undefined;
    if (trial?.feed === feed && !(trial.isPassed && packets)) {
      this.#watchTrial(trial, delivery);
      return undefined;
    }
    if (packets === undefined) {
      this.#fail(feed, problem === undefined ? "the source has ended" : messageOf(problem), problem);
      return undefined;
    }
    if (trial?.feed === feed) {
      this.#trial = undefined;
      this.#dependencies.report?.switches(`${feed.name} plays again`);
    }
    feed.take();
    const isBeside = feed === this.#playing && feed.watch.fault !== undefined;
    if (feed !== this.#pattern && !isBeside) this.#play(feed);
    if (!feed.isJoined) {
      this.#restamper.join(feed.entry.first!);
      this.#silence.restart();
      feed.isJoined = true;
      this.joints++;
    }
    const { entry } = feed;
    const jump = this.#restamper.jumpAt(packets);
    // The source continues with other times, such as after a new connection: this is a joint as well.
    if (jump !== undefined) feed.restart(this.#version++, packets.subarray(jump));
    const played = packets.subarray(0, jump);
    this.#pids.apply(entry, played);
    const filled = this.#silence.fill(played, this.#pids.missingSound);
    this.#restamper.restamp(filled);
    const now = this.#dependencies.clock.now();
    if (feed !== this.#pattern) feed.watch.push(filled, now, now - since);
    return filled.length > 0 ? filled : undefined;
  }

  /** Opens a source again, with converted sound, if players could not play its sound. Returns false if that is not needed. */
  #convertSound(feed: Feed): boolean {
    const { index } = feed;
    if (feed === this.#pattern || feed.isJoined || this.#converted.has(index)) return false;
    if (!this.#pids.lacksSoundOf(feed.entry)) return false;
    this.#dependencies.log.info("the sound of the source is converted to that of the channel", {
      source: feed.name,
    });
    this.#converted.add(index);
    feed.close();
    const again = this.#open(index);
    if (this.#trial?.feed === feed) this.#trial = { feed: again, since: undefined, isPassed: false };
    this.#feeds = this.#feeds.map((other) => (other === feed ? again : other));
    return true;
  }

  #play(feed: Feed): void {
    const before = this.#playing;
    const fault = before === feed ? undefined : before?.watch.fault;
    if (before && fault !== undefined) {
      this.#fail(before, fault);
      this.#dependencies.report?.switches(`${before.name}: ${fault}`);
    } else if (before && before !== feed && this.#feeds.includes(feed)) {
      // The next source was opened because this one was silent; otherwise it would be tried first at the next failure.
      this.#fail(
        before,
        before.isUnreachable() ? "the connection was lost" : "the source sent nothing for 3 s",
      );
    }
    for (const other of this.#feeds) if (other !== feed) other.close();
    this.#pattern?.close();
    this.#pattern = undefined;
    this.#feeds = [feed];
    if (feed === this.#playing) return;
    this.#playing = feed;
    this.#playingSince = this.#dependencies.clock.now();
    this.#dependencies.report?.plays(feed.index, feed.name, feed.figures);
    if (this.#failedAt.size > 0 || feed.index > 0)
      this.#dependencies.log.info("the channel plays another source", { source: feed.name });
  }

  #fail(feed: Feed, reason: string, problem: unknown = new SluiceError("start_timeout", reason)): void {
    feed.close();
    if (feed === this.#pattern) this.#pattern = undefined;
    const { clock, log, report } = this.#dependencies;
    // A delivery of a feed that was closed meanwhile.
    if (!this.#feeds.includes(feed)) return;
    this.#feeds = this.#feeds.filter((other) => other !== feed);
    const now = clock.now();
    if (feed === this.#playing) {
      this.#playing = undefined;
      if (now - (this.#playingSince ?? now) > MAX_STABLE_MS) this.#failures.delete(feed.index);
    }
    report?.failed(feed.name, reason);
    const isFirst = !this.#hasFailed(feed.index, now);
    this.#firstProblem ??= problem;
    this.#countFailure(feed.index, now);
    if (isFirst) log.warn("a source of the channel failed", { source: feed.name, reason });
  }

  #countFailure(index: number, now: Instant): void {
    this.#failedAt.set(index, now);
    this.#failures.set(index, (this.#failures.get(index) ?? 0) + 1);
  }

  #patternStream(): ReadableStream<Uint8Array> {
    const { clock, report } = this.#dependencies;
    const [startMs, startAt] = [1000 * clock.unixSeconds(), clock.now()];
    const unixMs = () => startMs + (clock.now() - startAt);
    const message = report && `NO SOURCE: ${report.state.title}`;
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
