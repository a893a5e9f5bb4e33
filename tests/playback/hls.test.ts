import assert from "node:assert/strict";
import { test } from "node:test";
import { parseInfohash } from "../../src/base/ids.ts";
import { hlsManifest } from "../../src/playback/hls.ts";
import type { Media, MediaTrack } from "../../src/remux/contract.ts";

const FILE = { index: 0, path: ["a.mkv"], name: "a.mkv", size: 1_000_000 };
const SESSION = { infohash: parseInfohash("a".repeat(40))!, key: "k", ordinal: 0 };

function track(kind: MediaTrack["kind"], codec: string, codecString: string): MediaTrack {
  return { kind, codec, codecString, language: "eng", title: undefined, isDefault: false };
}

/** The `CODECS` of a film with these audio tracks and a subtitle track. */
function codecsOf(container: "ts" | "fmp4", ...audio: readonly MediaTrack[]): string | undefined {
  const tracks = [track("video", "h264", "avc1.64001f"), ...audio, track("subtitle", "subrip", "")];
  const media = { tracks, durationSeconds: 10, segments: [] } as unknown as Media;
  const film = { file: FILE as never, media, container, base: "http://a", session: SESSION };
  return /CODECS="([^"]*)"/.exec(hlsManifest(film, "main"))?.[1];
}

test("hlsManifest: CODECS names the picture and the first audio that the container carries", () => {
  const aac = track("audio", "aac", "mp4a.40.2");
  const dts = track("audio", "dts", "dtsc");
  assert.equal(codecsOf("ts", aac, track("audio", "ac3", "ac-3")), "avc1.64001f,mp4a.40.2");
  assert.equal(codecsOf("fmp4", dts, aac), "avc1.64001f,mp4a.40.2");
  assert.equal(codecsOf("fmp4", dts), "avc1.64001f");
});
