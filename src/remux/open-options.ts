import { languageCode } from "../media/language.ts";
import type { SourceTrack } from "./media-tracks.ts";

/** What the caller of `openMedia` wishes, made whole. */
export interface OpenWishes {
  /** ISO 639-2/T; `und` for no wish. */
  readonly language: string;
  readonly targetSeconds: number;
  readonly signal: AbortSignal | undefined;
}

/**
 * The tracks in the order players shall see them: one video track (a known codec before an unknown one: cover pictures
 * pose as video), then audio, the wished language first and default.
 */
export function orderTracks(tracks: readonly SourceTrack[], language: string): SourceTrack[] {
  const videos = tracks.filter((track) => track.kind === "video");
  const video = videos.find((track) => track.libraryCodec !== undefined) ?? videos[0];
  const audio = tracks.filter((track) => track.kind === "audio");
  const wished =
    language === "und"
      ? undefined
      : audio.find((track) => languageCode(track.described.language) === language);
  if (!wished) return [...(video ? [video] : []), ...audio];
  const ordered = [wished, ...audio.filter((track) => track !== wished)].map((track) => ({
    ...track,
    described: { ...track.described, isDefault: track === wished },
  }));
  return [...(video ? [video] : []), ...ordered];
}
