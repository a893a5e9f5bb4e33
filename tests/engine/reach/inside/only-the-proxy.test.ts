import assert from "node:assert/strict";
import { test } from "node:test";
import { stayInside, withOwnNetworks } from "../../../../src/engine/reach/inside.ts";
import type { TcpHandlers } from "../../../../src/runtime/contract.ts";
import { settled } from "../../fake-clock.ts";
import { SILENT } from "../../fake-house.ts";
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
    test(`stayInside, strict, ${new URL(proxy).protocol} bind ${bind || "none"}: nothing but the proxy is dialled`, async () => {
      const { runtime, did, clock } = fakeMachine(NETWORKS);
      const inside = stayInside(runtime, { bind, proxy, proxyStrict: true }, SILENT);
      const udp = await inside.net.bindUdp({ host: "::", port: 0 }, () => {}).catch(() => undefined);
      const names = await Promise.all(
        ["tracker.example", "router.example"].map((name) => inside.lookup(name)),
      );
      for (const host of [...PLACES, ...names.flat()]) {
        inside.net.connect({ host, port: 6881 }, HANDLERS, { timeoutMs: 1000 });
        udp?.send(new Uint8Array(4), { host, port: 6881 });
        const url = new URL(`http://${host.includes(":") ? `[${host}]` : host}/announce`);
        const asked = { url, connectTo: host, method: "GET", headers: {}, timeoutMs: 1000 } as const;
        await inside.http.request(asked).catch(() => {});
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

test("stayInside: the proxy's own name is the only one that is looked up, once for many", async () => {
  const { runtime, did } = fakeMachine(NETWORKS);
  const settings = { bind: "", proxy: "socks5://proxy.example:1080", proxyStrict: true };
  const inside = stayInside(runtime, settings, SILENT);
  for (const host of PLACES) inside.net.connect({ host, port: 6881 }, HANDLERS, { timeoutMs: 1000 });
  await settled();
  assert.deepEqual([...new Set(did)], ["lookup proxy.example", "tcp 192.0.9.1:1080"]);
  assert.equal(did.filter((what) => what.startsWith("lookup")).length, 1);
});

test("stayInside, strict: an address that means another name by now is not taken for the URL's", async () => {
  const { runtime, did } = fakeMachine(NETWORKS);
  const settings = { bind: "", proxy: "http://9.9.9.9:1080", proxyStrict: true };
  const { http, lookup } = stayInside(runtime, settings, SILENT);
  const [connectTo] = await lookup("other.example");
  const url = new URL("http://tracker.example/");
  const asked = { url, connectTo: connectTo!, method: "GET", headers: {}, timeoutMs: 1000 } as const;
  await assert.rejects(http.request(asked), { code: "url_unreachable" });
  assert.deepEqual(did, []);
});

test("stayInside, not strict: neighbours directly, all others by the proxy, names as ever", async () => {
  const { runtime, did } = fakeMachine(NETWORKS);
  const settings = { bind: "", proxy: "http://9.9.9.9:1080", proxyStrict: false };
  const inside = stayInside(runtime, settings, SILENT);
  for (const host of ["1.2.3.4", "192.168.1.7"])
    inside.net.connect({ host, port: 6881 }, HANDLERS, { timeoutMs: 1000 });
  assert.deepEqual(await inside.lookup("tracker.example"), ["192.0.9.1"]);
  await settled();
  assert.deepEqual(did, ["tcp 192.168.1.7:6881", "lookup tracker.example", "tcp 9.9.9.9:1080"]);
});

test("stayInside: why the proxy carries nothing is told until it carries again", async () => {
  const { runtime, connections, clock } = fakeMachine(NETWORKS);
  const settings = { bind: "", proxy: "socks5://9.9.9.9:1080", proxyStrict: true };
  const inside = stayInside(runtime, settings, SILENT);
  const call = async () => {
    inside.net.connect({ host: "1.2.3.4", port: 6881 }, HANDLERS, { timeoutMs: 10_000 });
    await settled();
    return connections.at(-1)!.handlers;
  };
  assert.equal(inside.proxyProblem(), undefined);
  (await call()).closed("connection refused");
  const problem = "SOCKS5 proxy 9.9.9.9:1080: connection refused";
  assert.equal(inside.proxyProblem(), problem);
  await clock.advance(5_000);
  assert.equal(inside.proxyProblem(), problem, "time alone mends nothing");
  const again = await call();
  assert.equal(inside.proxyProblem(), problem, "nor does trying");
  again.opened?.();
  again.received(Uint8Array.of(5, 0));
  again.received(Uint8Array.of(5, 0, 0, 1, 0, 0, 0, 0, 0, 0));
  assert.equal(inside.proxyProblem(), undefined);
});

test("stayInside: without a proxy nothing is wrong with it, and URLs are fetched as ever", () => {
  const { runtime } = fakeMachine(NETWORKS);
  const outside = stayInside(runtime, { bind: "", proxy: "", proxyStrict: true }, SILENT);
  assert.equal(outside.proxyProblem(), undefined);
  assert.equal(withOwnNetworks(outside, runtime), runtime);
});

test("withOwnNetworks: URLs of the own networks are fetched directly, all others inside", async () => {
  const { runtime, did } = fakeMachine(NETWORKS);
  const settings = { bind: "", proxy: "http://9.9.9.9:1080", proxyStrict: true };
  const { http, lookup } = withOwnNetworks(stayInside(runtime, settings, SILENT), runtime);
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
