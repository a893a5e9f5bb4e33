import assert from "node:assert/strict";
import { test } from "node:test";
import { SILENT_LOG } from "../../src/base/log.ts";
import { pidAt } from "../../src/media/ts-packet.ts";
import { TableReader } from "../../src/media/ts-tables.ts";
import { channelStream, sessionSource } from "../../src/playback/channel-stream.ts";
import type { PlaybackRequest, Session } from "../../src/playback/contract.ts";
import { PlayedChannels } from "../../src/playback/diagnosis/channel-rows.ts";
import { FakeClock, settled } from "../engine/fake-clock.ts";
import { checkTs } from "../remux/ts-checker.ts";
import { FakeSource } from "./fake-channel-source.ts";

/** Plays sources and collects what the player gets. */
async function player(sources: FakeSource[]) {
  const clock = new FakeClock();
  const channels = new PlayedChannels(clock);
  const report = channels.report("News", sources.length);
  const ended = new AbortController().signal;
  const opening = channelStream({ clock, log: SILENT_LOG, ended, report }, sources);
  await settled();
  sources[0]!.send();
  const reader = (await opening).getReader();
  const chunks: Uint8Array[] = [];
  let isOver = false;
  const read = (async () => {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      chunks.push(value);
    }
    isOver = true;
  })();
  await settled();
  return {
    clock,
    /** The findings of the diagnosis. */
    rows: () => channels.rows().map(({ level, text }) => `${level}: ${text}`),
    /** All packets but the null packets that keep the connection. */
    received: () => new Uint8Array(Buffer.concat(chunks.filter((chunk) => (chunk[1]! & 0x1f) !== 0x1f))),
    isOver: () => isOver,
    async stop() {
      await reader.cancel();
      await read;
    },
  };
}

/** The last tables of a stream. */
function tablesOf(packets: Uint8Array) {
  const reader = new TableReader();
  for (let at = 0; at < packets.length; at += 188)
    if (reader.wants(pidAt(packets, at))) reader.push(packets, at);
  return reader.tables(true)!;
}

/** Seconds of video: the pattern has a key frame each second. */
function seconds(bytes: Uint8Array): number {
  const { faults, keyframes, clockGapTicks } = checkTs(bytes);
  // The audio of the pattern comes a second at a time, and what follows begins after it.
  assert.deepEqual(
    faults.filter((fault) => !/ticks without a clock/.test(fault)),
    [],
  );
  assert.ok(clockGapTicks <= 90_000, `${clockGapTicks}`);
  return keyframes;
}

test("channelStream: a source that ends is followed by the next one, with continuous times and counters", async () => {
  const [one, two] = [new FakeSource("one", 500_000), new FakeSource("two", 90_000)];
  const { received, stop } = await player([one, two]);
  one.send();
  await settled();
  one.end();
  await settled();
  assert.equal(two.opened, 1);
  // The next source is joined at its next key frame, not where it happens to be.
  two.send(40);
  two.send();
  two.send();
  await settled();
  assert.equal(seconds(received()), 4);
  await stop();
  assert.equal(two.closed, 1);
});

test("channelStream: streams of a source with other PIDs get those of the first one", async () => {
  const [one, two] = [new FakeSource("one", 500_000), new FakeSource("two", 90_000)];
  // PMT, video and sound: exchanged, and one that the first source uses for something else.
  two.pids = new Map([
    [0x1000, 0x101],
    [0x100, 0x1000],
    [0x101, 0x30],
  ]);
  const { received, stop } = await player([one, two]);
  one.end();
  await settled();
  two.send();
  two.send();
  // A new connection to it starts elsewhere.
  two.jump(4_000);
  two.send();
  two.send();
  await settled();
  const stream = received();
  assert.equal(seconds(stream), 5);
  const { units } = checkTs(stream);
  assert.deepEqual([...units.keys()].sort(), [0x100, 0x101]);
  const first = stream.subarray(0, 188 * 2);
  const tables = tablesOf(stream);
  assert.deepEqual(tables.pmtPid, tablesOf(first).pmtPid);
  assert.deepEqual({ ...tables.pmt, version: 0 }, { ...tablesOf(first).pmt, version: 0 });
  await stop();
});

test("channelStream: a source with sound in another codec is opened again with converted sound", async () => {
  const [one, two] = [new FakeSource("one", 500_000), new FakeSource("two", 90_000)];
  two.sound = "mp2";
  const { received, stop } = await player([one, two]);
  one.end();
  await settled();
  two.send();
  await settled();
  assert.deepEqual([two.opened, two.closed, two.sound], [2, 1, "aac"]);
  two.send();
  two.send();
  await settled();
  assert.equal(seconds(received()), 3);
  assert.equal(tablesOf(received()).pmt.streams.length, 2);
  await stop();
});

