import { SluiceError } from "../base/errors.ts";
import type { Infohash } from "../base/ids.ts";
import { encodeUtf8 } from "../base/utf8.ts";
import { writeWebvtt } from "../media/webvtt.ts";
import { audioKey, type Media, type MediaPart, type SeekableTs, type SoundSlice } from "../remux/contract.ts";
import { pieceStream, streamBytes } from "../remux/piece-stream.ts";
import type { ContentFile, Transfer } from "../transfer/contract.ts";
import type {
  ManifestPlace,
  ManifestRendition,
  PieceReads,
  PlayerMedia,
  SegmentBytes,
  SegmentName,
  SegmentSource,
} from "../transfer/segment-source.ts";
import { audioOf, type FilmSubtitle, type PlaybackRequest } from "./contract.ts";
import { type AudioGroup, audioGroups, renditionsOf } from "./film-audio.ts";
import { filmSubtitles, subtitleAt } from "./film-subtitles.ts";
import { hlsManifest } from "./hls.ts";
import { averageRate, RawSource } from "./raw-source.ts";

/** MIME types of files whose names have none, by container. */
const CONTAINER_TYPES = { mp4: "video/mp4", matroska: "video/x-matroska", mpegts: "video/mp2t" } as const;

/** What the form of a film depends on. */
type FilmRequest = Pick<PlaybackRequest, "output" | "container" | "audioLanguage" | "audioConversion">;

/**
 * Opens a file for a session. Rejects with `SluiceError`.
 *
 * CHOICE(raw-files): music is played as the file itself, by HLS sessions too if HLS cannot carry it; other files that are not remuxed,
 * and transport streams, only by a continuous stream, and with `container=raw` all files.
 */
export async function openFilm(
  transfer: Transfer,
  file: ContentFile,
  request: FilmRequest,
  signal: AbortSignal,
): Promise<SegmentSource> {
  const isStream = request.output === "ts";
  const raw = (mime: string, durationSeconds = 0) =>
    new RawSource(transfer.infohash, file, transfer.source(file.index), mime, durationSeconds);
  const asksForFile = isStream && request.container === "raw";
  if (asksForFile && file.isPlayable) return raw(file.mime);
  const media = await transfer.media(file.index, audioOf(request), signal);
  const { rawMime, container } = media;
  if (asksForFile && container !== "raw") return raw(CONTAINER_TYPES[container], media.durationSeconds);
  const isRaw = isStream || (container === "raw" && rawMime?.startsWith("audio/"));
  if (rawMime !== undefined && isRaw) return raw(rawMime, media.durationSeconds);
  return new FilmSource(transfer.infohash, file, media, request, {
    seekable: isStream ? await media.seekableTs?.(signal) : undefined,
    original: isStream ? undefined : await originalOf(transfer, file, media, request, signal),
    subtitles: isStream ? [] : filmSubtitles(transfer, file, media),
  });
}

/** Returns the media without conversion, if the request converts audio. */
async function originalOf(
  transfer: Transfer,
  file: ContentFile,
  media: Media,
  request: FilmRequest,
  signal: AbortSignal,
): Promise<Media | undefined> {
  if (!media.tracks.some(({ convertedFrom }) => convertedFrom !== undefined)) return undefined;
  return transfer.media(file.index, { language: request.audioLanguage }, signal);
}

/** What a session offers beside the segments of the media that its request names. */
interface FilmExtras {
  /** For continuous streams. */
  readonly seekable: SeekableTs | undefined;
  /** For HLS: the media without conversion, if anything is converted. */
  readonly original: Media | undefined;
  /** For HLS. */
  readonly subtitles: readonly FilmSubtitle[];
}

/** A file that was opened as media. Its list of segments is complete from the start; each segment is made on request. */
class FilmSource implements SegmentSource {
  readonly container: "ts" | "fmp4";
  readonly isLive = false;
  readonly name: string;
  readonly bytesPerSecond: number | undefined;
  readonly streamBytes: number | undefined;
  readonly #media: Media;
  readonly #file: ContentFile;
  readonly #seekable: SeekableTs | undefined;
  readonly #audio: readonly AudioGroup[];
  readonly #subtitles: readonly FilmSubtitle[];

