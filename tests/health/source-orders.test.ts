import assert from "node:assert/strict";
import { test } from "node:test";
import { SILENT_LOG } from "../../src/base/log.ts";
import type { UnixSeconds } from "../../src/base/time.ts";
import type { Health } from "../../src/health/health-contract.ts";
import { SourceOrders } from "../../src/health/source-orders.ts";
import { openMemory } from "../../src/runtime/kv-memory.ts";

const [A, B, C, D] = ["a", "b", "c", "d"].map((digit) => digit.repeat(16)) as [
  string,
  string,
  string,
  string,
];

test("SourceOrders: the user's order first, dead sources last, the others as they are; kept after a restart", async () => {
  const dead: Health = {
    status: "dead",
    availability: 0,
    checkedAt: 1 as UnixSeconds,
    last: undefined,
    problem: "",
  };
  const health = { get: (content: string) => (content === A || content === B ? dead : undefined) };
  const store = openMemory();
  const orders = await SourceOrders.load(store, health, SILENT_LOG);
  const sorted = (of: SourceOrders) => of.sorted("news", [A, B, C, D], (content) => content);
  assert.deepEqual(sorted(orders), [C, D, A, B]);
  await orders.pin("news", [D, B]);
  assert.deepEqual(sorted(orders), [D, B, C, A]);
  await store.commit({ set: [["channel-order/other", ["no content"]]] });
  const again = await SourceOrders.load(store, health, SILENT_LOG);
  assert.deepEqual([sorted(again), again.pinned("other")], [[D, B, C, A], []]);
  await again.pin("news", []);
  assert.deepEqual(sorted(await SourceOrders.load(store, health, SILENT_LOG)), [C, D, A, B]);
  await assert.rejects(again.pin("news", Array(33).fill(A)), /at most 32/);
});