for (const sound of ["aac", "mp2"] as const)
  test(`channelStream: ${sound} sound continues as silence while a source has none, and the other way round`, async () => {
    const sources = ["one", "two", "three"].map((name, i) => new FakeSource(name, 500_000 - i * 90_000));
    const [one, two, three] = sources as [FakeSource, FakeSource, FakeSource];
    one.sound = three.sound = sound;
    two.sound = "none";
    const { received, stop } = await player(sources);
    one.end();
    await settled();
    for (let i = 0; i < 3; i++) two.send();
    await settled();
    two.end();
    await settled();
    three.send();
    await settled();
    const { units, faults } = checkTs(received());
    assert.deepEqual(
      faults.filter((fault) => !/without a clock/.test(fault)),
      [],
    );
    assert.equal(units.size, 2);
    const { pid } = tablesOf(received()).pmt.streams[1]!;
    const frames = units.get(pid)!;
    assert.ok(frames >= 120, `${frames} units of sound`);
    await stop();
  });

test("channelStream: a source whose clock jumps continues with continuous times and counters", async () => {
  const one = new FakeSource("one", 500_000);
  const { received, stop } = await player([one]);
  one.send();
  await settled();
  // A new connection to a server that was started again.
  one.jump(90_000);
  one.send();
  one.send();
  await settled();
  assert.equal(seconds(received()), 4);
  await stop();
  assert.equal(one.opened, 1);
});

test("channelStream: a silent source is replaced after 3 s, and its failure consumes one source", async () => {
  const sources = [1, 2, 3].map((n) => new FakeSource(`source ${n}`, 1_000 * n));
  const { clock, received, stop } = await player(sources);
  await clock.advance(2_900);
  assert.equal(sources[1]!.opened, 0);
  await clock.advance(200);
  assert.deepEqual([sources[1]!.opened, sources[2]!.opened, sources[0]!.closed], [1, 0, 0]);
  sources[1]!.send();
  await settled();
  assert.deepEqual([sources[0]!.closed, sources[2]!.opened], [1, 0]);
  assert.equal(seconds(received()), 2);
  // The first source has failed a moment ago, so the third one is next.
  sources[1]!.break();
  await settled();
  assert.deepEqual([sources[0]!.opened, sources[2]!.opened], [1, 1]);
  await stop();
});

test("channelStream: a source that cannot be reached any more is replaced within a second", async () => {
  const [one, two] = [new FakeSource("one", 1_000), new FakeSource("two", 2_000)];
  const { clock, received, rows, stop } = await player([one, two]);
  one.isLost = true;
  await clock.advance(1_000);
  assert.equal(two.opened, 1);
  two.send();
  await settled();
  assert.equal(seconds(received()), 2);
  assert.match(rows()[0]!, /plays two, .* \(one: the connection was lost\)/);
  await stop();
});

test("channelStream: a source that was silent for a while only goes on, and the other one is closed", async () => {
  const [one, two] = [new FakeSource("one", 1_000), new FakeSource("two", 2_000)];
  const { clock, received, stop } = await player([one, two]);
  await clock.advance(3_500);
  assert.equal(two.opened, 1);
  one.send();
  await settled();
  assert.deepEqual([one.closed, two.closed], [0, 1]);
  await clock.advance(2_000);
  one.send();
  await settled();
  assert.equal(seconds(received()), 3);
  await stop();
});

test("channelStream: shows the test pattern while all sources fail, and goes on when one recovers", async () => {
  const [one, two] = [new FakeSource("one", 1_000), new FakeSource("two", 2_000)];
  const { clock, received, isOver, stop } = await player([one, two]);
  one.fails = true;
  two.fails = true;
  one.break();
  await clock.advance(12_000);
  const shown = seconds(received());
  assert.ok(shown >= 10, `${shown} seconds`);
  assert.ok(one.opened > 1 && two.opened > 1, "the sources are tried again");
  two.fails = false;
  await clock.advance(10_000);
  const before = seconds(received());
  two.send();
  two.send();
  await settled();
  assert.equal(seconds(received()), before + 2);
  // The pattern has ended.
  await clock.advance(2_500);
  assert.equal(seconds(received()), before + 2);
  assert.equal(isOver(), false);
  await stop();
});

test("channelStream: returns to a better source that delivers in time again, and waits longer if it fails again", async () => {
  const sources = [1, 2].map((n) => new FakeSource(`item ${n}`, 1_000 * n));
  const [one, two] = sources as [FakeSource, FakeSource];
  const { clock, received, rows, stop } = await player(sources);
  const play = async (count: number, which: readonly FakeSource[]) => {
    for (let i = 0; i < count; i++) {
      for (const source of which) if (source.isOpen) source.send();
      await clock.advance(1_000);
    }
  };
  one.end();
  await settled();
  await play(59, [two]);
  assert.equal(one.opened, 1, "not before a minute of stable playback");
  await play(3, [one, two]);
  assert.equal(one.opened, 2);
  assert.match(rows()[0]!, /plays item 2/);
  await play(14, [one, two]);
  assert.match(rows()[0]!, /plays item 1, source 1 of 2, after 2 switches.*item 1 plays again/);
  assert.deepEqual([one.isOpen, two.isOpen], [true, false]);
  assert.equal(seconds(received()), 77);
  one.end();
  await settled();
  await play(62, [one, two]);
  assert.equal(one.opened, 2, "the second failure doubles the wait");
  assert.match(rows()[0]!, /plays item 2, source 2 of 2, after 3 switches/);
  await stop();
});

