import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { PassThrough } from "node:stream";
import { after, before, describe, test } from "node:test";
import { openLiveFile, pipedIn } from "../../src/cli/live-inputs.ts";
import { type TempFolder, tempFolder } from "../parts/torrent-files.ts";

describe("openLiveFile", () => {
  let scratch: TempFolder;
  before(async () => {
    scratch = await tempFolder("live-inputs");
  });
  after(() => scratch?.remove());

  test("gives the bytes that are asked for", async () => {
    const bytes = Uint8Array.from({ length: 1000 }, (_, i) => i % 251);
    await writeFile(scratch.file("a.ts"), bytes);
    const file = await openLiveFile(scratch.file("a.ts"));
    assert.equal(file.size, 1000);
    assert.deepEqual(await file.read({ start: 100, end: 900 }), bytes.slice(100, 900));
    await file.close();
  });

  test("a file that is not there, and one that is none, are told with what to do", async () => {
    await assert.rejects(openLiveFile(scratch.file("b.ts")), {
      code: "bad_parameter",
      message: /^source: cannot read .*b\.ts: there is no such file$/,
    });
    await assert.rejects(openLiveFile(scratch.path), { code: "bad_parameter", message: /pipe it in/ });
  });

  test("a file that becomes shorter while it is read is told", async () => {
    await writeFile(scratch.file("c.ts"), new Uint8Array(1000));
    const file = await openLiveFile(scratch.file("c.ts"));
    await writeFile(scratch.file("c.ts"), new Uint8Array(10));
    await assert.rejects(file.read({ start: 0, end: 1000 }), {
      message: /has become shorter than 1000 bytes/,
    });
    await file.close();
  });
});

describe("pipedIn", () => {
  const piped = () => {
    const stdin = new PassThrough();
    return { stdin, reader: pipedIn(stdin as unknown as NodeJS.ReadStream).getReader() };
  };

  test("gives what comes, and ends where the pipe does", async () => {
    const { stdin, reader } = piped();
    stdin.write(new Uint8Array([1, 2]));
    assert.deepEqual([...(await reader.read()).value!], [1, 2]);
    stdin.end(new Uint8Array([3]));
    assert.deepEqual([...(await reader.read()).value!], [3]);
    assert.equal((await reader.read()).done, true);
  });

  test("a reader that goes away while it waits lets the pipe go", async () => {
    const { stdin, reader } = piped();
    const waiting = reader.read();
    await reader.cancel();
    assert.equal((await waiting).done, true);
    assert.equal(stdin.destroyed, true);
  });

  test("a writer is not taken more from than is read", async () => {
    const { stdin, reader } = piped();
    const chunk = new Uint8Array(64 * 1024);
    let written = 0;
    while (stdin.write(chunk)) written++;
    await reader.read();
    for (let i = 0; i < 100 && stdin.write(chunk); i++) written++;
    assert.ok(written < 10, `${written} chunks were taken`);
    await reader.cancel();
  });
});
