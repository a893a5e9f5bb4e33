import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { chmod, copyFile, mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { engineCommand } from "../parts/engine.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { run, startProcess } from "../parts/process.ts";
import { type TempFolder, tempFolder } from "../parts/torrent-files.ts";
import { lavfi, makeMedia } from "../remux/make-media.ts";
import { frameHashes, packetCounts } from "./judges.ts";
import { type MediaServer, sendEndless, startMediaServer } from "./media-server.ts";

const { after, before, describe, test } = await testsThatNeed("ffmpeg");

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const [RUNTIME, ...RUNTIME_ARGS] = engineCommand();
const CODECS = "-c:v libx264 -preset ultrafast -g 25 -keyint_min 25 -pix_fmt yuv420p -c:a aac -shortest";

describe("sluice play URL", { timeout: 300_000 }, () => {
  let scratch: TempFolder;
  let server: MediaServer;
  let film: string;

  before(async () => {
    scratch = await tempFolder("play-url");
    await mkdir(scratch.path, { recursive: true });
    film = await makeMedia("play-url.ts", [...lavfi(6), ...CODECS.split(" ")]);
    await copyFile(film, scratch.file("film.ts"));
    for (const [name, ...args] of [
      ["vod"],
      ["fragments", "-bsf:a", "aac_adtstoasc", "-hls_segment_type", "fmp4"],
    ] as const)
      await run("ffmpeg", [
        ...["-v", "error", "-y", "-i", film, "-c", "copy", "-f", "hls", "-hls_time", "1"],
        ...["-hls_playlist_type", "vod", ...args, scratch.file(`${name}.m3u8`)],
      ]);
    server = await startMediaServer(scratch.path, {
      "/for-ever.ts": (_, to) => sendEndless(film, to, 100_000),
    });
  });
  after(async () => {
    await server?.close();
    await scratch?.remove();
  });

  const begin = (...args: string[]) =>
    startProcess(RUNTIME!, [...RUNTIME_ARGS, "play", ...args], {
      cwd: ROOT,
      env: {
        ...{ SLUICE_P2P_PORT: "0", SLUICE_HTTP_PORT: "0" },
        ...{ XDG_DATA_HOME: scratch.file("data"), XDG_CONFIG_HOME: scratch.file("config") },
      },
    });
  const ended = (running: ReturnType<typeof begin>) =>
    new Promise<number | null>((resolve) => running.child.on("close", resolve));
  const play = async (...args: string[]) => {
    const running = begin(...args);
    return { code: await ended(running), output: running.output() };
  };

  test("a film goes to the file, byte for byte", async () => {
    const out = scratch.file("out-film.ts");
    const { code, output } = await play(`${server.url}/film.ts`, "--output", out);
    assert.equal(code, 0, output);
    assert.deepEqual(await readFile(out), await readFile(film));
  });

  test("HLS is written to the file as one transport stream if no format is given", async () => {
    const out = scratch.file("out-hls.ts");
    const { code, output } = await play(`${server.url}/vod.m3u8`, "--output", out);
    assert.equal(code, 0, output);
    assert.deepEqual(await packetCounts(out), await packetCounts(film));
    assert.deepEqual(await frameHashes(out), await frameHashes(film));
  });

  test("HLS of fragmented MP4, and a stream as raw file, fail with a clear error; no file is left", async () => {
    const out = scratch.file("out-none.ts");
    const fragments = await play(`${server.url}/fragments.m3u8`, "--output", out);
    assert.equal(fragments.code, 1);
    assert.match(fragments.output, /comes in fragmented MP4/);
    const raw = await play(`${server.url}/vod.m3u8`, "--output", out, "--format", "raw");
    assert.notEqual(raw.code, 0);
    assert.match(raw.output, /--format raw: a stream has no file/);
    assert.equal(existsSync(out) || existsSync(`${out}.part`), false);
  });

  test("a stream without an end is written until it is stopped, and kept", async () => {
    const out = scratch.file("out-live.ts");
    const running = begin(`${server.url}/for-ever.ts`, "--output", out);
    const over = ended(running);
    const size = () =>
      stat(`${out}.part`)
        .then((found) => found.size)
        .catch(() => 0);
    while ((await size()) < 200_000 && running.child.exitCode === null)
      await new Promise((resolve) => setTimeout(resolve, 20));
    // Not `child.kill`: Deno then reports the signal as the exit reason in every case.
    process.kill(running.pid, "SIGINT");
    assert.equal(await over, 0, running.output());
    assert.ok((await stat(out)).size >= 200_000);
    assert.ok((await frameHashes(out)).length > 0);
  });

  test("--player is given HLS as HLS", async () => {
    const player = scratch.file("player");
    const said = scratch.file("said");
    await writeFile(
      player,
      `#!/bin/sh\nfor last; do :; done\nffprobe -v error -show_format -of json "$last" > ${said}\n`,
    );
    await chmod(player, 0o755);
    const { code, output } = await play(`${server.url}/fragments.m3u8`, "--player", player);
    assert.equal(code, 0, output);
    assert.equal(JSON.parse(await readFile(said, "utf8")).format.format_name, "hls");
  });
});
