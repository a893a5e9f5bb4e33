import { SharedAttempt } from "../async/shared-attempt.ts";
import { SluiceError } from "../base/errors.ts";
import { languageCode } from "../media/language.ts";
import type { AudioTranscoder } from "../remux/audio/transcoder.ts";
import { pictureAlone } from "../remux/audio/ts-converter.ts";
import { type AudioConversion, audioKey } from "../remux/contract.ts";
import { inLanguage, StreamConverter } from "../remux/streams/stream-converter.ts";
import type {
  LiveStream,
  ManifestPlace,
  ManifestRendition,
  SegmentBytes,
  SegmentName,
  SegmentSource,
} from "../transfer/segment-source.ts";
import { SHARED_MANIFEST_URLS } from "../transfer/segment-source.ts";
import { audioOf, type PlaybackRequest } from "./contract.ts";
import { DerivedSource } from "./derived-source.ts";
import { ORIGINAL_FROM } from "./film-audio.ts";
import { wholeSegments, withoutParts } from "./manifest-parts.ts";
import { OrderedSource } from "./ordered-source.ts";
import { SegmentCache } from "./segment-cache.ts";
import {
  audioManifest,
  convertedCodecs,
  hasSeveralAudio,
  noSuchAudio,
  ORIGINALS_BYTES,
  openStreamAudio,
  type StreamAudio,
  type StreamAudioOptions,
} from "./stream-audio.ts";
import { SubtitledSource } from "./subtitled-source.ts";

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
   * language. HLS players that want conversion get several audio tracks apart from the picture, because those in browsers play only the
   * first one of a segment. Waits for its first bytes if audio may be converted. Rejects with `unsupported_container` if the player does not
   * accept its container. `isVariant`: it is one quality of a broadcast, so it has no separate audio renditions.
   */
  async of(
    original: SegmentSource,
    request: PlaybackRequest,
    signal: AbortSignal,
    isVariant = false,
  ): Promise<SegmentSource> {
    const source = accepted(original, request);
    const chosen = await this.#withAudio(source, isVariant ? { ...request, output: "ts" } : request, signal);
    const mayHaveTeletext = request.output === "hls" && source.container === "ts" && source.live;
    return mayHaveTeletext
      ? this.#shared(chosen, "teletext", () => new SubtitledSource(chosen, source))
      : chosen;
  }

  async #withAudio(source: SegmentSource, request: PlaybackRequest, signal: AbortSignal) {
    const { audioConversion: conversion, audioLanguage } = request;
    const transcoder = this.#transcoder;
    if (source.container === "fmp4" && transcoder && conversion && !source.body) {
      const options = { transcoder, conversion, language: languageCode(audioLanguage) };
      // Loaded when it is first used, with the reader of media files.
      const { ConvertedFragments } = await import("./converted-fragments.ts");
      return this.#shared(
        source,
        audioKey(audioOf(request)),
        () => new ConvertedFragments(source, options, audioKey(audioOf(request))),
      );
    }
    if (source.container !== "ts" || source.body || source.play) return source;
    const language = languageCode(audioLanguage);
    const ordered = () =>
      language === "und" ? source : this.#shared(source, language, () => new OrderedSource(source, language));
    if (!transcoder || !conversion) return ordered();
    const options = { transcoder, conversion, language };
    if (source.live) {
      const head = await source.live.cursor(0).next(signal);
      const converter = new StreamConverter({ ...options, choose: inLanguage(language) });
      const isSeparate = (bytes: Uint8Array) => request.output === "hls" && hasSeveralAudio(bytes);
      if (!head || !(converter.needs(head) || isSeparate(head))) return ordered();
    }
    const key = `${request.output} ${audioKey(audioOf(request))}`;
    return this.#shared(source, key, () => new ConvertedSource(source, options, key, request.output));
  }

  #shared(source: SegmentSource, key: string, create: () => SegmentSource): SegmentSource {
    const all = this.#converted.get(source) ?? new Map<string, SegmentSource>();
    this.#converted.set(source, all);
    const shared = all.get(key) ?? create();
    all.set(key, shared);
    return shared;
  }
}

/**
 * A source of MPEG-TS segments whose audio is converted to AAC. HLS players get it as a rendition, beside the audio of the stream, if the
 * source has picture and audio in the same segments; others get it in place of that audio.
 */
class ConvertedSource extends DerivedSource {
  /** HLS players can seek in the window; continuous streams are read by segments. */
  readonly live?: LiveStream;
  readonly #bytesPerSecond: number | undefined;
  readonly #options: StreamAudioOptions;
  readonly #key: string;
  readonly #isHls: boolean;
  /** The segments of the source: picture and audio of one are requested one after the other. */
  readonly #originals = new SegmentCache(ORIGINALS_BYTES);
  /** By track. */
  readonly #converters = new Map<number, StreamConverter>();
  /** The audio renditions, read from the first segment; undefined if there are none. */
  readonly #audio = new SharedAttempt((signal) => this.#openAudio(signal));

