import assert from "node:assert/strict";
import { readFile, stat, writeFile } from "node:fs/promises";
import { test } from "node:test";
import { SILENT_LOG } from "../../src/base/log.ts";
import type { UnixSeconds } from "../../src/base/time.ts";
import { MatroskaCopies } from "../../src/recordings/matroska-copies.ts";
import type { StoredRecording } from "../../src/recordings/recording-record.ts";
import { openMedia } from "../../src/remux/open-media.ts";
import { files } from "../../src/runtime/files.ts";
import { until } from "../library/until.ts";
import { tempFolder } from "../parts/torrent-files.ts";
import { framesOf, newMuxer } from "../playback/fake-channel-source.ts";

const START = 1_790_000_000 as UnixSeconds;
const STORED: StoredRecording = {
  ...{
    id: 1,
    itemId: 1,
    title: "Show <1>",
    channel: "News",
    start: START,
    stop: (START + 10) as UnixSeconds,
  },
  ...{ state: "done", problem: null, allowPrivateUrls: false, padding: { before: 0, after: 0 } },
  ...{ seriesId: null, file: "show", keptFromMs: null, hasMatroska: false },
  programme: {
    ...{
      start: START,
      stop: (START + 10) as UnixSeconds,
      title: "Show",
      subtitle: "The end",
      episode: "S02E05",
    },
    description: "Später Abend",
  },
};

/** A recording of `seconds` of the test pattern, and copies of it. */
async function house(t: { after(run: () => unknown): void }, seconds: number, freeBytes = 1e9) {
  const folder = await tempFolder("copies");
  t.after(() => folder.remove());
  const [from, to] = [folder.file("show.ts"), folder.file("show.mkv")];
  const muxer = newMuxer();
  // The times of a broadcast begin anywhere, and wrap.
  const first = Math.floor(2 ** 33 / 90_000) - 3;
  const parts = Array.from({ length: seconds }, (_, i) => muxer.segment(framesOf(first + i, first + i)));
  await writeFile(from, Buffer.concat(parts));
  const copies = new MatroskaCopies({ files, log: SILENT_LOG, freeBytes: () => freeBytes });
  let completed = 0;
  const complete = async () => void completed++;
  const size = (await stat(from)).size;
  const start = () => copies.start({ stored: STORED, from, to, complete }, size);
  return { copies, start, to, size, completed: () => completed, files };
}

test("MatroskaCopies: a copy has all frames, the duration, and the guide's data as tags", async (t) => {
  const { copies, start, to, completed } = await house(t, 10);
  await start();
  assert.equal(copies.get(1)?.state, "converting");
  await until(() => copies.get(1)?.state !== "converting");
  assert.deepEqual([copies.get(1)?.problem, completed()], [null, 1]);
  const bytes = new Uint8Array(await readFile(to));
  assert.deepEqual([copies.get(1)?.bytes, copies.bytes], [bytes.length, bytes.length]);
  const read = async (range: { start: number; end: number }) => bytes.slice(range.start, range.end);
  const media = await openMedia({ size: bytes.length, read }, {});
  assert.deepEqual([media.container, media.tracks.map(({ codec }) => codec)], ["matroska", ["h264", "aac"]]);
  assert.ok(Math.abs(media.durationSeconds - 10) < 0.2, String(media.durationSeconds));
  const text = Buffer.from(bytes).toString("utf8");
  for (const tag of ["Show <1>", "The end", "S02E05", "Später Abend", "News"])
    assert.ok(text.includes(tag), tag);
  // A second call keeps it.
  await start();
  assert.equal(copies.get(1)?.state, "ready");
  await copies.remove(1, to);
  assert.deepEqual([copies.get(1), await files.stat(to)], [undefined, undefined]);
});

test("MatroskaCopies: a copy that is requested twice is made once", async (t) => {
  const { copies, start, completed } = await house(t, 2);
  await Promise.all([start(), start()]);
  await until(() => copies.get(1)?.state === "ready");
  // A second one would begin now.
  for (let turn = 0; turn < 50; turn++) await new Promise<void>((resolve) => setTimeout(resolve, 1));
  assert.deepEqual([completed(), copies.get(1)?.state], [1, "ready"]);
});

test("MatroskaCopies: refuses without space, and leaves nothing when it fails or ends early", async (t) => {
  const small = await house(t, 2, 1_000);
  await assert.rejects(small.start(), { code: "disk_full" });
  assert.equal(small.copies.get(1), undefined);
  const ended = await house(t, 10);
  await ended.start();
  await ended.copies.close();
  assert.deepEqual([ended.completed(), await files.stat(ended.to)], [0, undefined]);
  const damaged = await house(t, 0);
  await damaged.start();
  await until(() => damaged.copies.get(1)?.state === "failed");
  assert.deepEqual([damaged.completed(), await files.stat(damaged.to)], [0, undefined]);
});

test("MatroskaCopies: an earlier copy is found if it is complete, else removed", async (t) => {
  const { copies, to } = await house(t, 1);
  await writeFile(to, "half");
  await copies.load(1, to, true);
  assert.deepEqual(copies.get(1), { state: "ready", share: 1, bytes: 4, problem: null });
  await copies.load(2, to, false);
  assert.deepEqual([copies.get(2), await files.stat(to)], [undefined, undefined]);
});
