import assert from "node:assert/strict";
import { test } from "node:test";
import { orAborted } from "../../src/async/abort.ts";
import { SluiceError } from "../../src/base/errors.ts";
import type { Infohash } from "../../src/base/ids.ts";
import { SILENT_LOG } from "../../src/base/log.ts";
import type { Download } from "../../src/downloads/download-contract.ts";
import { DownloadRecords, rangesOf } from "../../src/downloads/download-records.ts";
import { createDownloads } from "../../src/downloads/downloads.ts";
import { openMemory } from "../../src/runtime/kv-memory.ts";
import { fakeEngine, filmTorrent } from "../engine/fake-engine.ts";
import type { FakeTransfer } from "../engine/fake-transfers.ts";
import { until } from "../library/until.ts";

/** Downloads on a fake engine whose transfers hold a file once it was read. */
async function house() {
  const store = openMemory();
  const fake = fakeEngine();
  const { engine, clock, transfers } = fake;
  const read = new Set<string>();
  transfers.prepare = (transfer: FakeTransfer) => {
    const source = transfer.source.bind(transfer);
    transfer.headBytes = () => 0;
    transfer.progress = (index = 0) => (read.has(`${transfer.infohash}/${index}`) ? 100 : 0);
    transfer.source = (index) => {
      const opened = source(index);
      return {
        ...opened,
        reader(range, options) {
          const reader = opened.reader(range, options);
          let left = range.end - range.start;
          return {
            ...reader,
            async read(into) {
              const bytes = await orAborted(Promise.resolve(reader.read(into)), options?.signal);
              left -= bytes;
              if (left === 0) read.add(`${transfer.infohash}/${index}`);
              return bytes;
            },
          };
        },
      };
    };
  };
  const start = async () => {
    const records = await DownloadRecords.load(store, SILENT_LOG);
    return { records, downloads: await createDownloads({ clock, engine, records, log: SILENT_LOG }) };
  };
  return { ...fake, ...(await start()), start, read };
}

/** Returns the request that adds this transport file. */
function request(bytes: Uint8Array, files: readonly number[] = []) {
  const { signal } = new AbortController();
  return { selector: { kind: "transport_file", bytes }, files, allowPrivateUrls: true, signal } as const;
}

test("downloads: the chosen files are read whole, then the download is complete and the transfer released", async () => {
  const { downloads, transfers, engine, read } = await house();
  const added = await downloads.add(request(filmTorrent().bytes, [2, 0]));
  assert.deepEqual(
    [added.state, added.size, added.files],
    [
      "downloading",
      35_000,
      [
        [0, 0],
        [2, 2],
      ],
    ],
  );
  await until(() => transfers.opened.length > 0);
  transfers.opened.at(-1)!.bringData();
  await until(() => downloads.list()[0]?.state === "complete");
  assert.deepEqual(
    [...read].map((each) => each.slice(-2)),
    ["/0", "/2"],
  );
  await until(() => engine.activity().transfers[0]?.holders === 0);
  assert.equal(downloads.list()[0]?.heldBytes, 35_000);
  await downloads.close();
});

test("downloads: a restart continues what was not complete and keeps limits; a paused one waits", async () => {
  const { downloads, start, transfers } = await house();
  const { infohash } = await downloads.add(request(filmTorrent("one").bytes));
  const paused = await downloads.add(request(filmTorrent("two").bytes));
  assert.equal((await downloads.pause(paused.infohash)).state, "paused");
  await downloads.limit(infohash, { upload: 7, download: 9 });
  await downloads.close();
  transfers.limits.limitSwarm(infohash, { upload: 0, download: 0 });
  const again = await start();
  assert.deepEqual(transfers.limits.limitsOf(infohash), { upload: 7, download: 9 });
  const states = () => new Map(again.downloads.list().map(({ name, state }) => [name, state]));
  assert.deepEqual([states().get("one"), states().get("two")], ["downloading", "paused"]);
  assert.ok(again.records.has(infohash));
  assert.equal((await again.downloads.resume(paused.infohash)).state, "downloading");
  await again.downloads.close();
});

test("downloads: a paused download has released its transfer, and other files replace the ones that were fetched", async () => {
  const { downloads, transfers, engine, read } = await house();
  const holders = () => engine.activity().transfers[0]?.holders ?? 0;
  const { infohash } = await downloads.add(request(filmTorrent().bytes, [0]));
  await until(() => holders() > 0);
  await downloads.pause(infohash);
  assert.equal(holders(), 0);
  await downloads.resume(infohash);
  // While the first file is fetched, the user chooses another one.
  await until(() => holders() > 0);
  assert.equal((await downloads.add(request(filmTorrent().bytes, [2]))).state, "downloading");
  for (const transfer of transfers.opened) transfer.bringData();
  await until(() => downloads.list()[0]?.state === "complete");
  assert.deepEqual([...read], [`${infohash}/2`]);
  await downloads.close();
});

