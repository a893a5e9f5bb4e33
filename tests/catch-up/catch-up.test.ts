import assert from "node:assert/strict";
import { truncate } from "node:fs/promises";
import { test } from "node:test";
import { concatBytes } from "../../src/base/bytes.ts";
import { SILENT_LOG } from "../../src/base/log.ts";
import { createCatchUp } from "../../src/catch-up/catch-up.ts";
import type { KeptMedia, TimeSpan } from "../../src/catch-up/catch-up-contract.ts";
import { files } from "../../src/runtime/files.ts";
import { openMemory } from "../../src/runtime/kv-memory.ts";
import { FakeClock } from "../engine/fake-clock.ts";
import { FakeItems, WEB_CONTENT } from "../library/fake-items.ts";
import { until } from "../library/until.ts";
import { tempFolder } from "../parts/torrent-files.ts";
import { checkTs } from "../remux/ts-checker.ts";
import { PatternSource } from "./pattern-source.ts";

const HOUR_MS = 3_600_000;

/** Kept channels on a real folder, a fake clock, and a channel that the test controls. */
async function house(
  t: { after(run: () => unknown): void },
  { limitBytes = 1e9, windowMs = HOUR_MS }: { limitBytes?: number; windowMs?: number } = {},
) {
  const folder = await tempFolder("catch-up");
  t.after(() => folder.remove());
  const [store, clock, source] = [openMemory(), new FakeClock(), new PatternSource()];
  const items = new FakeItems(() => clock.unixSeconds());

  const item = await items.add({ title: "News", content: WEB_CONTENT, isLive: 1 });
  const unixMs = () => Math.floor(1_700_000_000_000 + clock.now());
  const start = () =>
    createCatchUp({
      ...{ store, clock, files, items, windowMs, limitBytes, unixMs },
      ...{ folder: folder.path, open: source.open, log: SILENT_LOG },
    });
  /** Sends this many seconds of the channel, each at its time. */
  const play = async (catchUp: { list(): readonly { bytes: number }[] }, seconds: number) => {
    for (let second = 0; second < seconds; second++) {
      const before = catchUp.list()[0]!.bytes;
      source.send();
      await clock.advance(1_000);
      // On a slow machine, the clock must not run ahead of what is written.
      await until(() => source.isRead);
      // What arrives late is written at the next wake.
      if (second > 0)
        await until(async () => {
          await clock.advance(1);
          return catchUp.list()[0]!.bytes !== before;
        });
    }
  };
  return { ...{ store, clock, items, item, source, unixMs, start, play }, path: folder.path };
}

const ALL: TimeSpan = { startMs: 0, endMs: Number.POSITIVE_INFINITY };

async function bytesOf(stream: ReadableStream<Uint8Array>): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return concatBytes(chunks);
}

const whole = (media: KeptMedia) => bytesOf(media.read({ start: 0, end: media.bytes }));
const secondsOf = ({ startMs, endMs }: TimeSpan) => Math.round((endMs - startMs) / 1000);

test("catch-up: a past time is one valid transport stream from the key frame before its start", async (t) => {
  const { item, source, unixMs, start, play } = await house(t);
  const catchUp = await start();
  assert.equal(catchUp.isKept(item), false);
  await catchUp.add(item, { allowPrivateUrls: false });
  await until(() => source.isOpen);
  const beganMs = unixMs();
  await play(catchUp, 150);
  assert.deepEqual(
    catchUp
      .spans(item, ALL)
      .map(secondsOf)
      .map((s) => s >= 147 && s <= 150),
    [true],
  );
  const media = await catchUp.open(item, { startMs: beganMs + 30_000, endMs: beganMs + 90_000 });
  assert.ok(media);
  assert.ok(media.segments[0]!.startMs <= beganMs + 30_000 && media.segments[0]!.endMs > beganMs + 30_000);
  assert.ok(media.segments.at(-1)!.endMs >= beganMs + 90_000 && media.segments.length >= 15);
  // Two blocks, without a gap between them.
  assert.equal(new Set(media.segments.map(({ block }) => block)).size, 2);
  for (const [i, { startMs, durationMs }] of media.segments.entries()) {
    assert.equal(Math.round(durationMs), 4_000);
    if (i > 0) assert.equal(startMs, media.segments[i - 1]!.endMs);
  }
  const bytes = await whole(media);
  const report = checkTs(bytes, { isPassThrough: true });
  assert.deepEqual([report.faults, bytes.length], [[], media.bytes]);
  const range = { start: 188_000, end: media.bytes - 1_000 };
  assert.deepEqual(await bytesOf(media.read(range)), bytes.slice(range.start, range.end));
  const { block, range: part } = media.segments[3]!;
  const segment = await bytesOf(catchUp.file(item, block, part)!);
  assert.deepEqual(checkTs(segment, { isPassThrough: true }).faults, []);
  assert.equal(catchUp.file(item, block, { start: 0, end: 1e9 }), undefined);
  await catchUp.close();
});