  constructor(source: SegmentSource, options: StreamAudioOptions, key: string, output: "ts" | "hls") {
    super(source);
    this.#bytesPerSecond = source.bytesPerSecond;
    this.#options = options;
    this.#isHls = output === "hls";
    this.#key = key;
    if (this.#isHls && source.live) this.live = source.live;
  }

  override get bytesPerSecond(): number | undefined {
    return this.#bytesPerSecond;
  }

  override get name(): string {
    return `${this.source.name} ${this.#key}`;
  }

  override async manifest(
    place: ManifestPlace,
    rendition: ManifestRendition,
    signal: AbortSignal,
  ): Promise<string> {
    const manifestOf = async (of: ManifestRendition) =>
      withoutParts(await this.source.manifest(wholeSegments(place), of, signal));
    const audio = await this.#renditions(signal);
    if (!audio) {
      const number = typeof rendition === "object" && "audio" in rendition ? rendition.audio : 0;
      if (number < ORIGINAL_FROM) return withOriginals(await manifestOf(rendition), this.#options.conversion);
      return audioManifest(await manifestOf({ audio: number - ORIGINAL_FROM }), number);
    }
    if (rendition === "main") return audio.master(place);
    if (rendition === "media" || "subtitles" in rendition) return manifestOf(rendition);
    if (!audio.converter(rendition.audio)) throw noSuchAudio(rendition.audio);
    return audioManifest(await manifestOf("media"), rendition.audio);
  }

  override async find(
    kind: SegmentName["kind"],
    number: number,
    signal: AbortSignal,
    track = 0,
  ): Promise<number> {
    const isOwn = kind === "ts" && (await this.#renditions(signal)) !== undefined;
    return this.source.find(kind, number, signal, isOwn ? 0 : track % ORIGINAL_FROM);
  }

  override async make(
    kind: SegmentName["kind"],
    index: number,
    track: number,
    signal: AbortSignal,
  ): Promise<SegmentBytes> {
    if (kind !== "ts") return this.source.make(kind, index, track, signal);
    const audio = await this.#renditions(signal);
    if (!audio) return this.#makeWhole(index, track, signal);
    const segment = await this.#original(index, 0, signal);
    if (track === 0) return pictureAlone(segment);
    const converter = audio.converter(track);
    if (!converter) throw noSuchAudio(track);
    await this.#precede(converter, index, 0, signal);
    return converter.alone(index, segment, signal);
  }

  /** A segment of a source that has its audio apart, or of a player without renditions. */
  async #makeWhole(index: number, track: number, signal: AbortSignal): Promise<SegmentBytes> {
    if (track >= ORIGINAL_FROM) return this.#original(index, track - ORIGINAL_FROM, signal);
    const segment = await this.#original(index, track, signal);
    const converter = this.#converters.get(track) ?? this.#converter();
    this.#converters.set(track, converter);
    await this.#precede(converter, index, track, signal);
    return converter.convert(index, segment, signal);
  }

  #converter(): StreamConverter {
    return new StreamConverter({ ...this.#options, choose: inLanguage(this.#options.language) });
  }

  #original(index: number, track: number, signal: AbortSignal): Promise<SegmentBytes> {
    const make = (stop: AbortSignal) => this.source.make("ts", index, track, stop);
    return this.#originals.get(`${this.source.name}/${track}/${index}`, make, signal);
  }

  /** Gives a converter the segment before `index`: the window of a live stream still has it; a web server would have to send it again. */
  async #precede(converter: StreamConverter, index: number, track: number, signal: AbortSignal) {
    if (!this.source.live || converter.continues(index)) return;
    const before = await this.#original(index - 1, track, signal).catch(() => undefined);
    if (before) converter.remember(index - 1, before);
  }

  async #renditions(signal: AbortSignal): Promise<StreamAudio | undefined> {
    return this.#isHls ? this.#audio.get(signal) : undefined;
  }

  async #openAudio(signal: AbortSignal): Promise<StreamAudio | undefined> {
    const manifest = await this.source.manifest({ urls: SHARED_MANIFEST_URLS }, "main", signal);
    // A source with renditions of its own, or with subtitles, keeps its master manifest.
    if (manifest.includes("#EXT-X-STREAM-INF")) return undefined;
    const index = await this.source.first(signal);
    const segment = await this.#original(index, 0, signal);
    const seconds = Number(/#EXTINF:([\d.]+)/.exec(manifest)?.[1] ?? 6);
    return openStreamAudio(segment, seconds, this.#options);
  }
}

/**
 * Names the converted codecs in a master manifest of another server. If its audio is separate, lists the audio of the server as well, in
 * a variant of its own.
 */
function withOriginals(manifest: string, conversion: AudioConversion): string {
  const lines = manifest.split("\n");
  const isAudio = (line: string) => line.startsWith("#EXT-X-MEDIA:TYPE=AUDIO") && line.includes("?audio=");
  const renamed = convertedCodecs(manifest, conversion);
  if (renamed === manifest || !lines.some(isAudio)) return renamed;
  const originals = lines
    .filter(isAudio)
    .map((line) =>
      line
        .replace(/GROUP-ID="[^"]*"/, 'GROUP-ID="original"')
        .replace(/\?audio=(\d+)/, (_, number: string) => `?audio=${ORIGINAL_FROM + Number(number)}`),
    );
  const at = lines.findIndex((line) => line.startsWith("#EXT-X-STREAM-INF"));
  const variant = [lines[at]!.replace(/AUDIO="[^"]*"/, 'AUDIO="original"'), lines[at + 1]!];
  const own = renamed.trimEnd().split("\n");
  return `${[...own.slice(0, at), ...originals, ...own.slice(at), ...variant].join("\n")}\n`;
}

/** Returns the source if the player accepts its container; its segments cannot be converted. Throws otherwise. */
function accepted(source: SegmentSource, request: PlaybackRequest): SegmentSource {
  const wanted = request.output === "ts" ? "ts" : request.container;
  if (wanted === "auto" || wanted === source.container) return source;
  const what = source.container === "ts" ? "MPEG-TS" : "fragmented MP4";
  throw new SluiceError("unsupported_container", `this stream comes in ${what} and cannot be converted`);
}
