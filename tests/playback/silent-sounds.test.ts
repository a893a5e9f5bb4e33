import assert from "node:assert/strict";
import { test } from "node:test";
import { buildPmt, packetsOfSection } from "../../src/media/psi.ts";
import { SegmentCache } from "../../src/playback/segment-cache.ts";
import { silentSounds } from "../../src/playback/silent-sounds.ts";
import { AudioTranscoder } from "../../src/remux/audio/transcoder.ts";
import { BuiltinCodecs } from "../../src/remux/codecs/builtin-codecs.ts";
import { readCodecProgram } from "../../src/runtime/codec-scripts.ts";
import type { SegmentSource } from "../../src/transfer/segment-source.ts";
import { PAT, VIDEO_PACKET } from "../remux/synthetic-ts.ts";

const signal = new AbortController().signal;
const playback = {
  conversion: { all: true, mp3: false, ac3: false, isHls: true, channels: 2 },
  transcoder: new AudioTranscoder(new BuiltinCodecs(readCodecProgram)),
  segments: new SegmentCache(),
} as const;
const [AC3, TRUEHD] = [129, 131];

/** A live stream with audio of these stream types. */
function live(...audio: readonly [streamType: number, language: string][]): SegmentSource {
  const sounds = audio.map(([streamType, language], i) => ({ streamType, pid: 0x110 + i, language }));
  const streams = [{ streamType: 27, pid: 0x101 }, ...sounds];
  const pmt = packetsOfSection(buildPmt({ programme: 1, version: 0, pcrPid: 0x101, streams }), 0x100);
  const head = new Uint8Array([...PAT, ...pmt, ...VIDEO_PACKET]);
  return { container: "ts", live: { cursor: () => ({ next: async () => head }) } } as never;
}

test("silentSounds: names the audio of a live stream that cannot be decoded, unless its language can be heard", async () => {
  const source = live([TRUEHD, "eng"], [AC3, "ger"], [TRUEHD, "ger"]);
  assert.deepEqual(await silentSounds(source, playback, signal), [{ language: "eng", codec: "truehd" }]);
  assert.deepEqual(await silentSounds(live([AC3, "eng"]), playback, signal), []);
});

test("silentSounds: without a transcoder, browsers play AAC only", async () => {
  const source = live([AC3, "eng"], [15, "ger"]);
  const plain = { ...playback, transcoder: undefined };
  assert.deepEqual(await silentSounds(source, plain, signal), [{ language: "eng", codec: "ac3" }]);
});
