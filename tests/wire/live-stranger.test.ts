import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { PYTHON } from "../parts/libtorrent.ts";
import { testsThatNeed } from "../parts/needs.ts";

const { test } = await testsThatNeed("cryptography");

const SCRIPT = fileURLToPath(new URL("live_reader.py", import.meta.url));
const FOLDER = fileURLToPath(new URL("../fixtures/live", import.meta.url));

test("a decoder written only from the specification reads the test vectors", () => {
  const { stdout, stderr } = spawnSync(PYTHON, [SCRIPT, FOLDER], { encoding: "utf8" });
  assert.equal(stderr, "");
  assert.equal(stdout, "ok\n");
});
