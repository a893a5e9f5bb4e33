import type { PicturePart, PictureState } from "../media/picture-subtitles.ts";

/** A part of a picture for pages: its palette and its runs are base64. */
interface PictureJsonPart extends Omit<PicturePart, "palette" | "runs"> {
  readonly palette: string;
  readonly runs: string;
}

/** What subtitles that are pictures show from `start` (seconds) on, for pages. */
export interface PictureJson {
  readonly start: number;
  readonly forced: boolean;
  readonly width: number;
  readonly height: number;
  readonly parts: readonly PictureJsonPart[];
}

/** Describes a state for pages. */
export function pictureJson({ seconds, isForced, width, height, parts }: PictureState): PictureJson {
  return {
    ...{ start: seconds, forced: isForced, width, height },
    parts: parts.map(({ palette, runs, ...place }) => ({
      ...place,
      palette: base64(palette),
      runs: base64(runs),
    })),
  };
}

function base64(bytes: Uint8Array): string {
  let text = "";
  // Arguments of one call are limited.
  for (let at = 0; at < bytes.length; at += 8192)
    text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return btoa(text);
}
