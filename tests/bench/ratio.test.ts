import assert from "node:assert/strict";
import { test } from "node:test";
import { compareRatio } from "./ratio.ts";

test("compareRatio: worse only if every round is above the recorded range and the noise of machines", () => {
  const recorded = { ratio: 1, lowest: 0.9, highest: 1.5 };
  assert.equal(compareRatio([1.6, 1.7, 1.8], recorded).isWorse, true);
  assert.equal(compareRatio([1.4, 1.7, 1.8], recorded).isWorse, false);
  assert.equal(compareRatio([1.2, 1.24, 1.3], { ...recorded, highest: 1 }).isWorse, false);
  assert.equal(compareRatio([1.26, 1.4, 1.3], { ...recorded, highest: 1 }).isWorse, true);
  assert.equal(compareRatio([9, 9, 9], undefined).isWorse, false);
});
