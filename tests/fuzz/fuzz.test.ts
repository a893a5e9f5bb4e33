import assert from "node:assert/strict";
import { test } from "node:test";
import { toHex } from "../../src/base/bytes.ts";
import { fuzz } from "./fuzz.ts";
import { fuzzTargets } from "./targets.ts";

const COUNT = 3000;

for (const target of await fuzzTargets()) {
  test(`${target.name}: ${COUNT} hostile inputs cost no more than a refusal`, () => {
    const seed = Number(process.env.SLUICE_FUZZ_SEED ?? 1);
    const { findings, accepted } = fuzz(target, COUNT, seed);
    const lines = findings.map(
      ({ index, problem, input }) => `seed ${seed} index ${index}: ${problem} ${toHex(input)}`,
    );
    assert.deepEqual(lines, []);
    assert.ok(accepted > 0, "no input was taken: the corpus does not reach the decoder");
  });
}
