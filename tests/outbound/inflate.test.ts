import assert from "node:assert/strict";
import { test } from "node:test";
import { constants, gzipSync } from "node:zlib";
import { inflated } from "../../src/outbound/inflate.ts";

const MIB = 1024 * 1024;
/** More than the limit of callers that set none. */
const BLOCKS = 66;

/** 66 MiB, compressed. */
const PACKED = (() => {
  const block = Buffer.alloc(MIB);
  for (let at = 0; at < MIB; at += 64) block.write(`${(at * 2_654_435_761) % 999_983} `.padEnd(64, "x"), at);
  const all = Buffer.concat(Array.from({ length: BLOCKS }, () => block));
  return new Uint8Array(gzipSync(all, { level: constants.Z_BEST_SPEED }));
})();

async function lengthOf(limitBytes: number): Promise<number> {
  let length = 0;
  const reader = inflated(
    new Blob([PACKED]).stream(),
    "gzip",
    limitBytes,
    new AbortController().signal,
  ).getReader();
  for (let next = await reader.read(); !next.done; next = await reader.read()) length += next.value.length;
  return length;
}

test("inflated: a caller's limit applies as it is; without one, 64 MiB do", async () => {
  assert.equal(await lengthOf(100 * MIB), BLOCKS * MIB);
  await assert.rejects(lengthOf(65 * MIB), /larger than 68157440 bytes/);
  await assert.rejects(lengthOf(Number.POSITIVE_INFINITY), /larger than 67108864 bytes/);
});
