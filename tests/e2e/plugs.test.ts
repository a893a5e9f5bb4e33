import assert from "node:assert/strict";
import { copyFile, mkdir } from "node:fs/promises";
import { startEngine, startSession } from "../parts/engine.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { startSeeder } from "../parts/plain-seeder.ts";
import { tempFolder, torrentOf } from "../parts/torrent-files.ts";
import { lavfi, makeMedia, scratchFile } from "../remux/make-media.ts";
import { decodesSilently, packetCounts } from "./judges.ts";

const { test } = await testsThatNeed("ffmpeg");

/** Slow enough that much of the film is missing when the seeder stops; seeders do not throttle loopback. */
const SLOW = { SLUICE_DOWNLOAD_LIMIT: "2MB" };

/** The members of the stat URL's answer that the test checks. */
interface Told {
  readonly status: string;
  readonly peers: number;
  readonly speed_down: number;
  readonly total_progress: number;
}

const OUTPUTS = ["getstream", "manifest.m3u8"] as const;
const running = new Map<string, Promise<void>>();

for (const output of OUTPUTS) {
  test(`the only seeder stops while /ace/${output} plays: stat reports it, the player waits and continues with the next seeder`, {
    timeout: 180_000,
  }, () => {
    // Both wait for slow seeders, so they play at once.
    if (running.size === 0) for (const each of OUTPUTS) running.set(each, pullThePlug(each));
    // A failure of the other output is reported by its own test.
    for (const each of running.values()) each.catch(() => {});
    return running.get(output);
  });
}

async function pullThePlug(output: (typeof OUTPUTS)[number]): Promise<void> {
  const scratch = await tempFolder("plugs");
  const engine = await startEngine({ env: SLOW });
  try {
    await mkdir(scratch.file("seed"));
    const noise = ["-vf", "noise=alls=60:allf=t", "-c:v", "libx264", "-preset", "ultrafast", "-g", "50"];
    const film = await makeMedia("plugs.mkv", [...lavfi(20), ...noise, "-c:a", "aac", "-shortest"]);
    await copyFile(film, scratch.file("seed/film.mkv"));
    const torrent = await torrentOf(scratch.file("seed/film.mkv"), 64 * 1024, scratch.file("film.torrent"));
    const seed = () => startSeeder(torrent, scratch.file("seed"));
    const start = (port: number) =>
      startSession(engine, output, {
        magnet: `magnet:?xt=urn:btih:${torrent.infohash}&x.pe=127.0.0.1:${port}`,
        pid: "tv",
      });
    const stat = async (url: string) => ((await (await fetch(url)).json()) as { response: Told }).response;

    const first = await seed();
    const session = await start(first.port);
    const chunks = output === "getstream" ? streamOf(session.playback_url) : segmentsOf(session.playback_url);
    const parts = [(await chunks.next()).value!];
    await first.stop();
    assert.ok((await stat(session.stat_url)).total_progress < 90, "the whole film is here already");

    // The reader reads all available data and then waits.
    const reading = (async () => {
      for await (const chunk of chunks) parts.push(chunk);
    })();
    let alone = await stat(session.stat_url);
    for (let tries = 0; tries < 200 && (alone.peers !== 0 || alone.speed_down !== 0); tries++) {
      await new Promise((resolve) => setTimeout(resolve, 200));
      alone = await stat(session.stat_url);
    }
    assert.deepEqual([alone.status, alone.peers, alone.speed_down], ["dl", 0, 0]);
    assert.ok(alone.total_progress < 100);

    // A request that names another peer joins the existing session.
    const second = await seed();
    const again = await start(second.port);
    assert.equal(again.playback_url, session.playback_url);
    await reading;
    await second.stop();
    const played = await scratchFile(new Uint8Array(await new Blob(parts as BlobPart[]).arrayBuffer()), "ts");
    assert.deepEqual(await packetCounts(played), await packetCounts(film));
    await decodesSilently(played);
  } finally {
    await engine.stop();
    await scratch.remove();
  }
}

/** The chunks of a stream as they come. */
async function* streamOf(url: string): AsyncGenerator<Uint8Array> {
  for await (const chunk of (await fetch(url)).body!) yield chunk;
}

/** The segments of a playlist, one after another. */
async function* segmentsOf(url: string): AsyncGenerator<Uint8Array> {
  const lines = (await (await fetch(url)).text()).split("\n");
  for (const line of lines.filter((text) => text.startsWith("http"))) {
    const answer = await fetch(line);
    if (!answer.ok) throw new Error(`${line}: ${answer.status} ${await answer.text()}`);
    yield new Uint8Array(await answer.arrayBuffer());
  }
}
