import { SluiceError } from "../base/errors.ts";
import { writeMasterManifest } from "../media/manifest.ts";
import type {
  LiveCursor,
  LivePosition,
  LiveStream,
  ManifestPlace,
  ManifestRendition,
  SegmentBytes,
  SegmentName,
  SegmentSource,
  VariantFacts,
} from "../transfer/segment-source.ts";
import { VARIANT_TRACKS } from "../transfer/segment-source.ts";
import type { PlaybackRequest } from "./contract.ts";
import { DerivedSource } from "./derived-source.ts";
import { SUBTITLE_GROUP } from "./hls.ts";
import { convertedCodec } from "./stream-audio.ts";

/** The qualities of a broadcast for one session; see `LiveVariants`. */
export interface Qualities {
  /** The chosen one; undefined if the player chooses by itself. */
  readonly chosen: number | undefined;
  /** The one that was requested last, and its source. */
  readonly latest: number;
  readonly playing: SegmentSource | undefined;
  readonly facts: readonly VariantFacts[];
  /** Returns the source of one quality, and receives it from now on. */
  source(index: number, signal: AbortSignal): Promise<SegmentSource>;
}

/** The renditions of text in a master manifest. */
const SUBTITLES = /^#EXT-X-MEDIA:TYPE=SUBTITLES,.*$/gm;

/**
 * A live stream in several qualities. HLS players get a master manifest with all of them, unless one is chosen; others get the chosen
 * one, or the stream itself. Segments of a quality have its number in their names (`12.v1.ts`), because the qualities number them alike.
 */
export class LiveVariantSource extends DerivedSource {
  readonly live?: LiveStream;
  readonly #variants: Qualities;
  readonly #request: Pick<PlaybackRequest, "output" | "audioConversion">;

