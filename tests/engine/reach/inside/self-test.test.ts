import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { runtime } from "#runtime";
import { insideRows } from "../../../../src/engine/reach/inside/self-test.ts";
import type { Runtime, Surroundings } from "../../../../src/runtime/contract.ts";
import { startProxy, type TestProxyOptions } from "../../../parts/proxy.ts";
import { fakeMachine } from "./fake-machine.ts";

const NETWORKS = { eth0: ["192.168.1.5/24"], wg0: ["10.2.0.2/32"] };

/** A machine whose system says that it sends all by `device`. */
function routed(device: string): Runtime {
  const { runtime: machine } = fakeMachine(NETWORKS);
  const run: Surroundings["run"] = async (line) => {
    assert.equal(line, "ip -o -4 route get 1.1.1.1 from 10.2.0.2");
    return `1.1.1.1 from 10.2.0.2 dev ${device} table 51820 uid 0 \\    cache\n`;
  };
  return { ...machine, surroundings: { ...machine.surroundings, run } };
}

const bindOnly = (bind: string) => ({ bind, proxy: "", proxyStrict: true });

test("insideRows: where nothing is set there is nothing to try", async () => {
  assert.deepEqual(await insideRows(routed("eth0"), bindOnly("")), []);
});

test("insideRows: an interface that is not there, one that the system does not send by, one that is well", async () => {
  const [gone] = await insideRows(routed("wg0"), bindOnly("wg7"));
  assert.deepEqual(
    [gone!.level, gone!.text],
    ["fail", "wg7 is not there, and nothing leaves elsewhere (see the setting bind)."],
  );
  const [stray] = await insideRows(routed("eth0"), bindOnly("wg0"));
  assert.equal(stray!.level, "fail");
  assert.match(stray!.text, /sends what comes from 10\.2\.0\.2 out by eth0/);
  const [well] = await insideRows(routed("wg0"), bindOnly("10.2.0.2"));
  assert.deepEqual(
    [well!.level, well!.text],
    ["ok", "Peers, trackers and the DHT are reached from 10.2.0.2; the system looks up their names."],
  );
});

/** The rows for a proxy of that kind, each as its level and text. */
async function rowsOf(t: TestContext, kind: string, options: TestProxyOptions, login = "me:hunter2@") {
  const proxy = await startProxy({ login: "me", password: "hunter2", ...options });
  t.after(() => proxy.close());
  const settings = { bind: "", proxy: `${kind}://${login}127.0.0.1:${proxy.port}`, proxyStrict: true };
  const rows = await insideRows(runtime, settings);
  assert.ok(!JSON.stringify(rows).includes("hunter2"));
  return rows.map(({ level, text }) => `${level} ${text}`.replace(String(proxy.port), "PORT"));
}

test("insideRows: a proxy that carries all, one without UDP, one that does not know us, one that is not there", {
  timeout: 60_000,
}, async (t) => {
  assert.deepEqual(await rowsOf(t, "socks5", {}), [
    "ok The SOCKS5 proxy 127.0.0.1:PORT answers, and connects.",
    "ok It carries UDP: trackers, the DHT and uTP go through it.",
  ]);
  const [, udp] = await rowsOf(t, "socks5", { udp: false });
  assert.match(udp!, /^note It carries no UDP .*: there is no DHT, no uTP and no UDP tracker\.$/);
  assert.match((await rowsOf(t, "http", {}))[1]!, /^note It carries no UDP \(an HTTP proxy/);
  const [stranger] = await rowsOf(t, "socks5", {}, "me:other@");
  assert.match(stranger!, /^fail The SOCKS5 proxy 127\.0\.0\.1:PORT answers, but not to us/);
  const settings = { bind: "", proxy: "socks5://127.0.0.1:1", proxyStrict: true };
  const [nobody] = await insideRows(runtime, settings);
  assert.equal(nobody!.level, "fail");
  assert.match(nobody!.text, /^SOCKS5 proxy 127\.0\.0\.1:1: /);
});
