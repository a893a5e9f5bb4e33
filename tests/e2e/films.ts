import { copyFile, mkdir } from "node:fs/promises";
import { lavfi, makeMedia } from "../remux/make-media.ts";

/** A film of the tests: how ffmpeg makes it, and what it holds. */
export interface Film {
  readonly name: string;
  readonly args: readonly string[];
  /** The audio tracks, for the count of packets. */
  readonly audioTracks: number;
}

const H264 = ["-c:v", "libx264", "-preset", "veryfast", "-bf", "3", "-g", "50"];
const HEVC = ["-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=error:keyint=50"];
const PICTURE = ["-pix_fmt", "yuv420p", "-shortest"];

/** Every container and codec that the engine promises, about 20 s each. */
export const FILMS: readonly Film[] = [
  film("front.mp4", 1, [...H264, "-c:a", "aac", "-movflags", "+faststart"]),
  film("end.mp4", 1, [...H264, "-c:a", "aac"]),
  film("fragments.mp4", 1, [...H264, "-c:a", "aac", "-movflags", "+frag_keyframe+empty_moov"]),
  film("ac3.mkv", 1, [...H264, "-c:a", "ac3"]),
  film("hevc.mkv", 1, [...HEVC, "-c:a", "aac"]),
  film("languages.mkv", 2, [
    ...["-map", "0:v", "-map", "1:a", "-map", "1:a", ...H264, "-c:a", "aac"],
    ...["-metadata:s:a:0", "language=eng", "-metadata:s:a:1", "language=ger"],
  ]),
  film("aac.ts", 1, [...H264, "-c:a", "aac"]),
  film("mp2.ts", 1, [...H264, "-c:a", "mp2"]),
  film("ac3.ts", 1, [...H264, "-c:a", "ac3"]),
];

function film(name: string, audioTracks: number, codecs: readonly string[]): Film {
  return { name, audioTracks, args: [...lavfi(20), ...PICTURE, ...codecs] };
}

/** Makes all films and copies them into one folder, for one torrent of many files; returns their paths by name. */
export async function makeFilms(folder: string): Promise<Map<string, string>> {
  await mkdir(folder, { recursive: true });
  const paths = new Map<string, string>();
  for (const { name, args } of FILMS) {
    const path = await makeMedia(name, args);
    await copyFile(path, `${folder}/${name}`);
    paths.set(name, path);
  }
  return paths;
}
