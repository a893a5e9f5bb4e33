import assert from "node:assert/strict";
import { test } from "node:test";
import { machineNetworks } from "../../src/runtime/subnets.ts";

test("machineNetworks: has loopback with its network, and asks the system again only after a while", () => {
  let nowMs = 0;
  const networks = machineNetworks(() => nowMs);
  const first = networks();
  assert.ok(first.some(({ host, bits }) => host === "127.0.0.1" && bits === 8));
  assert.ok(first.every(({ host }) => !host.includes("%")));
  nowMs = 4_999;
  assert.equal(networks(), first);
  nowMs = 5_000;
  assert.notEqual(networks(), first);
});
