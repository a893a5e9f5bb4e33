import assert from "node:assert/strict";
import { test } from "node:test";
import { inFolder } from "../contract/folder.ts";
import { corrupt } from "../crash/corruptions.ts";
import { failEachCall, whyNoFaults } from "../crash/faults.ts";
import { killOften } from "../crash/kills.ts";
import { runtimeCommand } from "../parts/engine.ts";

const SEED = 20_261_121;
const SLOW = { timeout: 120_000 };

// Many more of each: npm run crash.

test("store: nothing acknowledged is lost when the process is killed", SLOW, () =>
  inFolder(async (folder) => {
    const { acknowledged } = await killOften(folder, runtimeCommand(), 8, SEED);
    assert.ok(acknowledged > 0);
  }),
);

test("store: damage is told, costs nothing that the snapshot holds, and makes no wrong record", SLOW, () =>
  inFolder(async (folder) => {
    const { told } = await corrupt(folder, 60, SEED);
    assert.ok(told > 0);
  }),
);

test("store: a call of the system that fails costs that commit alone", { ...SLOW, skip: whyNoFaults() }, () =>
  inFolder(async (folder) => {
    const { failedCommits, refusedStarts } = await failEachCall(folder, runtimeCommand(), 100, SEED);
    assert.ok(failedCommits + refusedStarts > 0);
  }),
);
