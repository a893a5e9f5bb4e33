import assert from "node:assert/strict";
import { test } from "node:test";
import { SluiceError } from "../../src/base/errors.ts";
import type { Broadcast } from "../../src/live/broadcast/broadcast-contract.ts";
import { ALONE_MS, SILENCE_MS, START_MS } from "../../src/live/broadcast/standby-watch.ts";
import type { PieceHeader } from "../../src/wire/live/header.ts";
import { header } from "../protocol/live/scripted.ts";
import { checkSent, FakeStudio, someRequest } from "./broadcast-parts.ts";
import { streamOf } from "./source-parts.ts";

const code =
  (wanted: string, expected = /./) =>
  (error: unknown) =>
    error instanceof SluiceError && error.code === wanted && expected.test(error.message);
const STANDBY = someRequest({ isStandby: true });
/** The epoch of another machine, an hour ago. */
const THEIR_EPOCH = 1_699_996_400;

/** A broadcaster that has the key of a stream and is off air. */
async function withKey(): Promise<FakeStudio> {
  const studio = new FakeStudio();
  const first = await studio.within(studio.broadcasts().start(someRequest()));
  await first.stop();
  studio.files.kept.delete("/data/broadcasts/One/state");
  studio.sent.length = 0;
  studio.opened.length = 0;
  studio.released = 0;
  return studio;
}

function nowMs({ world }: FakeStudio): number {
  return world.epochMs + world.clock.now();
}

/** The current header of the other machine. */
function theirs(studio: FakeStudio, more: Partial<PieceHeader> = {}): PieceHeader {
  const timestampMs = nowMs(studio);
  const at = { timestampMs, segment: Math.floor(timestampMs / 2000) };
  return header(Math.floor(timestampMs / 250), { epoch: THEIR_EPOCH, ...at, ...more }).value;
}

/** The other machine is on air for this long. */
async function follow(studio: FakeStudio, ms: number, epoch = THEIR_EPOCH): Promise<PieceHeader> {
  let newest = theirs(studio, { epoch });
  for (let passed = 0; passed < ms; passed += 250) {
    newest = theirs(studio, { epoch });
    studio.live = { peers: 2, newest, heardAt: studio.world.clock.now() };
    await studio.world.clock.advance(250);
  }
  return newest;
}

/** No source is on air, and peers send other messages. Resolves when we are on air, or after `ms`. */
async function silence(studio: FakeStudio, ms: number, hasPeers = true): Promise<number> {
  const { clock } = studio.world;
  const [began, count] = [clock.now(), studio.sent.length];
  while (clock.now() - began < ms && studio.sent.length === count) {
    if (hasPeers) studio.live = { ...studio.live, heardAt: clock.now() };
    await clock.advance(50);
  }
  return clock.now() - began;
}

function health(broadcast: Broadcast): string {
  return broadcast.figures().health;
}

test("startStandby: follows another source, and takes over 2 to 3 s after its last piece, in a later epoch", async () => {
  const studio = await withKey();
  const broadcast = await studio.within(studio.broadcasts().start(STANDBY));
  const last = await follow(studio, 20_000);
  assert.deepEqual([studio.sent.length, studio.opened.length], [0, 1]);
  assert.equal(studio.opened[0]!.live!.role, "relay");
  assert.match(
    broadcast.figures().remark,
    new RegExp(`another source is on air: epoch ${THEIR_EPOCH}, piece ${last.seq}`),
  );
  assert.equal(health(broadcast), "standby");
  studio.reachable = [{ host: "192.0.2.7", port: 7000 }];
  const afterMs = await silence(studio, 10_000);
  // Plus a piece of 250 ms and the check interval.
  assert.ok(afterMs >= SILENCE_MS - 250 && afterMs <= SILENCE_MS + 1000 + 600, `${afterMs} ms`);
  await studio.world.clock.advance(3000);
  const first = studio.sent[0]!.header.value;
  assert.ok(first.epoch > last.epoch && first.epoch * 1000 <= first.timestampMs);
  assert.ok(first.timestampMs >= last.timestampMs && first.isDiscontinuity);
  assert.equal(first.segment, last.segment + 1);
  checkSent(studio.sent, studio.opened[1]!);
  const { live } = studio.opened[1]!;
  assert.deepEqual([live!.role, live!.knownPeers, studio.released], ["source", studio.reachable, 1]);
  assert.ok(live!.mayShareEpoch, "it looks for one of its own epoch");
  assert.equal(health(broadcast), "good");
  await broadcast.stop();
  assert.deepEqual([studio.released, studio.locked.size, studio.world.clock.waiting], [2, 0, 0]);
  assert.equal(studio.succeeded, 1, "no tracker that is away holds it up");
});

