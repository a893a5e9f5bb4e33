import assert from "node:assert/strict";
import { test } from "node:test";
import { hlsTimeMs, readHlsAttributes } from "../../src/media/hls-attributes.ts";
import type { HlsMaster } from "../../src/media/hls-master.ts";
import type { HlsMedia } from "../../src/media/hls-media.ts";
import { parseHlsPlaylist } from "../../src/media/hls-playlist.ts";
import { writeMasterManifest, writeMediaManifest } from "../../src/media/manifest.ts";

const media = (text: string): HlsMedia => {
  const parsed = parseHlsPlaylist(text);
  assert.ok(parsed.kind === "media");
  return parsed;
};
const master = (text: string): HlsMaster => {
  const parsed = parseHlsPlaylist(text);
  assert.ok(parsed.kind === "master");
  return parsed;
};
/** A manifest with these lines after its head. */
const withLines = (...lines: string[]) => media(["#EXTM3U", "#EXT-X-TARGETDURATION:6", ...lines].join("\n"));

const LIVE = `#EXTM3U
#EXT-X-VERSION:3
#EXT-X-ALLOW-CACHE:NO
#EXT-X-TARGETDURATION:10
#EXT-X-MEDIA-SEQUENCE:7794
#EXT-X-DISCONTINUITY-SEQUENCE:3

#EXT-X-PROGRAM-DATE-TIME:2026-02-19T14:54:23.031+08:00
#EXTINF:9.009,first, with a comma
https://cdn.example/a.ts?token=x,y
#EXTINF:9.009,
#EXT-X-DISCONTINUITY
b.ts
# a remark
#EXTINF:3.003
#EXT-X-GAP
c.ts
`;

test("parseHlsPlaylist live: numbers, durations, titles, discontinuities, times, gaps", () => {
  for (const text of [LIVE, LIVE.replaceAll("\n", "\r\n"), LIVE.replaceAll("\n", "\r"), `\ufeff${LIVE}`]) {
    const parsed = media(text);
    assert.deepEqual(
      [parsed.version, parsed.targetSeconds, parsed.firstNumber, parsed.isEnded, parsed.type],
      [3, 10, 7794, false, undefined],
    );
    assert.deepEqual(
      parsed.segments.map((one) => [
        one.number,
        one.uri,
        one.durationSeconds,
        one.discontinuity,
        one.isDiscontinuous,
      ]),
      [
        [7794, "https://cdn.example/a.ts?token=x,y", 9.009, 3, false],
        [7795, "b.ts", 9.009, 4, true],
        [7796, "c.ts", 3.003, 4, false],
      ],
    );
    assert.equal(parsed.segments[0]!.title, "first, with a comma");
    assert.equal(parsed.segments[0]!.programTimeMs, Date.parse("2026-02-19T06:54:23.031Z"));
    assert.deepEqual(
      parsed.segments.map(({ isGap }) => isGap),
      [false, false, true],
    );
  }
});

test("parseHlsPlaylist vod: type, end, start, and defaults of missing tags", () => {
  const parsed = media(
    "#EXTM3U\n#EXT-X-PLAYLIST-TYPE:VOD\n#EXT-X-START:TIME-OFFSET=-12.5,PRECISE=YES\n#EXTINF:5.7,\na\n#EXT-X-ENDLIST",
  );
  assert.deepEqual(
    [
      parsed.version,
      parsed.targetSeconds,
      parsed.firstNumber,
      parsed.isEnded,
      parsed.type,
      parsed.startSeconds,
    ],
    [1, 6, 0, true, "vod", -12.5],
  );
});

