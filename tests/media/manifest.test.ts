import assert from "node:assert/strict";
import { test } from "node:test";
import HLS from "hls-parser";
import { type MediaManifest, writeMasterManifest, writeMediaManifest } from "../../src/media/manifest.ts";

const SEGMENTS = [6.006, 7.5, 1.25].map((durationSeconds, i) => ({
  durationSeconds,
  uri: `http://h/${i}.ts`,
}));

test("writeMediaManifest vod: a parser reads what was written", () => {
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

test("writeMediaManifest live: a sliding window with a constant target duration, discontinuities and no end", () => {
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

/** A live manifest of `count` segments of 2 s with four parts each, and two parts of the next segment. */
function lowLatency(count: number, more: Partial<MediaManifest> = {}): string {
  const part = (segment: number, index: number) => ({
    uri: `${segment}.p${index}.ts`,
    durationSeconds: 0.5,
    isIndependent: index === 0,
  });
  return writeMediaManifest({
    kind: "live",
    firstNumber: 900,
    targetSeconds: 3,
    lowLatency: { partTargetSeconds: 0.5, holdBackSeconds: 1.5 },
    segments: Array.from({ length: count }, (_, i) => ({
      uri: `${900 + i}.ts`,
      durationSeconds: 2,
      programDateTimeMs: Date.UTC(2026, 0, 2, 3, 4, 5, 6) + 2000 * i,
      parts: i < count - 2 ? [] : [0, 1, 2, 3].map((index) => part(900 + i, index)),
    })),
    openParts: [part(900 + count, 0), part(900 + count, 1)],
    openStart: { programDateTimeMs: Date.UTC(2026, 0, 2, 3, 4, 5, 6) + 2000 * count },
    preloadHintUri: `${900 + count}.p2.ts`,
    ...more,
  });
}

test("writeMediaManifest lowLatency: a parser reads parts, times and the preload hint", () => {
  const text = lowLatency(4);
  const parsed = HLS.parse(text) as HLS.types.MediaPlaylist;
  assert.equal(parsed.version, 6);
  assert.deepEqual(
    { ...parsed.lowLatencyCompatibility },
    { canBlockReload: true, canSkipUntil: 18, holdBack: undefined, partHoldBack: 1.5 },
  );
  assert.equal(parsed.partTargetDuration, 0.5);
  assert.deepEqual(
    parsed.segments.map(({ mediaSequenceNumber, parts }) => [mediaSequenceNumber, parts.length]),
    [
      [900, 0],
      [901, 0],
      [902, 4],
      [903, 4],
      [904, 3],
    ],
  );
  const [first, second] = parsed.segments[3]!.parts;
  assert.deepEqual([first!.uri, first!.duration, first!.independent], ["903.p0.ts", 0.5, true]);
  assert.deepEqual([second!.uri, second!.independent], ["903.p1.ts", undefined]);
  assert.deepEqual(
    parsed.segments[4]!.parts.map(({ uri, hint }) => [uri, hint]),
    [
      ["904.p0.ts", false],
      ["904.p1.ts", false],
      ["904.p2.ts", true],
    ],
  );
  assert.equal(parsed.segments[1]!.programDateTime?.toISOString(), "2026-01-02T03:04:07.006Z");
  assert.match(
    text,
    /#EXT-X-PROGRAM-DATE-TIME:2026-01-02T03:04:13\.006Z\n#EXT-X-PART:DURATION=0\.500000,URI="904\.p0/,
  );
});

test("writeMediaManifest isDelta: lists the last six target durations and skips older segments", () => {
  assert.doesNotMatch(lowLatency(8, { isDelta: true }), /SKIP:/);
  const text = lowLatency(100, { isDelta: true });
  const parsed = HLS.parse(text) as HLS.types.MediaPlaylist;
  assert.equal(parsed.version, 9);
  assert.equal(parsed.mediaSequenceBase, 900);
  // 18 s: 1 s of the open segment, and nine segments of 2 s.
  assert.equal(parsed.skip, 91);
  assert.equal(parsed.segments[0]!.uri, "991.ts");
});

test("writeMediaManifest openStart: a discontinuity precedes its parts", () => {
  const text = lowLatency(3, { openStart: { isDiscontinuous: true } });
  assert.match(text, /\n902\.ts\n#EXT-X-DISCONTINUITY\n#EXT-X-PART:/);
  assert.equal((HLS.parse(text) as HLS.types.MediaPlaylist).segments.at(-1)!.discontinuity, true);
});

test("writeMediaManifest isGap: marks a missing segment and omits its parts", () => {
  const parts = [{ uri: "p", durationSeconds: 0.5, isIndependent: true }];
  const segments = [SEGMENTS[0]!, { ...SEGMENTS[1]!, isGap: true, parts }, SEGMENTS[2]!];
  const parsed = HLS.parse(writeMediaManifest({ kind: "live", segments })) as HLS.types.MediaPlaylist;
  assert.deepEqual(
    parsed.segments.map(({ gap }) => gap === true),
    [false, true, false],
  );
  assert.equal(parsed.segments[1]!.parts.length, 0);
});

test("writeMediaManifest isEnded: an ended stream has no preload hint", () => {
  const text = lowLatency(3, { isEnded: true });
  assert.doesNotMatch(text, /PRELOAD-HINT/);
  assert.match(text, /#EXT-X-ENDLIST\n$/);
});

test("writeMediaManifest targetSeconds: a floating point error is not rounded up", () => {
  const segments = [{ durationSeconds: 6.0000000001, uri: "a" }];
  assert.match(writeMediaManifest({ kind: "vod", segments }), /TARGETDURATION:6\n/);
});

test("writeMasterManifest: a parser reads variants and renditions with any names", () => {
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
  assert.match(text, /NAME="Signs",DEFAULT=NO,AUTOSELECT=YES,FORCED=YES,/);
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

test("writeMasterManifest codecs: are omitted if one is unknown", () => {
  const text = writeMasterManifest([{ uri: "a", bitsPerSecond: 1, codecs: ["avc1.64001f", undefined] }]);
  assert.doesNotMatch(text, /CODECS/);
});
