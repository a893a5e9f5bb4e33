import { DecodeError, messageOf, SluiceError } from "../../base/errors.ts";
import { PacketAligner } from "../../media/ts-align.ts";
import { HlsFeed } from "../http/hls-feed.ts";
import { type FetchedManifest, fetchManifest, type HlsPlace, placeOf } from "../http/hls-fetch.ts";
import { HlsParts } from "../http/hls-parts.ts";
import { chooseVariant, renditionsOf } from "../http/hls-variant.ts";
import { mayRecover, WebClient } from "../http/web-client.ts";
import {
  type LiveFeed,
  type LiveInputFacts,
  pauseFor,
  sayBrokenOff,
  type WebFeedParts,
} from "./source-feed.ts";

/** Waits between attempts, as for a plain stream. */
const FIRST_WAIT_MS = 500;
const MAX_WAIT_MS = 10_000;

/**
 * The packets of HLS of another server (MPEG-TS, sound within): segment after segment, as they come. Whoever takes them must pace them.
 * A live one that cannot be had is asked for again, for as long as it takes; one that has an end ends.
 */
export class HlsSourceFeed implements LiveFeed {
  readonly #url: string;
  readonly #parts: WebFeedParts;
  readonly #facts: LiveInputFacts;
  readonly #client: WebClient;
  readonly #segments: HlsParts;
  #feed: HlsFeed | undefined;
  #next: number | undefined;
  #hasWorked = false;
  #failures = 0;

  constructor(url: string, parts: WebFeedParts, facts: LiveInputFacts) {
    this.#url = url;
    this.#parts = parts;
    this.#facts = facts;
    const about = { kind: "hls", name: "source", mime: "", size: 0, validator: undefined } as const;
    // The user who broadcasts says where from; cameras and encoders are at home.
    this.#client = new WebClient(parts, { url, allowPrivate: true, ...about });
    this.#segments = new HlsParts(this.#client);
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
        if (this.#failures > 1) this.#parts.log.info("the source is back", { attempts: this.#failures });
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
    this.#client.stopped.abort(new SluiceError("cancelled", "the broadcast has ended"));
  }

  async #packets(feed: HlsFeed, number: number): Promise<Uint8Array> {
    const { signal } = this.#client.stopped;
    const segment = feed.segment(number);
    const bytes = await this.#segments.segment(segment, "ts", feed.place, signal, feed.startSeconds(number));
    const aligner = new PacketAligner();
    const head = aligner.push(bytes);
    const tail = aligner.finish();
    this.#facts.skippedBytes += aligner.skippedBytes;
    const packets = new Uint8Array(head.length + tail.length);
    packets.set(head);
    packets.set(tail, head.length);
    return packets;
  }

  async #recover(thrown: unknown): Promise<void> {
    if (!(thrown instanceof SluiceError) || thrown.code === "url_refused") throw thrown;
    if (!this.#hasWorked && !mayRecover(thrown)) throw ofNoManifest(thrown);
    this.#facts.problem = messageOf(thrown);
    const waitMs = Math.min(MAX_WAIT_MS, FIRST_WAIT_MS * 2 ** Math.min(10, this.#failures++));
    sayBrokenOff(this.#parts.log, this.#facts.problem, this.#failures, waitMs);
    // One segment that is lost is passed over; if more are, the manifest is asked for anew, from its first URL on.
    if (this.#failures > 1) this.#feed = undefined;
    await pauseFor(this.#parts.clock, waitMs, this.#client.stopped.signal);
  }

  async #opened(): Promise<HlsFeed> {
    if (this.#feed) return this.#feed;
    const { signal } = this.#client.stopped;
    let fetched = await fetchManifest(this.#client, { url: this.#url, allowPrivate: true }, signal);
    if (fetched.playlist.kind === "master")
      fetched = await fetchManifest(this.#client, variantPlace(fetched.playlist, fetched.place), signal);
    if (fetched.playlist.kind === "master")
      throw new SluiceError("broken_media", "this HLS manifest leads to another list of variants");
    const feed = new HlsFeed(this.#client, fetched.playlist, fetched.place);
    if (feed.container !== "ts")
      throw new SluiceError(
        "unsupported_container",
        "this HLS has segments of fragmented MP4; only MPEG-TS is broadcast",
      );
    this.#facts.beginnings++;
    this.#feed = feed;
    return feed;
  }
}

/** People name their list of channels, which looks the same from outside. */
function ofNoManifest(thrown: SluiceError): SluiceError {
  if (!(thrown.cause instanceof DecodeError)) return thrown;
  const advice = "no HLS of one stream; of a list of channels, name the URL of one of them";
  return new SluiceError("unsupported_content", `${advice} (${thrown.message})`, { cause: thrown });
}

/** The variant that is broadcast of a list of them. Throws `unsupported_content` where sound is apart. */
export function variantPlace(
  master: Extract<FetchedManifest["playlist"], { kind: "master" }>,
  place: HlsPlace,
): HlsPlace {
  const variant = master.variants[chooseVariant(master)]!;
  if (renditionsOf(master, variant, "audio").some(({ uri }) => uri !== undefined))
    throw new SluiceError(
      "unsupported_content",
      "this HLS has picture and sound in playlists of their own; ffmpeg -c copy -f mpegts - puts them together",
    );
  return placeOf(variant.uri, place);
}
