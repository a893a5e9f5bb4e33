import assert from "node:assert/strict";
import { type EngineProcess, startEngine, startSession } from "../parts/engine.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { type PlainSeeder, startSeeder } from "../parts/plain-seeder.ts";
import { run } from "../parts/process.ts";
import { type TempFolder, tempFolder, torrentOf } from "../parts/torrent-files.ts";
import { FILMS, makeFilms } from "./films.ts";
import { checkTimestamps, decodesSilently, frameHashes, packetCounts } from "./judges.ts";

const { after, before, describe, test } = await testsThatNeed("ffmpeg");

describe("playing films out of a swarm", { timeout: 600_000 }, () => {
  let scratch: TempFolder;
  let films: Map<string, string>;
  let seeder: PlainSeeder;
  let engine: EngineProcess;
  let magnet: string;
  let infohash: string;
  const index = new Map<string, string>();

  before(async () => {
    scratch = await tempFolder("play");
    films = await makeFilms(scratch.file("films"));
    const torrent = await torrentOf(scratch.file("films"), 64 * 1024, scratch.file("films.torrent"));
    seeder = await startSeeder(torrent, scratch.path);
    infohash = torrent.infohash;
    magnet = `magnet:?xt=urn:btih:${infohash}&x.pe=127.0.0.1:${seeder.port}`;
    engine = await startEngine();
    for (const [at, name] of torrent.files.entries()) index.set(name, String(at));
  });
  after(async () => {
    await engine?.stop();
    await seeder?.stop();
    await scratch?.remove();
  });

  for (const film of FILMS) {
    test(`${film.name} as MPEG-TS: every packet of the source, in order, without decoder errors`, async () => {
      const url = `${engine.url}/ace/getstream?${new URLSearchParams({ magnet, _idx: index.get(film.name)! })}`;
      const source = films.get(film.name)!;
      assert.deepEqual(await packetCounts(url), await packetCounts(source));
      assert.ok((await checkTimestamps(url)) > 500);
      await decodesSilently(url);
    });

    test(`${film.name} as HLS: the source's pictures, each once`, async () => {
      const query = { magnet, _idx: index.get(film.name)!, pid: `hls-${film.name}` };
      const session = await startSession(engine, "manifest.m3u8", query);
      assert.equal(session.infohash, infohash);
      await samePictures(session.playback_url, films.get(film.name)!);
      await decodesSilently(session.playback_url);
      const stopped = await fetch(`${session.command_url}?method=stop`);
      assert.equal(await stopped.text(), '{"response": "ok", "error": null}');
    });
  }

  test("HLS in fMP4: the same pictures", async () => {
    for (const name of ["front.mp4", "hevc.mkv", "aac.ts"]) {
      const query = { magnet, _idx: index.get(name)!, pid: `fmp4-${name}`, container: "fmp4" };
      const session = await startSession(engine, "manifest.m3u8", query);
      await samePictures(session.playback_url, films.get(name)!);
    }
  });

  test("preferred_audio_language puts its track first", async () => {
    const query = {
      magnet,
      _idx: index.get("languages.mkv")!,
      preferred_audio_language: "ger",
      pid: "german",
    };
    const session = await startSession(engine, "getstream", query);
    const said = await run("ffprobe", [
      ...["-v", "error", "-select_streams", "a", "-show_entries", "stream_tags=language", "-of", "csv=p=0"],
      session.playback_url,
    ]);
    assert.deepEqual(said.trim().split(/\s+/), ["ger", "eng"]);
  });
});

/** Fails with the first difference if the frames of a stream differ from those of the file. */
async function samePictures(url: string, file: string): Promise<void> {
  const [got, wanted] = [await frameHashes(url), await frameHashes(file)];
  const differs = wanted.findIndex((hash, at) => got[at] !== hash);
  assert.equal(differs, -1, `${file}: picture ${differs} differs`);
  assert.equal(got.length, wanted.length, `${file}: pictures`);
}
