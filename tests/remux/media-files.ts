import type { Media, OpenMediaOptions } from "../../src/remux/contract.ts";
import { openMedia } from "../../src/remux/open-media.ts";
import { lavfi, makeMedia } from "./make-media.ts";
import { type FileAccess, fileAccess } from "./media-checks.ts";

/** H.264 with B-frames. */
export const H264 = "-c:v libx264 -preset veryfast -g 50 -bf 3 -threads 1".split(" ");
/** AAC at a low rate. */
export const AAC = "-c:a aac -b:a 96k".split(" ");
const SECOND = "-f lavfi -i sine=frequency=880:sample_rate=48000:duration=20".split(" ");

/** One file per supported combination of container, index and codecs. */
export const FILES: Record<string, { name: string; args: string[] }> = {
  "MP4, index at the front": {
    name: "front.mp4",
    args: [...lavfi(20), ...H264, ...AAC, "-movflags", "+faststart"],
  },
  "MP4, index at the end": { name: "end.mp4", args: [...lavfi(20), ...H264, ...AAC] },
  "MP4, fragmented, indexed at its end": {
    name: "fragmented.mp4",
    args: [...lavfi(20), ...H264, ...AAC, "-movflags", "+frag_keyframe+empty_moov+delay_moov"],
  },
  "MP4, fragmented, sidx": {
    name: "sidx.mp4",
    args: [
      ...lavfi(20),
      ...H264,
      ...AAC,
      "-movflags",
      "+dash+global_sidx+frag_keyframe+delay_moov+skip_trailer",
    ],
  },
  "MP4, fragmented, no index": {
    name: "bare.mp4",
    args: [...lavfi(20), ...H264, ...AAC, "-movflags", "+frag_keyframe+empty_moov+delay_moov+skip_trailer"],
  },
  "MKV, H.264 and AC-3": { name: "ac3.mkv", args: [...lavfi(20), ...H264, "-c:a", "ac3"] },
  "MKV, HEVC (open GOP) and AAC, two languages": {
    name: "hevc.mkv",
    args: [
      ...lavfi(20),
      ...SECOND,
      ..."-map 0 -map 1 -map 2 -c:v libx265 -preset ultrafast -g 50 -x265-params log-level=error:pools=1:bframes=3".split(
        " ",
      ),
      ...AAC,
      ..."-metadata:s:a:0 language=eng -metadata:s:a:1 language=ger".split(" "),
    ],
  },
  "MP4, H.264 and MP3": { name: "mp3.mp4", args: [...lavfi(20), ...H264, "-c:a", "libmp3lame"] },
  "MKV, H.264 and MP2": { name: "mp2.mkv", args: [...lavfi(20), ...H264, "-c:a", "mp2"] },
  "MKV, H.264 and E-AC-3, no cues": {
    name: "streamed.mkv",
    args: [...lavfi(20), ...H264, "-c:a", "eac3", "-live", "1", "-f", "matroska"],
  },
};

/** Opens a test file for `work`, and closes it afterwards. */
export async function withMedia(
  { name, args }: { name: string; args: string[] },
  work: (media: Media, path: string, source: FileAccess) => Promise<void>,
  options: OpenMediaOptions = {},
): Promise<void> {
  const path = await makeMedia(name, args);
  const source = await fileAccess(path);
  try {
    const media = await openMedia(source, options);
    await work(media, path, source);
    media.close();
  } finally {
    await source.close();
  }
}
