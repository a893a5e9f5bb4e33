import assert from "node:assert/strict";
import { test } from "node:test";
import { seededRandom } from "../../seeded-random.ts";
import { EventHeap } from "./event-heap.ts";
import { Line, TcpPipe } from "./tcp.ts";

const DELAY_MS = 25;
const FAST = 1e9;
const MESSAGE_BYTES = 7_816;

/** A connection over a line of 10 Mbit/s, on which the packets are lost whose numbers `isLost` returns true for. */
function connect(isLost: (packet: number) => boolean = () => false, bytesPerSecond = 1_250_000) {
  const events = new EventHeap();
  const counts = { packets: 0, drained: 0 };
  const pipe = new TcpPipe({
    ...{ events, delayUs: 1_000 * DELAY_MS },
    ...{ up: new Line(events, bytesPerSecond), down: new Line(events, FAST), back: new Line(events, FAST) },
    isLost: () => isLost(counts.packets++),
    ...{ isSending: () => true, isReceiving: () => true },
    drained: () => void counts.drained++,
  });
  /** Sends messages at a time; returns when each arrives, in ms. */
  const send = (atMs: number, messages: number): number[] => {
    const arrivals: number[] = [];
    events.at(1_000 * atMs, () => {
      for (let i = 0; i < messages; i++) pipe.write(MESSAGE_BYTES, () => arrivals.push(events.nowMs));
    });
    return arrivals;
  };
  return { events, pipe, counts, send };
}

test("simulated TCP: a lost packet delays the messages behind it by a round trip, and they stay in order", () => {
  const { events, send } = connect((packet) => packet === 2);
  const arrivals = send(0, 2);
  events.runTo(1e6);
  // Two messages take 13 ms on the line. The first waits for its third packet, which is sent again after 50 ms.
  assert.equal(arrivals.length, 2);
  assert.ok(arrivals[0]! > 3 * DELAY_MS && arrivals[0]! < 4 * DELAY_MS + 10, `${arrivals}`);
  assert.ok(arrivals[1]! >= arrivals[0]!, `${arrivals}`);
});

test("simulated TCP: the last packet of a message is sent again if nothing follows it", () => {
  const { events, send } = connect((packet) => packet === 5);
  const arrivals = send(0, 1);
  events.runTo(5e6);
  assert.ok(arrivals[0]! > 4 * DELAY_MS && arrivals[0]! < 500, `${arrivals}`);
});

test("simulated TCP: the window starts with ten packets, and again after an idle time", () => {
  const { events, send } = connect(undefined, 12_500_000);
  const first = send(0, 16);
  const next = send(200, 16);
  const idle = send(60_000, 16);
  events.runTo(100e6);
  const [cold, warm, again] = [first.at(-1)!, next.at(-1)! - 200, idle.at(-1)! - 60_000];
  // 125 kB: 10, 20, 40 packets in three round trips, then 17 more.
  assert.ok(cold > 6 * DELAY_MS && cold < 9 * DELAY_MS, `${cold}`);
  assert.ok(warm < cold - 2 * DELAY_MS, `${warm} after ${cold}`);
  assert.ok(Math.abs(again - cold) < DELAY_MS, `${again}, not ${cold}`);
});

test("simulated TCP: the socket takes a bounded number of bytes, and reports when there is room again", () => {
  const { events, pipe, counts } = connect();
  let written = 0;
  for (; pipe.hasRoom; written++) pipe.write(MESSAGE_BYTES, () => {});
  assert.ok(written < 16, `${written} messages`);
  assert.equal(counts.drained, 0);
  events.runTo(4e4);
  assert.ok(pipe.waitMs > 30, `${pipe.waitMs}`);
  events.runTo(2e6);
  assert.ok(counts.drained > 0 && pipe.hasRoom);
  assert.equal(pipe.waitMs, 0);
});

// The kernel's figures: tests/bench/tcp-model.ts.
for (const [mbit, lossPercent, kernelMs] of [
  [10, 0, 1_756],
  [50, 0, 536],
  [10, 1, 5_500],
] as const) {
  test(`simulated TCP: 2 MB over ${mbit} Mbit/s with ${lossPercent} % loss take as long as with Linux`, () => {
    const seeds = lossPercent === 0 ? [1] : Array.from({ length: 20 }, (_, i) => i + 1);
    const durations = seeds.map((seed) => {
      const random = seededRandom(seed);
      const { events, send } = connect(() => random() * 100 < lossPercent, 125_000 * mbit);
      const arrivals = send(0, 256);
      events.runTo(100e6);
      assert.equal(arrivals.length, 256);
      return arrivals.at(-1)!;
    });
    const mean = durations.reduce((sum, ms) => sum + ms, 0) / durations.length;
    assert.ok(mean > 0.75 * kernelMs && mean < 1.25 * kernelMs, `${mean} ms`);
  });
}
