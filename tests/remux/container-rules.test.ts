import assert from "node:assert/strict";
import { test } from "node:test";
import { fitFmp4, fitTs } from "../../src/remux/container-rules.ts";
import type { SourceTrack } from "../../src/remux/media-tracks.ts";
import { AAC_CONFIG } from "./synthetic-ts.ts";

/** AAC of an object type that ADTS cannot carry. */
const USAC_CONFIG = new Uint8Array([0xf9, 0x46, 0x90]);

function track(kind: "video" | "audio", codec: string, config?: Uint8Array<ArrayBuffer>): SourceTrack {
  const described = {
    kind,
    codec,
    codecString: undefined,
    language: "und",
    title: undefined,
    isDefault: true,
  };
  return {
    ...{ described, kind, id: 1, libraryCodec: codec },
    ...{ decoderConfig: undefined, config, sampleRate: 48_000 },
  };
}

const video = track("video", "h264");
const codecs = (tracks: readonly SourceTrack[]) => tracks.map(({ described }) => described.codec);

for (const [name, audio] of [
  ["FLAC", track("audio", "flac")],
  ["TrueHD", track("audio", "A_TRUEHD")],
  ["AAC that ADTS cannot carry", track("audio", "aac", USAC_CONFIG)],
] as const) {
  test(`fitTs of H.264 with ${name}: the picture, without sound`, () => {
    const { tracks, problem, isSilent } = fitTs([video, audio]);
    assert.deepEqual([codecs(tracks), problem, isSilent], [["h264"], undefined, true]);
  });
}

test("fitTs carries the audio tracks that fit, DTS included", () => {
  const fit = fitTs([
    video,
    track("audio", "opus"),
    track("audio", "dts"),
    track("audio", "aac", AAC_CONFIG),
  ]);
  assert.deepEqual([codecs(fit.tracks), fit.isSilent], [["h264", "dts", "aac"], false]);
});

test("fitFmp4 carries the first audio track that fits, or none", () => {
  const two = fitFmp4([video, track("audio", "mp2"), track("audio", "opus"), track("audio", "aac")]);
  assert.deepEqual([codecs(two.tracks), two.isSilent], [["h264", "opus"], false]);
  const none = fitFmp4([video, track("audio", "dts")]);
  assert.deepEqual([codecs(none.tracks), none.problem, none.isSilent], [["h264"], undefined, true]);
});

test("fitTs names the video codec, or the audio codec of a file without video", () => {
  const vp9 = fitTs([track("video", "vp9"), track("audio", "aac", AAC_CONFIG)]);
  assert.match(
    vp9.problem!.message,
    /^VP9 video cannot be carried in MPEG-TS; request HLS with container=fmp4/,
  );
  assert.match(fitTs([track("audio", "vorbis")]).problem!.message, /^Vorbis audio .* request the raw file$/);
});
