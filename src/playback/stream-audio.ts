import { SluiceError } from "../base/errors.ts";
import { languageTag } from "../media/language.ts";
import { type ManifestRendition as WrittenRendition, writeMasterManifest } from "../media/manifest.ts";
import { type AudioTranscoder, converts } from "../remux/audio/transcoder.ts";
import { isTsCodec } from "../remux/container-rules.ts";
import type { AudioConversion, MediaTrack } from "../remux/contract.ts";
import { StreamConverter, type StreamConverterOptions } from "../remux/streams/stream-converter.ts";
import { readPiece } from "../remux/ts-interleave.ts";
import { describeTracks } from "../remux/ts-tracks.ts";
import type { ManifestPlace } from "../transfer/segment-source.ts";
import { ORIGINAL_FROM } from "./film-audio.ts";
import { distinctNames } from "./hls.ts";

/** Addresses of segments and of their initialization segments in a media manifest. */
const SEGMENT_URL = /(^|\/|")(\d+)\.(?:a\d+\.)?(ts|m4s|mp4)(?="|$)/gm;
/** The names of codecs that can be converted (RFC 6381), one group for each of {@link CODEC_NAMES}. */
const CONVERTIBLE =
  /^(?:(ac-3|mp4a\.A5)|(ec-3|mp4a\.A6)|(dts[cehlx+-]|mp4a\.A9)|(mp4a\.40\.3[23])|(mp3|mp4a\.(?:40\.34|69|6B)))$/i;
const CODEC_NAMES = ["ac3", "eac3", "dts", "mp2", "mp3"];

/** Segments of the source that are kept, because picture and audio of one are requested one after the other. The newest is always kept. */
export const ORIGINALS_BYTES = 8 * 1024 * 1024;

/** A way to get one audio track of a stream apart from the picture. */
interface StreamRendition {
  /** Its number in the names of manifests and segments. */
  readonly number: number;
  readonly track: MediaTrack;
  readonly converter: StreamConverter;
}

/** How the audio of a stream is converted. */
export interface StreamAudioOptions {
  readonly transcoder: AudioTranscoder;
  readonly conversion: AudioConversion;
  /** Preferred language, ISO 639-2. */
  readonly language: string;
}

/** The error for a request of an audio track that the stream does not have. */
export function noSuchAudio(number: number): SluiceError {
  return new SluiceError("no_such_segment", `the stream has no separate audio ${number}`);
}

/** The audio of a stream that has picture and audio in the same segments: each track as requested, and as it is in the stream. */
export class StreamAudio {
  readonly #video: MediaTrack;
  readonly #groups: readonly { readonly name: string; readonly renditions: readonly StreamRendition[] }[];
  readonly #byNumber: ReadonlyMap<number, StreamRendition>;
  readonly #bitsPerSecond: number;

  constructor(
    video: MediaTrack,
    requested: StreamRendition[],
    original: StreamRendition[],
    bitsPerSecond: number,
  ) {
    this.#video = video;
    this.#groups = [
      { name: "requested", renditions: requested },
      { name: "original", renditions: original },
    ].filter(({ renditions }) => renditions.length > 0);
    this.#byNumber = new Map([...requested, ...original].map((one) => [one.number, one]));
    this.#bitsPerSecond = bitsPerSecond;
  }

  /** The converter of a rendition; undefined if there is none with this number. */
  converter(number: number): StreamConverter | undefined {
    return this.#byNumber.get(number)?.converter;
  }

  /** Writes the master manifest: the picture with the requested audio, and with the audio of the stream. */
  master({ urls: { manifest: url } }: ManifestPlace): string {
    const { codecString, width, height } = this.#video;
    const variants = this.#groups.map(({ name, renditions }) => ({
      uri: `${url}?rendition=media`,
      bitsPerSecond: this.#bitsPerSecond,
      codecs: [codecString, ...renditions.map(({ track }) => track.codecString)],
      ...(width && height && { width, height }),
      audioGroup: name,
    }));
    const sounds = this.#groups.flatMap(({ name: group, renditions }) => {
      const names = distinctNames(renditions.map(({ track }) => track));
      return renditions.map(
        ({ number, track: { language } }, nth): WrittenRendition => ({
          kind: "audio",
          group,
          name: names[nth]!,
          uri: `${url}?audio=${number}`,
          isDefault: nth === 0,
          ...(language !== "und" && { language: languageTag(language) }),
        }),
      );
    });
    return writeMasterManifest(variants, sounds);
  }
}

