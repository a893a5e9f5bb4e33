import assert from "node:assert/strict";
import { chmod, mkdir, readFile, stat } from "node:fs/promises";
import { type EngineProcess, startEngine } from "../parts/engine.ts";
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

describe("the playlist, as players and people use it", { timeout: 300_000 }, () => {
  let scratch: TempFolder;
  let film: string;
  let seeder: PlainSeeder;
  let engine: EngineProcess;
  let infohash: string;
  let token: string;
  let id: number;

  before(async () => {
    scratch = await tempFolder("playlist");
    // VLC refuses to run as root, so it writes as another user.
    await chmod(scratch.path, 0o777);
    film = await makeMedia("playlist.mkv", [...lavfi(20), ...H264, "-c:a", "aac", "-shortest"]);
    await mkdir(scratch.file("seed"));
    await run("cp", [film, scratch.file("seed/film.mkv")]);
    const torrent = await torrentOf(scratch.file("seed/film.mkv"), 64 * 1024, scratch.file("film.torrent"));
    seeder = await startSeeder(torrent, scratch.file("seed"));
    infohash = torrent.infohash;
    engine = await startEngine({ dataDir: scratch.file("data") });
    ({ token } = await call("get_api_access_token"));
    const magnet = `magnet:?xt=urn:btih:${infohash}&dn=Film&x.pe=127.0.0.1:${seeder.port}`;
    id = await call("playlist_add_item", { magnet, title: "A film, with a comma" });
  });
  after(async () => {
    await engine?.stop();
    await seeder?.stop();
    await scratch?.remove();
  });

  /** The result of a control method; an error fails the test. */
  // biome-ignore lint/suspicious/noExplicitAny: the tests look into members by name.
  async function call(method: string, values: Record<string, string> = {}, form?: FormData): Promise<any> {
    const query = new URLSearchParams({ api_version: "3", method, ...values });
    if (token !== undefined) query.set("token", token);
    const init = form === undefined ? {} : { method: "POST", body: form };
    const response = await fetch(`${engine.url}/server/api?${query}`, init);
    const answer = (await response.json()) as { result: unknown; error: unknown };
    assert.equal(answer.error, null, `${method}: ${JSON.stringify(answer.error)}`);
    return answer.result;
  }

  test("mpv plays an entry of /playlist/get from its first picture", async () => {
    const out = scratch.file("mpv.mkv");
    await mpv(`${engine.url}/playlist/get`, out, ["--frames=100"]);
    assert.deepEqual((await frameHashes(out)).slice(0, 90), (await frameHashes(film)).slice(0, 90));
  });

  vlcTest("VLC plays /playlist/0.m3u to the end of its entry", async () => {
    const played = await vlcCounts(`${engine.url}/playlist/0.m3u`, scratch.file("vlc.ts"));
    const wanted = await vlcCounts(scratch.file("seed/film.mkv"), scratch.file("vlc-file.ts"));
    for (const [codec, count] of wanted) {
      // VLC itself drops a few packets at the end of what it writes, not always the same.
      assert.ok(
        Math.abs((played.get(codec) ?? 0) - count) <= 5,
        `${codec}: ${played.get(codec)} of ${count}`,
      );
    }
  });

  test("ffprobe finds the film behind the HLS form of the list", async () => {
    const list = await (await fetch(`${engine.url}/playlist/get?protocol=hls`)).text();
    const link = list.split("\n").find((line) => line.startsWith("http"))!;
    assert.match(list, /,A film, with a comma\n/);
    const entries = ["-show_entries", "stream=codec_name", "-of", "csv=p=0"];
    const found = await run("ffprobe", ["-v", "error", ...entries, link]);
    assert.ok(found.includes("h264") && found.includes("aac"), found);
  });

  test("curl saves the film by its link, byte for byte, under its name", async () => {
    const folder = scratch.file("saved");
    await mkdir(folder);
    const link = `${engine.url}/play/0/${id}?mode=download`;
    await run("curl", ["-sSfLJO", "--output-dir", folder, link]);
    await run("cmp", [`${folder}/film.mkv`, film]);
  });

  test("search finds what is in the list, and what is connected is available", async () => {
    const response = await fetch(`${engine.url}/search?query=film%20comma`);
    const { result } = (await response.json()) as {
      result: { results: { items: { infohash: string }[] }[] };
    };
    assert.equal(result.results[0]!.items[0]!.infohash, infohash);
  });

  test("an uploaded transport file and its logo are there after a restart, and play", async () => {
    const form = new FormData();
    form.set("file", new File([await readFile(scratch.file("film.torrent"))], "film.torrent"));
    const logo = scratch.file("logo.png");
    await run("ffmpeg", ["-v", "error", "-f", "lavfi", "-i", "color=s=16x16:d=1", "-frames:v", "1", logo]);
    form.set("logo_file", new File([await readFile(logo)], "logo.png"));
    const uploaded = await call("playlist_add_item", { auto_search: "0" }, form);
    await engine.stop();
    engine = await startEngine({ dataDir: scratch.file("data") });
    const { playlist } = await call("playlist_get");
    assert.equal(playlist.length, 2);
    const item = playlist.find((each: { id: number }) => each.id === uploaded);
    assert.equal(item.title, "film.mkv");
    assert.equal(item.infohash, infohash);
    assert.equal(item.is_live, 0);
    const shown = await fetch(item.icons[0].url);
    assert.equal(shown.headers.get("content-type"), "image/png");
    assert.equal((await shown.arrayBuffer()).byteLength, (await stat(logo)).size);
    const link = `${engine.url}/ace/getstream?content_id=${item.content_id}&format=json`;
    const { response } = (await (await fetch(link)).json()) as { response: { infohash: string } };
    assert.equal(response.infohash, infohash);
  });
});
