import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { runtime } from "#runtime";
import { confinementRows } from "../../../src/net/confined/self-test.ts";
import type { Runtime, Surroundings } from "../../../src/runtime/contract.ts";
import { startProxy, type TestProxyOptions } from "../../parts/proxy.ts";
import { fakeMachine } from "./fake-machine.ts";

const NETWORKS = { eth0: ["192.168.1.5/24"], wg0: ["10.2.0.2/32"] };

/** A runtime whose system reports routes through `device`. */
function routed(device: string): Runtime {
  const { runtime: machine } = fakeMachine(NETWORKS);
  const run: Surroundings["run"] = async (line) => {
    assert.equal(line, "ip -o -4 route get 1.1.1.1 from 10.2.0.2");
    return `1.1.1.1 from 10.2.0.2 dev ${device} table 51820 uid 0 \\    cache\n`;
  };
  return { ...machine, surroundings: { ...machine.surroundings, run } };
}

const bindOnly = (bind: string) => ({ bind, proxy: "", proxyStrict: true });

test("confinementRows: empty without bind and proxy", async () => {
  assert.deepEqual(await confinementRows(routed("eth0"), bindOnly("")), []);
});

test("confinementRows: a missing interface, one the system does not route through, and a working one", async () => {
  const [gone] = await confinementRows(routed("wg0"), bindOnly("wg7"));
  assert.deepEqual(
    [gone!.level, gone!.text],
    ["fail", "wg7 does not exist; other interfaces are not used (see the setting bind)."],
  );
  const [misrouted] = await confinementRows(routed("eth0"), bindOnly("wg0"));
  assert.equal(misrouted!.level, "fail");
  assert.match(misrouted!.text, /routes traffic from 10\.2\.0\.2 through eth0/);
  const [working] = await confinementRows(routed("wg0"), bindOnly("10.2.0.2"));
  assert.deepEqual(
    [working!.level, working!.text],
    ["ok", "Traffic to peers, trackers and the DHT leaves from 10.2.0.2; the system resolves their names."],
  );
});

/** Returns the rows for a proxy of `kind` as "level text". */
async function rowsOf(t: TestContext, kind: string, options: TestProxyOptions, login = "me:hunter2@") {
  const proxy = await startProxy({ login: "me", password: "hunter2", ...options });
  t.after(() => proxy.close());
  const settings = { bind: "", proxy: `${kind}://${login}127.0.0.1:${proxy.port}`, proxyStrict: true };
  const rows = await confinementRows(runtime, settings);
  assert.ok(!JSON.stringify(rows).includes("hunter2"));
  return rows.map(({ level, text }) => `${level} ${text}`.replace(String(proxy.port), "PORT"));
}

test("confinementRows: a full proxy, one without UDP, one that rejects the login, and an unreachable one", {
  timeout: 60_000,
}, async (t) => {
  assert.deepEqual(await rowsOf(t, "socks5", {}), [
    "ok The SOCKS5 proxy 127.0.0.1:PORT responds and connects.",
    "ok The proxy supports UDP: UDP trackers, the DHT and uTP use it.",
  ]);
  const [, udp] = await rowsOf(t, "socks5", { udp: false });
  assert.match(udp!, /^note The proxy does not support UDP .*: the DHT, uTP and UDP trackers do not work\.$/);
  assert.match((await rowsOf(t, "http", {}))[1]!, /^note The proxy does not support UDP \(HTTP proxies/);
  const [rejected] = await rowsOf(t, "socks5", {}, "me:other@");
  assert.match(rejected!, /^fail The SOCKS5 proxy 127\.0\.0\.1:PORT responds, but refuses this engine/);
  const settings = { bind: "", proxy: "socks5://127.0.0.1:1", proxyStrict: true };
  const [unreachable] = await confinementRows(runtime, settings);
  assert.equal(unreachable!.level, "fail");
  assert.match(unreachable!.text, /^SOCKS5 proxy 127\.0\.0\.1:1: /);
});
