import { SharedAttempt } from "../async/shared-attempt.ts";
import { SluiceError } from "../base/errors.ts";
import type { HlsMaster, HlsRendition } from "../media/hls-master.ts";
import type { HlsMedia } from "../media/hls-media.ts";
import { parseHlsPlaylist } from "../media/hls-playlist.ts";
import { languageCode, languageTag } from "../media/language.ts";
import { type ManifestRendition as WrittenRendition, writeMasterManifest } from "../media/manifest.ts";
import { converts } from "../remux/audio/transcoder.ts";
import type { AudioConversion, MediaTrack } from "../remux/contract.ts";
import type { SourceTrack } from "../remux/media-tracks.ts";
import { asSluiceError } from "../remux/packet-media.ts";
import { FragmentConverter } from "../remux/streams/fragment-converter.ts";
import { FragmentedStream } from "../remux/streams/fragmented-segments.ts";
import type {
  ManifestPlace,
  ManifestRendition,
  SegmentBytes,
  SegmentName,
  SegmentSource,
} from "../transfer/segment-source.ts";
import { SHARED_MANIFEST_URLS } from "../transfer/segment-source.ts";
import { DerivedSource } from "./derived-source.ts";
import { ORIGINAL_FROM } from "./film-audio.ts";
import { distinctNames } from "./hls.ts";
import { SegmentCache } from "./segment-cache.ts";
import {
  audioManifest,
  convertedCodec,
  convertedCodecs,
  noSuchAudio,
  ORIGINALS_BYTES,
  type StreamAudioOptions,
} from "./stream-audio.ts";

const AUDIO_CODEC = /^(?:mp4a|ac-3|ec-3|ac-4|dts|mlp|opus|flac|mp3)/i;

/** An audio track of the stream. */
interface Sound {
  /** Its number in the names of manifests and segments, from 1; as it is in the stream: `ORIGINAL_FROM` more. */
  readonly number: number;
  /** The track of the source that contains it: 0 is the segments of the picture, others are playlists of their own. */
  readonly feed: number;
  /** Its position among the audio tracks of these segments. */
  readonly nth: number;
  readonly described: Pick<MediaTrack, "title" | "language" | "codecString">;
  readonly isDefault: boolean;
  readonly converter: FragmentConverter;
  /** Plans the conversion by the first segment, so that it does not depend on the order of the requests. */
  readonly prepared: SharedAttempt<void>;
}

/** What a stream consists of. */
interface OpenedStream {
  readonly manifest: HlsMaster | HlsMedia;
  readonly video: MediaTrack | undefined;
  readonly bitsPerSecond: number;
  readonly sounds: readonly Sound[];
}

/**
 * HLS of another server in fragmented MP4 whose audio is converted to AAC. Players get the converted audio as a rendition, beside the
 * audio of the stream; a stream without picture has it in place of its audio. A stream without such audio is passed on unchanged.
 */
export class ConvertedFragments extends DerivedSource {
  readonly #options: StreamAudioOptions;
  readonly #key: string;
  readonly #originals = new SegmentCache(ORIGINALS_BYTES);
  /** By initialization segment. */
  readonly #streams = new WeakMap<Uint8Array, Promise<FragmentedStream>>();
  /** Undefined if the stream has no audio to convert. */
  readonly #opened = new SharedAttempt((signal) => this.#readStream(signal));

  /** `key` is a text that is equal for equal `options`. */
  constructor(source: SegmentSource, options: StreamAudioOptions, key: string) {
    super(source);
    this.#options = options;
    this.#key = key;
  }

  override get name(): string {
    return `${this.source.name} ${this.#key}`;
  }

