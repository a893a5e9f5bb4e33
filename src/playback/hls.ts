import { SluiceError } from "../base/errors.ts";
import { languageName, languageTag } from "../media/language.ts";
import { writeMasterManifest, writeMediaManifest } from "../media/manifest.ts";
import { isFmp4Codec, isTsCodec } from "../remux/container-rules.ts";
import type { Media, MediaTrack } from "../remux/contract.ts";
import type { ContentFile } from "../transfer/contract.ts";
import type { ManifestRendition, ManifestUrls } from "../transfer/segment-source.ts";
import type { FilmSubtitle } from "./contract.ts";
import { type AudioGroup, renditionsOf } from "./film-audio.ts";
import { subtitleAt } from "./film-subtitles.ts";

/** The `GROUP-ID` of subtitles in master manifests. */
export const SUBTITLE_GROUP = "subtitles";

/** A film and where its URLs lead. */
export interface HlsManifestOptions {
  readonly file: ContentFile;
  readonly media: Media;
  readonly container: "ts" | "fmp4";
  /** The audio tracks that are not in the segments of the picture. */
  readonly audio: readonly AudioGroup[];
  readonly subtitles: readonly Omit<FilmSubtitle, "cues">[];
  readonly urls: ManifestUrls;
}

/**
 * Returns the manifest of a film (RFC 8216). CHOICE(hls-master): players get the media playlist itself, as the interface
 * shows it; a master playlist only if there is something to choose, which a media playlist cannot name: several audio tracks, an
 * audio track with its conversion, or text subtitles. Throws `no_such_segment` for a rendition that does not exist.
 */
export function hlsManifest(film: HlsManifestOptions, rendition: ManifestRendition): string {
  if (rendition === "media") return mediaManifest(film, "");
  if (rendition !== "main") {
    if ("subtitles" in rendition) return subtitleManifest(film, rendition.subtitles);
    const sound = renditionsOf(film.audio).get(rendition.audio);
    if (sound) return mediaManifest(film, `a${rendition.audio}.`, sound.slices);
    throw new SluiceError("no_such_segment", `the film has no separate audio ${rendition.audio}`);
  }
  return film.subtitles.length + film.audio.length > 0 ? masterManifest(film) : mediaManifest(film, "");
}

function mediaManifest(film: HlsManifestOptions, track: string, segments?: Durations): string {
  const isTs = film.container === "ts";
  return writeMediaManifest({
    kind: "vod",
    segments: segmentsOf(film, `${track}${isTs ? "ts" : "m4s"}`, segments),
    ...(!isTs && { mapUri: film.urls.segment(0, `${track}mp4`) }),
  });
}

function subtitleManifest(film: HlsManifestOptions, number: number): string {
  subtitleAt(film.subtitles, number);
  return writeMediaManifest({ kind: "vod", segments: segmentsOf(film, `s${number}.vtt`) });
}

function masterManifest(film: HlsManifestOptions): string {
  const { file, media, audio, subtitles } = film;
  const url = film.urls.manifest;
  const video = media.tracks.find(({ kind }) => kind === "video");
  // hls.js refuses a variant with a codec that the browser does not support, also if no player would choose that track.
  const carries = film.container === "ts" ? isTsCodec : isFmp4Codec;
  const own = media.tracks.find(({ kind, codec }) => kind === "audio" && carries(codec));
  const groups = audio.length > 0 ? audio : [undefined];
  const variants = groups.map((group) => {
    const sound = group ? group.renditions.map(({ track }) => track) : own ? [own] : [];
    return {
      uri: `${url}?rendition=media`,
      bitsPerSecond: (8 * file.size) / Math.max(1, media.durationSeconds),
      codecs: [...(video ? [video] : []), ...sound].map(({ codecString }) => codecString),
      ...(group && { audioGroup: group.name }),
      ...(subtitles.length > 0 && { subtitleGroup: SUBTITLE_GROUP }),
      ...(video?.width && video.height && { width: video.width, height: video.height }),
    };
  });
  const sounds = audio.flatMap(({ name: group, renditions }) => {
    const names = distinctNames(renditions.map(({ track }) => track));
    return renditions.map(({ number, track }, nth) => ({
      kind: "audio" as const,
      group,
      name: names[nth]!,
      uri: `${url}?audio=${number}`,
      isDefault: nth === 0,
      ...languageOf(track),
      ...(track.channels !== undefined && { channels: track.channels }),
    }));
  });
  return writeMasterManifest(variants, [...sounds, ...subtitleRenditions(subtitles, url)]);
}

/** Returns the lines of a master manifest for these subtitles. `url` is that of the manifest. */
export function subtitleRenditions(
  subtitles: readonly Pick<FilmSubtitle, "number" | "language" | "title" | "isForced">[],
  url: string,
) {
  const names = distinctNames(subtitles);
  return subtitles.map((subtitle, nth) => ({
    kind: "subtitles" as const,
    group: SUBTITLE_GROUP,
    name: names[nth]!,
    uri: `${url}?subtitles=${subtitle.number}`,
    isDefault: false,
    isForced: subtitle.isForced,
    ...languageOf(subtitle),
  }));
}

/** Returns the names of tracks for players. Names within a group must differ (RFC 8216 4.3.4.1.1). */
export function distinctNames(tracks: readonly Pick<MediaTrack, "title" | "language">[]): string[] {
  const names: string[] = [];
  for (const { title, language } of tracks) {
    const name = title?.trim() || (language === "und" ? "Unknown" : languageName(language));
    let distinct = name;
    for (let n = 2; names.includes(distinct); n++) distinct = `${name} (${n})`;
    names.push(distinct);
  }
  return names;
}

function languageOf({ language }: Pick<MediaTrack, "language">) {
  return language === "und" ? {} : { language: languageTag(language) };
}

type Durations = readonly { readonly durationSeconds: number }[];

function segmentsOf(film: HlsManifestOptions, ending: string, segments: Durations = film.media.segments) {
  return segments.map(({ durationSeconds }, index) => ({
    durationSeconds,
    uri: film.urls.segment(index, ending),
  }));
}