  /** `own` is what plays of the stream itself, `original`. */
  constructor(
    own: SegmentSource,
    original: SegmentSource,
    variants: Qualities,
    request: Pick<PlaybackRequest, "output" | "audioConversion">,
  ) {
    super(own);
    this.#variants = variants;
    this.#request = request;
    // HLS players of converted audio can seek in the window as well.
    const live = own.live ?? (request.output === "hls" ? original.live : undefined);
    if (live)
      this.live = {
        cursor: (shiftMs, backlogMs) => new VariantCursor(variants, live, shiftMs, backlogMs),
        part: async (index, part, signal, track = 0) => {
          const stream = (await this.#of(track, signal)).live;
          if (!stream) throw new SluiceError("no_such_segment", "this quality has no parts of segments");
          return stream.part(index, part, signal);
        },
      };
  }

  override get name(): string {
    // What another quality delivers as track 0 must not be taken from a cache.
    const { chosen } = this.#variants;
    return this.#request.output === "hls"
      ? `${this.source.name} qualities`
      : `${this.source.name} quality ${chosen}`;
  }

  override get bytesPerSecond(): number | undefined {
    return (this.variants[this.#variants.latest]?.averageBitsPerSecond ?? 0) / 8 || undefined;
  }

  override get variants(): readonly VariantFacts[] {
    return this.#variants.facts;
  }

  override get variantIndex(): number {
    return this.#variants.latest;
  }

  override async manifest(
    place: ManifestPlace,
    rendition: ManifestRendition,
    signal: AbortSignal,
  ): Promise<string> {
    const { chosen } = this.#variants;
    if (typeof rendition === "object") return this.source.manifest(place, rendition, signal);
    if (rendition === "main" && chosen === undefined) return this.#master(place, signal);
    return this.#media(chosen ?? 0, place, signal);
  }

  /** The manifest of a quality, or of the chosen one. */
  variantManifest(index: number, place: ManifestPlace, signal: AbortSignal): Promise<string> {
    return this.#media(this.#variants.chosen ?? index, place, signal);
  }

  override async first(signal: AbortSignal): Promise<number> {
    return (await this.#current(signal)).first(signal);
  }

  override async reach(index: number, signal: AbortSignal): Promise<number | undefined> {
    return (await this.#current(signal)).reach(index, signal);
  }

  override async find(
    kind: SegmentName["kind"],
    number: number,
    signal: AbortSignal,
    track = 0,
  ): Promise<number> {
    return (await this.#of(track, signal)).find(kind, number, signal, track % VARIANT_TRACKS);
  }

  override async make(
    kind: SegmentName["kind"],
    index: number,
    track: number,
    signal: AbortSignal,
  ): Promise<SegmentBytes> {
    return (await this.#of(track, signal)).make(kind, index, track % VARIANT_TRACKS, signal);
  }

  override livePosition(): LivePosition | undefined {
    return this.#variants.playing?.livePosition?.() ?? this.source.livePosition?.();
  }

  /** The source of a segment: players of continuous streams read the chosen quality, whatever its number. */
  #of(track: number, signal: AbortSignal): Promise<SegmentSource> {
    if (this.#request.output !== "hls") return this.#current(signal);
    return this.#variants.source(Math.floor(track / VARIANT_TRACKS), signal);
  }

  #current(signal: AbortSignal): Promise<SegmentSource> {
    return this.#variants.source(this.#variants.chosen ?? 0, signal);
  }

  async #media(index: number, place: ManifestPlace, signal: AbortSignal): Promise<string> {
    const source = await this.#variants.source(index, signal);
    const { urls } = place;
    const own = { ...urls, segment: (at: number, ending: string) => urls.segment(at, `v${index}.${ending}`) };
    return source.manifest(index === 0 ? place : { ...place, urls: own }, "media", signal);
  }

  /** Lists the qualities, with the subtitles of the stream itself. */
  async #master(place: ManifestPlace, signal: AbortSignal): Promise<string> {
    const own = await this.source.manifest(place, "main", signal);
    const subtitles = own.match(SUBTITLES) ?? [];
    const url = place.urls.manifest;
    const { audioConversion: conversion } = this.#request;
    const variants = this.variants.map(({ codecs, width, height, ...rates }, index) => ({
      uri: `${url}?variant=${index}`,
      bitsPerSecond: rates.bitsPerSecond,
      averageBitsPerSecond: rates.averageBitsPerSecond,
      codecs: conversion ? codecs.map((codec) => convertedCodec(codec, conversion)) : codecs,
      ...(width && height && { width, height }),
      ...(subtitles.length > 0 && { subtitleGroup: SUBTITLE_GROUP }),
    }));
    return writeMasterManifest(variants).replace(
      /^#EXT-X-STREAM-INF/m,
      `${subtitles.map((line) => `${line}\n`).join("")}$&`,
    );
  }
}

/** A position in the chosen quality. After a change it continues at the key frame at or before its time. */
class VariantCursor implements LiveCursor {
  readonly #variants: Qualities;
  readonly #shiftMs: number;
  readonly #backlogMs: number | undefined;
  #index = 0;
  #cursor: LiveCursor;

  constructor(variants: Qualities, live: LiveStream, shiftMs: number, backlogMs: number | undefined) {
    this.#backlogMs = backlogMs;
    this.#variants = variants;
    this.#shiftMs = shiftMs;
    this.#cursor = live.cursor(shiftMs, backlogMs);
  }

  get position() {
    return this.#cursor.position;
  }

  async next(signal: AbortSignal): Promise<Uint8Array | undefined> {
    const index = this.#variants.chosen ?? 0;
    const source = await this.#variants.source(index, signal);
    if (index !== this.#index && source.live) {
      const { position } = this.#cursor;
      this.#index = index;
      this.#cursor = source.live.cursor(this.#shiftMs, this.#backlogMs);
      if (position !== undefined && source.livePosition?.()) this.#cursor.seek(position);
    }
    return this.#cursor.next(signal);
  }

  seek(at: Parameters<LiveCursor["seek"]>[0]): void {
    this.#cursor.seek(at);
  }
}
