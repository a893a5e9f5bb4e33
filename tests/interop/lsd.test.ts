import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { engineCommand, runtimeCommand } from "../parts/engine.ts";
import { PYTHON } from "../parts/libtorrent.ts";
import { makeSpaces, type Space } from "../parts/namespaces.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { type RunningProcess, startProcess } from "../parts/process.ts";
import { randomFile, sha1OfFile, tempFolder, torrentOf } from "../parts/torrent-files.ts";

const { test } = await testsThatNeed("libtorrent", "namespaces");

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const PEER = fileURLToPath(new URL("libtorrent_peer.py", import.meta.url));
const BYTES = 1024 * 1024;
const HTTP = "http://127.0.0.1:6878";

/** Runs libtorrent in its own network namespace with local discovery only. */
async function libtorrentIn(
  space: Space,
  role: "seed" | "leech",
  torrent: string,
  folder: string,
): Promise<RunningProcess> {
  const words = [PYTHON, PEER, role, torrent, folder, "--host", "0.0.0.0", "--port", "7777", "--lsd"];
  const peer = startProcess("ip", [...space.prefix.slice(1), ...words]);
  await peer.line((line) => line.includes('"listening"'));
  return peer;
}

test("libtorrent and the engine find each other by local discovery alone, each as the seed in turn", {
  timeout: 240_000,
}, async () => {
  const scratch = await tempFolder("lsd");
  const spaces = makeSpaces();
  const stops: (() => Promise<unknown>)[] = [];
  try {
    const [theirs, ours] = [await spaces.make("theirs"), await spaces.make("ours")];
    await spaces.wire(
      { space: theirs, device: "lan", addresses: ["192.168.5.1/24"] },
      { space: ours, device: "lan", addresses: ["192.168.5.2/24"] },
    );
    // libtorrent announces only on interfaces with a default route.
    await theirs.run("ip", "route", "add", "default", "dev", "lan");
    await randomFile(scratch.file("film.bin"), BYTES);
    const { path, infohash } = await torrentOf(
      scratch.file("film.bin"),
      64 * 1024,
      scratch.file("film.torrent"),
    );
    const seeder = await libtorrentIn(theirs, "seed", path, scratch.path);
    stops.push(() => seeder.stop());
    const within = ours.prefix.slice(1);
    const engine = startProcess("ip", [...within, ...engineCommand(), "serve"], {
      cwd: ROOT,
      env: {
        SLUICE_LSD: "on",
        SLUICE_DATA_DIR: scratch.file("data"),
        XDG_CONFIG_HOME: scratch.path,
        SLUICE_STORE: "memory",
      },
    });
    stops.push(() => engine.stop());
    await engine.line((line) => line.includes("Open"));
    const take = (url: string) => {
      const words = [
        ...within,
        ...runtimeCommand(),
        "tests/parts/take-bytes.ts",
        `${HTTP}${url}`,
        String(BYTES),
      ];
      return startProcess("ip", words, { cwd: ROOT });
    };
    // Not a media file: the session is refused, but the content is known from then on.
    const asking = take(`/ace/getstream?format=json&infohash=${infohash}`);
    stops.push(() => asking.stop());
    await engine.line((line) => line.includes("cannot play"), 120_000);
    const taker = take(`/files/${infohash}/0`);
    const took = await taker.line((line) => line.startsWith("took"), 60_000);
    await taker.stop();
    assert.equal(took, `took ${BYTES} ${await sha1OfFile(scratch.file("film.bin"))}`);

    await seeder.stop();
    await mkdir(scratch.file("leech"));
    const leecher = await libtorrentIn(theirs, "leech", path, scratch.file("leech"));
    stops.push(() => leecher.stop());
    await leecher.line((line) => line.includes('"complete"'), 120_000);
    assert.equal(
      await sha1OfFile(scratch.file("leech/film.bin")),
      await sha1OfFile(scratch.file("film.bin")),
    );
  } finally {
    for (const stop of stops.reverse()) await stop();
    await spaces.remove();
    await scratch.remove();
  }
});
