import assert from "node:assert/strict";
import { test } from "node:test";
import { SILENT_LOG } from "../../../src/base/log.ts";
import { confineRuntime } from "../../../src/net/confined/confined.ts";
import type { Runtime, TcpHandlers } from "../../../src/runtime/contract.ts";
import { settled } from "../../engine/fake-clock.ts";
import { fakeMachine } from "./fake-machine.ts";

const NETWORKS = {
  eth0: ["192.168.1.5/24", "2001:db8:1::5/64", "fe80::5/64"],
  wg0: ["10.2.0.2/32", "2001:db8:9::2/128", "fe80::9/64"],
};
const ACCEPT = (): TcpHandlers => ({ received() {}, drained() {}, closed() {} });

function bound(bind: string, networks: Readonly<Record<string, readonly string[]>> = NETWORKS) {
  const fake = fakeMachine(networks);
  const confined = confineRuntime(fake.runtime, { bind, proxy: "", proxyStrict: true }, SILENT_LOG);
  return { ...fake, confined };
}

/** Connects to an address; resolves to the close reason, or undefined if it stays open. */
async function call({ net }: Runtime, host: string): Promise<string | undefined> {
  let reason: string | undefined;
  const closed = (why: string) => {
    reason = why;
  };
  net.connect({ host, port: 6881 }, { ...ACCEPT(), closed }, { timeoutMs: 1000 });
  await settled();
  return reason;
}

test("confineRuntime, bind: connects from the interface with both IP versions; loopback is unchanged", async () => {
  const { confined, did } = bound("wg0");
  for (const host of ["1.2.3.4", "2a00::1", "127.0.0.1"]) assert.equal(await call(confined, host), undefined);
  assert.deepEqual(did, [
    "tcp 1.2.3.4:6881 from 10.2.0.2",
    "tcp [2a00::1]:6881 from 2001:db8:9::2",
    "tcp 127.0.0.1:6881",
  ]);
});

test("confineRuntime, bind: does not connect to hosts behind another interface", async () => {
  const { confined, did } = bound("wg0");
  assert.match((await call(confined, "192.168.1.7"))!, /192\.168\.1\.7 is reachable only through eth0/);
  const socket = await confined.net.bindUdp({ host: "::", port: 8621 }, () => {});
  for (const host of ["192.168.1.7", "1.2.3.4", "2a00::1", "2001:db8:1::77", "127.0.0.1"])
    socket.send(new Uint8Array(1), { host, port: 1 });
  assert.deepEqual(did, [
    "udp 1.2.3.4:1 from 10.2.0.2:8621",
    "udp [2a00::1]:1 from [2001:db8:9::2]:8621",
    "udp 127.0.0.1:1 from 127.0.0.1:8621",
  ]);
});

test("confineRuntime, bind: with a single address, the other IP version is unavailable", async () => {
  const { confined, did } = bound("10.2.0.2");
  assert.equal(await call(confined, "1.2.3.4"), undefined);
  assert.match((await call(confined, "2a00::1"))!, /10\.2\.0\.2 has no IPv6 address/);
  assert.deepEqual(did, ["tcp 1.2.3.4:6881 from 10.2.0.2"]);
});

test("confineRuntime, bind: a removed interface blocks traffic and closes its sockets, until it returns", async () => {
  const { confined, did, bound: open, clock, machine, connections } = bound("wg0");
  await confined.net.listen({ host: "::", port: 8621 }, ACCEPT);
  const socket = await confined.net.bindUdp({ host: "::", port: 8621 }, () => {});
  await call(confined, "1.2.3.4");
  assert.equal(open.size, 6);
  machine.networks = { ...machine.networks, wg0: [] };
  await clock.advance(1_000);
  assert.ok(connections[0]!.isClosed);
  assert.deepEqual([...open].sort(), ["tcp 127.0.0.1:8621", "udp 127.0.0.1:8621"]);
  did.length = 0;
  assert.match((await call(confined, "1.2.3.4"))!, /wg0 does not exist/);
  socket.send(new Uint8Array(1), { host: "1.2.3.4", port: 1 });
  socket.send(new Uint8Array(1), { host: "2a00::1", port: 1 });
  assert.deepEqual(did, []);
  machine.networks = { ...machine.networks, wg0: ["10.2.0.77/32"] };
  await clock.advance(2_000);
  assert.ok(open.has("tcp 10.2.0.77:8621") && open.has("udp 10.2.0.77:8621"));
  socket.send(new Uint8Array(1), { host: "1.2.3.4", port: 1 });
  assert.deepEqual(did, ["udp 1.2.3.4:1 from 10.2.0.77:8621"]);
});

