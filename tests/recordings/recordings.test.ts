import assert from "node:assert/strict";
import { readdir, readFile, truncate } from "node:fs/promises";
import { test } from "node:test";
import { runtime } from "#runtime";
import { SluiceError } from "../../src/base/errors.ts";
import { SILENT_LOG } from "../../src/base/log.ts";
import type { UnixSeconds } from "../../src/base/time.ts";
import type { Programme } from "../../src/library/guide/guide-contract.ts";
import type { RecordingRequest } from "../../src/recordings/recording-contract.ts";
import { createRecordings, type RecordingsDependencies } from "../../src/recordings/recordings.ts";
import { openMedia } from "../../src/remux/open-media.ts";
import { files } from "../../src/runtime/files.ts";
import { openMemory } from "../../src/runtime/kv-memory.ts";
import { FakeClock } from "../engine/fake-clock.ts";
import { FakeItems, WEB_CONTENT } from "../library/fake-items.ts";
import { until } from "../library/until.ts";
import { tempFolder } from "../parts/torrent-files.ts";
import { framesOf, newMuxer } from "../playback/fake-channel-source.ts";

const LIMIT = 100 * 188;

/** A packet of PID 256, or a null packet. */
function packet(value: number, pid = 256): Uint8Array {
  const bytes = new Uint8Array(188).fill(value);
  bytes.set([0x47, pid >> 8, pid & 0xff, 0x10]);
  return bytes;
}

const NO_GUIDE: RecordingsDependencies["guide"] = {
  guide: { programmes: async () => [] },
  searchProgrammes: async () => ({ found: [], isComplete: true }),
};

