import { concatBytes } from "../../base/bytes.ts";
import { DecodeError, messageOf, SluiceError } from "../../base/errors.ts";
import type { HlsMaster } from "../../media/hls-master.ts";
import type { HlsMedia } from "../../media/hls-media.ts";
import { PacketAligner } from "../../media/ts-align.ts";
import { HlsFeed } from "../../web-content/hls-feed.ts";
import { fetchManifest, type HlsLocation, resolveLocation } from "../../web-content/hls-fetch.ts";
import { HlsSegmentFetcher } from "../../web-content/hls-segment-fetcher.ts";
import { chooseVariant, renditionsOf } from "../../web-content/hls-variant.ts";
import { mayRecover, WebClient } from "../../web-content/web-client.ts";
import { type LiveFeed, type LiveInputFacts, type WebFeedDependencies, waitForRetry } from "./source-feed.ts";

/**
 * The packets of an HLS stream of another server (MPEG-TS with the audio inside), segment by segment as they become
 * available; the caller paces them. A live stream that cannot be read is retried without limit; a stream with an end
 * ends.
 */
export class HlsSourceFeed implements LiveFeed {
  readonly #url: string;
  readonly #dependencies: WebFeedDependencies;
  readonly #facts: LiveInputFacts;
  readonly #client: WebClient;
  readonly #segments: HlsSegmentFetcher;
  #feed: HlsFeed | undefined;
  #next: number | undefined;
  #hasWorked = false;
  #failures = 0;

  constructor(url: string, dependencies: WebFeedDependencies, facts: LiveInputFacts) {
    this.#url = url;
    this.#dependencies = dependencies;
    this.#facts = facts;
    const about = { kind: "hls", name: "source", mime: "", size: 0, validator: undefined } as const;
    // The user chose the source; cameras and encoders are often on the local network.
    this.#client = new WebClient(dependencies, { url, allowPrivate: true, ...about });
    this.#segments = new HlsSegmentFetcher(this.#client);
  }

  async next(): Promise<Uint8Array | undefined> {
    const { signal } = this.#client.stopped;
    while (!signal.aborted) {
      try {
        const feed = await this.#opened();
        const number = await feed.reach(this.#next ?? feed.first(), signal);
        if (number === undefined) return undefined;
        this.#next = number + 1;
        const packets = await this.#packets(feed, number);
        if (this.#failures > 1) this.#dependencies.log.info("source is back", { attempts: this.#failures });
        this.#failures = 0;
        this.#hasWorked = true;
        if (packets.length > 0) return packets;
      } catch (thrown) {
        if (signal.aborted) return undefined;
        await this.#recover(thrown);
      }
    }
    return undefined;
  }

  close(): void {
    this.#client.stopped.abort(new SluiceError("cancelled", "the broadcast ended"));
  }

  async #packets(feed: HlsFeed, number: number): Promise<Uint8Array> {
    const { signal } = this.#client.stopped;
    const segment = feed.segment(number);
    const bytes = await this.#segments.segment(
      segment,
      "ts",
      feed.location,
      signal,
      feed.startSeconds(number),
    );
    const { packets, skippedBytes } = alignWhole(bytes);
    this.#facts.skippedBytes += skippedBytes;
    return packets;
  }

  async #recover(thrown: unknown): Promise<void> {
    if (!(thrown instanceof SluiceError) || thrown.code === "url_refused") throw thrown;
    if (!this.#hasWorked && !mayRecover(thrown)) throw notOneStreamError(thrown);
    this.#facts.problem = messageOf(thrown);
    this.#failures++;
    // A single lost segment is skipped; after more failures the manifest is fetched again, from its first URL.
    if (this.#failures > 1) this.#feed = undefined;
    const { signal } = this.#client.stopped;
    await waitForRetry(this.#dependencies, this.#facts.problem, this.#failures, signal);
  }

  async #opened(): Promise<HlsFeed> {
    if (this.#feed) return this.#feed;
    const { signal } = this.#client.stopped;
    const { playlist, location } = await fetchMediaManifest(
      this.#client,
      { url: this.#url, allowPrivate: true },
      signal,
    );
    const feed = new HlsFeed(this.#client, playlist, location);
    if (feed.container !== "ts")
      throw new SluiceError(
        "unsupported_container",
        "the segments of this HLS stream are fragmented MP4; only MPEG-TS can be broadcast",
      );
    this.#facts.starts++;
    this.#feed = feed;
    return feed;
  }
}

/** Replaces the error of a manifest that cannot be parsed: users often give the URL of a channel list, which has the
 * same ending. */
function notOneStreamError(thrown: SluiceError): SluiceError {
  if (!(thrown.cause instanceof DecodeError)) return thrown;
  const advice = "this is not an HLS manifest; if it is a channel list, use the URL of one of its channels";
  return new SluiceError("unsupported_content", `${advice} (${thrown.message})`, { cause: thrown });
}

/** Returns the whole packets in the bytes of one segment, and the count of bytes that are not part of one. */
export function alignWhole(bytes: Uint8Array): {
  readonly packets: Uint8Array;
  readonly skippedBytes: number;
} {
  const aligner = new PacketAligner();
  const packets = concatBytes([aligner.push(bytes), aligner.finish()]);
  return { packets, skippedBytes: aligner.skippedBytes };
}

/** Fetches a media manifest; of a master manifest, that of the variant to read. Rejects with `SluiceError`:
 * `unsupported_content` if its audio is a separate playlist. */
export async function fetchMediaManifest(
  client: WebClient,
  location: HlsLocation,
  signal: AbortSignal,
): Promise<{ readonly playlist: HlsMedia; readonly location: HlsLocation }> {
  const fetched = await fetchManifest(client, location, signal);
  if (fetched.playlist.kind !== "master") return { playlist: fetched.playlist, location: fetched.location };
  const variant = await fetchManifest(client, variantLocation(fetched.playlist, fetched.location), signal);
  if (variant.playlist.kind !== "master") return { playlist: variant.playlist, location: variant.location };
  throw new SluiceError("broken_media", "this HLS master manifest refers to another master manifest");
}

function variantLocation(master: HlsMaster, location: HlsLocation): HlsLocation {
  const variant = master.variants[chooseVariant(master)]!;
  if (renditionsOf(master, variant, "audio").some(({ uri }) => uri !== undefined))
    throw new SluiceError(
      "unsupported_content",
      "this HLS stream has separate playlists for video and audio; mux them with ffmpeg -c copy -f mpegts -",
    );
  return resolveLocation(variant.uri, location);
}
