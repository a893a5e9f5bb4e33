import assert from "node:assert/strict";
import { test } from "node:test";
import { zipOf } from "../../src/web/zip.ts";

test("zipOf: the directory at the end leads to each file, whose bytes are stored as they are", () => {
  const files = new Map([
    ["index.html", "<p>Ä</p>"],
    ["app/a.js", "let a;\n".repeat(1000)],
  ]);
  const archive = zipOf(files);
  const u16 = (at: number) => archive[at]! | (archive[at + 1]! << 8);
  const u32 = (at: number) => u16(at) + u16(at + 2) * 65_536;
  const textAt = (at: number, length: number) => new TextDecoder().decode(archive.subarray(at, at + length));
  const end = archive.length - 22;
  assert.equal(u32(end), 0x06054b50);
  const found = new Map<string, string>();
  let at = u32(end + 16);
  for (let i = 0; i < u16(end + 10); i++) {
    assert.equal(u32(at), 0x02014b50);
    const name = textAt(at + 46, u16(at + 28));
    const local = u32(at + 42);
    assert.equal(u32(local), 0x04034b50);
    const start = local + 30 + u16(local + 26);
    assert.equal(textAt(local + 30, u16(local + 26)), name);
    assert.deepEqual(archive.subarray(local + 6, local + 28), archive.subarray(at + 8, at + 30));
    found.set(name, textAt(start, u32(at + 24)));
    at += 46 + u16(at + 28);
  }
  assert.equal(at, end);
  assert.deepEqual(found, files);
  // The CRC-32 of "<p>Ä</p>" in UTF-8, by Python's zlib.
  assert.equal(u32(u32(end + 16) + 16), 0xcea83026);
});
