import assert from "node:assert/strict";
import { readdir, writeFile } from "node:fs/promises";
import { test } from "node:test";
import { systemError } from "../../src/cli/system-error.ts";
import { tempFolder } from "../parts/torrent-files.ts";

test("systemError: a failed file operation is one line with the path, the reason and what to do", async () => {
  const scratch = await tempFolder("system-error");
  try {
    const file = scratch.file("film.ts");
    await writeFile(file, "x");
    const missing = await readdir(scratch.file("none")).catch((error) => error);
    assert.match(
      systemError(missing, scratch.path) ?? "",
      /^cannot use .*none: it does not exist .*\(ENOENT\)\. .*--data-dir/,
    );
    assert.doesNotMatch(systemError(missing, undefined) ?? "", /--data-dir/);
    const noFolder = await readdir(file).catch((error) => error);
    assert.match(
      systemError(noFolder, undefined) ?? "",
      /film\.ts: a file exists where a folder is expected/,
    );
  } finally {
    await scratch.remove();
  }
});

test("systemError: returns undefined for other errors, which are bugs", () => {
  const lookup = Object.assign(new Error("getaddrinfo ENOTFOUND x"), { code: "ENOTFOUND" });
  for (const thrown of [new Error("x"), new TypeError("x is undefined"), lookup, "ENOENT", undefined])
    assert.equal(systemError(thrown, "/data"), undefined);
});
