import type { Log } from "../../base/log.ts";
import type { Outbound } from "../../outbound/outbound.ts";
import type { Clock, Net } from "../../runtime/contract.ts";
import { type LiveFeed, type LiveInputFacts, noFacts } from "./source-feed.ts";
import { FileFeed, type LiveFile } from "./source-file.ts";
import { HlsSourceFeed } from "./source-hls.ts";
import { HttpFeed } from "./source-http.ts";
import { FILE_PACE, PacedFeed, PIPE_PACE } from "./source-paced.ts";
import { PatternFeed } from "./source-pattern.ts";
import type { LivePlace } from "./source-place.ts";
import { StreamFeed } from "./source-stream.ts";
import { UdpFeed } from "./source-udp.ts";

/** A stream that is broadcast, as it comes in. */
export interface LiveInput {
  /** What is known of it; counts on while it is read. */
  readonly facts: Readonly<LiveInputFacts>;
  /**
   * Whole transport packets of 188 bytes, as they come; the reader's pull drives it. Ends where the source does, errors with
   * `SluiceError` where it cannot go on. Cancelling lets everything go. To be asked for once.
   */
  packets(): ReadableStream<Uint8Array>;
}

/** What sources need from outside. */
export interface LiveInputParts {
  readonly clock: Clock;
  readonly net: Pick<Net, "bindUdp">;
  readonly outbound: Pick<Outbound, "open">;
  readonly log: Log;
  /** The time of day in UNIX ms. */
  unixMs(): number;
  /** Opens a file of the user's; rejects with `bad_parameter`. */
  openFile(path: string): Promise<LiveFile>;
  /** What is piped in. */
  pipe(): ReadableStream<Uint8Array>;
}

/** How a source is read. */
export interface LiveInputOptions {
  /** A file begins again at its end. */
  readonly isLooped?: boolean;
}

/** Opens a source; nothing is asked of it before somebody reads. */
export function openLiveInput(
  place: LivePlace,
  parts: LiveInputParts,
  options: LiveInputOptions = {},
): LiveInput {
  const facts = noFacts();
  const feed = feedOf(place, parts, facts, options.isLooped ?? false);
  return { facts, packets: () => streamOf(feed, parts.clock, facts) };
}

function feedOf(place: LivePlace, parts: LiveInputParts, facts: LiveInputFacts, isLooped: boolean): LiveFeed {
  const { clock } = parts;
  switch (place.kind) {
    case "http":
      return new HttpFeed(place.url, parts, facts);
    case "hls":
      return new PacedFeed(new HlsSourceFeed(place.url, parts, facts), clock, PIPE_PACE);
    case "udp":
      return new UdpFeed(place, parts, facts);
    case "file":
      return new PacedFeed(new FileFeed(() => parts.openFile(place.path), facts, isLooped), clock, FILE_PACE);
    case "pipe":
      facts.beginnings++;
      return new PacedFeed(new StreamFeed(parts.pipe(), facts), clock, PIPE_PACE);
    case "test-pattern":
      return new PatternFeed(parts, facts);
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
