import assert from "node:assert/strict";
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import type { LoopbackTracker } from "../net/loopback-tracker.ts";
import { startLoopbackTracker } from "../net/loopback-tracker.ts";
import { type EngineProcess, startEngine, startSession } from "../parts/engine.ts";
import { type BroadcastProcess, startBroadcast } from "../parts/live-broadcast.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { run } from "../parts/process.ts";
import { inRealTime } from "../parts/real-time.ts";
import { hasFfmpeg } from "../remux/make-media.ts";
import { startMediaServer } from "./media-server.ts";

const { after, before, describe, test } = await testsThatNeed("ffmpeg");

const SLOW = { timeout: 90_000 };
const WITH_FFMPEG = { ...SLOW, skip: (await hasFfmpeg()) ? false : "ffmpeg is not installed" };

describe("links to a live stream, for engines that use only a tracker", {
  timeout: 240_000,
}, () => {
  let tracker: LoopbackTracker;
  let source: BroadcastProcess;
  const engines: EngineProcess[] = [];

  before(async () => {
    tracker = await startLoopbackTracker();
    source = await startBroadcast("test-pattern", { flags: ["--tracker", tracker.httpUrl] });
  }, SLOW);
  after(async () => {
    await Promise.all(engines.map((engine) => engine.stop()));
    await source?.stop();
    await tracker?.close();
  });

  /** An engine without data of the stream. */
  const stranger = async () => {
    const engine = await startEngine({ env: { SLUICE_TRACKERS: tracker.httpUrl } });
    engines.push(engine);
    return engine;
  };

  test(
    "only the owner can read the key, the state and the other files",
    SLOW,
    inRealTime(async () => {
      const folder = join(source.dataDir, "broadcasts/stream");
      const names = (await readdir(folder)).sort();
      assert.deepEqual(
        names.filter((name) => ["key", "info", "state"].includes(name)),
        ["info", "key", "state"],
      );
      for (const name of names)
        assert.equal((await stat(join(folder, name))).mode & 0o777, 0o600, `rights of ${name}`);
      for (const each of [folder, join(folder, "..")]) assert.equal((await stat(each)).mode & 0o777, 0o700);
    }),
  );

  test(
    "its content id, then its infohash once known",
    WITH_FFMPEG,
    inRealTime(async () => {
      const engine = await stranger();
      for (const query of [{ content_id: source.contentId }, { infohash: source.infohash }]) {
        const session = await startSession(engine, "getstream", query);
        assert.equal(session.infohash, source.infohash);
        await playsSilently(session.playback_url);
      }
      assert.ok(tracker.announces.some(({ infohash }) => infohash === source.contentId));
    }),
  );

  test(
    "its transport file, uploaded; as HLS",
    WITH_FFMPEG,
    inRealTime(async () => {
      const engine = await stranger();
      const bytes = await readFile(source.transportFile);
      const session = await startSession(engine, "manifest.m3u8", {}, bytes);
      assert.equal(session.infohash, source.infohash);
      await playsSilently(session.playback_url);
    }),
  );

  test(
    "the URL of its transport file",
    WITH_FFMPEG,
    inRealTime(async () => {
      const server = await startMediaServer(join(source.dataDir, "broadcasts/stream"));
      try {
        const engine = await stranger();
        const url = `${server.url}/stream.sluice`;
        await playsSilently(`${engine.url}/ace/getstream?url=${encodeURIComponent(url)}`);
      } finally {
        await server.close();
      }
    }),
  );

  test(
    "its infohash alone, by the engine's own trackers",
    WITH_FFMPEG,
    inRealTime(async () => {
      const engine = await stranger();
      await playsSilently(`${engine.url}/ace/getstream?infohash=${source.infohash}`);
    }),
  );
});

/** Plays three seconds of media with ffmpeg, which must print no warning. */
async function playsSilently(url: string): Promise<void> {
  const said = await run("ffmpeg", ["-v", "warning", "-i", url, "-t", "3", "-f", "null", "-"]);
  assert.equal(said.trim(), "", url);
}