test("startStandby: yields to a later epoch, and takes over again after it", async () => {
  const studio = await withKey();
  const broadcast = await studio.within(studio.broadcasts().start(STANDBY));
  await follow(studio, 2000);
  await silence(studio, 10_000);
  await studio.world.clock.advance(2000);
  const own = studio.sent[0]!.header.value.epoch;
  studio.rival = theirs(studio, { epoch: own + 3 });
  await studio.world.clock.advance(500);
  const count = studio.sent.length;
  await follow(studio, 20_000, own + 3);
  assert.equal(studio.sent.length, count, "it stops at once");
  assert.deepEqual([health(broadcast), studio.opened.length], ["standby", 3]);
  studio.rival = undefined;
  await silence(studio, 10_000);
  await studio.world.clock.advance(2000);
  assert.ok(studio.sent[count]!.header.value.epoch > own + 3);
  checkSent(studio.sent.slice(count), studio.opened[3]!);
  await broadcast.stop();
  assert.deepEqual([studio.released, studio.world.clock.waiting], [4, 0]);
});

test("startStandby: yields to its own epoch too, and soon continues in a later one if both have stopped", async () => {
  for (const ahead of [0, 5]) {
    const studio = await withKey();
    const broadcast = await studio.within(studio.broadcasts().start(STANDBY));
    await silence(studio, 20_000);
    const { epoch } = studio.sent[0]!.header.value;
    studio.rival = theirs(studio, { epoch: epoch + ahead });
    await studio.world.clock.advance(500);
    studio.rival = undefined;
    assert.equal(health(broadcast), "standby");
    const afterMs = await silence(studio, 20_000);
    // After a tie, the wait is short.
    assert.ok(ahead === 0 ? afterMs <= 4500 : afterMs >= START_MS - 500, `${afterMs} ms`);
    await studio.world.clock.advance(1000);
    assert.ok(studio.sent.at(-1)!.header.value.epoch > epoch + ahead);
    await broadcast.stop();
  }
});

test("startStandby: does not yield to repeated old headers; neither does a plain source", async () => {
  for (const isStandby of [true, false]) {
    const studio = await withKey();
    const broadcast = await studio.within(studio.broadcasts().start(someRequest({ isStandby })));
    await silence(studio, 20_000);
    await studio.world.clock.advance(3000);
    const own = studio.sent.at(-1)!.header.value;
    const longAgo = own.timestampMs - 31_000;
    const replays = [
      { epoch: own.epoch + 5, timestampMs: longAgo },
      { epoch: own.epoch, timestampMs: longAgo },
      { epoch: own.epoch - 1 },
      // From a clock that is far ahead: viewers would not follow it either.
      { epoch: own.epoch + 5, timestampMs: own.timestampMs + 700_000 },
    ];
    for (const replay of replays) {
      studio.rival = theirs(studio, replay);
      const count = studio.sent.length;
      await studio.world.clock.advance(3000);
      assert.ok(studio.sent.length >= count + 10, JSON.stringify(replay));
    }
    await broadcast.stop();
  }
});