  override async manifest(
    place: ManifestPlace,
    rendition: ManifestRendition,
    signal: AbortSignal,
  ): Promise<string> {
    const opened = await this.#opened.get(signal);
    if (opened?.video && rendition === "main") return masterOf(opened, this.#options.conversion, place);
    if (opened?.video && typeof rendition === "object" && "audio" in rendition) {
      const { number, feed } = soundOf(opened, rendition.audio);
      const of = feed === 0 ? "media" : { audio: feed };
      const isOriginal = rendition.audio > ORIGINAL_FROM;
      return audioManifest(
        await this.source.manifest(place, of, signal),
        isOriginal ? ORIGINAL_FROM + number : number,
      );
    }
    const own = await this.source.manifest(place, rendition, signal);
    return opened && rendition === "main" ? convertedCodecs(own, this.#options.conversion) : own;
  }

  override async find(
    kind: SegmentName["kind"],
    number: number,
    signal: AbortSignal,
    track = 0,
  ): Promise<number> {
    const opened = kind === "vtt" ? undefined : await this.#opened.get(signal);
    const feed = opened?.video && track > 0 ? soundOf(opened, track).feed : track;
    return this.source.find(kind, number, signal, feed);
  }

  override async make(
    kind: SegmentName["kind"],
    index: number,
    track: number,
    signal: AbortSignal,
  ): Promise<SegmentBytes> {
    const opened = kind === "mp4" || kind === "m4s" ? await this.#opened.get(signal) : undefined;
    if (!opened) return this.source.make(kind, index, track, signal);
    return asSluiceError(this.#make(opened, kind as "mp4" | "m4s", index, track, signal));
  }

  async #make(
    opened: OpenedStream,
    kind: "mp4" | "m4s",
    index: number,
    track: number,
    signal: AbortSignal,
  ): Promise<SegmentBytes> {
    if (track === 0 && opened.video) {
      // The audio that is in the segments of the picture is a rendition.
      if (opened.sounds.every(({ feed }) => feed !== 0)) return this.source.make(kind, index, 0, signal);
      const { stream, segment } = await this.#read(index, 0, signal);
      const audio = new Set(soundsOf(stream).map(({ id }) => id));
      const keeps = (id: number) => !audio.has(id);
      return kind === "mp4" ? stream.initOf(keeps) : stream.segmentOf(segment, keeps);
    }
    const sound = track === 0 ? opened.sounds[0]! : soundOf(opened, track);
    const { stream, segment } = await this.#read(index, sound.feed, signal);
    const own = soundsOf(stream)[sound.nth];
    if (own && track < ORIGINAL_FROM && this.#converts(own.described.codec)) {
      // After an error, the segment that is requested plans the conversion, or fails with the reason.
      await sound.prepared.get(signal).catch(() => signal.throwIfAborted());
      const packets = stream.packets(segment, own.id);
      if (kind === "mp4") {
        const init = await sound.converter.init({ track: own, packets });
        if (init) return init;
      } else {
        await this.#precede(sound, index, signal);
        const isLast =
          !this.source.isLive && (await this.source.reach(index + 1, signal).catch(() => 0)) === undefined;
        return sound.converter.convert(index, { track: own, packets }, isLast, signal);
      }
    }
    if (sound.feed !== 0) return kind === "mp4" ? stream.init : (segment as SegmentBytes);
    const keeps = (id: number) => id === own?.id;
    return kind === "mp4" ? stream.initOf(keeps) : stream.segmentOf(segment, keeps);
  }

  async #planByFirstSegment(
    { feed, nth, converter }: Pick<Sound, "feed" | "nth" | "converter">,
    signal: AbortSignal,
  ): Promise<void> {
    const first = await this.#firstSegment(feed, signal);
    const track = first && soundsOf(first.stream)[nth];
    if (track) await converter.init({ track, packets: first.stream.packets(first.segment, track.id) });
  }

  /** Gives a converter the end of the segment before `index`, unless it has it. At the start of the window there is none. */
  async #precede({ converter, feed, nth }: Sound, index: number, signal: AbortSignal): Promise<void> {
    if (converter.continues(index)) return;
    try {
      const { stream, segment } = await this.#read(index - 1, feed, signal);
      const track = soundsOf(stream)[nth];
      if (track) converter.remember(index - 1, stream.packets(segment, track.id));
    } catch (thrown) {
      signal.throwIfAborted();
      if (!(thrown instanceof SluiceError)) throw thrown;
    }
  }

