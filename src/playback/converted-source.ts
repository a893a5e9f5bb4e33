import { SluiceError } from "../base/errors.ts";
import { languageCode } from "../media/language.ts";
import { StreamConverter } from "../remux/audio/stream-converter.ts";
import type { AudioTranscoder } from "../remux/audio/transcoder.ts";
import { audioKey } from "../remux/contract.ts";
import type {
  LivePosition,
  LiveStream,
  ManifestPlace,
  ManifestRendition,
  SegmentBytes,
  SegmentName,
  SegmentSource,
  VariantFacts,
} from "../transfer/segment-source.ts";
import { audioOf, type PlaybackRequest } from "./contract.ts";
import { OrderedSource } from "./ordered-source.ts";

/** Tags of parts: converted streams have whole segments only (RFC 8216bis 4.4.3.7, 4.4.3.8, 4.4.4.9, 4.4.5.3). */
const PART_TAGS = /^#EXT-X-(PART|PART-INF|PRELOAD-HINT|SERVER-CONTROL)[:-].*\n/gm;
/** Codecs that are converted, in a `CODECS` attribute (RFC 6381). */
const CONVERTED_CODECS = /\b(ac-3|ec-3|dts[cehlx+-]|mp4a\.(40\.3[23]|69|6B|A5|A6|A9))(?=[",])/gi;

/** The sources with converted or ordered audio, shared by the sessions of a stream with equal requests. */
export class ConvertedSources {
  readonly #transcoder: AudioTranscoder | undefined;
  /** By source, then by audio request. */
  readonly #converted = new WeakMap<SegmentSource, Map<string, SegmentSource>>();

  /** Without a transcoder, no audio is converted. */
  constructor(transcoder: AudioTranscoder | undefined) {
    this.#transcoder = transcoder;
  }

  /**
   * Returns the source that the request plays: `original` itself unless its audio is converted, or ordered by the preferred
   * language. Waits for its first bytes if audio may be converted. Rejects with `unsupported_container` if the player does not
   * accept its container.
   */
  async of(original: SegmentSource, request: PlaybackRequest, signal: AbortSignal): Promise<SegmentSource> {
    const source = accepted(original, request);
    const { audioConversion: conversion, audioLanguage } = request;
    const transcoder = this.#transcoder;
    if (source.container !== "ts" || source.body || source.play) return source;
    const language = languageCode(audioLanguage);
    const ordered = () =>
      language === "und" ? source : this.#shared(source, language, () => new OrderedSource(source, language));
    if (!transcoder || !conversion) return ordered();
    const options = { transcoder, conversion, language };
    if (source.live) {
      const head = await source.live.cursor(0).next(signal);
      if (!head || !new StreamConverter(options).needs(head)) return ordered();
    }
    const key = `${request.output} ${audioKey(audioOf(request))}`;
    const convert = () => new StreamConverter(options);
    return this.#shared(source, key, () => new ConvertedSource(source, convert, key, request.output));
  }

  #shared(source: SegmentSource, key: string, create: () => SegmentSource): SegmentSource {
    const all = this.#converted.get(source) ?? new Map<string, SegmentSource>();
    this.#converted.set(source, all);
    const shared = all.get(key) ?? create();
    all.set(key, shared);
    return shared;
  }
}

/** A source of MPEG-TS segments whose audio is converted to AAC. */
class ConvertedSource implements SegmentSource {
  readonly container = "ts";
  readonly isLive: boolean;
  readonly name: string;
  readonly bytesPerSecond: number | undefined;
  /** HLS players can seek in the window; continuous streams are read by segments. */
  readonly live?: LiveStream;
  readonly #source: SegmentSource;
  readonly #create: () => StreamConverter;
  /** By track. */
  readonly #converters = new Map<number, StreamConverter>();

  constructor(source: SegmentSource, create: () => StreamConverter, key: string, output: "ts" | "hls") {
    this.#source = source;
    this.#create = create;
    this.isLive = source.isLive;
    this.name = `${source.name} ${key}`;
    this.bytesPerSecond = source.bytesPerSecond;
    if (output === "hls" && source.live) this.live = source.live;
  }

  get variants(): readonly VariantFacts[] {
    return this.#source.variants ?? [];
  }

  get variantIndex(): number {
    return this.#source.variantIndex ?? -1;
  }

  async manifest(place: ManifestPlace, rendition: ManifestRendition, signal: AbortSignal): Promise<string> {
    const { isDelta: _, reload, ...whole } = place;
    // Players of a manifest without parts do not wait for one.
    const segment = reload && { reload: { segment: reload.segment, part: undefined } };
    const manifest = await this.#source.manifest({ ...whole, ...segment }, rendition, signal);
    return manifest.replace(PART_TAGS, "").replace(CONVERTED_CODECS, "mp4a.40.2");
  }

  first(signal: AbortSignal): Promise<number> {
    return this.#source.first(signal);
  }

  reach(index: number, signal: AbortSignal): Promise<number | undefined> {
    return this.#source.reach(index, signal);
  }

  find(kind: SegmentName["kind"], number: number, signal: AbortSignal, track?: number): Promise<number> {
    return this.#source.find(kind, number, signal, track);
  }

  livePosition(): LivePosition | undefined {
    return this.#source.livePosition?.();
  }

  async make(
    kind: SegmentName["kind"],
    index: number,
    track: number,
    signal: AbortSignal,
  ): Promise<SegmentBytes> {
    const bytes = await this.#source.make(kind, index, track, signal);
    if (kind !== "ts") return bytes;
    const converter = this.#converters.get(track) ?? this.#create();
    this.#converters.set(track, converter);
    // The window of a live stream still has the segment before; a web server would have to send it again.
    if (this.#source.live && !converter.continues(index)) {
      const before = await this.#source.make(kind, index - 1, track, signal).catch(() => undefined);
      if (before) converter.remember(index - 1, before);
    }
    return converter.convert(index, bytes, signal);
  }
}

/** Returns the source if the player accepts its container; its segments cannot be converted. Throws otherwise. */
function accepted(source: SegmentSource, request: PlaybackRequest): SegmentSource {
  const wanted = request.output === "ts" ? "ts" : request.container;
  if (wanted === "auto" || wanted === source.container) return source;
  const what = source.container === "ts" ? "MPEG-TS" : "fragmented MP4";
  throw new SluiceError("unsupported_container", `this stream comes in ${what} and cannot be converted`);
}
