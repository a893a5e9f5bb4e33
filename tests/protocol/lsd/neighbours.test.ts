import assert from "node:assert/strict";
import { test } from "node:test";
import type { Infohash } from "../../../src/base/ids.ts";
import { instant } from "../../../src/base/time.ts";
import { Neighbours } from "../../../src/protocol/lsd/neighbours.ts";

const A = "a1".repeat(20) as Infohash;
const at = (host: string, port: number) => ({ host, port });

test("Neighbours: a host with many forged announces affects no other, and expires", () => {
  const neighbours = new Neighbours();
  let taken = 0;
  for (let port = 1; port <= 3_000; port++) {
    if (neighbours.announced(A, at("192.168.1.66", port), instant(0))) taken++;
  }
  assert.equal(taken, 250);
  assert.equal(neighbours.announced(A, at("192.168.1.7", 1), instant(60_000)), true);
  assert.equal(neighbours.of(A, instant(60_000)).length, 251);
  assert.deepEqual(neighbours.of(A, instant(12 * 60_000 - 1)), [at("192.168.1.7", 1)]);
  assert.equal(neighbours.announced(A, at("192.168.1.66", 1), instant(12 * 60_000)), true);
});

test("Neighbours: remembers a limited number of announces of any number of hosts", () => {
  const neighbours = new Neighbours();
  for (let i = 0; i < 65_536; i++) {
    neighbours.announced(A, at(`10.0.${i >> 8}.${i & 255}`, 1), instant(0));
  }
  assert.equal(neighbours.of(A, instant(0)).length, 2_000);
});

test("Neighbours: a repeated announce is kept, and is not new", () => {
  const neighbours = new Neighbours();
  assert.equal(neighbours.announced(A, at("192.168.1.7", 1), instant(0)), true);
  assert.equal(neighbours.announced(A, at("192.168.1.7", 1), instant(600_000)), false);
  assert.equal(neighbours.of(A, instant(1_200_000)).length, 1);
});