test("catch-up: after a source failed and after a restart, the stream continues, and the gap is reported", async (t) => {
  const { clock, item, source, start, play } = await house(t);
  let catchUp = await start();
  // Real clocks have fractions.
  await clock.advance(0.3);
  await catchUp.add(item, { allowPrivateUrls: false });
  await until(() => source.isOpen);
  await play(catchUp, 20);
  source.end();
  await until(() => catchUp.list()[0]!.problem !== null);
  assert.match(catchUp.list()[0]!.problem!, /ended/);
  await until(async () => {
    await clock.advance(1_000);
    return source.opened === 2;
  });
  await play(catchUp, 20);
  assert.equal(catchUp.list()[0]!.problem, null);
  await catchUp.close();
  await clock.advance(60_000);
  catchUp = await start();
  await until(() => source.opened === 3);
  await play(catchUp, 20);
  const spans = catchUp.spans(item, ALL);
  assert.equal(spans.length, 3);
  for (const span of spans) assert.ok(Math.abs(secondsOf(span) - 19) <= 2, String(secondsOf(span)));
  const media = await catchUp.open(item, ALL);
  assert.equal(media!.segments.filter(({ isDiscontinuous }) => isDiscontinuous).length, 2);
  const report = checkTs(await whole(media!), { isPassThrough: true });
  assert.deepEqual(report.faults, []);
  await catchUp.close();
});

test("catch-up: a reader of the present follows the channel, and ends with the time", async (t) => {
  const { item, source, unixMs, clock, start, play } = await house(t);
  const catchUp = await start();
  await catchUp.add(item, { allowPrivateUrls: false });
  await until(() => source.isOpen);
  const beganMs = unixMs();
  await play(catchUp, 30);
  const span = { startMs: beganMs + 10_000, endMs: beganMs + 100_000 };
  assert.equal((await catchUp.open(item, span))!.isGrowing, true);
  const followed = bytesOf(catchUp.follow(item, span));
  await play(catchUp, 120);
  await clock.advance(20_000);
  const bytes = await followed;
  assert.deepEqual(checkTs(bytes, { isPassThrough: true }).faults, []);
  const media = await catchUp.open(item, span);
  assert.deepEqual([media!.isGrowing, media!.bytes], [false, bytes.length]);
  const left = catchUp.follow(item, { startMs: unixMs(), endMs: unixMs() + HOUR_MS }).getReader();
  const waiting = left.read();
  await left.cancel();
  assert.equal((await waiting).done, true);
  await catchUp.close();
});

test("catch-up: the limit and the window remove the oldest media; the rest of an open programme keeps its offsets", async (t) => {
  const { item, source, unixMs, clock, start, play, path } = await house(t, {
    limitBytes: 8_000_000,
    windowMs: 1_800_000,
  });
  const catchUp = await start();
  await catchUp.add(item, { allowPrivateUrls: false });
  await until(() => source.isOpen);
  const beganMs = unixMs();
  await play(catchUp, 130);
  const span = { startMs: beganMs, endMs: beganMs + 90_000 };
  const media = (await catchUp.open(item, span))!;
  const bytes = await whole(media);
  while (catchUp.spans(item, ALL)[0]!.startMs <= beganMs + 1_000) {
    await play(catchUp, 2);
    assert.ok(catchUp.list()[0]!.bytes <= 8_000_000);
  }
  const again = (await catchUp.open(item, span))!;
  assert.equal(again, media);
  const end = { start: media.bytes - 100_000, end: media.bytes };
  assert.deepEqual(await bytesOf(again.read(end)), bytes.slice(end.start));
  await assert.rejects(whole(again), { code: "no_such_segment" });
  source.end();
  source.problem = new Error("no peers");
  await until(async () => {
    await clock.advance(10_000);
    // While the channel is being opened again, it has no problem.
    const [channel] = catchUp.list();
    return channel!.bytes === 0 && channel!.problem !== null;
  });
  assert.match(catchUp.list()[0]!.problem!, /no peers/);
  await catchUp.remove(item);
  assert.deepEqual([catchUp.list(), await files.list(`${path}/catch-up`)], [[], []]);
  await assert.rejects(catchUp.remove(item), { code: "unknown_item" });
  await catchUp.close();
});

test("catch-up: a file that lost its end with the power is cut at a key frame's segment", async (t) => {
  const { item, source, start, play, path, clock } = await house(t);
  const first = await start();
  await first.add(item, { allowPrivateUrls: false });
  await until(() => source.isOpen);
  await play(first, 30);
  await first.close();
  const { channel, bytes } = first.list()[0]!;
  const [name] = await files.list(`${path}/catch-up/${channel}`);
  await truncate(`${path}/catch-up/${channel}/${name}`, bytes - 500_000);
  await clock.advance(5_000);
  const second = await start();
  await until(() => source.opened === 2);
  assert.ok(second.list()[0]!.bytes < bytes - 500_000 + 188);
  await play(second, 20);
  const report = checkTs(await whole((await second.open(item, ALL))!), { isPassThrough: true });
  assert.deepEqual(report.faults, []);
  await second.close();
});
