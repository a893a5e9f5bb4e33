import assert from "node:assert/strict";
import { mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { test } from "node:test";
import { runtime } from "#runtime";
import { keptFiles, requireKeptFile, restoreFile } from "../../src/cli/kept-files.ts";
import { inFolder } from "../contract/folder.ts";

const { files } = runtime;

test("keptFiles: uploaded images and transport files, and the files of broadcasts that cannot be recreated", () =>
  inFolder(async (folder) => {
    for (const path of ["library/images", "transport-files", "broadcasts/A film", "cache"])
      await mkdir(`${folder}/${path}`, { recursive: true });
    for (const path of [
      "library/images/0a",
      "library/images/0b.new",
      "transport-files/0c-0d.torrent",
      "transport-files/0c-0e.kept.torrent",
      "transport-files/0c-0f.sluice",
      "broadcasts/A film/key",
      "broadcasts/A film/state",
      "cache/x",
    ])
      await writeFile(`${folder}/${path}`, path);
    const names: string[] = [];
    for await (const name of keptFiles(files, folder)) {
      requireKeptFile(name);
      names.push(name);
    }
    assert.deepEqual(names, [
      "library/images/0a",
      "transport-files/0c-0e.kept.torrent",
      "broadcasts/A film/key",
      "broadcasts/A film/info",
      "broadcasts/A film/A film.sluice",
      "broadcasts/A film/retired",
    ]);
  }));

const FOREIGN = [
  "key",
  "../library/images/a",
  "library/images/../../a",
  "library/images/.hidden",
  "library/records.db",
  "broadcasts/key",
  "broadcasts/../key",
  "broadcasts/news/state",
  "broadcasts/news/other.sluice",
  "broadcasts/news/x/key",
  "broadcasts/news/../key",
  "broadcasts//key",
  "/broadcasts/news/key",
];

for (const name of FOREIGN) {
  test(`requireKeptFile refuses ${name}`, () => {
    assert.throws(() => requireKeptFile(name), { code: "bad_parameter", message: /unexpected file/ });
  });
}

test("restoreFile: a restored key is readable only by its owner and never overwrites a different key", () =>
  inFolder(async (folder) => {
    const [mine, theirs] = [new Uint8Array(32).fill(1), new Uint8Array(32).fill(2)];
    const path = `${folder}/broadcasts/news/key`;
    await restoreFile(files, folder, "broadcasts/news/key", mine);
    await restoreFile(files, folder, "broadcasts/news/key", mine);
    await assert.rejects(restoreFile(files, folder, "broadcasts/news/key", theirs), {
      code: "bad_configuration",
      message: /differs from the key in the backup/,
    });
    assert.deepEqual(new Uint8Array(await readFile(path)), mine);
    // Windows has no such modes: Node reports 0o666 for every writable file.
    assert.equal((await stat(path)).mode & 0o777, process.platform === "win32" ? 0o666 : 0o600);
    await restoreFile(files, folder, "library/images/a", mine);
    await restoreFile(files, folder, "library/images/a", theirs);
    assert.deepEqual(new Uint8Array(await readFile(`${folder}/library/images/a`)), theirs);
  }));
