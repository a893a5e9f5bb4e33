import assert from "node:assert/strict";
import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { deferred } from "../../src/async/deferred.ts";
import { type EngineProcess, startEngine, startSession } from "../parts/engine.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { run } from "../parts/process.ts";
import { type TempFolder, tempFolder } from "../parts/torrent-files.ts";
import { lavfi, makeMedia } from "../remux/make-media.ts";
import { checkTimestamps, decodesSilently, frameHashes, packetCounts } from "./judges.ts";
import {
  type MediaServer,
  sendEndless,
  sendFile,
  slidingManifest,
  startMediaServer,
} from "./media-server.ts";

const { after, before, describe, test } = await testsThatNeed("ffmpeg");

const CODECS = "-c:v libx264 -preset veryfast -bf 3 -g 50 -pix_fmt yuv420p -shortest".split(" ");
const SHORT_GOPS = "-c:v libx264 -preset veryfast -g 25 -keyint_min 25 -pix_fmt yuv420p -shortest".split(" ");
const KEY = "000102030405060708090a0b0c0d0e0f";

describe("playing content of other servers", { timeout: 600_000 }, () => {
  let scratch: TempFolder;
  let server: MediaServer;
  let engine: EngineProcess;
  const films = new Map<string, string>();
  const isPlaying = deferred();
  const file = (name: string) => scratch.file(name);

  before(async () => {
    scratch = await tempFolder("url-playback");
    await mkdir(scratch.path, { recursive: true });
    const make = async (name: string, args: readonly string[]) => {
      const path = await makeMedia(name, args);
      await copyFile(path, file(name));
      films.set(name, path);
    };
    await make("front.mp4", [...lavfi(20), ...CODECS, "-c:a", "aac", "-movflags", "+faststart"]);
    await make("end.mp4", [...lavfi(20), ...CODECS, "-c:a", "aac"]);
    await make("ac3.mkv", [...lavfi(20), ...CODECS, "-c:a", "ac3"]);
    await make("aac.ts", [...lavfi(20), ...CODECS, "-c:a", "aac"]);
    await make("short.ts", [...lavfi(10), ...SHORT_GOPS, "-c:a", "aac"]);
    await writeFile(file("key"), Buffer.from(KEY, "hex"));
    await writeFile(file("keyinfo"), `key\n${file("key")}\n`);
    const hls = (name: string, ...args: string[]) =>
      run("ffmpeg", [
        ...["-v", "error", "-y", "-i", films.get("short.ts")!, "-c", "copy", "-f", "hls", "-hls_time", "1"],
        ...["-hls_playlist_type", "vod", ...args, file(`${name}.m3u8`)],
      ]);
    await hls("vod");
    await hls("secret", "-hls_key_info_file", file("keyinfo"));
    await hls("ranges", "-hls_flags", "single_file");
    await hls(
      "fragments",
      "-bsf:a",
      "aac_adtstoasc",
      "-hls_segment_type",
      "fmp4",
      "-hls_fmp4_init_filename",
      "fragments-init.mp4",
    );
    await writeFile(
      file("master.m3u8"),
      "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1000\ngone.m3u8\n#EXT-X-STREAM-INF:BANDWIDTH=900000\nvod.m3u8\n",
    );
    const vod = await readFile(file("vod.m3u8"), "utf8");
    const [window, otherWindow] = [slidingManifest(vod, 5), slidingManifest(vod, 4)];
    server = await startMediaServer(scratch.path, {
      "/live.m3u8": (_, to) => void to.end(window()),
      "/live-ts.m3u8": (_, to) => void to.end(otherWindow()),
      "/breaks.mp4": (from, to) => sendFile(file("end.mp4"), from, to, 300_000),
      "/endless.ts": (_, to) => sendEndless(file("short.ts"), to, 1, isPlaying.promise),
      "/for-ever.ts": (_, to) => sendEndless(file("short.ts"), to, 100_000),
      "/manifest.mpd": (_, to) =>
        void to.end('<?xml version="1.0"?>\n<MPD xmlns="urn:mpeg:dash:schema:mpd:2011"/>'),
      "/sample.m3u8": (_, to) =>
        void to.end(
          '#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-KEY:METHOD=SAMPLE-AES,URI="key"\n#EXTINF:2,\nx.ts\n#EXT-X-ENDLIST\n',
        ),
    });
    engine = await startEngine();
  });
  after(async () => {
    await engine?.stop();
    await server?.close();
    await scratch?.remove();
  });

  const played = (path: string, name: string, query: Record<string, string> = {}) =>
    `${engine.url}/ace/${path}?${new URLSearchParams({ url: `${server.url}/${name}`, ...query })}`;

  for (const name of ["front.mp4", "end.mp4", "ac3.mkv", "aac.ts"]) {
    test(`${name} by its URL as MPEG-TS: every packet of the source`, async () => {
      const url = played("getstream", name);
      assert.deepEqual(await packetCounts(url), await packetCounts(films.get(name)!));
      assert.ok((await checkTimestamps(url)) > 500);
      await decodesSilently(url);
    });

    test(`${name} by its URL as HLS: the source's pictures`, async () => {
      const url = played("manifest.m3u8", name, { pid: name });
      assert.deepEqual(await frameHashes(url), await frameHashes(films.get(name)!));
      await decodesSilently(url);
    });
  }

  test("a file by its URL as it is, whole and in part, under /files", async () => {
    const { infohash } = await startSession(engine, "getstream", { url: `${server.url}/front.mp4` });
    const bytes = await readFile(films.get("front.mp4")!);
    const whole = await fetch(`${engine.url}/files/${infohash}/0/front.mp4`);
    assert.equal(whole.headers.get("content-type"), "video/mp4");
    assert.deepEqual(Buffer.from(await whole.arrayBuffer()), bytes);
    const part = await fetch(`${engine.url}/files/${infohash}/0`, {
      headers: { range: "bytes=300000-300099" },
    });
    assert.equal(part.status, 206);
    assert.deepEqual(Buffer.from(await part.arrayBuffer()), bytes.subarray(300000, 300100));
  });

  test("a file whose connections break is read on where they broke", async () => {
    assert.deepEqual(
      await packetCounts(played("getstream", "breaks.mp4")),
      await packetCounts(films.get("end.mp4")!),
    );
  });

  for (const name of ["vod", "secret", "ranges", "master"]) {
    test(`HLS (${name}) as MPEG-TS and as HLS: every packet, decoded in silence`, async () => {
      const wanted = await packetCounts(films.get("short.ts")!);
      for (const path of ["getstream", "manifest.m3u8"]) {
        const url = played(path, `${name}.m3u8`);
        assert.deepEqual(await packetCounts(url), wanted, path);
        await decodesSilently(url);
      }
    });
  }

  test("HLS of fragmented MP4: passed on as HLS, refused as MPEG-TS", async () => {
    const url = played("manifest.m3u8", "fragments.m3u8");
    assert.deepEqual(await frameHashes(url), await frameHashes(films.get("short.ts")!));
    await decodesSilently(url);
    const refused = await fetch(played("getstream", "fragments.m3u8"));
    assert.equal(refused.status, 415);
    assert.match(await refused.text(), /comes in fragmented MP4/);
  });

  test("/hls/manifest.m3u8?manifest_url= plays live HLS to its end, with its numbers", async () => {
    const query = new URLSearchParams({
      manifest_url: `${server.url}/live.m3u8`,
      format: "json",
      pid: "live",
    });
    const answer = await fetch(`${engine.url}/hls/manifest.m3u8?${query}`);
    const { response } = (await answer.json()) as { response: Record<string, string> };
    const first = await (await fetch(response.playback_url!)).text();
    assert.match(first, /#EXT-X-MEDIA-SEQUENCE:\d+\n/);
    assert.doesNotMatch(first, /ENDLIST|PLAYLIST-TYPE/);
    const stat = (await (await fetch(response.stat_url!)).json()) as { response: Record<string, unknown> };
    assert.equal(stat.response.is_live, 1);
    assert.equal(typeof (stat.response.livepos as { last: unknown }).last, "string");
    assert.ok((stat.response.downloaded as number) > 0);
    const hashes = await frameHashes(response.playback_url!);
    const source = await frameHashes(films.get("short.ts")!);
    assert.ok(hashes.length >= 125);
    assert.deepEqual(hashes, source.slice(-hashes.length));
  });

  test("live HLS as one transport stream, to its end: every picture from near the edge on", async () => {
    const hashes = await frameHashes(played("getstream", "live-ts.m3u8"));
    const source = await frameHashes(films.get("short.ts")!);
    assert.ok(hashes.length >= 150, String(hashes.length));
    assert.deepEqual(hashes, source.slice(-hashes.length));
  });

  test("a transport stream without a length: every picture, in order, to its end", async () => {
    // A player starts 7 s behind the newest data: it is there before the second half of the 10 s is sent.
    const { body } = await fetch(played("getstream", "endless.ts"));
    const bytes: Uint8Array[] = [];
    for await (const chunk of body!) {
      isPlaying.resolve();
      bytes.push(chunk);
    }
    await writeFile(file("played.ts"), Buffer.concat(bytes));
    const hashes = await frameHashes(file("played.ts"));
    assert.deepEqual(hashes.slice(0, 250), await frameHashes(films.get("short.ts")!));
  });

  test("an endless transport stream as HLS: a window that slides; its connection ends with the session", async () => {
    const session = await startSession(engine, "manifest.m3u8", {
      url: `${server.url}/for-ever.ts`,
      pid: "e",
    });
    const manifest = await (await fetch(session.playback_url)).text();
    assert.match(manifest, /#EXTINF/);
    assert.doesNotMatch(manifest, /ENDLIST/);
    const segment = manifest.split("\n").find((line) => line.startsWith("http"))!;
    const bytes = new Uint8Array(await (await fetch(segment)).arrayBuffer());
    assert.equal(bytes[0], 0x47);
  });

  for (const [name, status, text] of [
    ["manifest.mpd", 415, /DASH/],
    ["sample.m3u8", 415, /encrypted with SAMPLE-AES; only AES-128/],
    ["none.mp4", 502, /the server answered 404/],
  ] as const) {
    test(`${name}: an error with the reason`, async () => {
      const answer = await fetch(played("getstream", name));
      assert.equal(answer.status, status);
      assert.match(await answer.text(), text);
    });
  }
});
