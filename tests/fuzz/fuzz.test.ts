import assert from "node:assert/strict";
import { test } from "node:test";
import { toHex } from "../../src/base/bytes.ts";
import { isFastRun } from "../parts/test-tiers.ts";
import { fuzz } from "./fuzz.ts";
import { fuzzTargets } from "./targets.ts";

/** `npm run fuzz` tries many more. */
const COUNT = isFastRun ? 300 : 3000;

for (const target of await fuzzTargets()) {
  test(`${target.name}: ${COUNT} hostile inputs are accepted or refused, and nothing worse`, () => {
    const seed = Number(process.env.SLUICE_FUZZ_SEED ?? 1);
    const { findings, accepted } = fuzz(target, COUNT, seed, { measuresExtremes: !isFastRun });
    const lines = findings.map(
      ({ index, problem, input }) => `seed ${seed} index ${index}: ${problem} ${toHex(input)}`,
    );
    assert.deepEqual(lines, []);
    assert.ok(accepted > 0, "no input was accepted: the corpus does not reach the decoder");
  });
}
