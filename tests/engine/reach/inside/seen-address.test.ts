import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { type TestContext, test } from "node:test";
import { runtime } from "#runtime";
import { latin1Bytes } from "../../../../src/base/bytes.ts";
import { seenRow } from "../../../../src/engine/reach/inside/seen-address.ts";
import { decodeKrpc } from "../../../../src/wire/krpc-decode.ts";
import { encodeKrpc } from "../../../../src/wire/krpc-encode.ts";
import { startProxy } from "../../../parts/proxy.ts";

/** A node that tells each asker another address, or all of them the same; garbage comes first. */
async function node(t: TestContext, addresses: readonly string[]): Promise<number> {
  const socket = createSocket("udp4");
  const askers: number[] = [];
  socket.on("message", (bytes, from) => {
    const query = decodeKrpc(bytes);
    assert.ok(query.kind === "query" && query.isReadOnly && query.ask.method === "ping");
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

test("seenRow: another address through the proxy is well, the same one is told", {
  timeout: 60_000,
}, async (t) => {
  const proxy = await startProxy({ names: { "router.test": "127.0.0.1" } });
  t.after(() => proxy.close());
  const settings = { bind: "", proxy: `socks5://127.0.0.1:${proxy.port}`, proxyStrict: true };
  const hidden = await seenRow(machine, settings, [`router.test:${await node(t, ["5.5.5.5", "6.6.6.6"])}`]);
  assert.equal(hidden.level, "ok");
  assert.match(
    hidden.text,
    /^Inside we are seen at (?:5\.5\.5\.5, else at 6\.6\.6\.6|6\.6\.6\.6, else at 5\.5\.5\.5)\.$/,
  );
  const bare = await seenRow(machine, settings, [`router.test:${await node(t, ["5.5.5.5"])}`]);
  assert.deepEqual([bare.level, /at 5\.5\.5\.5 inside as well/.test(bare.text)], ["warn", true]);
});

test("seenRow: without nodes, or a proxy that carries datagrams, it cannot be told", {
  timeout: 60_000,
}, async (t) => {
  const settings = { bind: "", proxy: "http://127.0.0.1:1", proxyStrict: true };
  const port = await node(t, ["5.5.5.5"]);
  assert.equal((await seenRow(machine, settings, [`router.test:${port}`])).level, "note");
  assert.equal((await seenRow(machine, { ...settings, proxy: "" }, [])).level, "note");
  const plain = await seenRow(machine, { ...settings, proxy: "" }, [`127.0.0.1:${port}`]);
  assert.equal(plain.text, "Nodes of the DHT see us at 5.5.5.5.");
});
