import assert from "node:assert/strict";
import { readdir, readFile, truncate } from "node:fs/promises";
import { test } from "node:test";
import { SluiceError } from "../../src/base/errors.ts";
import type { UnixSeconds } from "../../src/base/time.ts";
import type { RecordingRequest } from "../../src/recordings/recording-contract.ts";
import { createRecordings } from "../../src/recordings/recordings.ts";
import { files } from "../../src/runtime/files.ts";
import { openMemory } from "../../src/runtime/kv-memory.ts";
import { FakeClock } from "../engine/fake-clock.ts";
import { SILENT } from "../engine/fake-engine.ts";
import { FakeItems } from "../library/fake-items.ts";
import { until } from "../library/until.ts";
import { tempFolder } from "../parts/torrent-files.ts";

const LIMIT = 100 * 188;

/** A packet of PID 256, or a null packet. */
function packet(value: number, pid = 256): Uint8Array {
  const bytes = new Uint8Array(188).fill(value);
  bytes.set([0x47, pid >> 8, pid & 0xff, 0x10]);
  return bytes;
}

/** Recordings on a real folder, a fake clock and a channel that the test controls. */
async function house(t: { after(run: () => unknown): void }) {
  const folder = await tempFolder("recordings");
  t.after(() => folder.remove());
  const [store, clock] = [openMemory(), new FakeClock()];
  const items = new FakeItems(() => clock.unixSeconds());
  const content = {
    transport: "http",
    contentId: null,
    infohash: null,
    magnet: null,
    url: "http://x/",
  } as const;
  const item = await items.add({ title: "News", content });
  const channel = {
    opened: 0,
    cancelled: 0,
    problem: undefined as string | undefined,
    controller: undefined as ReadableStreamDefaultController<Uint8Array> | undefined,
    send(...values: number[]) {
      for (const value of values) this.controller!.enqueue(packet(value));
    },
  };
  const start = () =>
    createRecordings({
      ...{ store, clock, files, items, folder: folder.path, log: SILENT, limitBytes: LIMIT },
      async open() {
        channel.opened++;
        if (channel.problem) throw new SluiceError("no_peers", channel.problem);
        return new ReadableStream<Uint8Array>({
          start(controller) {
            channel.controller = controller;
          },
          cancel() {
            channel.cancelled++;
            channel.controller = undefined;
          },
        });
      },
    });
  const now = () => clock.unixSeconds();
  const request = (from: number, to: number): RecordingRequest => ({
    ...{ itemId: item.id, title: "The show", channel: "News", allowPrivateUrls: false },
    start: (now() + from) as UnixSeconds,
    stop: (now() + to) as UnixSeconds,
  });
  /** The values of the packets in a file. */
  const recorded = async (id: number) => {
    const bytes = await readFile(`${folder.path}/recordings/${id}.ts`);
    return Array.from({ length: bytes.length / 188 }, (_, i) => bytes[188 * i + 100]);
  };
  return { ...{ store, clock, items, item, channel, request, recorded, start }, path: folder.path };
}

test("recordings: a planned recording begins and ends in time, and has no null packets", async (t) => {
  const { clock, channel, request, recorded, start } = await house(t);
  const recordings = await start();
  const { id } = await recordings.add(request(100, 200));
  await clock.advance(99_000);
  assert.deepEqual([recordings.list()[0]?.state, channel.opened], ["planned", 0]);
  await clock.advance(1_000);
  await until(() => channel.controller !== undefined);
  channel.send(1, 2);
  channel.controller!.enqueue(packet(9, 0x1fff));
  channel.send(3);
  await until(() => recordings.list()[0]?.bytes === 3 * 188);
  assert.equal(recordings.list()[0]?.state, "recording");
  await clock.advance(100_000);
  await until(() => recordings.list()[0]?.state === "done");
  assert.deepEqual(
    [await recorded(id), channel.cancelled, recordings.list()[0]?.problem],
    [[1, 2, 3], 1, null],
  );
  await recordings.close();
});

