import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { PYTHON } from "../parts/libtorrent.ts";

const SCRIPT = fileURLToPath(new URL("live_reader.py", import.meta.url));
const FOLDER = fileURLToPath(new URL("../fixtures/live", import.meta.url));

test("the test vectors are read by a reader that was written from the specification alone", (t) => {
  if (spawnSync(PYTHON, ["-c", "import cryptography"]).status !== 0) {
    t.skip("python3-cryptography is not installed");
    return;
  }
  const { stdout, stderr } = spawnSync(PYTHON, [SCRIPT, FOLDER], { encoding: "utf8" });
  assert.equal(stderr, "");
  assert.equal(stdout, "ok\n");
});
