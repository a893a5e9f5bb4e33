import { SluiceError } from "../base/errors.ts";
import type { Infohash } from "../base/ids.ts";
import type { Media, MediaTrack } from "../remux/contract.ts";
import type { ManifestRendition } from "./engine.ts";
import { segmentNumber } from "./session-segments.ts";

/** What a manifest is made from. */
export interface HlsParts {
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
  if (rendition === "media") return mediaPlaylist(parts);
  if (rendition !== "main") return subtitlePlaylist(parts, rendition.subtitles);
  return subtitleTracks(parts.media).length > 0 ? masterPlaylist(parts) : mediaPlaylist(parts);
}

function mediaPlaylist(parts: HlsParts): string {
  const isTs = parts.container === "ts";
  const map = isTs ? [] : [`#EXT-X-MAP:URI="${segmentUrl(parts, 0, "mp4")}"`];
  return playlist(parts.media, isTs ? 3 : 7, map, (index) => segmentUrl(parts, index, isTs ? "ts" : "m4s"));
}

function subtitlePlaylist(parts: HlsParts, track: number): string {
  if (!subtitleTracks(parts.media).some(([index]) => index === track))
    throw new SluiceError("no_such_segment", `track ${track} is no subtitle track`);
  return playlist(parts.media, 3, [], (index) => segmentUrl(parts, index, `s${track}.vtt`));
}

function masterPlaylist(parts: HlsParts): string {
  const { base, media, session } = parts;
  const url = `${base}/ace/m/${session.infohash}/${session.key}.m3u8`;
  const subtitles = subtitleTracks(media).map(([index, track], nth) => {
    const name = quotable(track.title ?? track.language) || `track ${index}`;
    return (
      `#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="subtitles",NAME="${nth + 1} ${name}",LANGUAGE="${quotable(track.language)}",` +
      `DEFAULT=NO,AUTOSELECT=YES,FORCED=NO,URI="${url}?subtitles=${index}"`
    );
  });
  const codecs = media.tracks.filter(({ kind }) => kind !== "subtitle").map(({ codecString }) => codecString);
  const known = codecs.every((codec) => codec !== undefined) ? `,CODECS="${codecs.join(",")}"` : "";
  const video = media.tracks.find(({ kind }) => kind === "video");
  const resolution = video?.width && video.height ? `,RESOLUTION=${video.width}x${video.height}` : "";
  return [
    "#EXTM3U",
    ...subtitles,
    `#EXT-X-STREAM-INF:BANDWIDTH=5000000${known}${resolution},SUBTITLES="subtitles"`,
    `${url}?rendition=media`,
    "",
  ].join("\n");
}

function playlist(media: Media, version: number, head: string[], url: (index: number) => string): string {
  const longest = media.segments.reduce((most, { durationSeconds }) => Math.max(most, durationSeconds), 0);
  const lines = [
    "#EXTM3U",
    `#EXT-X-VERSION:${version}`,
    `#EXT-X-TARGETDURATION:${Math.max(1, Math.ceil(longest))}`,
    "#EXT-X-MEDIA-SEQUENCE:0",
    "#EXT-X-PLAYLIST-TYPE:VOD",
    ...head,
  ];
  for (const [index, { durationSeconds }] of media.segments.entries())
    lines.push(`#EXTINF:${durationSeconds.toFixed(6)},`, url(index));
  lines.push("#EXT-X-ENDLIST", "");
  return lines.join("\n");
}

function segmentUrl({ base, session }: HlsParts, index: number, ending: string): string {
  return `${base}/ace/c/${session.infohash}/${segmentNumber(session.ordinal, index)}.${ending}`;
}

function subtitleTracks(media: Media): (readonly [number, MediaTrack])[] {
  return [...media.tracks.entries()].filter(([, { kind }]) => kind === "subtitle");
}

function quotable(text: string): string {
  return text.replaceAll(/["\r\n]/g, " ").trim();
}
