import assert from "node:assert/strict";
import { test } from "node:test";
import { after } from "../../src/base/time.ts";
import { SourceWatch } from "../../src/playback/source-watch.ts";
import { FakeClock } from "../engine/fake-clock.ts";
import { filled, patternSeconds } from "../health/pattern-stream.ts";

const LIVE = patternSeconds(false, 40);
const STILL = patternSeconds(true, 40);
const START = new FakeClock().now();

/** Watches `count` seconds that arrive one after another, each after `intervalMs`, for which the player waited `waitedMs`. */
function watch(
  second: (i: number) => Uint8Array,
  count: number,
  { intervalMs = 1_000, waitedMs = 900, into = new SourceWatch() } = {},
): SourceWatch {
  for (let i = 0; i < count; i++) into.push(second(i), after(START, i * intervalMs), waitedMs);
  return into;
}

test("SourceWatch: a live stream and a still picture have no fault", () => {
  assert.equal(watch((i) => LIVE[i]!, 40).fault, undefined);
  assert.equal(watch((i) => STILL[i]!, 40).fault, undefined);
});

test("SourceWatch: a clip that repeats is found after a whole repetition of at least 20 s; one repeated advertisement is not", () => {
  const clip = (i: number) => LIVE[i % 7]!;
  assert.equal(watch(clip, 26).fault, undefined);
  assert.equal(watch(clip, 31).fault, "the source repeats itself");
  // 12 s of the same advertisement again, 20 s later.
  const order = [...Array(20).keys(), ...Array(12).keys(), ...Array(8).keys()].map((i, at) =>
    at < 32 ? i : 20 + i,
  );
  assert.equal(watch((i) => LIVE[order[i]!]!, 40).fault, undefined);
});

test("SourceWatch: a bitrate that falls to a tenth has collapsed, and has not when it is back", () => {
  const full = (i: number) => filled(LIVE[i]!, 1_500_000);
  const watched = watch(full, 30);
  assert.equal(watched.fault, undefined);
  watch((i) => LIVE[i + 20]!, 20, { into: watched });
  assert.equal(watched.fault, "the bitrate of the source has collapsed");
  watch(full, 20, { into: watched });
  assert.notEqual(watched.fault, "the bitrate of the source has collapsed");
});

test("SourceWatch: a source is too slow if the player waits for it, not if the player itself reads slowly", () => {
  const second = (i: number) => LIVE[i]!;
  assert.equal(
    watch(second, 12, { intervalMs: 2_000, waitedMs: 1_950 }).fault,
    "the source is slower than it plays",
  );
  assert.equal(watch(second, 12, { intervalMs: 2_000, waitedMs: 100 }).fault, undefined);
  assert.equal(watch(second, 12, { intervalMs: 1_100, waitedMs: 1_090 }).fault, undefined);
});
