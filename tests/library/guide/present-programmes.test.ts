import assert from "node:assert/strict";
import { test } from "node:test";
import type { UnixSeconds } from "../../../src/base/time.ts";
import type { Programme } from "../../../src/library/guide/guide-contract.ts";
import { PresentProgrammes } from "../../../src/library/guide/present-programmes.ts";

const NOW = 1_700_000_000;

/** A guide with the given programmes of one channel, `[start, stop]` in seconds after `NOW`. */
function guideOf(times: readonly (readonly [number, number])[]) {
  let reads = 0;
  const present = new PresentProgrammes();
  const read = async (from: number, to: number, limit: number): Promise<Programme[]> => {
    reads++;
    return times
      .filter(([start, stop]) => NOW + start < to && NOW + stop > from)
      .slice(0, limit)
      .map(([start, stop]) => ({
        start: (NOW + start) as UnixSeconds,
        stop: (NOW + stop) as UnixSeconds,
        title: `${start}`,
        subtitle: "",
        description: "x".repeat(2_000),
        categories: [],
        icon: "",
        episode: "",
      }));
  };
  return {
    at: async (seconds: number, key = "1/one") =>
      (await present.of(key, (NOW + seconds) as UnixSeconds, read)).map(({ title }) => title),
    reads: () => reads,
  };
}

test("PresentProgrammes: a channel is read once until its present programme ends", async () => {
  const { at, reads } = guideOf([[-600, 600], [600, 1_200], [1_200, 1_800]]); // biome-ignore format: a table
  assert.deepEqual(await at(0), ["-600", "600"]);
  assert.deepEqual(await at(599), ["-600", "600"]);
  assert.equal(reads(), 1);
  assert.deepEqual(await at(600), ["600", "1200"]);
  assert.equal(reads(), 2);
});

test("PresentProgrammes: reads again if the next programme begins early, is missing, or the clock is set back", async () => {
  const overlap = guideOf([[-600, 600], [300, 900]]); // biome-ignore format: a table
  assert.deepEqual(await overlap.at(0), ["-600", "300"]);
  await overlap.at(299);
  assert.equal(overlap.reads(), 1);
  await overlap.at(300);
  assert.equal(overlap.reads(), 2);
  const short = guideOf([[-600, 6_000]]);
  assert.deepEqual(await short.at(0), ["-600"]);
  await short.at(200);
  assert.equal(short.reads(), 1);
  await short.at(300);
  assert.equal(short.reads(), 2);
  await short.at(100);
  assert.equal(short.reads(), 3);
});

test("PresentProgrammes: keeps a bounded amount of text, the newest channels first", async () => {
  const { at, reads } = guideOf([[-600, 600], [600, 1_200]]); // biome-ignore format: a table
  const channels = 3_000;
  for (let i = 0; i < channels; i++) await at(0, `1/${i}`);
  assert.equal(reads(), channels);
  await at(0, `1/${channels - 1}`);
  assert.equal(reads(), channels);
  await at(0, "1/0");
  assert.equal(reads(), channels + 1);
});
