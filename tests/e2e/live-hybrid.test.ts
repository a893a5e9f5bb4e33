import assert from "node:assert/strict";
import { mkdir, readFile } from "node:fs/promises";
import type { LoopbackTracker } from "../net/loopback-tracker.ts";
import { startLoopbackTracker } from "../net/loopback-tracker.ts";
import { type EngineProcess, startEngine, startSession } from "../parts/engine.ts";
import { type BroadcastProcess, startBroadcast } from "../parts/live-broadcast.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { run } from "../parts/process.ts";
import { inRealTime } from "../parts/real-time.ts";
import { type TempFolder, tempFolder } from "../parts/torrent-files.ts";
import { H264, hasFfmpeg, lavfi, makeMedia } from "../remux/make-media.ts";
import { type MediaServer, startMediaServer } from "./media-server.ts";

const { after, before, describe, test } = await testsThatNeed("ffmpeg");

const SLOW = { timeout: 120_000 };
const SECONDS = 120;
const SEGMENT_SECONDS = 2;
const LISTED = 8;
const PLAYED_SECONDS = 12;

describe("a live stream whose source has too little upload, and a copy on the web", {
  timeout: 240_000,
  skip: (await hasFfmpeg()) ? false : "ffmpeg is not installed",
}, () => {
  let folder: TempFolder;
  let server: MediaServer;
  let tracker: LoopbackTracker;
  let source: BroadcastProcess;
  let engine: EngineProcess;
  let bytesPerSecond = 0;

  before(async () => {
    folder = await tempFolder("live-hybrid");
    const film = await makeMedia("live-hybrid.ts", [...lavfi(SECONDS), ...H264, "-g", "25", "-c:a", "aac"]);
    await mkdir(folder.path, { recursive: true });
    const hls = [
      "-f",
      "hls",
      "-hls_time",
      `${SEGMENT_SECONDS}`,
      "-hls_list_size",
      "0",
      folder.file("all.m3u8"),
    ];
    await run("ffmpeg", ["-v", "error", "-i", film, "-c", "copy", ...hls]);
    bytesPerSecond = (await readFile(film)).length / SECONDS;
    const startedAt = Date.now();
    const list = () => {
      const first = Math.floor((Date.now() - startedAt) / 1000 / SEGMENT_SECONDS);
      const items = Array.from(
        { length: LISTED },
        (_, i) => `#EXTINF:${SEGMENT_SECONDS},\nall${first + i}.ts\n`,
      );
      return `#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:${SEGMENT_SECONDS}\n#EXT-X-MEDIA-SEQUENCE:${first}\n${items.join("")}`;
    };
    server = await startMediaServer(folder.path, {
      "/live.m3u8": (_, response) => void response.end(list()),
      "/copy.m3u8": (_, response) => void response.end(list()),
    });
    tracker = await startLoopbackTracker();
    const flags = ["--tracker", tracker.httpUrl, "--hls", `${server.url}/copy.m3u8`];
    const limit = ["--upload-limit", `${Math.round((0.6 * bytesPerSecond) / 1000)}kB`];
    source = await startBroadcast({ place: `${server.url}/live.m3u8` }, { flags: [...flags, ...limit] });
    engine = await startEngine();
  }, SLOW);
  after(async () => {
    await engine?.stop();
    await source?.stop();
    await tracker?.close();
    await server?.close();
    await folder?.remove();
  });

  test(
    "a player gets every packet",
    SLOW,
    inRealTime(async () => {
      const session = await startSession(engine, "getstream", {}, await readFile(source.transportFile));
      const said = await run("ffmpeg", [
        ...["-v", "warning", "-i", session.playback_url, "-t", `${PLAYED_SECONDS}`, "-f", "null", "-"],
      ]);
      assert.equal(said.trim(), "");
      assert.ok(
        server.asked.some((path) => path.startsWith("/copy.m3u8")),
        "the web was asked",
      );
    }),
  );
});
