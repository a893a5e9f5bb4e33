import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { type TestContext, test } from "node:test";
import { runtime } from "#runtime";
import { latin1Bytes } from "../../../src/base/bytes.ts";
import { visibleAddressRow } from "../../../src/net/confined/visible-address.ts";
import { decodeKrpc } from "../../../src/wire/dht/krpc-decode.ts";
import { encodeKrpc } from "../../../src/wire/dht/krpc-encode.ts";
import { startProxy } from "../../parts/proxy.ts";

/** A node that reports the given addresses in turn, after a malformed response. */
async function node(t: TestContext, addresses: readonly string[]): Promise<number> {
  const socket = createSocket("udp4");
  const askers: number[] = [];
  socket.on("message", (bytes, from) => {
    const query = decodeKrpc(bytes);
    assert.ok(query.kind === "query" && query.isReadOnly && query.request.method === "ping");
    if (!askers.includes(from.port)) askers.push(from.port);
    const host = addresses[askers.indexOf(from.port) % addresses.length]!;
    const { transaction } = query;
    const id = new Uint8Array(20);
    for (const answer of [
      latin1Bytes("garbage"),
      encodeKrpc({
        kind: "reply",
        transaction: latin1Bytes("none"),
        id,
        yourAddress: { host: "9.9.9.9", port: 1 },
      }),
      encodeKrpc({ kind: "reply", transaction, id, yourAddress: { host, port: from.port } }),
    ])
      socket.send(answer, from.port, from.address);
  });
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  t.after(() => void socket.close());
  return socket.address().port;
}

const machine = { ...runtime, lookup: async () => ["127.0.0.1"] };

test("visibleAddressRow: ok for a different address through the proxy, a warning for the same", {
  timeout: 60_000,
}, async (t) => {
  const proxy = await startProxy({ names: { "router.test": "127.0.0.1" } });
  t.after(() => proxy.close());
  const settings = { bind: "", proxy: `socks5://127.0.0.1:${proxy.port}`, proxyStrict: true };
  const hidden = await visibleAddressRow(machine, settings, [
    `router.test:${await node(t, ["5.5.5.5", "6.6.6.6"])}`,
  ]);
  assert.equal(hidden.level, "ok");
  assert.match(
    hidden.text,
    /^Confined traffic is visible at (?:5\.5\.5\.5; direct traffic at 6\.6\.6\.6|6\.6\.6\.6; direct traffic at 5\.5\.5\.5)\.$/,
  );
  const bare = await visibleAddressRow(machine, settings, [`router.test:${await node(t, ["5.5.5.5"])}`]);
  assert.deepEqual([bare.level, /same address, 5\.5\.5\.5/.test(bare.text)], ["warn", true]);
});

test("visibleAddressRow: a note if no nodes are given or the proxy does not support UDP", {
  timeout: 60_000,
}, async (t) => {
  const settings = { bind: "", proxy: "http://127.0.0.1:1", proxyStrict: true };
  const port = await node(t, ["5.5.5.5"]);
  assert.equal((await visibleAddressRow(machine, settings, [`router.test:${port}`])).level, "note");
  assert.equal((await visibleAddressRow(machine, { ...settings, proxy: "" }, [])).level, "note");
  const plain = await visibleAddressRow(machine, { ...settings, proxy: "" }, [`127.0.0.1:${port}`]);
  assert.equal(plain.text, "DHT nodes see this machine at 5.5.5.5.");
});
