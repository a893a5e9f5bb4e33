import { SluiceError } from "../base/errors.ts";
import type { Infohash } from "../base/ids.ts";
import type { Media } from "../remux/contract.ts";
import type { ContentFile } from "./contract.ts";
import type { ManifestRendition, PlaybackRequest, SegmentName } from "./engine.ts";
import { hlsManifest } from "./hls.ts";
import type { SegmentBytes } from "./segment-cache.ts";
import type { ManifestPlace, SegmentSource } from "./segment-source.ts";
import { makeSegment } from "./session-segments.ts";

/** A file of content that was opened as media: every segment is known from the start, and made when it is asked. */
export class FilmSource implements SegmentSource {
  readonly container: "ts" | "fmp4";
  readonly isLive = false;
  readonly name: string;
  readonly bytesPerSecond: number | undefined;
  readonly #media: Media;
  readonly #file: ContentFile;

  /** Throws where the file holds nothing, or no container that the player can take carries its codecs. */
  constructor(infohash: Infohash, file: ContentFile, media: Media, request: PlaybackRequest) {
    if (media.segments.length === 0) throw new SluiceError("broken_media", "the file holds nothing to play");
    this.container = chooseContainer(media, request);
    this.name = `${infohash}/${file.index}/${request.audioLanguage ?? ""}`;
    const { durationSeconds } = media;
    this.bytesPerSecond = durationSeconds > 0 ? file.size / durationSeconds : undefined;
    this.#media = media;
    this.#file = file;
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

  make(kind: SegmentName["kind"], index: number, track: number, signal: AbortSignal): Promise<SegmentBytes> {
    return makeSegment(this.#media, kind, index, track, signal);
  }
}

/** What the player gets; throws where no container it can take carries the codecs. */
function chooseContainer(media: Media, request: PlaybackRequest): "ts" | "fmp4" {
  const container =
    request.output === "ts" || request.container === "ts"
      ? "ts"
      : request.container === "fmp4" || (media.tsProblem && !media.fmp4Problem)
        ? "fmp4"
        : "ts";
  const problem = container === "ts" ? media.tsProblem : media.fmp4Problem;
  if (problem) throw problem;
  return container;
}