test("downloads: a store that fails leaves no transfer open, and the download is tried again", async () => {
  const { downloads, transfers, engine, records, clock } = await house();
  const { update } = records;
  await downloads.add(request(filmTorrent().bytes));
  await until(() => (engine.activity().transfers[0]?.holders ?? 0) > 0);
  records.update = () => Promise.reject(new SluiceError("store_unavailable", "the server does not answer"));
  transfers.opened.at(-1)!.data.reject(new SluiceError("session_stopped", "the transfer was stopped"));
  await until(() => downloads.list()[0]?.state === "failed");
  assert.equal(engine.activity().transfers[0]?.holders ?? 0, 0);
  records.update = update.bind(records);
  await clock.advance(60_000);
  await until(() => downloads.list()[0]?.state === "paused");
  await downloads.close();
});

test("downloads: one that is complete is fetched again if the cache has lost a part of it", async () => {
  const { downloads, start, transfers, engine } = await house();
  const { infohash, size } = await downloads.add(request(filmTorrent().bytes));
  await until(() => transfers.opened.length > 0);
  transfers.opened.at(-1)!.bringData();
  await until(() => downloads.list()[0]?.state === "complete");
  await downloads.close();
  const stateWith = async (bytes: number | undefined) => {
    engine.cache.sizes = () => (bytes === undefined ? undefined : new Map([[infohash, bytes]]));
    const again = await start();
    const [download] = again.downloads.list();
    await again.downloads.close();
    return download?.state;
  };
  assert.equal(await stateWith(size), "complete");
  assert.equal(await stateWith(undefined), "complete", "another process has the cache");
  assert.equal(await stateWith(size - 1), "downloading");
});

test("downloads: the limits that a transfer had become those of its download", async () => {
  const { downloads } = await house();
  const { infohash, limits } = await downloads.add(request(filmTorrent().bytes));
  assert.deepEqual(limits, { upload: 0, download: 0 });
  await downloads.remove(infohash, true);
  await downloads.limit(infohash, { upload: 3, download: 4 });
  assert.deepEqual((await downloads.add(request(filmTorrent().bytes))).limits, { upload: 3, download: 4 });
  await downloads.close();
});

test("downloads: what does not fit in the cache is refused with the figures, and so are unknown files", async () => {
  const { downloads, engine } = await house();
  engine.cacheFigures = async () => ({
    ...{ available: 1e9, activeInUse: 0, inactiveInUse: 0, memoryInUse: 0 },
    limit: 30_000,
  });
  await assert.rejects(downloads.add(request(filmTorrent().bytes)), {
    code: "disk_full",
    message: /the downloads need 1 MB, the disk cache may use 1 MB; .* raise cache-limit/,
  });
  for (const index of [3, -1])
    await assert.rejects(downloads.add(request(filmTorrent().bytes, [index])), { code: "no_such_file" });
  const odd = Array.from({ length: 2_001 }, (_, i) => 2 * i);
  await assert.rejects(downloads.add(request(filmTorrent().bytes, odd)), { code: "too_many" });
  assert.equal((await downloads.add(request(filmTorrent().bytes, [1]))).size, 20_000);
  // The second one has room alone, but not together with the first.
  await assert.rejects(downloads.add(request(filmTorrent("two").bytes, [1])), { code: "disk_full" });
  await downloads.close();
});

test("downloads: a failure is shown and tried again after a minute; a stopped transfer pauses", async () => {
  const { downloads, engine, clock, transfers } = await house();
  const figures = engine.cacheFigures;
  const { infohash } = await downloads.add(request(filmTorrent().bytes));
  await downloads.pause(infohash);
  engine.cacheFigures = async () => ({ ...(await figures()), limit: 1 });
  await downloads.resume(infohash);
  await until(() => downloads.list()[0]?.state === "failed");
  assert.match(downloads.list()[0]!.problem!, /raise cache-limit/);
  engine.cacheFigures = figures;
  await clock.advance(60_000);
  await until(() => downloads.list()[0]?.state === "downloading");
  // Its reads fail when a transfer is stopped.
  const stopped = new SluiceError("session_stopped", "the transfer was stopped");
  transfers.opened.at(-1)!.data.reject(stopped);
  await until(() => downloads.list()[0]?.state === "paused");
  await downloads.close();
});

test("downloads: at most three run at the same time, and the next one starts when one is removed", async () => {
  const { downloads } = await house();
  const added: Download[] = [];
  for (const name of ["a", "b", "c", "d"]) added.push(await downloads.add(request(filmTorrent(name).bytes)));
  const states = () =>
    downloads
      .list()
      .map(({ state }) => state)
      .sort();
  assert.deepEqual(states(), ["downloading", "downloading", "downloading", "waiting"]);
  await downloads.remove(added[0]!.infohash, false);
  assert.deepEqual(states(), ["downloading", "downloading", "downloading"]);
  await assert.rejects(downloads.remove("0".repeat(40) as Infohash, false), { code: "unknown_item" });
  await downloads.close();
});

test("rangesOf: indexes in any order become ranges", () => {
  assert.deepEqual(rangesOf([7, 1, 0, 2, 2, 9]), [
    [0, 2],
    [7, 7],
    [9, 9],
  ]);
  assert.deepEqual(rangesOf([]), []);
});
