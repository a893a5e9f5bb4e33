import assert from "node:assert/strict";
import { createCipheriv } from "node:crypto";
import { test } from "node:test";
import { latin1Bytes } from "../../src/base/bytes.ts";
import { SluiceError } from "../../src/base/errors.ts";
import type { Infohash } from "../../src/base/ids.ts";
import type { HlsMedia } from "../../src/media/hls-media.ts";
import { parseHlsPlaylist } from "../../src/media/hls-playlist.ts";
import type { WebContent } from "../../src/transfer/contract.ts";
import type { SourceOptions } from "../../src/transfer/segment-source.ts";
import { sessionManifestUrls } from "../../src/transfer/segment-source.ts";
import { HlsStream } from "../../src/web-content/hls-programme.ts";
import { HlsSegmentFetcher } from "../../src/web-content/hls-segment-fetcher.ts";
import { openHls } from "../../src/web-content/hls-source.ts";
import { settled } from "../engine/fake-clock.ts";
import { fixture } from "../parts/media-fixtures.ts";
import { FakeWebServer, someContent } from "./web-server.ts";

const INFOHASH = "ab".repeat(20) as Infohash;
const place = { urls: sessionManifestUrls("http://h:1", { infohash: INFOHASH, key: "k", ordinal: 2 }) };
const never = new AbortController().signal;

/** Forty packets that contain the segment number. */
function tsBytes(mark: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(40 * 188).fill(mark);
  for (let at = 0; at < bytes.length; at += 188) bytes.set([0x47, 0x1f, 0xff, 0x10], at);
  return bytes;
}

function live(first: number, count: number, extra = ""): string {
  const segments = Array.from({ length: count }, (_, i) => `#EXTINF:4,\ns${first + i}.ts`);
  return [
    `#EXTM3U`,
    `#EXT-X-TARGETDURATION:4`,
    `#EXT-X-MEDIA-SEQUENCE:${first}`,
    extra,
    ...segments,
    "",
  ].join("\n");
}

/** A server of texts by path that generates segments from their numbers. */
function hls(files: Record<string, string>, changes: Partial<WebContent> = {}) {
  const content = {
    ...changes,
    kind: "hls",
    url: "http://a.example/dir/index.m3u8",
    size: 0,
    validator: undefined,
  } as const;
  const server = new FakeWebServer(content);
  server.answer = ({ url }) => {
    const text = files[url.pathname];
    if (text !== undefined) return { body: [latin1Bytes(text)] };
    const segment = /s(\d+)\.ts$/.exec(url.pathname);
    return segment ? { body: [tsBytes(Number(segment[1]) % 200)] } : { status: 404 };
  };
  const paths = () => server.asked.map(({ url }) => url.pathname);
  const stream = new HlsStream(server.client, someContent(content), INFOHASH);
  const open = (wish: Partial<SourceOptions> = {}) =>
    openHls(stream, { output: "hls", audioLanguage: undefined, ...wish });
  return { server, paths, files, open };
}

const fails = (code: string, message: RegExp) => (error: unknown) => {
  assert.ok(error instanceof SluiceError, String(error));
  assert.equal(error.code, code, error.message);
  assert.match(error.message, message);
  return true;
};

test("openHls: headers of a playlist go to the origin of its URL, and the user agent to all servers", async () => {
  const manifest =
    "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\ns1.ts\n#EXTINF:4,\nhttp://b.example/s2.ts\n#EXT-X-ENDLIST\n";
  const headers = { "user-agent": "A", cookie: "k=v" };
  const { server, open } = hls({ "/dir/index.m3u8": manifest }, { headers });
  const source = await open();
  for (const index of [0, 1]) await source.make("ts", await source.find("ts", index, never), 0, never);
  assert.deepEqual(
    server.asked.map(({ url, headers }) => [url.host, headers["user-agent"], headers.cookie]),
    [
      ["a.example", "A", "k=v"],
      ["a.example", "A", "k=v"],
      ["b.example", "A", undefined],
    ],
  );
});

