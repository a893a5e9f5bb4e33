import { SluiceError } from "../base/errors.ts";
import type { Infohash } from "../base/ids.ts";
import type { HlsMaster, HlsRendition, HlsVariant } from "../media/hls-master.ts";
import type { WebContent } from "../transfer/contract.ts";
import type { VariantFacts } from "../transfer/segment-source.ts";
import { HlsFeed } from "./hls-feed.ts";
import { type FetchedManifest, fetchManifest, type HlsLocation, resolveLocation } from "./hls-fetch.ts";
import { HlsSegmentFetcher } from "./hls-segment-fetcher.ts";
import { chooseVariant, renditionsOf, type VariantOptions, variantFacts } from "./hls-variant.ts";
import type { WebClient } from "./web-client.ts";

/** A rendition and its feed, which is opened on first use. `open` is undefined if the variant itself contains it. */
export interface HlsTrack {
  readonly rendition: HlsRendition;
  /** Rejects with `SluiceError`; the next call tries again. */
  readonly open: (() => Promise<HlsFeed>) | undefined;
}

/** A variant of a stream with its renditions, shared by all its sessions. */
export interface HlsProgramme {
  readonly client: WebClient;
  readonly fetcher: HlsSegmentFetcher;
  readonly main: HlsFeed;
  /** Undefined if the stream has no master manifest. */
  readonly variant: HlsVariant | undefined;
  readonly audio: readonly HlsTrack[];
  readonly subtitles: readonly HlsTrack[];
  /** All variants of the stream, and the index of this one. */
  readonly variants: readonly VariantFacts[];
  readonly variantIndex: number;
  /** Returns the cache key of its segments; it changes when sequence numbers restart. */
  name(): string;
}

/** An HLS stream of another server: its first manifest and the opened variants. */
export class HlsStream {
  readonly #client: WebClient;
  readonly #content: WebContent;
  readonly #infohash: Infohash;
  readonly #programmes = new Map<number, Promise<HlsProgramme>>();
  #first: Promise<FetchedManifest> | undefined;

  constructor(client: WebClient, content: WebContent, infohash: Infohash) {
    this.#client = client;
    this.#content = content;
    this.#infohash = infohash;
  }

  /** Returns the variant that matches `options`; sessions with the same variant share it. Rejects with `SluiceError`. */
  async programme(options: VariantOptions): Promise<HlsProgramme> {
    const client = this.#client;
    this.#first ??= fetchManifest(client, this.#content, client.stopped.signal).catch((thrown) => {
      this.#first = undefined;
      throw thrown;
    });
    const { playlist, location } = await this.#first;
    const index = playlist.kind === "master" ? chooseVariant(playlist, options) : -1;
    let programme = this.#programmes.get(index);
    if (!programme) {
      programme = this.#open(index, playlist.kind === "master" ? playlist : undefined, location);
      this.#programmes.set(index, programme);
      // The manifest may have changed: the next call requests it again.
      programme.catch(() => {
        this.#programmes.delete(index);
        this.#first = undefined;
      });
    }
    return programme;
  }

  async #open(index: number, master: HlsMaster | undefined, location: HlsLocation): Promise<HlsProgramme> {
    const client = this.#client;
    const opened = new Set<HlsFeed>();
    const feedAt = async (uri: string) => {
      const feed = await openFeed(client, resolveLocation(uri, location));
      opened.add(feed);
      return feed;
    };
    const variant = master?.variants[index];
    const main = variant ? await feedAt(variant.uri) : await this.#only(opened);
    const tracks = (type: "audio" | "subtitles") =>
      master && variant
        ? renditionsOf(master, variant, type).map((rendition) => trackOf(rendition, variant, feedAt))
        : [];
    const name = () => {
      let generation = 0;
      for (const feed of opened) generation += feed.generation;
      return `${this.#infohash}/hls ${index} ${generation}`;
    };
    return {
      client,
      fetcher: new HlsSegmentFetcher(client),
      main,
      variant,
      audio: tracks("audio"),
      subtitles: tracks("subtitles").filter(({ open }) => open !== undefined),
      variants: master?.variants.map(variantFacts) ?? [],
      variantIndex: index,
      name,
    };
  }

  async #only(opened: Set<HlsFeed>): Promise<HlsFeed> {
    const { playlist, location } = await this.#first!;
    const feed = new HlsFeed(this.#client, mediaOnly(playlist), location);
    opened.add(feed);
    return feed;
  }
}

function trackOf(
  rendition: HlsRendition,
  variant: HlsVariant,
  feedAt: (uri: string) => Promise<HlsFeed>,
): HlsTrack {
  const { uri } = rendition;
  // An audio-only stream is often listed twice: as a variant and as its own rendition.
  if (uri === undefined || uri === variant.uri) return { rendition, open: undefined };
  let feed: Promise<HlsFeed> | undefined;
  const open = () => {
    feed ??= feedAt(uri).catch((thrown) => {
      feed = undefined;
      throw thrown;
    });
    return feed;
  };
  return { rendition, open };
}

async function openFeed(client: WebClient, manifest: HlsLocation): Promise<HlsFeed> {
  const { playlist, location } = await fetchManifest(client, manifest, client.stopped.signal);
  return new HlsFeed(client, mediaOnly(playlist), location);
}

function mediaOnly(playlist: FetchedManifest["playlist"]) {
  if (playlist.kind === "media") return playlist;
  throw new SluiceError("broken_media", "this HLS master manifest refers to another master manifest");
}
