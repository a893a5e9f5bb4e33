import assert from "node:assert/strict";
import { test } from "node:test";
import { SILENT_LOG } from "../../../src/base/log.ts";
import { confineRuntime, withOwnNetworks } from "../../../src/net/confined/confined.ts";
import type { TcpHandlers } from "../../../src/runtime/contract.ts";
import { settled } from "../../engine/fake-clock.ts";
import { fakeMachine } from "./fake-machine.ts";

const NETWORKS = { eth0: ["192.168.1.5/24", "2001:db8:1::5/64"], wg0: ["10.2.0.2/32"] };
const HANDLERS: TcpHandlers = { received() {}, drained() {}, closed() {} };
const PLACES = [
  "1.2.3.4",
  "2a00::1",
  "192.168.1.7",
  "10.1.2.3",
  "169.254.1.1",
  "fe80::1",
  "fd00::1",
  "192.0.2.1",
];

for (const proxy of ["socks5://me:pw@9.9.9.9:1080", "http://me:pw@9.9.9.9:1080"]) {
  for (const bind of ["", "wg0"]) {
    test(`confineRuntime, strict, ${new URL(proxy).protocol} bind ${bind || "none"}: connects only to the proxy`, async () => {
      const { runtime, did, clock } = fakeMachine(NETWORKS);
      const confined = confineRuntime(runtime, { bind, proxy, proxyStrict: true }, SILENT_LOG);
      const udp = await confined.net.bindUdp({ host: "::", port: 0 }, () => {}).catch(() => undefined);
      const names = await Promise.all(
        ["tracker.example", "router.example"].map((name) => confined.lookup(name)),
      );
      for (const host of [...PLACES, ...names.flat()]) {
        confined.net.connect({ host, port: 6881 }, HANDLERS, { timeoutMs: 1000 });
        udp?.send(new Uint8Array(4), { host, port: 6881 });
        const url = new URL(`http://${host.includes(":") ? `[${host}]` : host}/announce`);
        const asked = { url, connectTo: host, method: "GET", headers: {}, timeoutMs: 1000 } as const;
        await confined.http.request(asked).catch(() => {});
      }
      await settled();
      await clock.advance(120_000);
      const dialled = did.filter((what) => !what.startsWith("http"));
      assert.ok(dialled.length > PLACES.length);
      const from = bind === "" ? "" : " from 10.2.0.2";
      assert.deepEqual([...new Set(dialled)], [`tcp 9.9.9.9:1080${from}`]);
      assert.ok(did.filter((what) => what.startsWith("http")).every((what) => what.endsWith(" dialled")));
      udp?.close();
    });
  }
}

test("confineRuntime: resolves only the proxy's own name, once for many connections", async () => {
  const { runtime, did } = fakeMachine(NETWORKS);
  const settings = { bind: "", proxy: "socks5://proxy.example:1080", proxyStrict: true };
  const confined = confineRuntime(runtime, settings, SILENT_LOG);
  for (const host of PLACES) confined.net.connect({ host, port: 6881 }, HANDLERS, { timeoutMs: 1000 });
  await settled();
  assert.deepEqual([...new Set(did)], ["lookup proxy.example", "tcp 192.0.9.1:1080"]);
  assert.equal(did.filter((what) => what.startsWith("lookup")).length, 1);
});

test("confineRuntime, strict: rejects a placeholder that was reassigned to another name", async () => {
  const { runtime, did } = fakeMachine(NETWORKS);
  const settings = { bind: "", proxy: "http://9.9.9.9:1080", proxyStrict: true };
  const { http, lookup } = confineRuntime(runtime, settings, SILENT_LOG);
  const [connectTo] = await lookup("other.example");
  const url = new URL("http://tracker.example/");
  const asked = { url, connectTo: connectTo!, method: "GET", headers: {}, timeoutMs: 1000 } as const;
  await assert.rejects(http.request(asked), { code: "url_unreachable" });
  assert.deepEqual(did, []);
});

test("confineRuntime, not strict: local networks directly, others through the proxy, names resolved here", async () => {
  const { runtime, did } = fakeMachine(NETWORKS);
  const settings = { bind: "", proxy: "http://9.9.9.9:1080", proxyStrict: false };
  const confined = confineRuntime(runtime, settings, SILENT_LOG);
  for (const host of ["1.2.3.4", "192.168.1.7"])
    confined.net.connect({ host, port: 6881 }, HANDLERS, { timeoutMs: 1000 });
  assert.deepEqual(await confined.lookup("tracker.example"), ["192.0.9.1"]);
  await settled();
  assert.deepEqual(did, ["tcp 192.168.1.7:6881", "lookup tracker.example", "tcp 9.9.9.9:1080"]);
});

test("confineRuntime: proxyProblem states the error until the proxy works again", async () => {
  const { runtime, connections, clock } = fakeMachine(NETWORKS);
  const settings = { bind: "", proxy: "socks5://9.9.9.9:1080", proxyStrict: true };
  const confined = confineRuntime(runtime, settings, SILENT_LOG);
  const call = async () => {
    confined.net.connect({ host: "1.2.3.4", port: 6881 }, HANDLERS, { timeoutMs: 10_000 });
    await settled();
    return connections.at(-1)!.handlers;
  };
  assert.equal(confined.proxyProblem(), undefined);
  (await call()).closed("connection refused");
  const problem = "SOCKS5 proxy 9.9.9.9:1080: connection refused";
  assert.equal(confined.proxyProblem(), problem);
  await clock.advance(5_000);
  assert.equal(confined.proxyProblem(), problem, "time alone mends nothing");
  const again = await call();
  assert.equal(confined.proxyProblem(), problem, "nor does trying");
  again.opened?.();
  again.received(Uint8Array.of(5, 0));
  again.received(Uint8Array.of(5, 0, 0, 1, 0, 0, 0, 0, 0, 0));
  assert.equal(confined.proxyProblem(), undefined);
});

test("confineRuntime: without a proxy, proxyProblem is undefined and URLs are fetched directly", () => {
  const { runtime } = fakeMachine(NETWORKS);
  const outside = confineRuntime(runtime, { bind: "", proxy: "", proxyStrict: true }, SILENT_LOG);
  assert.equal(outside.proxyProblem(), undefined);
  assert.equal(withOwnNetworks(outside, runtime), runtime);
});

test("withOwnNetworks: URLs of local networks are fetched directly, others confined", async () => {
  const { runtime, did } = fakeMachine(NETWORKS);
  const settings = { bind: "", proxy: "http://9.9.9.9:1080", proxyStrict: true };
  const { http, lookup } = withOwnNetworks(confineRuntime(runtime, settings, SILENT_LOG), runtime);
  const asked = { method: "GET", headers: {}, timeoutMs: 1000 } as const;
  const [tracker] = await lookup("tracker.example");
  for (const connectTo of ["192.168.1.7", "10.1.2.3", "1.2.3.4", tracker!])
    await http.request({ ...asked, url: new URL("http://tracker.example/"), connectTo });
  assert.deepEqual(
    did.filter((what) => what.startsWith("http")),
    [
      "http tracker.example direct 192.168.1.7",
      ...["dialled", "dialled", "dialled"].map((how) => `http tracker.example ${how}`),
    ],
  );
});
