import { SluiceError } from "../base/errors.ts";
import type { Infohash } from "../base/ids.ts";
import { languageTag } from "../media/language.ts";
import { writeMasterManifest, writeMediaManifest } from "../media/manifest.ts";
import { isFmp4Codec, isTsCodec } from "../remux/container-rules.ts";
import type { Media, MediaTrack } from "../remux/contract.ts";
import type { ContentFile } from "../transfer/contract.ts";
import type { ManifestRendition } from "../transfer/segment-source.ts";
import { segmentNumber } from "../transfer/segment-source.ts";

/** A film and where its URLs lead. */
export interface HlsManifestOptions {
  readonly file: ContentFile;
  readonly media: Media;
  readonly container: "ts" | "fmp4";
  /** `http://host:port`: every URL in a manifest is absolute. */
  readonly base: string;
  readonly session: { readonly infohash: Infohash; readonly key: string; readonly ordinal: number };
}

/**
 * Returns the manifest of a film (RFC 8216). CHOICE(hls-master): players get the media playlist itself, as the interface
 * shows it; a master playlist only if the content has text subtitles, which a media playlist cannot name. Throws
 * `no_such_segment` for a rendition that does not exist.
 */
export function hlsManifest(film: HlsManifestOptions, rendition: ManifestRendition): string {
  if (rendition === "media") return mediaManifest(film);
  if (rendition !== "main") {
    if ("subtitles" in rendition) return subtitleManifest(film, rendition.subtitles);
    throw new SluiceError("no_such_segment", "the audio of this film is in its segments");
  }
  return subtitleTracks(film.media).length > 0 ? masterManifest(film) : mediaManifest(film);
}

function mediaManifest(film: HlsManifestOptions): string {
  const isTs = film.container === "ts";
  return writeMediaManifest({
    kind: "vod",
    segments: segmentsOf(film, isTs ? "ts" : "m4s"),
    ...(!isTs && { mapUri: segmentUrl(film, 0, "mp4") }),
  });
}

function subtitleManifest(film: HlsManifestOptions, track: number): string {
  if (!subtitleTracks(film.media).some(([index]) => index === track))
    throw new SluiceError("no_such_segment", `track ${track} is not a subtitle track`);
  return writeMediaManifest({ kind: "vod", segments: segmentsOf(film, `s${track}.vtt`) });
}

function masterManifest(film: HlsManifestOptions): string {
  const { base, file, media, session } = film;
  const url = `${base}/ace/m/${session.infohash}/${session.key}.m3u8`;
  const video = media.tracks.find(({ kind }) => kind === "video");
  // hls.js refuses a variant with a codec that the browser does not support, also if no player would choose that track.
  const carries = film.container === "ts" ? isTsCodec : isFmp4Codec;
  const audio = media.tracks.find(({ kind, codec }) => kind === "audio" && carries(codec));
  const played = [video, audio].filter((track) => track !== undefined);
  const variant = {
    uri: `${url}?rendition=media`,
    bitsPerSecond: (8 * file.size) / Math.max(1, media.durationSeconds),
    codecs: played.map(({ codecString }) => codecString),
    subtitleGroup: "subtitles",
    ...(video?.width && video.height && { width: video.width, height: video.height }),
  };
  const renditions = subtitleTracks(media).map(([index, track], nth) => ({
    kind: "subtitles" as const,
    group: "subtitles",
    // Names within a group must differ (RFC 8216 4.3.4.1.1).
    name: `${nth + 1} ${track.title ?? track.language}`,
    uri: `${url}?subtitles=${index}`,
    isDefault: false,
    ...(track.language !== "und" && { language: languageTag(track.language) }),
  }));
  return writeMasterManifest([variant], renditions);
}

function segmentsOf(film: HlsManifestOptions, ending: string) {
  return film.media.segments.map(({ durationSeconds }, index) => ({
    durationSeconds,
    uri: segmentUrl(film, index, ending),
  }));
}

function segmentUrl({ base, session }: HlsManifestOptions, index: number, ending: string): string {
  return `${base}/ace/c/${session.infohash}/${segmentNumber(session.ordinal, index)}.${ending}`;
}

function subtitleTracks(media: Media): (readonly [number, MediaTrack])[] {
  return [...media.tracks.entries()].filter(([, { kind }]) => kind === "subtitle");
}