test("confineRuntime, bind: between two checks nothing is sent from a removed address", async () => {
  const { confined, did, clock, machine } = bound("wg0");
  await clock.advance(500);
  const socket = await confined.net.bindUdp({ host: "::", port: 8621 }, () => {});
  machine.networks = { ...machine.networks, wg0: [] };
  await clock.advance(600);
  socket.send(new Uint8Array(1), { host: "2a00::1", port: 1 });
  assert.deepEqual(did, []);
});

test("confineRuntime, bind: starts without the interface, and listens on it when it appears", async () => {
  const { confined, bound: open, clock, machine } = bound("wg0", { eth0: NETWORKS.eth0 });
  const listener = await confined.net.listen({ host: "::", port: 0 }, ACCEPT);
  const { port } = listener.address;
  assert.deepEqual([...open], [`tcp 127.0.0.1:${port}`]);
  machine.networks = { ...machine.networks, wg0: NETWORKS.wg0 };
  await clock.advance(1_000);
  assert.ok(open.has(`tcp 10.2.0.2:${port}`) && open.has(`tcp [2001:db8:9::2]:${port}`));
  await listener.close();
  assert.equal(open.size, 0);
  assert.equal(clock.waiting, 1);
  await clock.advance(1_000);
  assert.equal(clock.waiting, 0);
});

test("confineRuntime, bind: reports a port in use; refuses to listen on other addresses", async () => {
  const { confined, runtime } = bound("wg0");
  await runtime.net.listen({ host: "10.2.0.2", port: 8621 }, ACCEPT);
  await assert.rejects(confined.net.listen({ host: "::", port: 8621 }, ACCEPT), { code: "port_busy" });
  assert.throws(() => confined.net.listen({ host: "192.168.1.5", port: 1 }, ACCEPT), {
    code: "bad_configuration",
  });
});

test("confineRuntime, bind: joins multicast groups on the interface only, and sends only to the group", async () => {
  const { confined, did } = bound("eth0");
  const join = (networkAddress: string) =>
    confined.net.bindUdp({ host: "0.0.0.0", port: 6771 }, () => {}, {
      multicast: { group: "239.192.152.143", networkAddress },
    });
  await assert.rejects(join("10.2.0.2"), { code: "bad_parameter" });
  const socket = await join("192.168.1.5");
  socket.send(new Uint8Array(1), { host: "239.192.152.143", port: 6771 });
  socket.send(new Uint8Array(1), { host: "1.2.3.4", port: 6771 });
  assert.deepEqual(did, ["udp 239.192.152.143:6771 from 0.0.0.0:6771"]);
});

test("confineRuntime, bind: HTTP uses the interface, except to this machine", async () => {
  const { confined, did } = bound("wg0");
  const asked = { method: "GET", headers: {}, timeoutMs: 1000 } as const;
  const url = new URL("https://tracker.example/announce");
  await confined.http.request({ ...asked, url, connectTo: "1.2.3.4" });
  await confined.http.request({ ...asked, url: new URL("http://localhost:80/"), connectTo: "127.0.0.1" });
  assert.deepEqual(did, [
    "http tracker.example dialled",
    "tcp 1.2.3.4:443 from 10.2.0.2",
    "http localhost direct 127.0.0.1",
  ]);
});
