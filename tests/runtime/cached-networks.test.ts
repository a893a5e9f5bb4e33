import assert from "node:assert/strict";
import { test } from "node:test";
import { cachedNetworks } from "../../src/runtime/surroundings.ts";

test("cachedNetworks: includes loopback with its network, and reads the interfaces again after 5 s", () => {
  let nowMs = 0;
  const networks = cachedNetworks(() => nowMs);
  const first = networks();
  assert.ok(first.some(({ host, bits }) => host === "127.0.0.1" && bits === 8));
  assert.ok(first.every(({ host }) => !host.includes("%")));
  nowMs = 4_999;
  assert.equal(networks(), first);
  nowMs = 5_000;
  assert.notEqual(networks(), first);
});