test("recordings: an interrupted recording continues after a restart, behind its last whole packet", async (t) => {
  const { clock, channel, request, recorded, start, path } = await house(t);
  const first = await start();
  const { id } = await first.add(request(0, 1_000));
  const planned = await first.add(request(2_000, 3_000));
  await until(() => channel.controller !== undefined);
  channel.send(1, 2);
  await until(() => first.list()[0]?.bytes === 2 * 188);
  await first.close();
  // The last write before a crash may be incomplete.
  await truncate(`${path}/recordings/${id}.ts`, 2 * 188 - 50);
  await clock.advance(100_000);
  const second = await start();
  await until(() => channel.opened === 2 && channel.controller !== undefined);
  channel.send(3);
  await until(() => second.list()[0]?.bytes === 2 * 188);
  await second.close();
  assert.deepEqual(await recorded(id), [1, 3]);
  // The engine is off for the rest of the first and for all of the second.
  await clock.advance(4_000_000);
  const third = await start();
  await until(() => third.list().every(({ state }) => state === "done" || state === "failed"));
  const [done, missed] = third.list();
  assert.deepEqual([done?.state, missed?.state, missed?.id], ["done", "failed", planned.id]);
  assert.match(missed?.problem ?? "", /did not record/);
  await third.close();
});

test("recordings: a channel that fails is opened again; one that never delivers has failed", async (t) => {
  const { clock, channel, request, recorded, start } = await house(t);
  const recordings = await start();
  const { id } = await recordings.add(request(0, 60));
  await until(() => channel.controller !== undefined);
  channel.send(1);
  await until(() => recordings.list()[0]?.bytes === 188);
  channel.problem = "no peer";
  channel.controller!.close();
  await until(() => recordings.list()[0]?.problem === "the channel has ended");
  await clock.advance(5_000);
  await until(() => recordings.list()[0]?.problem === "no peer");
  channel.problem = undefined;
  await clock.advance(5_000);
  await until(() => channel.opened === 3);
  channel.send(2);
  await until(() => recordings.list()[0]?.bytes === 2 * 188);
  assert.equal(recordings.list()[0]?.problem, null);
  await recordings.stop(id);
  assert.deepEqual([recordings.list()[0]?.state, await recorded(id)], ["done", [1, 2]]);
  channel.problem = "no peer";
  await recordings.add(request(0, 30));
  await until(() => recordings.list()[1]?.problem === "no peer");
  await clock.advance(31_000);
  await until(() => recordings.list()[1]?.state === "failed");
  assert.equal(recordings.list()[1]?.problem, "no peer");
  await recordings.close();
});

test("recordings: end at the limit of all together; deleting one frees its space", async (t) => {
  const { channel, request, start, path } = await house(t);
  const recordings = await start();
  const { id } = await recordings.add(request(0, 60));
  await until(() => channel.controller !== undefined);
  channel.controller!.enqueue(new Uint8Array(LIMIT).fill(1));
  channel.send(1);
  await until(() => recordings.list()[0]?.state === "done");
  assert.match(recordings.list()[0]?.problem ?? "", /--recordings-limit/);
  assert.equal(recordings.list()[0]?.bytes, LIMIT);
  await recordings.remove(id);
  assert.deepEqual([recordings.list(), await readdir(`${path}/recordings`)], [[], []]);
  await assert.rejects(recordings.stop(id), { code: "unknown_item" });
  const again = await recordings.add(request(0, 60));
  await until(() => channel.opened === 2 && channel.controller !== undefined);
  channel.send(1);
  await until(() => recordings.list()[0]?.bytes === 188);
  const file = await recordings.open(again.id);
  const into = new Uint8Array(188);
  await file!.read(0, into);
  await file!.close();
  assert.deepEqual(into, packet(1));
  await recordings.remove(again.id);
  assert.equal(channel.cancelled, 2);
  await recordings.close();
});

test("recordings: refuse impossible times, and plan the same programme once", async (t) => {
  const { request, start } = await house(t);
  const recordings = await start();
  for (const [from, to] of [
    [10, 10],
    [-100, -50],
    [0, 25 * 3_600],
    [16 * 86_400, 16 * 86_400 + 60],
  ] as const)
    await assert.rejects(recordings.add(request(from, to)), { code: "bad_parameter" });
  const one = await recordings.add(request(50, 60));
  assert.equal((await recordings.add(request(50, 60))).id, one.id);
  assert.equal(await recordings.open(one.id), undefined);
  await recordings.stop(one.id);
  assert.deepEqual(recordings.list(), []);
  await recordings.close();
});
