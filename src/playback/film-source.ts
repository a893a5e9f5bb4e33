import { SluiceError } from "../base/errors.ts";
import type { Infohash } from "../base/ids.ts";
import { audioKey, type Media, type SeekableTs } from "../remux/contract.ts";
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
import { audioOf, type PlaybackRequest } from "./contract.ts";
import { hlsManifest } from "./hls.ts";
import { averageRate, RawSource } from "./raw-source.ts";

/** MIME types of files whose names have none, by container. */
const CONTAINER_TYPES = { mp4: "video/mp4", matroska: "video/x-matroska", mpegts: "video/mp2t" } as const;

/**
 * Opens a file for a session. Rejects with `SluiceError`.
 *
 * CHOICE(raw-files): music is played as the file itself, by HLS sessions too if HLS cannot carry it; other files that are not remuxed,
 * and transport streams, only by a continuous stream, and with `container=raw` all files.
 */
export async function openFilm(
  transfer: Transfer,
  file: ContentFile,
  request: PlaybackRequest,
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
  const seekable = isStream ? await media.seekableTs?.(signal) : undefined;
  return new FilmSource(transfer.infohash, file, media, request, seekable);
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

  /** Throws if the file has no segments, or if no container that the player accepts can carry its codecs. */
  constructor(
    infohash: Infohash,
    file: ContentFile,
    media: Media,
    request: PlaybackRequest,
    seekable: SeekableTs | undefined,
  ) {
    this.container = chooseContainer(media, request);
    if (media.segments.length === 0) throw new SluiceError("broken_media", "the file holds nothing to play");
    this.name = `${infohash}/${file.index}/${audioKey(audioOf(request))}`;
    const { durationSeconds } = media;
    this.bytesPerSecond = averageRate(file.size, durationSeconds);
    this.streamBytes = seekable?.size;
    this.#media = media;
    this.#file = file;
    this.#seekable = seekable;
  }

  async play(reads: PieceReads): Promise<PlayerMedia> {
    const { range, signal } = reads;
    const remux =
      range && this.#seekable
        ? await this.#seekable.remux(range, signal)
        : await this.#media.remux("ts", 0, undefined, signal);
    return { pieces: pieceStream(remux, reads), remuxer: remux.remuxer };
  }

  async manifest(place: ManifestPlace, rendition: ManifestRendition): Promise<string> {
    const { container } = this;
    return hlsManifest({ ...place, file: this.#file, media: this.#media, container }, rendition);
  }

  async first(): Promise<number> {
    return 0;
  }

  async reach(index: number): Promise<number | undefined> {
    return index < this.#media.segments.length ? index : undefined;
  }

  async find(kind: SegmentName["kind"], number: number): Promise<number> {
    const fits = kind === "vtt" || (kind === "ts") === (this.container === "ts");
    const count = this.#media.segments.length;
    if (fits && number < count) return number;
    throw new SluiceError("no_such_segment", `expected a number below ${count}, got ${number}`);
  }

  async make(
    kind: SegmentName["kind"],
    index: number,
    track: number,
    signal: AbortSignal,
  ): Promise<SegmentBytes> {
    const media = this.#media;
    switch (kind) {
      case "ts":
      case "m4s": {
        const remux = await media.remux(kind === "ts" ? "ts" : "fmp4", index, index + 1, signal);
        return streamBytes(pieceStream(remux, { signal }).pipeThrough(remux.remuxer));
      }
      case "mp4":
        return media.fmp4Init(signal);
      case "vtt":
        return new TextEncoder().encode(await media.webvttSegment(track, index, signal));
    }
  }
}

/** Chooses the container of the segments; throws if no container that the player accepts can carry the codecs. */
function chooseContainer(media: Media, request: PlaybackRequest): "ts" | "fmp4" {
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

function isBetterAsFmp4({ tsProblem, fmp4Problem, silentIn }: Media): boolean {
  if (fmp4Problem) return false;
  return tsProblem !== undefined || (silentIn.includes("ts") && !silentIn.includes("fmp4"));
}
