import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { test } from "node:test";
import { files } from "../../src/runtime/files.ts";
import { OwnFile } from "../../src/storage/own-file.ts";
import type { Info } from "../../src/wire/torrent/metainfo.ts";
import { tempFolder } from "../parts/torrent-files.ts";

test("OwnFile: pieces are ranges of the file; a damaged one is not offered any more, a missing one cannot be read", async (t) => {
  const folder = await tempFolder("own-file");
  t.after(() => folder.remove());
  const path = folder.file("show.ts");
  const bytes = Uint8Array.from({ length: 2_500 }, (_, i) => i >> 2);
  await writeFile(path, bytes);
  const own = await OwnFile.open(files, path, { pieceLength: 1_000 } as Info);
  t.after(() => own.close());
  for (const [piece, length] of [1_000, 1_000, 500].entries()) {
    const into = new Uint8Array(length);
    await own.load(piece, into);
    assert.deepEqual(into, bytes.subarray(1_000 * piece, 1_000 * piece + length));
    assert.ok(own.has(piece));
  }
  own.forget(1);
  assert.deepEqual(
    [0, 1, 2].map((piece) => own.has(piece)),
    [true, false, true],
  );
  await assert.rejects(own.load(3, new Uint8Array(10)));
});
