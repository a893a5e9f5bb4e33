import assert from "node:assert/strict";
import { chmod, mkdir, open, stat } from "node:fs/promises";
import { type EngineProcess, nameContent, startEngine } from "../parts/engine.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { type PlainSeeder, startSeeder } from "../parts/plain-seeder.ts";
import { run } from "../parts/process.ts";
import { type TempFolder, tempFolder, torrentOf } from "../parts/torrent-files.ts";
import { lavfi, makeMedia } from "../remux/make-media.ts";
import { frameHashes } from "./judges.ts";
import { mpv, vlcCounts } from "./player-programs.ts";

const { after, before, describe, test } = await testsThatNeed("ffmpeg", "mpv", "curl");
const { test: vlcTest } = await testsThatNeed("ffmpeg", "vlc");

const H264 = ["-pix_fmt", "yuv420p", "-c:v", "libx264", "-preset", "veryfast", "-bf", "3", "-g", "50"];

describe("player programs", { timeout: 300_000 }, () => {
  let scratch: TempFolder;
  let film: string;
  let seeder: PlainSeeder;
  let engine: EngineProcess;
  let query: string;
  let infohash: string;

  before(async () => {
    scratch = await tempFolder("programs");
    // VLC refuses to run as root, so it writes as another user.
    await chmod(scratch.path, 0o777);
    film = await makeMedia("programs.mkv", [...lavfi(60), ...H264, "-c:a", "aac", "-shortest"]);
    await mkdir(scratch.file("seed"));
    await run("cp", [film, scratch.file("seed/film.mkv")]);
    const torrent = await torrentOf(scratch.file("seed/film.mkv"), 64 * 1024, scratch.file("film.torrent"));
    seeder = await startSeeder(torrent, scratch.file("seed"));
    infohash = torrent.infohash;
    const magnet = `magnet:?xt=urn:btih:${infohash}&x.pe=127.0.0.1:${seeder.port}`;
    query = String(new URLSearchParams({ magnet }));
    engine = await startEngine();
  });
  after(async () => {
    await engine?.stop();
    await seeder?.stop();
    await scratch?.remove();
  });

  for (const path of ["getstream", "manifest.m3u8"]) {
    vlcTest(`VLC plays /ace/${path} to its end, as it plays the file itself`, async () => {
      const played = await vlcCounts(`${engine.url}/ace/${path}?${query}`, scratch.file(`${path}.ts`));
      const wanted = await vlcCounts(scratch.file("seed/film.mkv"), scratch.file(`${path}-file.ts`));
      for (const [codec, count] of wanted) {
        // VLC itself drops a few packets at the end of what it writes, not always the same.
        assert.ok(Math.abs(played.get(codec)! - count) <= 5, `${codec}: ${played.get(codec)} of ${count}`);
      }
    });
  }

  test("mpv plays /ace/getstream from its first picture", async () => {
    const out = scratch.file("ts.mkv");
    await mpv(`${engine.url}/ace/getstream?${query}`, out, ["--frames=100"]);
    assert.deepEqual((await frameHashes(out)).slice(0, 90), (await frameHashes(film)).slice(0, 90));
  });

  test("mpv jumps into the middle of the HLS stream and shows the very picture", async () => {
    const out = scratch.file("hls.mkv");
    await mpv(`${engine.url}/ace/manifest.m3u8?${query}`, out, ["--start=50%", "--length=2"]);
    assert.deepEqual(await frameHashes(out), (await frameHashes(film)).slice(750, 800));
  });

  test("mpv jumps within the file itself by Range requests", async () => {
    await nameContent(engine, Object.fromEntries(new URLSearchParams(query)));
    const out = scratch.file("file.mkv");
    await mpv(`${engine.url}/files/${infohash}/0/film.mkv`, out, ["--start=40", "--length=2"]);
    assert.deepEqual(await frameHashes(out), (await frameHashes(film)).slice(1000, 1050));
  });

  test("curl: -I, a resumed download and a redirect end as curl expects", async () => {
    await nameContent(engine, Object.fromEntries(new URLSearchParams(query)));
    const file = `${engine.url}/files/${infohash}/0/film.mkv`;
    const size = (await run("curl", ["-sSI", file])).match(/content-length: (\d+)/i)![1]!;
    const whole = scratch.file("curl.mkv");
    await run("curl", ["-sSf", "-r", "0-99999", "-o", whole, file]);
    await run("curl", ["-sSf", "-C", "-", "-o", whole, file]);
    await run("cmp", [whole, scratch.file("seed/film.mkv")]);
    assert.equal(String((await stat(whole)).size), size);
    for (const path of ["getstream", "manifest.m3u8"]) {
      const said = await run("curl", ["-sSfIL", `${engine.url}/ace/${path}?${query}`]);
      assert.match(said, /^HTTP\/1.1 302 .*^HTTP\/1.1 200 /ms);
    }
  });

  test("a player that jumps about, breaking off each request, gets the right bytes each time", async () => {
    await nameContent(engine, Object.fromEntries(new URLSearchParams(query)));
    const url = `${engine.url}/files/${infohash}/0/film.mkv`;
    const source = await open(film);
    const { size } = await source.stat();
    try {
      for (let i = 0; i < 60; i++) {
        const from = Math.floor((((i * 37) % 60) / 60) * (size - 70_000));
        const abort = new AbortController();
        const answer = await fetch(url, {
          headers: { range: `bytes=${from}-` },
          signal: abort.signal,
        });
        assert.equal(answer.headers.get("content-range"), `bytes ${from}-${size - 1}/${size}`);
        const { value } = await answer.body!.getReader().read();
        const wanted = new Uint8Array(value!.length);
        await source.read(wanted, 0, wanted.length, from);
        assert.deepEqual(value, wanted);
        abort.abort();
      }
    } finally {
      await source.close();
    }
  });
});