test("startBroadcast: without standby, ends if another source has a later epoch, and says what to do", async () => {
  const studio = new FakeStudio();
  const broadcast = await studio.within(studio.broadcasts().start(someRequest()));
  await studio.world.clock.advance(3000);
  const { epoch } = studio.sent[0]!.header.value;
  studio.rival = theirs(studio, { epoch });
  await studio.world.clock.advance(3000);
  assert.notEqual(health(broadcast), "ended", "one of the same epoch is borne");
  studio.rival = theirs(studio, { epoch: epoch + 9 });
  const count = studio.sent.length;
  await assert.rejects(studio.within(broadcast.ended), code("bad_configuration", /elsewhere.*--standby/));
  assert.ok(studio.sent.length <= count + 1);
  assert.equal(studio.sent.at(-1)!.header.value.isEnd, false, "viewers go on with the other");
  assert.deepEqual([studio.released, studio.locked.size], [1, 0]);
});

test("startStandby: waits if no source is on air, says so, and starts", async () => {
  const studio = await withKey();
  const broadcast = await studio.within(studio.broadcasts().start(STANDBY));
  await studio.world.clock.advance(START_MS - 1000);
  assert.match(broadcast.figures().remark, /no other source found; on air in [123] s/);
  assert.equal(studio.sent.length, 0);
  await studio.world.clock.advance(5000);
  assert.ok(studio.sent.length > 2);
  const { segment, timestampMs } = studio.sent[0]!.header.value;
  assert.ok(Math.abs(segment - timestampMs / 2000) < 2, "the clock counts segments");
  await broadcast.stop();
});

test("startStandby: does not take over soon if its own network may be down", async () => {
  const studio = await withKey();
  const broadcast = await studio.within(studio.broadcasts().start(STANDBY));
  await follow(studio, 5000);
  studio.live = { ...studio.live, peers: 0, heardAt: undefined };
  assert.ok((await silence(studio, ALONE_MS - 2000, false)) >= ALONE_MS - 2000);
  assert.match(broadcast.figures().remark, /no message from any peer/);
  // The network returns, and the stream has continued.
  await follow(studio, 5000);
  assert.equal(studio.sent.length, 0);
  await broadcast.stop();
});

test("startStandby: never takes over while its source is silent, and ends with its source", async () => {
  const studio = await withKey();
  const pipe = () => streamOf([undefined]);
  const place = { kind: "pipe" } as const;
  const silent = await studio.within(studio.broadcasts({ pipe }).start({ ...STANDBY, place }));
  await follow(studio, 3000);
  assert.match(silent.figures().remark, /no data from its own source/);
  await silence(studio, 60_000);
  assert.equal(studio.sent.length, 0);
  await silent.stop();
  const ending = studio.broadcasts({ pipe: () => streamOf([]) });
  const over = await studio.within(ending.start({ ...STANDBY, place }));
  await studio.within(over.ended);
  assert.equal(health(over), "ended");
  assert.deepEqual([studio.locked.size, studio.world.clock.waiting], [0, 0]);
});

test("createBroadcasts: a standby needs the key, and creates none", async () => {
  const studio = new FakeStudio();
  const start = studio.within(studio.broadcasts().start(STANDBY));
  await assert.rejects(start, code("bad_configuration", /copy the folder.*\/data\/broadcasts\/One.*backup/));
  assert.deepEqual([studio.files.kept.size, studio.opened.length], [0, 0]);
});

test("startStandby: ends when the source ends the stream", async () => {
  const studio = await withKey();
  const broadcast = await studio.within(studio.broadcasts().start(STANDBY));
  await follow(studio, 3000);
  studio.live = { ...studio.live, newest: theirs(studio, { isEnd: true }) };
  await studio.within(broadcast.ended, 5000);
  assert.deepEqual([studio.sent.length, studio.released, studio.locked.size], [0, 1, 0]);
});