  /** Throws if the file has no segments, or if no container that the player accepts can carry its codecs. */
  constructor(
    infohash: Infohash,
    file: ContentFile,
    media: Media,
    request: FilmRequest,
    { seekable, original, subtitles }: FilmExtras,
  ) {
    this.container = chooseContainer(media, request);
    if (media.segments.length === 0) throw new SluiceError("broken_media", "the file holds nothing to play");
    // Sessions of both outputs share no segments: only HLS can have the audio apart from the picture.
    this.name = `${infohash}/${file.index}/${request.output} ${audioKey(audioOf(request))}`;
    const { durationSeconds } = media;
    this.bytesPerSecond = averageRate(file.size, durationSeconds);
    this.streamBytes = seekable?.size;
    this.#media = media;
    this.#file = file;
    this.#seekable = seekable;
    this.#audio = request.output === "hls" ? audioGroups(media, original, this.container) : [];
    this.#subtitles = subtitles;
  }

  async play(reads: PieceReads): Promise<PlayerMedia> {
    const { range, signal } = reads;
    const remux =
      range && this.#seekable
        ? await this.#seekable.remux(range, signal)
        : await this.#media.remux("ts", 0, undefined, signal);
    const release: PlayerMedia["release"] = (chunk) => remux.pool?.give(chunk);
    return { pieces: pieceStream(remux, reads), remuxer: remux.remuxer, release };
  }

  async manifest(place: ManifestPlace, rendition: ManifestRendition): Promise<string> {
    const { container } = this;
    const film = { file: this.#file, media: this.#media, audio: this.#audio, subtitles: this.#subtitles };
    return hlsManifest({ ...place, ...film, container }, rendition);
  }

  async first(): Promise<number> {
    return 0;
  }

  async reach(index: number, _signal?: AbortSignal, track = 0): Promise<number | undefined> {
    return index < this.#countOf(track) ? index : undefined;
  }

  async find(kind: SegmentName["kind"], number: number, _signal?: AbortSignal, track = 0): Promise<number> {
    const fits = kind === "vtt" || (kind === "ts") === (this.container === "ts");
    const count = this.#countOf(kind === "vtt" ? 0 : track);
    if (fits && number < count) return number;
    throw new SluiceError("no_such_segment", `expected a number below ${count}, got ${number}`);
  }

  async make(
    kind: SegmentName["kind"],
    index: number,
    track: number,
    signal: AbortSignal,
  ): Promise<SegmentBytes> {
    if (kind === "vtt") {
      const cues = await subtitleAt(this.#subtitles, track).cues(index, signal);
      return encodeUtf8(writeWebvtt(cues, this.#media.zeroTicks));
    }
    const { media, part, slices } = this.#partOf(track);
    if (kind === "mp4") return media.fmp4Init(signal, part);
    const slice = slices?.[index];
    const segment = slice?.segment ?? index;
    const sliced = slice && typeof part === "object" ? { ...part, slice } : part;
    const remux = await media.remux(kind === "ts" ? "ts" : "fmp4", segment, segment + 1, signal, sliced);
    return streamBytes(pieceStream(remux, { signal }).pipeThrough(remux.remuxer), remux.pool);
  }

  /** The number of segments of a track. */
  #countOf(track: number): number {
    const { media, slices } = this.#partOf(track);
    return (slices ?? media.segments).length;
  }

  /** Returns what the segments of a track contain: 0 is the picture, with the audio unless that is separate. */
  #partOf(track: number): { media: Media; part: MediaPart; slices?: readonly SoundSlice[] | undefined } {
    if (track === 0) return { media: this.#media, part: this.#audio.length > 0 ? "video" : "all" };
    const { media, index, slices } = renditionsOf(this.#audio).get(track) ?? {};
    if (media && index !== undefined) return { media, part: { audio: index }, slices };
    throw new SluiceError("no_such_segment", `the film has no separate audio ${track}`);
  }
}

/** Chooses the container of the segments; throws if no container that the player accepts can carry the codecs. */
function chooseContainer(media: Media, request: FilmRequest): "ts" | "fmp4" {
  const container =
    request.output === "ts" || request.container === "ts"
      ? "ts"
      : request.container === "fmp4" || isBetterAsFmp4(media)
        ? "fmp4"
        : "ts";
  const problem = container === "ts" ? media.tsProblem : media.fmp4Problem;
  if (problem) throw problem;
  return container;
}

function isBetterAsFmp4({ tsProblem, fmp4Problem, silentIn, separateAudio }: Media): boolean {
  if (fmp4Problem) return false;
  if (tsProblem !== undefined || (silentIn.includes("ts") && !silentIn.includes("fmp4"))) return true;
  // A language in FLAC or Opus would be missing in MPEG-TS.
  return separateAudio.fmp4.length > separateAudio.ts.length;
}