/** Recordings on a real folder, a fake clock and a channel that the test controls. */
async function house(
  t: { after(run: () => unknown): void },
  { guide = NO_GUIDE, catchUp }: Partial<Pick<RecordingsDependencies, "guide" | "catchUp">> = {},
) {
  const folder = await tempFolder("recordings");
  t.after(() => folder.remove());
  const [store, clock] = [openMemory(), new FakeClock()];
  const items = new FakeItems(() => clock.unixSeconds());

  const item = await items.add({ title: "News", content: WEB_CONTENT });
  const channel = {
    opened: 0,
    cancelled: 0,
    problem: undefined as string | undefined,
    controller: undefined as ReadableStreamDefaultController<Uint8Array> | undefined,
    send(...values: number[]) {
      for (const value of values) this.controller!.enqueue(packet(value));
    },
    /** Sends a second of the test pattern. */
    sendMedia(second: number) {
      this.controller!.enqueue(newMuxer().segment(framesOf(second, second)));
    },
  };
  const start = () =>
    createRecordings({
      ...{ store, clock, files, items, folder: folder.path, log: SILENT_LOG, limitBytes: LIMIT },
      ...{ guide, catchUp, openMedia, sha1: runtime.sha1, peerAddresses: () => [] },
      share: () => assert.fail("nothing is shared"),
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
  const pathOf = async (id: number, ending = "ts") => {
    const names = await readdir(`${folder.path}/recordings`);
    return `${folder.path}/recordings/${names.find((name) => name.endsWith(`[${id}].${ending}`))}`;
  };
  const recorded = async (id: number) => {
    const bytes = await readFile(await pathOf(id));
    return Array.from({ length: bytes.length / 188 }, (_, i) => bytes[188 * i + 100]);
  };
  return { ...{ store, clock, items, item, channel, request, recorded, start, pathOf }, path: folder.path };
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
  const { clock, channel, request, recorded, start, pathOf } = await house(t);
  const first = await start();
  const { id } = await first.add(request(0, 1_000));
  const planned = await first.add(request(2_000, 3_000));
  await until(() => channel.controller !== undefined);
  channel.send(1, 2);
  await until(() => first.list()[0]?.bytes === 2 * 188);
  await first.close();
  // The last write before a crash may be incomplete.
  await truncate(await pathOf(id), 2 * 188 - 50);
  await clock.advance(100_000);
  const second = await start();
  await until(() => channel.opened === 2 && channel.controller !== undefined);
  // It continues with a key frame.
  channel.send(3);
  channel.sendMedia(7);
  await until(() => second.list()[0]!.bytes > 2 * 188);
  await second.close();
  const whole = await readFile(await pathOf(id));
  assert.deepEqual([(await recorded(id))[0], (whole[189]! << 8) | whole[190]!], [1, 0x4000]);
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
  channel.sendMedia(7);
  await until(() => recordings.list()[0]!.bytes > 188);
  assert.equal(recordings.list()[0]?.problem, null);
  await recordings.stop(id);
  assert.deepEqual([recordings.list()[0]?.state, (await recorded(id))[0]], ["done", 1]);
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

/** A programme of the item, `from` and `to` seconds from now. */
const programmeAt = (now: number, from: number, to: number, more: Partial<Programme> = {}): Programme => ({
  ...{ title: "The Show", subtitle: "", description: "", episode: "", icon: "", categories: [] },
  ...{ start: (now + from) as UnixSeconds, stop: (now + to) as UnixSeconds },
  ...more,
});

test("recordings: a programme has padding, a name with its episode and a description, and moves with the guide", async (t) => {
  const programmes: Programme[] = [];
  const guide = {
    guide: { programmes: async () => programmes },
    searchProgrammes: NO_GUIDE.searchProgrammes,
  };
  const { clock, channel, item, request, start, pathOf } = await house(t, { guide });
  const recordings = await start();
  const now = clock.unixSeconds();
  const episode = { subtitle: 'A <"new"> start', episode: "S02E05", description: "It begins & ends." };
  const programme = programmeAt(now, 1_000, 2_000, episode);
  programmes.push(programme, programmeAt(now, 3_000, 4_000, { ...episode, episode: "S02E06" }));
  const padding = { before: 60, after: 120 };
  const { id } = await recordings.add({ ...request(1_000, 2_000), programme, padding });
  assert.deepEqual([recordings.list()[0]!.start, recordings.list()[0]!.stop], [now + 940, now + 2_120]);
  programmes[0] = programmeAt(now, 1_300, 2_500, episode);
  await recordings.series.plan();
  assert.deepEqual([recordings.list()[0]!.start, recordings.list()[0]!.stop], [now + 1_240, now + 2_620]);
  await clock.advance(1_240_000);
  await until(() => channel.controller !== undefined);
  channel.send(1);
  await until(() => recordings.list()[0]!.bytes === 188);
  // What runs is extended, and keeps its start.
  programmes[0] = programmeAt(now, 1_400, 3_000, episode);
  await recordings.series.plan();
  assert.deepEqual([recordings.list()[0]!.start, recordings.list()[0]!.stop], [now + 1_240, now + 3_120]);
  assert.match(
    await pathOf(id),
    /The show - S02E05 - A new start - News - \d{4}-\d\d-\d\d \d\d-\d\d \[1\]\.ts$/,
  );
  const nfo = await readFile(await pathOf(id, "nfo"), "utf8");
  assert.match(
    nfo,
    /<episodedetails>\n {2}<title>A &lt;"new"&gt; start<\/title>\n {2}<showtitle>The show<\/showtitle>/,
  );
  assert.match(
    nfo,
    /<season>2<\/season>\n {2}<episode>5<\/episode>\n {2}<plot>It begins &amp; ends\.<\/plot>/,
  );
  assert.equal(item.id, recordings.list()[0]!.itemId);
  await recordings.remove(id);
  await recordings.close();
});

test("recordings: a series records each episode once, also after a restart and after the user has deleted it", async (t) => {
  const programmes: Programme[] = [];
  const found = () => programmes.map((programme) => ({ item, programme }));
  const guide = {
    guide: { programmes: async () => programmes },
    searchProgrammes: async () => ({ found: found(), isComplete: true }),
  };
  const { clock, item, start } = await house(t, { guide });
  let recordings = await start();
  const now = clock.unixSeconds();
  programmes.push(
    programmeAt(now, 1_000, 2_000, { episode: "S01E01" }),
    programmeAt(now, 5_000, 6_000, { episode: "s01e01" }),
    programmeAt(now, 7_000, 8_000, { episode: "S01E02", title: "the show" }),
    programmeAt(now, 9_000, 9_500, { title: "The Show: extra" }),
  );
  const rule = { title: "THE SHOW", padding: { before: 10, after: 20 }, allowPrivateUrls: false };
  const { id } = await recordings.series.add({ ...rule, itemId: item.id });
  assert.equal((await recordings.series.add({ ...rule, itemId: item.id })).id, id);
  const planned = () => recordings.list().map(({ start, seriesId }) => [start - now, seriesId]);
  assert.deepEqual(planned(), [
    [990, id],
    [6_990, id],
  ]);
  await recordings.stop(recordings.list()[0]!.id);
  await recordings.close();
  recordings = await start();
  programmes.push(programmeAt(now, 10_000, 11_000, { episode: "S01E03" }));
  await recordings.series.plan();
  assert.deepEqual(planned(), [
    [6_990, id],
    [9_990, id],
  ]);
  await recordings.series.remove(id);
  assert.deepEqual([recordings.list(), recordings.series.list()], [[], []]);
  await recordings.series.add({ ...rule, itemId: null });
  assert.equal(recordings.list().length, 3);
  await assert.rejects(recordings.series.add({ ...rule, title: " ", itemId: null }), {
    code: "bad_parameter",
  });
  await assert.rejects(recordings.series.remove(9), { code: "unknown_item" });
  await recordings.close();
});

test("recordings: what is kept for catch-up is recorded from its start, after a restart too, and over programmes as well", async (t) => {
  const sent: ReadableStreamDefaultController<Uint8Array>[] = [];
  const span = { startMs: 0, endMs: 0, durationMs: 1, isDiscontinuous: false };
  const segments = [{ ...span, block: 1, range: { start: 0, end: 188 } }];
  const catchUp = {
    isKept: () => true,
    open: async (_: unknown, { endMs }: { endMs: number }) => ({
      ...{ segments, bytes: 188, isGrowing: endMs > 1000 * clock.unixSeconds() },
      ...{ read: () => new ReadableStream<Uint8Array>(), manifest: () => "" },
    }),
    follow: () =>
      new ReadableStream<Uint8Array>({
        start(controller) {
          sent.push(controller);
          for (const value of [1, 2]) controller.enqueue(packet(value));
        },
      }),
  };
  const { clock, channel, request, recorded, start } = await house(t, { catchUp });
  let recordings = await start();
  const { id } = await recordings.add(request(-600, 100));
  await until(() => recordings.list()[0]!.bytes === 2 * 188);
  await recordings.close();
  recordings = await start();
  await until(() => sent.length === 2);
  sent[1]!.enqueue(packet(3));
  await until(() => recordings.list()[0]!.bytes === 3 * 188);
  await clock.advance(101_000);
  sent[1]!.enqueue(packet(4));
  sent[1]!.close();
  await until(() => recordings.list()[0]!.state === "done");
  assert.deepEqual([await recorded(id), channel.opened], [[1, 2, 3, 4], 0]);
  const past = await recordings.add(request(-50, -20));
  await until(() => sent.length === 3);
  sent[2]!.close();
  await until(() => recordings.list().every(({ state }) => state === "done"));
  assert.deepEqual(await recorded(past.id), [1, 2]);
  await recordings.close();
});
