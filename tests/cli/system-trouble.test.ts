import assert from "node:assert/strict";
import { readdir, writeFile } from "node:fs/promises";
import { test } from "node:test";
import { systemTrouble } from "../../src/cli/system-trouble.ts";
import { tempFolder } from "../parts/torrent-files.ts";

test("systemTrouble: a failure of files is a line that names the place, the reason and what to do", async () => {
  const scratch = await tempFolder("trouble");
  try {
    const file = scratch.file("film.ts");
    await writeFile(file, "x");
    const missing = await readdir(scratch.file("none")).catch((error) => error);
    assert.match(systemTrouble(missing) ?? "", /cannot use .*none: it is not there.*\(ENOENT\).*--data-dir/);
    const noFolder = await readdir(file).catch((error) => error);
    assert.match(systemTrouble(noFolder) ?? "", /film\.ts: a file is where a folder should be \(ENOTDIR\)/);
  } finally {
    await scratch.remove();
  }
});

test("systemTrouble: what is no failure of files is a bug, and none of its business", () => {
  const lookup = Object.assign(new Error("getaddrinfo ENOTFOUND x"), { code: "ENOTFOUND" });
  for (const thrown of [new Error("x"), new TypeError("x is undefined"), lookup, "ENOENT", undefined])
    assert.equal(systemTrouble(thrown), undefined);
});
