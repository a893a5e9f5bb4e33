import assert from "node:assert/strict";
import { test } from "node:test";
import { concatBytes } from "../../src/base/bytes.ts";
import { SluiceError } from "../../src/base/errors.ts";
import type { LiveFeed } from "../../src/live/input/source-feed.ts";
import { FILE_PACE, type Pace, PacedFeed } from "../../src/live/input/source-paced.ts";
import { writePcrPacket } from "../../src/media/ts-packet.ts";
import { FakeClock } from "../engine/fake-clock.ts";

/** A packet with a clock value, in ms. */
function clockPacket(ms: number): Uint8Array {
  const packet = new Uint8Array(188);
  writePcrPacket(packet, 0, 0x100, 0, ms * 90);
  return packet;
}

function paced(parts: readonly Uint8Array[], pace: Pace = FILE_PACE) {
  const clock = new FakeClock();
  const rest = [...parts];
  let isClosed = false;
  const inner: LiveFeed = {
    next: async () => rest.shift(),
    close() {
      isClosed = true;
    },
  };
  const feed = new PacedFeed(inner, clock, pace);
  const start = clock.now();
  /** When each of the next reads resolves, in ms since the start. */
  const times = async (count: number) => {
    const got: number[] = [];
    for (let i = 0; i < count; i++) {
      let isThere = false;
      const next = feed.next().then(() => {
        isThere = true;
      });
      for (let turn = 0; turn < 5000 && !isThere; turn++) await clock.advance(isThere ? 0 : 1);
      await next;
      got.push(Math.round((clock.now() - start) / 10) * 10);
    }
    return got;
  };
  return { clock, feed, times, isClosed: () => isClosed };
}

test("PacedFeed: delivers each run at the time of its clock", async () => {
  const { times } = paced([concatBytes([0, 100, 250, 400].map(clockPacket)), clockPacket(1000)]);
  assert.deepEqual(await times(5), [0, 100, 250, 400, 1000]);
});

test("PacedFeed: continues from the present after a clock jump or a delay", async () => {
  const jump = paced([0, 100, 90_000, 90_100, 50, 150].map(clockPacket));
  assert.deepEqual(await jump.times(6), [0, 100, 100, 200, 200, 300]);
  const late = paced([0, 100, 200, 300].map(clockPacket));
  await late.times(1);
  await late.clock.advance(5000);
  assert.deepEqual(await late.times(3), [5000, 5100, 5200]);
});

test("PacedFeed: delivers up to the allowed time early, and absorbs clock drift", async () => {
  const pace = { earlyMs: 2000, speed: 1.5 };
  const { times } = paced([0, 1500, 3000, 4500, 6000].map(clockPacket), pace);
  assert.deepEqual(await times(5), [0, 0, 0, 1000, 2000]);
});

test("PacedFeed: rejects a stream without a clock, and closing ends the wait", async () => {
  const packet = new Uint8Array(188 * 1000);
  for (let at = 0; at < packet.length; at += 188) packet.set([0x47, 1, 0, 0x10], at);
  const none = paced(Array(100).fill(packet));
  await assert.rejects(
    async () => {
      for (let i = 0; i < 100; i++) await none.feed.next();
    },
    (error: unknown) => error instanceof SluiceError && error.code === "broken_media",
  );
  const { feed, clock, isClosed } = paced([0, 5000].map(clockPacket));
  await feed.next();
  const waiting = feed.next();
  await clock.advance(10);
  feed.close();
  assert.equal(await waiting, undefined);
  assert.ok(isClosed());
  assert.equal(clock.waiting, 0);
});