test("parseHlsPlaylist #EXT-X-KEY: applies until the next key; with and without IV; formats", () => {
  const { segments } = withLines(
    "#EXTINF:6,\na",
    '#EXT-X-KEY:METHOD=AES-128,URI="https://k.example/1?a=b,c",IV=0x9c7db8778570d05c3177c349fd9236aa',
    "#EXTINF:6,\nb",
    "#EXTINF:6,\nc",
    '#EXT-X-KEY:METHOD=AES-128,URI="k2",IV=0Xff',
    '#EXT-X-KEY:METHOD=SAMPLE-AES,URI="skd://x",KEYFORMAT="com.apple.streamingkeydelivery"',
    "#EXTINF:6,\nd",
    "#EXT-X-KEY:METHOD=NONE",
    "#EXTINF:6,\ne",
    '#EXT-X-KEY:METHOD=SAMPLE-AES,URI="skd://x",KEYFORMAT="com.apple.streamingkeydelivery"',
    "#EXTINF:6,\nf",
  );
  assert.deepEqual(
    segments.map(({ key }) => key && [key.method, key.uri, key.iv?.[15], key.format]),
    [
      undefined,
      ["AES-128", "https://k.example/1?a=b,c", 0xaa, "identity"],
      ["AES-128", "https://k.example/1?a=b,c", 0xaa, "identity"],
      ["AES-128", "k2", 0xff, "identity"],
      undefined,
      ["SAMPLE-AES", "skd://x", undefined, "com.apple.streamingkeydelivery"],
    ],
  );
  assert.equal(segments[3]!.key!.iv!.length, 16);
});

