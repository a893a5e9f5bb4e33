import assert from "node:assert/strict";
import { test } from "node:test";
import { parseInfohash } from "../../src/base/ids.ts";
import { audioGroups } from "../../src/playback/film-audio.ts";
import { hlsManifest } from "../../src/playback/hls.ts";
import type { Media, MediaTrack } from "../../src/remux/contract.ts";
import { segmentTimes, soundSlices } from "../../src/remux/segment-plan.ts";
import { type ManifestRendition, sessionManifestUrls } from "../../src/transfer/segment-source.ts";

const FILE = { index: 0, path: ["a.mkv"], name: "a.mkv", size: 1_000_000 };
const urls = sessionManifestUrls("http://a", {
  infohash: parseInfohash("a".repeat(40))!,
  key: "k",
  ordinal: 0,
});

function track(kind: MediaTrack["kind"], codec: string, codecString: string): MediaTrack {
  return { kind, codec, codecString, language: "eng", title: undefined, isDefault: false };
}

/** The `CODECS` of a film with these audio tracks and a subtitle track. */
function codecsOf(container: "ts" | "fmp4", ...audio: readonly MediaTrack[]): string | undefined {
  const tracks = [track("video", "h264", "avc1.64001f"), ...audio];
  const media = { tracks, durationSeconds: 10, segments: [] } as unknown as Media;
  const text = { codec: "subrip", language: "eng", title: undefined, isForced: false };
  const subtitles = [{ ...text, number: 3, segments: 0 }];
  const place = { container, urls };
  const film = { file: FILE as never, media, audio: [], subtitles, ...place };
  return /CODECS="([^"]*)"/.exec(hlsManifest(film, "main"))?.[1];
}

test("hlsManifest: CODECS names the picture and the first audio that the container carries", () => {
  const aac = track("audio", "aac", "mp4a.40.2");
  const dts = track("audio", "dts", "dtsc");
  assert.equal(codecsOf("ts", aac, track("audio", "ac3", "ac-3")), "avc1.64001f,mp4a.40.2");
  assert.equal(codecsOf("fmp4", dts, aac), "avc1.64001f,mp4a.40.2");
  assert.equal(codecsOf("fmp4", dts), "avc1.64001f");
});

/** The master manifest of a film with these audio tracks, which are all separate; `original` are those without conversion. */
function masterOf(audio: readonly MediaTrack[], original?: readonly MediaTrack[]): string {
  const mediaWith = (sound: readonly MediaTrack[]) => {
    const tracks = [track("video", "h264", "avc1.64001f"), ...sound];
    const ts = sound.map((_, index) => index + 1);
    return { tracks, durationSeconds: 10, segments: [], separateAudio: { ts, fmp4: ts } } as unknown as Media;
  };
  const media = mediaWith(audio);
  const groups = audioGroups(media, original && mediaWith(original), "ts");
  const place = { container: "ts", urls } as const;
  return hlsManifest({ file: FILE as never, media, audio: groups, subtitles: [], ...place }, "main");
}

/** Each variant: its codecs, and the addresses of its audio in order. */
function variantsOf(master: string): [codecs: string | undefined, audio: (string | undefined)[]][] {
  const lines = master.split("\n");
  return lines
    .filter((line) => line.startsWith("#EXT-X-STREAM-INF"))
    .map((line) => {
      const group = /AUDIO="([^"]*)"/.exec(line)?.[1];
      const own = lines.filter((media) => media.includes(`TYPE=AUDIO,GROUP-ID="${group}"`));
      return [/CODECS="([^"]*)"/.exec(line)?.[1], own.map((media) => /URI=".*(audio=\d+)"/.exec(media)?.[1])];
    });
}

const AAC = track("audio", "aac", "mp4a.40.2");
const AC3 = track("audio", "ac3", "ac-3");

test("hlsManifest: lists every audio track of a film, with distinct names, the first one as default", () => {
  const master = masterOf([AAC, { ...AAC, language: "ger", channels: 6 }, AAC]);
  assert.deepEqual(variantsOf(master), [["avc1.64001f,mp4a.40.2", ["audio=1", "audio=2", "audio=3"]]]);
  const names = [...master.matchAll(/NAME="([^"]*)",LANGUAGE="(\w+)",DEFAULT=(\w+)/g)].map((m) => m.slice(1));
  assert.deepEqual(names, [
    ["English", "en", "YES"],
    ["German", "de", "NO"],
    ["English (2)", "en", "NO"],
  ]);
  assert.match(master, /CHANNELS="6",URI="[^"]*audio=2"/);
});

test("hlsManifest: converted audio has segments of its own, other audio those of the picture", () => {
  const tracks = [track("video", "h264", "avc1.64001f"), { ...AAC, convertedFrom: "ac3" }, AAC];
  const segments = segmentTimes([0, 2, 6, 12], 18);
  const separateAudio = { ts: [1, 2], fmp4: [] };
  const media = { tracks, durationSeconds: 18, segments, soundSlices: soundSlices(segments), separateAudio };
  const film = {
    file: FILE as never,
    media: media as unknown as Media,
    subtitles: [],
    container: "ts",
    urls,
  } as const;
  const audio = audioGroups(film.media, undefined, "ts");
  const durations = (rendition: ManifestRendition) =>
    [...hlsManifest({ ...film, audio }, rendition).matchAll(/#EXTINF:([\d.]+)/g)].map(([, seconds]) =>
      Number(seconds),
    );
  assert.deepEqual(durations("media"), [2, 4, 6, 6]);
  assert.deepEqual(durations({ audio: 2 }), [2, 4, 6, 6]);
  assert.deepEqual(durations({ audio: 1 }), [1, 1, 2, 2, 2, 2, 2, 2, 2, 2]);
  assert.match(hlsManifest({ ...film, audio }, { audio: 1 }), /\/9\.a1\.ts/);
});

test("hlsManifest: a film with one audio track and nothing else to choose is a media playlist", () => {
  assert.match(masterOf([AAC]), /#EXT-X-PLAYLIST-TYPE:VOD/);
});

test("hlsManifest: converted audio comes first, then the audio of the file; unconverted tracks are the same in both", () => {
  const converted = { ...AAC, convertedFrom: "ac3" };
  const german = { ...AAC, language: "ger" };
  assert.deepEqual(variantsOf(masterOf([converted, german], [AC3, german])), [
    ["avc1.64001f,mp4a.40.2", ["audio=1", "audio=2"]],
    ["avc1.64001f,ac-3,mp4a.40.2", ["audio=501", "audio=2"]],
  ]);
});
