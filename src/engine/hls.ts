import { SluiceError } from "../base/errors.ts";
import type { Infohash } from "../base/ids.ts";
import { languageTag } from "../media/language.ts";
import { writeMasterManifest, writeMediaManifest } from "../media/manifest.ts";
import type { Media, MediaTrack } from "../remux/contract.ts";
import type { ContentFile } from "./contract.ts";
import type { ManifestRendition } from "./engine.ts";
import { segmentNumber } from "./session-segments.ts";

/** What a manifest is made from. */
export interface HlsParts {
  readonly file: ContentFile;
  readonly media: Media;
  readonly container: "ts" | "fmp4";
  /** `http://host:port`: every URL in a manifest is absolute. */
  readonly base: string;
  readonly session: { readonly infohash: Infohash; readonly key: string; readonly ordinal: number };
}

/**
 * CHOICE(hls-master): a player is given the media playlist itself, as the interface shows it. Only where the content
 * has text subtitles does it get a master playlist, since nothing else can name them.
 */
export function hlsManifest(parts: HlsParts, rendition: ManifestRendition): string {
  if (rendition === "media") return mediaManifest(parts);
  if (rendition !== "main") {
    if ("subtitles" in rendition) return subtitleManifest(parts, rendition.subtitles);
    throw new SluiceError("no_such_segment", "this film has its sound in its segments");
  }
  return subtitleTracks(parts.media).length > 0 ? masterManifest(parts) : mediaManifest(parts);
}

function mediaManifest(parts: HlsParts): string {
  const isTs = parts.container === "ts";
  return writeMediaManifest({
    kind: "vod",
    segments: segmentsOf(parts, isTs ? "ts" : "m4s"),
    ...(!isTs && { mapUri: segmentUrl(parts, 0, "mp4") }),
  });
}

function subtitleManifest(parts: HlsParts, track: number): string {
  if (!subtitleTracks(parts.media).some(([index]) => index === track))
    throw new SluiceError("no_such_segment", `track ${track} is no subtitle track`);
  return writeMediaManifest({ kind: "vod", segments: segmentsOf(parts, `s${track}.vtt`) });
}

function masterManifest(parts: HlsParts): string {
  const { base, file, media, session } = parts;
  const url = `${base}/ace/m/${session.infohash}/${session.key}.m3u8`;
  const video = media.tracks.find(({ kind }) => kind === "video");
  const heard = media.tracks.filter(({ kind }) => kind !== "subtitle");
  const variant = {
    uri: `${url}?rendition=media`,
    bitsPerSecond: (8 * file.size) / Math.max(1, media.durationSeconds),
    codecs: heard.map(({ codecString }) => codecString),
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

function segmentsOf(parts: HlsParts, ending: string) {
  return parts.media.segments.map(({ durationSeconds }, index) => ({
    durationSeconds,
    uri: segmentUrl(parts, index, ending),
  }));
}

function segmentUrl({ base, session }: HlsParts, index: number, ending: string): string {
  return `${base}/ace/c/${session.infohash}/${segmentNumber(session.ordinal, index)}.${ending}`;
}

function subtitleTracks(media: Media): (readonly [number, MediaTrack])[] {
  return [...media.tracks.entries()].filter(([, { kind }]) => kind === "subtitle");
}
