import type { Media, MediaTrack, RemuxFormat, SoundSlice } from "../remux/contract.ts";

/** An audio track of a film that players get apart from the picture. */
interface AudioRendition {
  /** Its number in the names of manifests and segments; from 1. */
  readonly number: number;
  readonly media: Media;
  /** Index in `media.tracks`. */
  readonly index: number;
  readonly track: MediaTrack;
  /** Its segments, if they are not those of the picture. */
  readonly slices: readonly SoundSlice[] | undefined;
}

/** Audio tracks that a player can choose from beside one variant of the picture. */
export interface AudioGroup {
  readonly name: string;
  readonly renditions: readonly AudioRendition[];
}

/** Numbers of unconverted tracks in a session that converts others begin here, because segment names have three digits. */
export const ORIGINAL_FROM = 500;
/** More tracks are not listed. */
const TRACKS_LIMIT = ORIGINAL_FROM - 1;

/**
 * Groups the audio tracks of a film: as requested, and if some are converted, also all of them as they are in the file (`original`).
 * Returns no groups if there is only one track, which is in the segments of the picture. There is no group for each codec: VLC would
 * choose among the defaults of all groups, and other players would offer only the languages of one.
 */
export function audioGroups(
  media: Media,
  original: Media | undefined,
  container: RemuxFormat,
): readonly AudioGroup[] {
  const requested = listed(media, container, 0);
  const all = original ? withOriginals(requested, listed(original, container, ORIGINAL_FROM)) : requested;
  if (new Set([...requested, ...all].map(({ number }) => number)).size < 2) return [];
  const groups = [
    { name: original ? "requested" : "audio", renditions: requested },
    { name: "original", renditions: all === requested ? [] : all },
  ];
  return groups.filter(({ renditions }) => renditions.length > 0);
}

/** Returns the renditions of all groups by their numbers. */
export function renditionsOf(groups: readonly AudioGroup[]): ReadonlyMap<number, AudioRendition> {
  return new Map(groups.flatMap(({ renditions }) => renditions.map((one) => [one.number, one] as const)));
}

function listed(media: Media, container: RemuxFormat, from: number): AudioRendition[] {
  return media.separateAudio[container]
    .filter((index) => index < TRACKS_LIMIT)
    .map((index) => {
      const track = media.tracks[index]!;
      const slices = track.convertedFrom === undefined ? undefined : media.soundSlices;
      return { number: from + index, media, index, track, slices };
    });
}

/** The tracks of the file; those that the request did not convert are the same renditions. */
function withOriginals(requested: readonly AudioRendition[], originals: AudioRendition[]): AudioRendition[] {
  const unchanged = requested.filter(({ track }) => track.convertedFrom === undefined);
  return originals.map((original) => {
    const at = unchanged.findIndex(({ track }) => isSame(track, original.track));
    return at < 0 ? original : unchanged.splice(at, 1)[0]!;
  });
}

function isSame(a: MediaTrack, b: MediaTrack): boolean {
  return a.codec === b.codec && a.language === b.language && a.title === b.title;
}
