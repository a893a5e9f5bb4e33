import assert from "node:assert/strict";
import { test } from "node:test";
import { runtime } from "#runtime";
import type { PeerAddress } from "../../src/base/address.ts";
import { latin1Bytes } from "../../src/base/bytes.ts";
import { SILENT_LOG } from "../../src/base/log.ts";
import { bindSharedUdp, udpProtocol } from "../../src/net/shared-udp.ts";

test("udpProtocol: detects each protocol by the first bytes", () => {
  const utp = new Uint8Array(20);
  utp[0] = 0x41;
  assert.equal(udpProtocol(latin1Bytes("d1:ad2:id20:")), "dht");
  assert.equal(udpProtocol(utp), "utp");
  assert.equal(udpProtocol(utp.subarray(0, 19)), "tracker");
  assert.equal(udpProtocol(new Uint8Array([0x51, ...new Uint8Array(19)])), "tracker");
  assert.equal(
    udpProtocol(new Uint8Array([0, 0, 4, 0x17, 0x27, 0x10, 0x19, 0x80, 0, 0, 0, 0, 1, 2, 3, 4])),
    "tracker",
  );
  assert.equal(udpProtocol(new Uint8Array(15)), undefined);
  assert.equal(udpProtocol(new Uint8Array(0)), undefined);
});

test("bindSharedUdp: delivers each datagram to the receiver of its protocol, over IPv4 and IPv6", {
  timeout: 30_000,
}, async (t) => {
  const shared = await bindSharedUdp(runtime.net, SILENT_LOG, { host: "::", port: 0 });
  t.after(() => shared.close());
  const received = new Promise<[string, PeerAddress]>((resolve) => {
    shared.listen("dht", (bytes, from) => resolve([new TextDecoder().decode(bytes), from]));
  });
  shared.listen("utp", () => assert.fail("not uTP"));
  const other = await runtime.net.bindUdp({ host: "127.0.0.1", port: 0 }, () => {});
  t.after(() => other.close());
  other.send(new Uint8Array([1, 2, 3]), { host: "127.0.0.1", port: shared.port });
  other.send(latin1Bytes("de"), { host: "127.0.0.1", port: shared.port });
  assert.deepEqual(await received, ["de", { host: "127.0.0.1", port: other.address.port }]);
});

test("bindSharedUdp: rejects with port_busy if the port is in use", async (t) => {
  const shared = await bindSharedUdp(runtime.net, SILENT_LOG, { host: "127.0.0.1", port: 0 });
  t.after(() => shared.close());
  const again = bindSharedUdp(runtime.net, SILENT_LOG, { host: "127.0.0.1", port: shared.port });
  await assert.rejects(again, { code: "port_busy" });
});