test("channelStream: leaves a source that repeats itself for one that plays, and keeps it if there is none", async () => {
  const sources = [1, 2].map((n) => new FakeSource(`item ${n}`, 1_000 * n));
  const [one, two] = sources as [FakeSource, FakeSource];
  const { clock, received, rows, stop } = await player(sources);
  two.fails = true;
  const repeat = async (count: number) => {
    for (let i = 0; i < count && one.isOpen; i++) {
      one.repeat(1_500 + (i % 6));
      await clock.advance(1_000);
    }
  };
  await repeat(24);
  assert.equal(two.opened, 0);
  await repeat(12);
  assert.deepEqual([two.opened, one.isOpen], [1, true], "the other source fails");
  two.fails = false;
  await repeat(60);
  assert.equal(two.opened, 2);
  two.send();
  await settled();
  assert.equal(one.isOpen, false);
  assert.match(rows()[0]!, /plays item 2.*item 1: the source repeats itself/);
  assert.ok(seconds(received()) > 90);
  await stop();
});

test("channelStream: reports the source that plays, its switches with their reasons, and the test pattern", async () => {
  const sources = [1, 2].map((n) => new FakeSource(`item ${n}`, 1_000 * n));
  const [one, two] = sources as [FakeSource, FakeSource];
  const { clock, rows, stop } = await player(sources);
  assert.deepEqual(rows(), ["ok: “News” plays item 1, source 1 of 2."]);
  one.end();
  await settled();
  two.send();
  await settled();
  await clock.advance(2_000);
  const reason = "the last one 2 s ago (item 1: the source has ended).";
  assert.deepEqual(rows(), [`note: “News” plays item 2, source 2 of 2, after 1 switch, ${reason}`]);
  one.fails = true;
  two.break();
  await clock.advance(10_000);
  assert.deepEqual(rows(), [
    "warn: No source of “News” delivers (item 2: gone); players see the test pattern.",
  ]);
  await stop();
  assert.deepEqual(rows(), []);
});

test("channelStream: without the test pattern, the stream fails when all sources have failed", async () => {
  const [one, two] = [new FakeSource("one", 1_000), new FakeSource("two", 2_000)];
  const dependencies = { clock: new FakeClock(), log: SILENT_LOG, ended: new AbortController().signal };
  const opening = channelStream({ ...dependencies, hasPattern: false }, [one, two]);
  await settled();
  one.send();
  const reader = (await opening).getReader();
  assert.equal(seconds((await reader.read()).value!), 1);
  two.fails = true;
  one.end();
  await assert.rejects(reader.read(), /the source has ended/);
});

test("channelStream: a slow start opens the second source beside the first one", async () => {
  const clock = new FakeClock();
  const [one, two] = [new FakeSource("one", 1_000), new FakeSource("two", 2_000)];
  const opening = channelStream({ clock, log: SILENT_LOG, ended: new AbortController().signal }, [one, two]);
  await clock.advance(8_500);
  const reader = (await opening).getReader();
  assert.deepEqual([one.opened, one.closed, two.opened], [1, 0, 1]);
  one.send();
  await settled();
  const { value } = await reader.read();
  assert.equal(seconds(value!), 1);
  assert.equal(two.closed, 1);
  await reader.cancel();
  assert.equal(one.closed, 1);
});

test("channelStream: rejects with the first problem if no source starts", async () => {
  const sources = [new FakeSource("one", 1), new FakeSource("two", 2)];
  for (const source of sources) source.fails = true;
  await assert.rejects(
    channelStream({ clock: new FakeClock(), log: SILENT_LOG, ended: new AbortController().signal }, sources),
    /no peer of one/,
  );
  assert.deepEqual(
    sources.map(({ opened }) => opened),
    [1, 1],
  );
});

test("channelStream: releases its sources when the request is cancelled before the first data", async () => {
  const source = new FakeSource("one", 1);
  const cancelled = new AbortController();
  const opening = channelStream(
    { clock: new FakeClock(), log: SILENT_LOG, ended: new AbortController().signal },
    [source],
    cancelled.signal,
  );
  await settled();
  cancelled.abort();
  await opening;
  await settled();
  assert.equal(source.closed, 1);
});

test("sessionSource: a file that is a transport stream is played as its bytes, other content as its remuxed stream", async () => {
  const stream = (text: string) => new Response(text).body!;
  const played = async (mime: string) => {
    const session = {
      awaitStart: async () => {},
      body: { mime, size: 7, open: ({ start, end }) => stream(`bytes ${start} to ${end}`) },
      transportStream: async () => stream("remuxed"),
    } satisfies Partial<Session>;
    const start = async () => session as unknown as Session;
    const source = sessionSource("news", {} as PlaybackRequest, start, () => stream(""));
    return new Response(await source.open(new AbortController().signal, false)).text();
  };
  assert.equal(await played("video/mp2t"), "bytes 0 to 7");
  assert.equal(await played("video/x-msvideo"), "remuxed");
});
