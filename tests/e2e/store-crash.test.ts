import assert from "node:assert/strict";
import { inFolder } from "../contract/folder.ts";
import { corrupt } from "../crash/corruptions.ts";
import { failEachCall } from "../crash/faults.ts";
import { killOften } from "../crash/kills.ts";
import { runtimeCommand } from "../parts/engine.ts";
import { testsThatNeed } from "../parts/needs.ts";

const { test } = await testsThatNeed("time");
const { test: straceTest } = await testsThatNeed("strace");

const SEED = 20_261_121;
const SLOW = { timeout: 120_000 };

// Many more of each: npm run crash.

test("store: a killed process loses no acknowledged commit", SLOW, () =>
  inFolder(async (folder) => {
    const { acknowledged } = await killOften(folder, runtimeCommand(), 8, SEED);
    assert.ok(acknowledged > 0);
  }),
);

test("store: damage is reported, loses no record of the snapshot, and creates no wrong record", SLOW, () =>
  inFolder(async (folder) => {
    const { reported } = await corrupt(folder, 60, SEED);
    assert.ok(reported > 0);
  }),
);

straceTest("store: a failing system call affects only its commit", SLOW, () =>
  inFolder(async (folder) => {
    const { failedCommits, refusedStarts } = await failEachCall(folder, runtimeCommand(), 100, SEED);
    assert.ok(failedCommits + refusedStarts > 0);
  }),
);
