import assert from "node:assert/strict";
import { test } from "node:test";
import type { ReachSettings } from "../../../src/engine/reach/contract.ts";
import { needsUdp } from "../../../src/engine/reach/needs-udp.ts";
import { NO_REACH } from "../../parts/no-reach.ts";

const NOTHING: ReachSettings = { ...NO_REACH, dht: false, utp: false, tracker: "off" };

test("needsUdp: where the DHT, uTP or our own tracker wants it", () => {
  assert.equal(needsUdp(NOTHING), false);
  for (const one of [{ dht: true }, { utp: true }, { tracker: "own" }, { tracker: "open" }] as const)
    assert.equal(needsUdp({ ...NOTHING, ...one }), true, Object.keys(one).join());
});

test("needsUdp: not where a proxy that may not be gone around carries none", () => {
  const behind = (proxy: string, proxyStrict: boolean) =>
    needsUdp({ ...NOTHING, dht: true, utp: true, proxy, proxyStrict });
  assert.equal(behind("http://127.0.0.1:3128", true), false);
  assert.equal(behind("http://127.0.0.1:3128", false), true);
  assert.equal(behind("socks5://127.0.0.1:1080", true), true);
});
