import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { describe, test } from "node:test";
import { pipedIn } from "../../src/cli/stdin.ts";

describe("pipedIn", () => {
  const piped = () => {
    const stdin = new PassThrough();
    return { stdin, reader: pipedIn(stdin as unknown as NodeJS.ReadStream).getReader() };
  };

  test("returns the input, and ends with the pipe", async () => {
    const { stdin, reader } = piped();
    stdin.write(new Uint8Array([1, 2]));
    assert.deepEqual([...(await reader.read()).value!], [1, 2]);
    stdin.end(new Uint8Array([3]));
    assert.deepEqual([...(await reader.read()).value!], [3]);
    assert.equal((await reader.read()).done, true);
  });

  test("cancelling a pending read closes the pipe", async () => {
    const { stdin, reader } = piped();
    const waiting = reader.read();
    await reader.cancel();
    assert.equal((await waiting).done, true);
    assert.equal(stdin.destroyed, true);
  });

  test("reads no more than the reader takes", async () => {
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
