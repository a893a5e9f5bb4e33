import type { Log } from "../../base/log.ts";
import type { Outbound } from "../../outbound/outbound.ts";
import type { Clock, Net } from "../../runtime/contract.ts";
import type { RtmpListeners } from "./rtmp-listeners.ts";
import { type LiveFeed, type LiveInputFacts, noFacts, type RunEncoder } from "./source-feed.ts";
import { FileFeed, type LiveFile } from "./source-file.ts";
import { HlsSourceFeed } from "./source-hls.ts";
import { HttpFeed } from "./source-http.ts";
import { FILE_PACE, PacedFeed, PIPE_PACE } from "./source-paced.ts";
import { PatternFeed } from "./source-pattern.ts";
import type { LivePlace } from "./source-place.ts";
import { RtmpFeed } from "./source-rtmp.ts";
import { SrtFeed } from "./source-srt.ts";
import { StreamFeed } from "./source-stream.ts";
import { UdpFeed } from "./source-udp.ts";

/** An opened source. */
export interface LiveInput {
  /** Counters, updated while the source is read. */
  readonly facts: Readonly<LiveInputFacts>;
  /** The whole transport packets (188 bytes each) as they arrive; the reader's pull drives the source. The stream ends
   * with the source, and errors with `SluiceError`. Cancelling it releases everything. Call this once. */
  packets(): ReadableStream<Uint8Array>;
}

/** What sources depend on. */
export interface LiveInputDependencies {
  readonly clock: Clock;
  readonly net: Pick<Net, "bindUdp">;
  readonly outbound: Pick<Outbound, "open">;
  readonly log: Log;
  /** The ports on which this process receives RTMP. */
  readonly rtmp: RtmpListeners;
  /** Finds ffmpeg, which encodes renditions and receives SRT. Rejects with `bad_configuration`. */
  openEncoder(): Promise<RunEncoder>;
  /** Returns the time of day in UNIX ms. */
  unixMs(): number;
  /** Opens a local file. Rejects with `bad_parameter`. */
  openFile(path: string): Promise<LiveFile>;
  /** Returns standard input. */
  pipe(): ReadableStream<Uint8Array>;
}

/** How a source is read. */
export interface LiveInputOptions {
  /** A file starts again at its end. */
  readonly isLooped?: boolean;
  /** The key with which a program publishes to this machine. */
  readonly streamKey?: string;
}

/** Opens a source. Nothing is requested from it before its packets are read. */
export function openLiveInput(
  place: LivePlace,
  dependencies: LiveInputDependencies,
  options: LiveInputOptions = {},
): LiveInput {
  const facts = noFacts();
  const feed = feedOf(place, dependencies, facts, options);
  return { facts, packets: () => streamOf(feed, dependencies.clock, facts) };
}

function feedOf(
  place: LivePlace,
  dependencies: LiveInputDependencies,
  facts: LiveInputFacts,
  { isLooped = false, streamKey = "" }: LiveInputOptions,
): LiveFeed {
  const { clock } = dependencies;
  switch (place.kind) {
    case "http":
      return new HttpFeed(place.url, dependencies, facts);
    case "hls":
      return new PacedFeed(new HlsSourceFeed(place.url, dependencies, facts), clock, PIPE_PACE);
    case "udp":
      return new UdpFeed(place, dependencies, facts);
    case "rtmp":
      return new RtmpFeed(place, streamKey, dependencies, facts);
    case "srt":
      return new SrtFeed(place, streamKey, dependencies, facts);
    case "file":
      return new PacedFeed(
        new FileFeed(() => dependencies.openFile(place.path), facts, isLooped),
        clock,
        FILE_PACE,
      );
    case "pipe":
      facts.starts++;
      return new PacedFeed(new StreamFeed(dependencies.pipe(), facts), clock, PIPE_PACE);
    case "test-pattern":
      return new PatternFeed(dependencies, facts);
  }
}

function streamOf(feed: LiveFeed, clock: Clock, facts: LiveInputFacts): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const packets = await feed.next();
          if (packets === undefined) {
            feed.close();
            controller.close();
            return;
          }
          facts.bytes += packets.length;
          facts.lastAt = clock.now();
          controller.enqueue(packets);
        } catch (thrown) {
          feed.close();
          throw thrown;
        }
      },
      cancel: () => feed.close(),
    },
    { highWaterMark: 0 },
  );
}
