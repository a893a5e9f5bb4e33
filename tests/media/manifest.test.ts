import assert from "node:assert/strict";
import { test } from "node:test";
import HLS from "hls-parser";
import { writeMasterManifest, writeMediaManifest } from "../../src/media/manifest.ts";

const SEGMENTS = [6.006, 7.5, 1.25].map((durationSeconds, i) => ({
  durationSeconds,
  uri: `http://h/${i}.ts`,
}));

test("writeMediaManifest vod: a parser reads back what was written", () => {
  const text = writeMediaManifest({ kind: "vod", segments: SEGMENTS });
  const parsed = HLS.parse(text) as HLS.types.MediaPlaylist;
  assert.equal(parsed.isMasterPlaylist, false);
  assert.equal(parsed.version, 3);
  assert.equal(parsed.targetDuration, 8);
  assert.equal(parsed.mediaSequenceBase, 0);
  assert.equal(parsed.playlistType, "VOD");
  assert.equal(parsed.endlist, true);
  assert.deepEqual(
    parsed.segments.map(({ duration, uri }) => ({ durationSeconds: duration, uri })),
    SEGMENTS,
  );
  assert.doesNotMatch(text, /INDEPENDENT/);
});

test("writeMediaManifest fmp4: names the initialisation segment before all segments", () => {
  const parsed = HLS.parse(
    writeMediaManifest({ kind: "vod", mapUri: "init.mp4", segments: SEGMENTS }),
  ) as HLS.types.MediaPlaylist;
  assert.equal(parsed.version, 6);
  assert.ok(parsed.segments.every(({ map }) => map?.uri === "init.mp4"));
});

test("writeMediaManifest live: slides, keeps its target, marks jumps, has no end", () => {
  const segments = [SEGMENTS[0]!, { ...SEGMENTS[2]!, isDiscontinuous: true }];
  const text = writeMediaManifest({
    kind: "live",
    firstNumber: 40,
    firstDiscontinuity: 2,
    targetSeconds: 8,
    segments,
  });
  const parsed = HLS.parse(text) as HLS.types.MediaPlaylist;
  assert.equal(parsed.mediaSequenceBase, 40);
  assert.equal(parsed.discontinuitySequenceBase, 2);
  assert.equal(parsed.targetDuration, 8);
  assert.equal(parsed.endlist, false);
  assert.equal(parsed.playlistType, undefined);
  assert.deepEqual(
    parsed.segments.map(({ discontinuity }) => discontinuity === true),
    [false, true],
  );
});

test("writeMediaManifest targetSeconds: a whole number is not rounded up", () => {
  const segments = [{ durationSeconds: 6.0000000001, uri: "a" }];
  assert.match(writeMediaManifest({ kind: "vod", segments }), /TARGETDURATION:6\n/);
});

test("writeMasterManifest: a parser reads back variants and renditions, whatever the names", () => {
  const text = writeMasterManifest(
    [
      {
        uri: "media.m3u8",
        bitsPerSecond: 5_000_000.2,
        codecs: ["avc1.64001f", "mp4a.40.2", "mp4a.40.2"],
        width: 1280,
        height: 720,
        subtitleGroup: "subs",
      },
    ],
    [
      {
        kind: "subtitles",
        group: "subs",
        name: 'Full "SDH"\n#EXT',
        uri: "s1.m3u8",
        language: "de",
        isDefault: true,
      },
      { kind: "subtitles", group: "subs", name: "Signs", uri: "s2.m3u8", isDefault: false, isForced: true },
    ],
  );
  const parsed = HLS.parse(text) as HLS.types.MasterPlaylist;
  const variant = parsed.variants[0]!;
  assert.equal(variant.uri, "media.m3u8");
  assert.equal(variant.bandwidth, 5_000_001);
  assert.equal(variant.codecs, "avc1.64001f,mp4a.40.2");
  assert.deepEqual(variant.resolution, { width: 1280, height: 720 });
  assert.deepEqual(
    variant.subtitles.map(({ name, uri, language, isDefault, forced }) => [
      name,
      uri,
      language,
      isDefault,
      forced === true,
    ]),
    [
      ["Full \u201dSDH\u201d #EXT", "s1.m3u8", "de", true, false],
      ["Signs", "s2.m3u8", undefined, false, true],
    ],
  );
});

test("writeMasterManifest codecs: are left out where one is not known", () => {
  const text = writeMasterManifest([{ uri: "a", bitsPerSecond: 1, codecs: ["avc1.64001f", undefined] }]);
  assert.doesNotMatch(text, /CODECS/);
});