/** Returns a codec (RFC 6381), or that of the audio that a request converts it to. */
export function convertedCodec(codec: string, conversion: AudioConversion): string {
  const [, ...groups] = CONVERTIBLE.exec(codec) ?? [];
  const name = CODEC_NAMES[groups.findIndex((group) => group !== undefined)];
  return name !== undefined && converts(conversion, name) ? "mp4a.40.2" : codec;
}

/** Returns a manifest with the codecs of the converted audio in its `CODECS` attributes. */
export function convertedCodecs(manifest: string, conversion: AudioConversion): string {
  return manifest.replace(/\bCODECS="([^"]*)"/g, (_, codecs: string) => {
    const converted = codecs.split(",").map((codec) => convertedCodec(codec.trim(), conversion));
    return `CODECS="${converted.join(",")}"`;
  });
}

/** Returns the manifest of a rendition: that of the stream, with the addresses of this audio. */
export function audioManifest(manifest: string, number: number): string {
  return manifest.replace(SEGMENT_URL, `$1$2.a${number}.$3`);
}

/** Returns true if packets that contain the tables of a stream name several audio tracks. Throws `broken_media`. */
export function hasSeveralAudio(packets: Uint8Array): boolean {
  return readPiece(packets).streams.filter(({ kind }) => kind === "audio").length > 1;
}

/**
 * Returns the audio of a stream by one of its segments; undefined if it has no picture, or if the audio that players begin with cannot be
 * delivered alone. Throws `broken_media`.
 */
export function openStreamAudio(
  segment: Uint8Array,
  segmentSeconds: number,
  { transcoder, conversion, language }: StreamAudioOptions,
): StreamAudio | undefined {
  const { packets, streams } = readPiece(segment);
  const audio = streams.filter(({ kind }) => kind === "audio");
  const described = describeTracks(streams, packets, language);
  const video = described.find(({ described: { kind } }) => kind === "video");
  const tracks = described.filter(({ described: { kind } }) => kind === "audio");
  const open = (options: Pick<StreamConverterOptions, "conversion" | "choose">) =>
    new StreamConverter({ transcoder, ...options });
  const requested: StreamRendition[] = [];
  let original: StreamRendition[] = [];
  for (const { pid, described: track } of tracks) {
    // By position: a stream that begins again can have other PIDs.
    const nth = audio.findIndex((stream) => stream.pid === pid);
    const choose: StreamConverterOptions["choose"] = (all) => all[nth];
    const converted = open({ conversion, choose });
    const plain = { number: nth + 1, track, converter: open({ conversion: undefined, choose }) };
    const isConverted = converted.needs(segment);
    if (isConverted)
      requested.push({
        number: nth + 1,
        track: { ...track, codec: "aac", codecString: "mp4a.40.2", convertedFrom: track.codec },
        converter: converted,
      });
    else if (isTsCodec(track.codec)) requested.push(plain);
    if (isTsCodec(track.codec))
      original.push(isConverted ? { ...plain, number: ORIGINAL_FROM + nth + 1 } : plain);
  }
  const first = tracks[0]?.described;
  const isSeparable =
    requested[0] !== undefined &&
    (requested[0].track.convertedFrom ?? requested[0].track.codec) === first?.codec;
  if (requested.every(({ track }) => track.convertedFrom === undefined)) original = [];
  // A single track that is in no other form is in the segments of the picture.
  if (!video || !isSeparable || (original.length === 0 && requested.length < 2)) return undefined;
  const bitsPerSecond = (8 * segment.length) / Math.max(0.5, segmentSeconds);
  return new StreamAudio(video.described, requested, original, bitsPerSecond);
}