test("openHls: a live manifest keeps its sequence numbers and is reloaded only on request", async () => {
  const { server, files, paths, open } = hls({ "/dir/index.m3u8": live(7_000_005, 6) });
  const source = await open();
  assert.equal(source.isLive, true);
  const manifest = await source.manifest(place, "main", never);
  assert.match(manifest, /#EXT-X-MEDIA-SEQUENCE:7000005\n/);
  assert.match(manifest, new RegExp(`http://h:1/ace/c/${INFOHASH}/2000005\\.ts`));
  assert.doesNotMatch(manifest, /ENDLIST/);
  await server.clock.advance(60_000);
  assert.equal(paths().length, 1);
  files["/dir/index.m3u8"] = live(7_000_008, 6);
  const [one, two] = await Promise.all([
    source.manifest(place, "main", never),
    source.manifest(place, "main", never),
  ]);
  assert.match(one, /#EXT-X-MEDIA-SEQUENCE:7000008\n/);
  assert.equal(one, two);
  assert.equal(paths().length, 2);
  assert.equal(await source.find("ts", 9, never), 7_000_009);
  assert.deepEqual(await source.make("ts", 7_000_009, 0, never), tsBytes(7_000_009 % 200));
  await assert.rejects(source.find("ts", 5, never), fails("no_such_segment", /has left the live window/));
  assert.equal(source.livePosition!()!.segments, 6);
});

test("openHls: playback starts three target durations before the end, waits at the live edge, and skips removed segments", async () => {
  const { server, files, open } = hls({ "/dir/index.m3u8": live(100, 6) });
  const source = await open();
  assert.equal(await source.first(never), 103);
  let reached: number | undefined;
  const waiting = source.reach(106, never).then((index) => {
    reached = index;
  });
  await server.clock.advance(5_000);
  assert.equal(reached, undefined);
  files["/dir/index.m3u8"] = live(110, 6);
  await server.clock.advance(5_000);
  await waiting;
  assert.equal(reached, 110);
  files["/dir/index.m3u8"] = live(112, 4, "#EXT-X-ENDLIST");
  const last = source.reach(116, never);
  await server.clock.advance(10_000);
  assert.equal(await last, undefined);
  assert.equal(server.clock.waiting, 0);
});

test("openHls: one failed reload is tolerated, six in a row are not", async () => {
  const { server, files, open } = hls({ "/dir/index.m3u8": live(0, 3) });
  const source = await open();
  delete files["/dir/index.m3u8"];
  await server.clock.advance(10_000);
  assert.match(await source.manifest(place, "main", never), /0\.ts|2000000\.ts/);
  const outcome = assert.rejects(source.reach(3, never), fails("url_unreachable", /status 404/));
  await server.clock.advance(60_000);
  await outcome;
});

test("openHls: restarted sequence numbers are other segments", async () => {
  const { server, files, open } = hls({ "/dir/index.m3u8": live(500, 3) });
  const source = await open();
  const before = source.name;
  files["/dir/index.m3u8"] = live(0, 3);
  const reaching = source.reach(503, never);
  await server.clock.advance(5_000);
  assert.equal(await reaching, 0);
  assert.notEqual(source.name, before);
});

test("openHls: selects the best widely supported variant, or one by maximum height or by index", async () => {
  const variants = (audio: string) =>
    `#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="x"${audio}\n` +
    '#EXT-X-STREAM-INF:BANDWIDTH=9000000,CODECS="hvc1.1,mp4a.40.2",RESOLUTION=3840x2160\nuhd.m3u8\n' +
    '#EXT-X-STREAM-INF:BANDWIDTH=3000000,CODECS="avc1.64,mp4a.40.2",RESOLUTION=1280x720,AUDIO="a"\nhd.m3u8\n' +
    '#EXT-X-STREAM-INF:BANDWIDTH=1000000,CODECS="avc1.64,mp4a.40.2",RESOLUTION=640x360\nsd.m3u8\n' +
    '#EXT-X-STREAM-INF:BANDWIDTH=99000000,CODECS="mp4a.40.2"\nsound.m3u8\n';
  for (const [audio, wish, chosen] of [
    ["", {}, "hd"],
    [',URI="sound.m3u8"', {}, "hd"],
    ["", { maxHeight: 2160 }, "hd"],
    ["", { maxHeight: 719 }, "sd"],
    ["", { maxHeight: 100 }, "sd"],
    ["", { variantIndex: 0, maxHeight: 100 }, "uhd"],
    ["", { variantIndex: -1 }, "hd"],
    ["", { variantIndex: 3 }, "sound"],
  ] as const) {
    const path = `/dir/${chosen}.m3u8`;
    const { paths, open } = hls({ "/dir/index.m3u8": variants(audio), [path]: live(0, 3) });
    const source = await open(wish);
    assert.deepEqual(paths(), ["/dir/index.m3u8", path]);
    assert.equal(source.variants!.length, 4);
    assert.equal(source.variantIndex, ["uhd", "hd", "sd", "sound"].indexOf(chosen));
  }
  await assert.rejects(
    hls({ "/dir/index.m3u8": variants("") }).open({ variantIndex: 4 }),
    fails("bad_parameter", /at most 3, got 4/),
  );
});

test("openHls: a media manifest imports variables of its master manifest, at each reload", async () => {
  const { paths, files, open } = hls({
    "/dir/index.m3u8":
      '#EXTM3U\n#EXT-X-DEFINE:NAME="p",VALUE="sub"\n#EXT-X-STREAM-INF:BANDWIDTH=1\n{$p}/v.m3u8\n',
  });
  const variant = (first: number) =>
    live(first, 3, '#EXT-X-DEFINE:IMPORT="p"').replaceAll(/^s(?=\d)/gm, "/{$p}/s");
  files["/dir/sub/v.m3u8"] = variant(5);
  const source = await open();
  assert.deepEqual(paths(), ["/dir/index.m3u8", "/dir/sub/v.m3u8"]);
  await source.make("ts", await source.find("ts", 5, never), 0, never);
  assert.equal(paths().at(-1), "/sub/s5.ts");
});

const SPLIT = [
  "#EXTM3U",
  '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="English",LANGUAGE="en",DEFAULT=YES,URI="en.m3u8"',
  '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="Deutsch",LANGUAGE="de",URI="de.m3u8"',
  '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="other",NAME="x",URI="x.m3u8"',
  '#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="s",NAME="en",LANGUAGE="en",URI="subs.m3u8"',
  '#EXT-X-STREAM-INF:BANDWIDTH=3000000,CODECS="avc1.64,mp4a.40.2",RESOLUTION=1280x720,AUDIO="a",SUBTITLES="s"',
  "picture.m3u8",
  "",
].join("\n");

test("openHls: separate audio and subtitles stay separate in a new master manifest, the preferred language first", async () => {
  const { paths, open } = hls({
    "/dir/index.m3u8": SPLIT,
    "/dir/picture.m3u8": live(0, 3),
    "/dir/de.m3u8": live(70, 2),
    "/dir/subs.m3u8": "#EXTM3U\n#EXTINF:4,\nt.vtt\n#EXT-X-ENDLIST\n",
    "/dir/t.vtt": "WEBVTT\n\n",
  });
  const source = await open({ audioLanguage: "deu" });
  const master = await source.manifest(place, "main", never);
  const media = [...master.matchAll(/^#EXT-X-MEDIA:.*$/gm)].map(([line]) => line);
  assert.equal(media.length, 3);
  const url = `http://h:1/ace/m/${INFOHASH}/k.m3u8`;
  assert.match(media[0]!, /NAME="Deutsch",LANGUAGE="de",DEFAULT=YES/);
  assert.ok(media[0]!.endsWith(`URI="${url}?audio=2"`), media[0]!);
  assert.match(media[1]!, /NAME="English",LANGUAGE="en",DEFAULT=NO/);
  assert.match(media[2]!, /TYPE=SUBTITLES.*\?subtitles=0"/);
  assert.match(master, /BANDWIDTH=3000000,CODECS="avc1.64,mp4a.40.2",RESOLUTION=1280x720,AUDIO="audio"/);
  assert.ok(master.endsWith(`${url}?rendition=media\n`));
  assert.deepEqual(paths(), ["/dir/index.m3u8", "/dir/picture.m3u8"]);
  const sound = await source.manifest(place, { audio: 2 }, never);
  assert.match(sound, /#EXT-X-MEDIA-SEQUENCE:70\n/);
  assert.match(sound, /2000070\.a2\.ts\n/);
  assert.equal(await source.find("ts", 71, never, 2), 71);
  assert.deepEqual(await source.make("ts", 71, 2, never), tsBytes(71));
  assert.match(await source.manifest(place, { subtitles: 0 }, never), /2000000\.s0\.vtt\n/);
  assert.deepEqual(await source.make("vtt", 0, 0, never), latin1Bytes("WEBVTT\n\n"));
  const missing = fails("no_such_segment", /no such track/);
  await assert.rejects(source.manifest(place, { audio: 3 }, never), missing);
  await assert.rejects(source.manifest(place, { subtitles: 1 }, never), missing);
});

test("openHls: a stream that cannot be relayed fails with a reason", async () => {
  const key = (attributes: string) => live(0, 2, `#EXT-X-KEY:${attributes}`);
  const cases: readonly (readonly [string, string, RegExp])[] = [
    [key('METHOD=SAMPLE-AES,URI="k"'), "unsupported_content", /SAMPLE-AES; only AES-128/],
    [key('METHOD=AES-128,URI="k",KEYFORMAT="com.apple"'), "unsupported_content", /com\.apple/],
    ["#EXTM3U\nx.ts\n", "broken_media", /HLS manifest/],
  ];
  for (const [text, code, message] of cases)
    await assert.rejects(hls({ "/dir/index.m3u8": text }).open(), fails(code, message), text);
});

test("openHls: a segment with an unexpected container fails", async () => {
  const { server, open } = hls({ "/dir/index.m3u8": live(0, 3, "#EXT-X-ENDLIST") });
  const source = await open();
  const answer = server.answer;
  const bodies: readonly (readonly [Uint8Array, RegExp])[] = [
    [latin1Bytes("<html>"), /expected segments of MPEG-TS, got an unknown format/],
    [latin1Bytes("\0\0\0\x18ftypiso5\0\0\0\0iso5iso6"), /got mp4/],
    [latin1Bytes("ID3\x04\0\0\0\0\0\0"), /got MP3/],
  ];
  for (const [body, message] of bodies) {
    server.answer = (request) =>
      request.url.pathname.endsWith("s1.ts") ? { body: [body] } : answer(request);
    await assert.rejects(source.make("ts", 1, 0, never), fails("unsupported_container", message));
  }
  server.answer = () => ({ status: 404 });
  await assert.rejects(source.make("ts", 1, 0, never), fails("url_unreachable", /status 404/));
  await settled();
  assert.equal(server.open, 0);
});

test("HlsSegmentFetcher.map: an initialization section may be encrypted or not, regardless of the tag order", async () => {
  const init = (await fixture("fragments.mp4")).subarray(0, 1500);
  const [key, iv] = [new Uint8Array(16).fill(7), new Uint8Array(16)];
  iv[15] = 3; // The number of the segment.
  const cipher = createCipheriv("aes-128-cbc", key, iv);
  const encrypted = new Uint8Array(Buffer.concat([cipher.update(init), cipher.final()]));
  const { server } = hls({});
  const bodies: Record<string, Uint8Array> = {
    "/dir/clear": init,
    "/dir/hidden": encrypted,
    "/dir/key": key,
  };
  server.answer = ({ url }) => ({ body: [bodies[url.pathname] ?? latin1Bytes("no film")] });
  const parts = new HlsSegmentFetcher(server.client);
  const [segment] = (
    parseHlsPlaylist(live(3, 1, '#EXT-X-KEY:METHOD=AES-128,URI="key"\n#EXT-X-MAP:URI="clear"')) as HlsMedia
  ).segments;
  const manifest = { url: "http://a.example/dir/index.m3u8", allowPrivate: false };
  const mapped = (uri: string) => parts.map({ ...segment!, map: { ...segment!.map!, uri } }, manifest, never);
  for (const uri of ["clear", "hidden"]) assert.deepEqual(await mapped(uri), init, uri);
  await assert.rejects(mapped("other"), (error: SluiceError) => error instanceof SluiceError);
});

test("a manifest with cuts: discontinuities, which are counted when they leave the window", async () => {
  const { files, server, open } = hls({ "/dir/index.m3u8": live(10, 4) });
  const source = await open();
  const manifest = await source.manifest({ ...place, cuts: [12] }, "main", never);
  assert.match(manifest, /11\.ts\n#EXT-X-DISCONTINUITY\n#EXTINF:4\.000000,\n.*12\.ts/);
  assert.doesNotMatch(manifest, /DISCONTINUITY-SEQUENCE/);
  files["/dir/index.m3u8"] = live(13, 4);
  await server.clock.advance(4_000);
  const later = await source.manifest({ ...place, cuts: [12, 14] }, "main", never);
  assert.match(later, /#EXT-X-DISCONTINUITY-SEQUENCE:1\n/);
  assert.equal(later.match(/#EXT-X-DISCONTINUITY\n/g)?.length, 1);
});
