import { SluiceError } from "../../base/errors.ts";
import type { Infohash } from "../../base/ids.ts";
import type { HlsMaster, HlsRendition, HlsVariant } from "../../media/hls-master.ts";
import type { VariantFacts } from "../segment-source.ts";
import { HlsFeed } from "./hls-feed.ts";
import { type FetchedManifest, fetchManifest, type HlsPlace, placeOf } from "./hls-fetch.ts";
import { HlsParts } from "./hls-parts.ts";
import { chooseVariant, renditionsOf, type VariantWish, variantFacts } from "./hls-variant.ts";
import type { WebClient } from "./web-client.ts";
import type { WebContent } from "./web-content.ts";

/** A rendition, and its feed, which is opened when somebody wants it. Without `open` the variant itself carries it. */
export interface HlsTrack {
  readonly rendition: HlsRendition;
  /** Rejects with `SluiceError`; one that failed is opened anew. */
  readonly open: (() => Promise<HlsFeed>) | undefined;
}

/** One variant of a stream with all that belongs to it; shared by all who play it. */
export interface HlsProgramme {
  readonly client: WebClient;
  readonly parts: HlsParts;
  readonly main: HlsFeed;
  /** Undefined for a stream that has one form only. */
  readonly variant: HlsVariant | undefined;
  readonly audio: readonly HlsTrack[];
  readonly subtitles: readonly HlsTrack[];
  /** All forms of the stream, and which of them this is. */
  readonly variants: readonly VariantFacts[];
  readonly variantIndex: number;
  /** Says which it is among all; changes where numbers begin anew. */
  name(): string;
}

/** A stream of another server: its first manifest, and the variants that somebody plays. */
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

  /** The variant that suits the wish, opened once for all who want it. Rejects with `SluiceError`. */
  async programme(wish: VariantWish): Promise<HlsProgramme> {
    const client = this.#client;
    this.#first ??= fetchManifest(client, this.#content, client.stopped.signal).catch((thrown) => {
      this.#first = undefined;
      throw thrown;
    });
    const { playlist, place } = await this.#first;
    const index = playlist.kind === "master" ? chooseVariant(playlist, wish) : -1;
    let programme = this.#programmes.get(index);
    if (!programme) {
      programme = this.#open(index, playlist.kind === "master" ? playlist : undefined, place);
      this.#programmes.set(index, programme);
      // Whoever comes next finds a manifest that may have changed, and asks again.
      programme.catch(() => {
        this.#programmes.delete(index);
        this.#first = undefined;
      });
    }
    return programme;
  }

  async #open(index: number, master: HlsMaster | undefined, place: HlsPlace): Promise<HlsProgramme> {
    const client = this.#client;
    const opened = new Set<HlsFeed>();
    const feedAt = async (uri: string) => {
      const feed = await openFeed(client, placeOf(uri, place));
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
      parts: new HlsParts(client),
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
    const { playlist, place } = await this.#first!;
    const feed = new HlsFeed(this.#client, mediaOnly(playlist), place);
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
  // Sound alone is often named twice: as a variant, and as the rendition that goes with it.
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

async function openFeed(client: WebClient, at: HlsPlace): Promise<HlsFeed> {
  const { playlist, place } = await fetchManifest(client, at, client.stopped.signal);
  return new HlsFeed(client, mediaOnly(playlist), place);
}

function mediaOnly(playlist: FetchedManifest["playlist"]) {
  if (playlist.kind === "media") return playlist;
  throw new SluiceError("broken_media", "this HLS manifest leads to another list of variants");
}
