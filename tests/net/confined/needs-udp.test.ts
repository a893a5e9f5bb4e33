import assert from "node:assert/strict";
import { test } from "node:test";
import { needsUdp } from "../../../src/net/confined/proxy.ts";
import type { ReachSettings } from "../../../src/net/contract.ts";
import { NO_REACH } from "../../parts/no-reach.ts";

const NOTHING: ReachSettings = { ...NO_REACH, dht: false, utp: false, tracker: "off" };

test("needsUdp: true if the DHT, uTP, WebRTC or the built-in tracker is on", () => {
  assert.equal(needsUdp(NOTHING), false);
  for (const one of [
    { dht: true },
    { utp: true },
    { webrtc: true },
    { tracker: "own" },
    { tracker: "open" },
  ] as const)
    assert.equal(needsUdp({ ...NOTHING, ...one }), true, Object.keys(one).join());
});

test("needsUdp: false if a strict proxy does not support UDP", () => {
  const behind = (proxy: string, proxyStrict: boolean) =>
    needsUdp({ ...NOTHING, dht: true, utp: true, proxy, proxyStrict });
  assert.equal(behind("http://127.0.0.1:3128", true), false);
  assert.equal(behind("http://127.0.0.1:3128", false), true);
  assert.equal(behind("socks5://127.0.0.1:1080", true), true);
});