  #converts(codec: string): boolean {
    const { conversion, transcoder } = this.#options;
    return converts(conversion, codec) && transcoder.decodes(codec);
  }

  async #read(index: number, feed: number, signal: AbortSignal) {
    const get = (kind: "mp4" | "m4s") => {
      const make = (stop: AbortSignal) => this.source.make(kind, index, feed, stop);
      return this.#originals.get(`${this.source.name}/${feed}/${index}.${kind}`, make, signal);
    };
    const [init, segment] = await Promise.all([get("mp4"), get("m4s")]);
    let stream = this.#streams.get(init);
    if (!stream) {
      stream = FragmentedStream.open(init, segment, this.#options.language);
      this.#streams.set(init, stream);
    }
    return { stream: await asSluiceError(stream), segment };
  }

  /** Reads the manifest and one segment of each kind. */
  async #readStream(signal: AbortSignal): Promise<OpenedStream | undefined> {
    const text = await this.source.manifest({ urls: SHARED_MANIFEST_URLS }, "main", signal);
    const manifest = parseHlsPlaylist(text);
    const { stream, segment } = (await this.#firstSegment(0, signal))!;
    const video = stream.tracks.find(({ kind }) => kind === "video")?.described;
    const listed =
      manifest.kind === "master" ? manifest.renditions.filter(({ type }) => type === "audio") : [];
    const separate = listed.flatMap((rendition) => {
      const feed = Number(/[?&]audio=(\d+)/.exec(rendition.uri ?? "")?.[1] ?? 0);
      return feed > 0 ? [{ rendition, feed }] : [];
    });
    // The servers list the track in the segments of the picture as a rendition without URI.
    const inside = listed.find(({ uri }) => uri === undefined);
    const sounds: Omit<Sound, "number" | "converter" | "prepared">[] = soundsOf(stream).map(
      ({ described }, nth) => ({
        feed: 0,
        nth,
        described: nth === 0 && inside ? named(inside, described.codecString) : described,
        isDefault: nth === 0 && (inside?.isDefault ?? separate.length === 0),
      }),
    );
    const isConverted = soundsOf(stream).map(({ described: { codec } }) => this.#converts(codec));
    const first = separate.find(({ rendition }) => rendition.isDefault) ?? separate[0];
    if (first && video) {
      // The tracks of a group have the same codec, so the others are opened when they are requested.
      const opened = await this.#firstSegment(first.feed, signal);
      const track = opened && soundsOf(opened.stream)[0];
      isConverted.push(track !== undefined && this.#converts(track.described.codec));
      for (const { rendition, feed } of separate) {
        const described = named(rendition, track?.described.codecString);
        sounds.push({ feed, nth: 0, described, isDefault: rendition.isDefault });
      }
    }
    if (!isConverted.includes(true)) return undefined;
    const { transcoder, conversion } = this.#options;
    for (const { described } of soundsOf(stream))
      if (this.#converts(described.codec)) transcoder.prepare(described.codec);
    const seconds = manifest.kind === "media" ? (manifest.segments[0]?.durationSeconds ?? 6) : 6;
    return {
      manifest,
      video,
      bitsPerSecond: (8 * segment.length) / Math.max(0.5, seconds),
      sounds: sounds.map((sound, i) => {
        const converter = new FragmentConverter(transcoder, conversion);
        const plan = (request: AbortSignal) => this.#planByFirstSegment({ ...sound, converter }, request);
        return { ...sound, number: i + 1, converter, prepared: new SharedAttempt(plan) };
      }),
    };
  }

  /** Returns the first segment of a feed; undefined if it is not fragmented MP4. */
  async #firstSegment(feed: number, signal: AbortSignal) {
    if (feed === 0) return this.#read(await this.source.first(signal), 0, signal);
    const text = await this.source.manifest({ urls: SHARED_MANIFEST_URLS }, { audio: feed }, signal);
    const names = [...text.matchAll(/^(\d+)\.a\d+\.m4s$/gm)].map(([, number]) => Number(number));
    const number = this.isLive ? (names.at(-3) ?? names[0]) : names[0];
    if (number === undefined) return undefined;
    return this.#read(await this.source.find("m4s", number, signal, feed), feed, signal);
  }
}

function soundsOf({ tracks }: FragmentedStream): readonly SourceTrack[] {
  return tracks.filter(({ kind }) => kind === "audio");
}

function named({ name, language }: HlsRendition, codecString: string | undefined): Sound["described"] {
  return { title: name, language: languageCode(language), codecString };
}

/** Returns the audio with this number, converted or not. Throws `no_such_segment`. */
function soundOf({ sounds }: OpenedStream, number: number): Sound {
  const found = sounds.find((sound) => sound.number === number % ORIGINAL_FROM);
  if (found) return found;
  throw noSuchAudio(number);
}

/** Writes the master manifest: the picture with the converted audio, and with the audio of the stream. */
function masterOf(
  { manifest, video, bitsPerSecond, sounds }: OpenedStream,
  conversion: AudioConversion,
  { urls }: ManifestPlace,
): string {
  const master = manifest.kind === "master" ? manifest : undefined;
  const variant = master?.variants[0];
  const picture = video?.codecString
    ? [video.codecString]
    : (variant?.codecs.filter((codec) => !AUDIO_CODEC.test(codec)) ?? []);
  const subtitles = master?.renditions.filter(({ type }) => type === "subtitles") ?? [];
  const { width, height } = video ?? {};
  const names = distinctNames(sounds.map(({ described }) => described));
  const ordered = sounds
    .map((sound, nth) => ({ ...sound, name: names[nth]! }))
    // Some players ignore DEFAULT and take the first.
    .sort((a, b) => Number(b.isDefault) - Number(a.isDefault));
  const groups = [
    { audioGroup: "requested", from: 0, codecOf: (codec: string) => convertedCodec(codec, conversion) },
    { audioGroup: "original", from: ORIGINAL_FROM, codecOf: (codec: string) => codec },
  ];
  const variants = groups.map(({ audioGroup, codecOf }) => ({
    uri: `${urls.manifest}?rendition=media`,
    bitsPerSecond: variant?.bitsPerSecond || bitsPerSecond,
    codecs: [
      ...picture,
      ...new Set(sounds.map(({ described: { codecString } }) => codecString && codecOf(codecString))),
    ],
    ...(width && height && { width, height }),
    audioGroup,
    ...(subtitles.length > 0 && { subtitleGroup: "subtitles" }),
  }));
  const renditions = groups.flatMap(({ audioGroup, from }) =>
    ordered.map(
      ({ number, name, described: { language }, isDefault }): WrittenRendition => ({
        kind: "audio",
        group: audioGroup,
        name,
        uri: `${urls.manifest}?audio=${from + number}`,
        isDefault,
        ...(language !== "und" && { language: languageTag(language) }),
      }),
    ),
  );
  const texts = subtitles.map(
    ({ name, language, isDefault, isForced, uri }): WrittenRendition => ({
      ...{ kind: "subtitles", group: "subtitles", name, isDefault, isForced },
      uri: uri?.replace(SHARED_MANIFEST_URLS.manifest, urls.manifest),
      ...(language && { language }),
    }),
  );
  return writeMasterManifest(variants, [...renditions, ...texts]);
}
