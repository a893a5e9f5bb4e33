import { orAborted } from "../async/abort.ts";
import { resolvesWithin } from "../async/sleep.ts";
import { SluiceError } from "../base/errors.ts";
import type { Infohash } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import { LiveSource } from "../live/window/live-source.ts";
import { LiveWindow } from "../live/window/live-window.ts";
import type { SwarmFigures } from "../protocol/swarm/contract.ts";
import { NO_FIGURES } from "../protocol/swarm/figures.ts";
import type { Clock } from "../runtime/contract.ts";
import type { WindowStorage } from "../transfer/channel-contract.ts";
import type { ActiveTransfer, ByteSource, ContentFile } from "../transfer/contract.ts";
import type { SegmentSource } from "../transfer/segment-source.ts";
import { Channel } from "./channel.ts";
import type { ChannelSource } from "./channel-feed.ts";
import { PIECE_MS, SEGMENT_MS, WindowFeed } from "./channel-window.ts";
import type { ChannelReport } from "./diagnosis/channel-rows.ts";
import { HELD_HEADERS_MS } from "./guarded-stream.ts";

/** Dependencies of {@link ChannelTransfer}. */
export interface ChannelTransferOptions {
  readonly infohash: Infohash;
  readonly clock: Clock;
  readonly log: Log;
  readonly report: ChannelReport;
  readonly sources: readonly ChannelSource[];
  readonly storage: WindowStorage;
  /** How far back players may seek, in milliseconds. */
  readonly limitMs: number;
  /** Called when it stops. */
  onStop(): void;
}

/**
 * A channel of several sources as one live stream with a window, for all sessions that play it: HLS, MPEG-TS, and seeking. It
 * reads its sources while it has players. Each change of the source is a discontinuity of the manifest, with continuous times.
 */
export class ChannelTransfer implements ActiveTransfer {
  readonly infohash: Infohash;
  readonly transportType = "wrapper";
  readonly channel: ChannelReport;
  readonly files: readonly ContentFile[];
  readonly #options: ChannelTransferOptions;
  readonly #window: LiveWindow;
  readonly #source: LiveSource;
  readonly #feed: WindowFeed;
  readonly #stopped = new AbortController();
  /** The run that reads the sources; undefined while no player needs it, or after it failed. */
  #run: { readonly end: AbortController; readonly started: Promise<void> } | undefined;

  constructor(options: ChannelTransferOptions) {
    const { infohash, clock, log, report, storage, limitMs } = options;
    this.infohash = infohash;
    this.channel = report;
    this.#options = options;
    const name = `${this.name.replaceAll("/", "_")}.ts`;
    this.files = [{ index: 0, name, size: 0, offset: 0, mime: "video/mp2t", isPlayable: true }];
    this.#window = new LiveWindow({
      files: storage.files,
      folder: storage.folder,
      limitBytes: () => storage.limitBytes(),
      clock,
      free: Promise.resolve(),
      limitMs,
      segmentMs: SEGMENT_MS,
      pieceMs: PIECE_MS,
      log,
    });
    this.#source = new LiveSource({ window: this.#window, infohash, clock, isBursty: true });
    this.#feed = new WindowFeed(clock, this.#window);
  }

  get name(): string {
    return this.channel.state.title;
  }

  /** The figures of the source that is played; `downloaded` is the size of the media of all sources. */
  get figures(): SwarmFigures {
    return { ...(this.channel.figures ?? NO_FIGURES), hasMetadata: true, downloaded: this.#feed.bytes };
  }

  /** Opens the channel. Rejects with the first problem if all its sources fail before the first data. */
  readonly segmentSource = async (signal: AbortSignal): Promise<SegmentSource> => {
    this.#stopped.signal.throwIfAborted();
    await orAborted(this.#start(), signal);
    return this.#source;
  };

  setIdle(isIdle: boolean): void {
    if (isIdle) this.#pause();
    else if (!this.#stopped.signal.aborted) void this.#start().catch(() => {}); // Reported by `segmentSource`.
  }

  async ready(): Promise<void> {
    this.#stopped.signal.throwIfAborted();
  }

  source(): ByteSource {
    throw noFile();
  }

  async media(): Promise<never> {
    throw noFile();
  }

  progress(): number {
    return 0;
  }

  headBytes(): number {
    return this.#feed.bytes;
  }

  addTrackers(): void {}

  addPeers(): void {}

  transportFile(): undefined {
    return undefined;
  }

  async stop(): Promise<void> {
    if (this.#stopped.signal.aborted) return;
    this.#stopped.abort(new SluiceError("session_stopped", "the transfer was stopped"));
    this.#pause();
    this.#options.onStop();
    await this.#window.close();
    this.#options.storage.release();
  }

  /** Reads the sources unless they are being read. */
  #start(): Promise<void> {
    if (this.#run) return this.#run.started;
    const { sources, clock, log, report } = this.#options;
    const end = new AbortController();
    const channel = new Channel({ clock, log, ended: end.signal, report }, sources);
    const first = channel.next();
    const started = resolvesWithin(first, clock, HELD_HEADERS_MS).then(() => {
      channel.showsPattern = true;
    });
    const run = { end, started };
    this.#run = run;
    this.#window.interrupted();
    const failed = () => {
      if (this.#run === run) this.#pause();
    };
    // `started` reports the problem.
    started.catch(failed);
    void this.#feed.run(channel, first, end.signal).catch(failed);
    return started;
  }

  #pause(): void {
    const run = this.#run;
    this.#run = undefined;
    run?.end.abort();
  }
}

function noFile(): SluiceError {
  return new SluiceError("no_such_file", "this is a live channel, which has no file");
}