test("parseHlsPlaylist: accepts durations without a leading zero, an IV without 0x, comments before #EXTM3U", () => {
  const { segments } = media(
    `# made by a server\n\n#\n#EXTM3U\n#EXT-X-KEY:METHOD=AES-128,URI="k",IV=${"0".repeat(28)}00ff\n#EXTINF:.360,\na.ts\n`,
  );
  assert.equal(segments[0]!.durationSeconds, 0.36);
  assert.deepEqual([...segments[0]!.key!.iv!.subarray(14)], [0, 255]);
  assert.throws(() => media("# x\n#EXT-X-VERSION:3\n#EXTM3U\n#EXTINF:1,\na.ts\n"), /expected #EXTM3U/);
  for (const duration of [".", "-.5", "1.2.3"])
    assert.throws(() => withLines(`#EXTINF:${duration},`, "a.ts"), /segment duration/);
});

test("parseHlsPlaylist #EXT-X-DEFINE: values, imports and query parameters replace {$name}", () => {
  const parsed = parseHlsPlaylist(
    `#EXTM3U\n#EXT-X-DEFINE:NAME="path",VALUE="a/b"\n#EXT-X-DEFINE:QUERYPARAM="token"\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="g",URI="{$path}/audio.m3u8"\n#EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO="g"\n{$path}/v.m3u8?t={$token}\n`,
    { url: "http://h/m.m3u8?x=1&token=a%20b" },
  );
  assert.ok(parsed.kind === "master");
  assert.equal(parsed.variants[0]!.uri, "a/b/v.m3u8?t=a b");
  assert.equal(parsed.renditions[0]!.uri, "a/b/audio.m3u8");
  const imported = `#EXTM3U\n#EXT-X-DEFINE:IMPORT="path"\n#EXT-X-MAP:URI="{$path}/init.mp4"\n#EXTINF:1,{$title}\n{$path}/1.m4s\n`;
  const variant = parseHlsPlaylist(imported, { imported: parsed.variables });
  assert.ok(variant.kind === "media");
  const [segment] = variant.segments;
  assert.deepEqual(
    [segment!.uri, segment!.map!.uri, segment!.title],
    ["a/b/1.m4s", "a/b/init.mp4", "{$title}"],
  );
  assert.throws(() => media(imported), /"path" has no value/);
  assert.throws(() => withLines('#EXT-X-DEFINE:QUERYPARAM="a"'), /"a" has no value/);
  assert.throws(() => withLines("#EXTINF:1,", "{$none}.ts"), /"none" is not defined/);
  const twice = '#EXT-X-DEFINE:NAME="a",VALUE="b"';
  assert.throws(() => withLines(twice, twice), /"a" is defined twice/);
  const long = `#EXT-X-DEFINE:NAME="a",VALUE="${"x".repeat(10_000)}"`;
  assert.throws(() => withLines(long, "#EXTINF:1,", "{$a}".repeat(10)), /more than 65536 characters/);
  // Substituted, they would be longer than a string can be, and than the memory.
  assert.throws(() => withLines(long, "#EXTINF:1,", "{$a}".repeat(1_000_000)), /more than 65536 characters/);
  const many = new Array<string>(100_000).fill("#EXT-X-NOTE:{$a}");
  assert.throws(() => withLines(long, ...many), /values of variables are too long/);
});

test("parseHlsPlaylist #EXT-X-MAP, #EXT-X-BYTERANGE: byte ranges are half-open", () => {
  const { segments } = withLines(
    '#EXT-X-MAP:URI="main.mp4",BYTERANGE="721@0"',
    "#EXTINF:6,\n#EXT-X-BYTERANGE:100@721\nmain.mp4",
    "#EXT-X-BYTERANGE:50\n#EXTINF:6,\nmain.mp4",
    '#EXT-X-MAP:URI="init2.mp4"',
    "#EXTINF:6,\nother.mp4",
  );
  assert.deepEqual(
    segments.map(({ uri, range, map }) => [uri, range, map]),
    [
      ["main.mp4", { start: 721, end: 821 }, { uri: "main.mp4", range: { start: 0, end: 721 } }],
      ["main.mp4", { start: 821, end: 871 }, { uri: "main.mp4", range: { start: 0, end: 721 } }],
      ["other.mp4", undefined, { uri: "init2.mp4", range: undefined }],
    ],
  );
});

test("parseHlsPlaylist low latency: parts, hints and reports are ignored, skipped segments are counted", () => {
  const parsed = withLines(
    "#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=1.0",
    "#EXT-X-PART-INF:PART-TARGET=0.33334",
    "#EXT-X-MEDIA-SEQUENCE:266",
    "#EXT-X-SKIP:SKIPPED-SEGMENTS=3",
    '#EXT-X-PART:DURATION=0.33334,URI="p0.mp4",INDEPENDENT=YES',
    "#EXTINF:4.00008,\nfileSequence269.mp4",
    '#EXT-X-PRELOAD-HINT:TYPE=PART,URI="p1.mp4"',
    '#EXT-X-RENDITION-REPORT:URI="../1M/x.m3u8",LAST-MSN=273,LAST-PART=2',
  );
  assert.deepEqual(
    parsed.segments.map(({ number, uri }) => [number, uri]),
    [[269, "fileSequence269.mp4"]],
  );
});

test("parseHlsPlaylist master: variants and renditions", () => {
  const { variants, renditions } = master(`#EXTM3U
#EXT-X-INDEPENDENT-SEGMENTS
#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="aud",NAME="English, stereo",LANGUAGE="en",DEFAULT=YES,AUTOSELECT=YES,CHANNELS="2/-",URI="a/en.m3u8"
#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="sub",NAME="Deutsch",LANGUAGE="de",FORCED=YES,URI="s/de.m3u8"
#EXT-X-MEDIA:TYPE=CLOSED-CAPTIONS,GROUP-ID="cc",NAME="CC",INSTREAM-ID="CC1"
#EXT-X-MEDIA:TYPE=OTHER,GROUP-ID="x",NAME="x"
#EXT-X-STREAM-INF:BANDWIDTH=2177116,AVERAGE-BANDWIDTH=2168183, CODECS="avc1.640020,mp4a.40.2",RESOLUTION=960x540,FRAME-RATE=59.940,CLOSED-CAPTIONS="cc",AUDIO="aud",SUBTITLES="sub"

v5/prog_index.m3u8
#EXT-X-STREAM-INF:PROGRAM-ID=1,BANDWIDTH=64000
audio-only.m3u8
#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=187492,URI="v7/iframe_index.m3u8"
`);
  assert.deepEqual(variants, [
    {
      uri: "v5/prog_index.m3u8",
      bitsPerSecond: 2177116,
      averageBitsPerSecond: 2168183,
      width: 960,
      height: 540,
      codecs: ["avc1.640020", "mp4a.40.2"],
      audioGroup: "aud",
      subtitleGroup: "sub",
    },
    {
      uri: "audio-only.m3u8",
      bitsPerSecond: 64000,
      averageBitsPerSecond: undefined,
      width: undefined,
      height: undefined,
      codecs: [],
      audioGroup: undefined,
      subtitleGroup: undefined,
    },
  ]);
  assert.deepEqual(
    renditions.map(({ type, group, name, language, uri, isDefault, isForced }) => [
      ...[type, group, name, language, uri, isDefault, isForced],
    ]),
    [
      ["audio", "aud", "English, stereo", "en", "a/en.m3u8", true, false],
      ["subtitles", "sub", "Deutsch", "de", "s/de.m3u8", false, true],
      ["closed-captions", "cc", "CC", undefined, undefined, false, false],
    ],
  );
});

test("parseHlsPlaylist: reads what writeMediaManifest and writeMasterManifest write", () => {
  const segments = [6.006, 7.5].map((durationSeconds, i) => ({ durationSeconds, uri: `http://h/${i}.m4s` }));
  const parsed = media(writeMediaManifest({ kind: "live", firstNumber: 4, mapUri: "i.mp4", segments }));
  assert.deepEqual(
    parsed.segments.map(({ uri, durationSeconds, map }) => [uri, durationSeconds, map?.uri]),
    [
      ["http://h/0.m4s", 6.006, "i.mp4"],
      ["http://h/1.m4s", 7.5, "i.mp4"],
    ],
  );
  assert.equal(master(writeMasterManifest([{ uri: "v", bitsPerSecond: 5 }])).variants[0]!.bitsPerSecond, 5);
});

test("parseHlsPlaylist: rejects other formats, and errors that would play wrong bytes, with their position", () => {
  const head = "#EXTM3U\n#EXT-X-TARGETDURATION:6\n";
  const cases: [string, RegExp][] = [
    ["", /expected #EXTM3U \(at 0\)/],
    ["<html>", /expected #EXTM3U/],
    ["#EXTM3UX\n", /expected #EXTM3U/],
    ["#EXTM3U\n", /neither/],
    [`${head}a.ts`, /no #EXTINF.* \(at 32\)/],
    [`${head}#EXTINF:abc,\na.ts`, /segment duration/],
    [`${head}#EXTINF:999999,\na.ts`, /segment duration/],
    [`${head}#EXTINF:-1 tvg-id="x",A\nhttp://h/`, /segment duration/],
    [`${head}#EXTINF:6,\n#EXT-X-BYTERANGE:10\na.ts`, /byte range/],
    [`${head}#EXTINF:6,\n#EXT-X-BYTERANGE:x@1\na.ts`, /byte range/],
    [`${head}#EXT-X-KEY:METHOD=AES-128\n`, /EXT-X-KEY has no/],
    [`${head}#EXT-X-KEY:METHOD=AES-128,URI="k",IV=12\n`, /IV/],
    [`${head}#EXT-X-MAP:BYTERANGE="1@0"\n`, /EXT-X-MAP/],
    [`${head}#EXTINF:6,\n${"x".repeat(20_000)}`, /URI has more than/],
    [`${head}#EXTINF:6,\na.ts\n#EXT-X-STREAM-INF:BANDWIDTH=1\nb`, /both/],
    [`#EXTM3U\n${"#EXT-X-STREAM-INF:BANDWIDTH=1\nv\n".repeat(501)}`, /more than 500 variants/],
    [`${head}${"#EXTINF:6,\na\n".repeat(100_001)}`, /more than 100000 segments/],
  ];
  for (const [text, message] of cases)
    assert.throws(() => parseHlsPlaylist(text), { name: "DecodeError", message }, text.slice(0, 80));
});

test("parseHlsPlaylist: accepts a manifest without segments", () => {
  assert.deepEqual(withLines().segments, []);
});

test("readHlsAttributes: commas within quotes, spaces, unclosed quotes, repeated names", () => {
  assert.deepEqual(
    [...readHlsAttributes('A="x,y" , B=1,A=2,C= "z",D="open,E=5')],
    [
      ["A", "x,y"],
      ["B", "1"],
      ["C", "z"],
      ["D", "open"],
      ["E", "5"],
    ],
  );
  assert.equal(readHlsAttributes(Array.from({ length: 100 }, (_, i) => `A${i}=1`).join(",")).size, 64);
});

test("hlsTimeMs: all forms of time zones", () => {
  for (const text of [
    "2026-01-02T03:04:05.678Z",
    "2026-01-02T05:04:05.678+02:00",
    "2026-01-02 01:34:05.678-0130",
  ])
    assert.equal(hlsTimeMs(text), Date.UTC(2026, 0, 2, 3, 4, 5, 678), text);
  assert.equal(hlsTimeMs("2026-01-02T03:04:05"), Date.UTC(2026, 0, 2, 3, 4, 5));
  for (const text of ["", "yesterday", "2026-01-02"]) assert.equal(hlsTimeMs(text), undefined, text);
});
