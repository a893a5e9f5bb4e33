import assert from "node:assert/strict";
import { test } from "node:test";
import { fromHex, latin1Bytes, latin1Text } from "../../../src/base/bytes.ts";
import { SILENT_LOG } from "../../../src/base/log.ts";
import { confineRuntime } from "../../../src/net/confined/confined.ts";
import { decodeSocksDatagram, encodeSocksDatagram } from "../../../src/wire/socks5.ts";
import { settled } from "../../engine/fake-clock.ts";
import { fakeMachine } from "./fake-machine.ts";

const PROXY = "9.9.9.9";
const RELAY = { host: PROXY, port: 1234 };
/** A success reply with the relay at 10.9.8.7:1234. */
const ASSOCIATED = "050000010a09080704d2";

/** A UDP socket through a strict proxy. */
async function proxied() {
  const fake = fakeMachine({});
  const settings = { bind: "", proxy: `socks5://${PROXY}:1080`, proxyStrict: true };
  const confined = confineRuntime(fake.runtime, settings, SILENT_LOG);
  const events: string[] = [];
  const socket = await confined.net.bindUdp({ host: "::", port: 8621 }, (bytes, from, actual) =>
    events.push(`${latin1Text(bytes)} ${from.host}:${from.port}${actual ? ` is ${actual.host}` : ""}`),
  );
  /** The proxy accepts the last requested association. */
  const associates = async (answer = ASSOCIATED) => {
    await settled();
    const { handlers } = fake.connections.at(-1)!;
    handlers.opened!();
    handlers.received(fromHex("0500")!);
    handlers.received(fromHex(answer)!);
    await settled();
  };
  return { ...fake, confined, events, socket, associates };
}

test("Association: queues early datagrams up to a limit; sends to the relay at the proxy's address", async () => {
  const { socket, associates, sockets, did } = await proxied();
  for (let i = 0; i < 1000; i++) socket.send(latin1Bytes(`${i}`), { host: "1.2.3.4", port: 6881 });
  await associates();
  const sent = sockets[0]!.sent.map((hex) => latin1Text(decodeSocksDatagram(fromHex(hex)!).payload));
  assert.deepEqual(
    sent,
    Array.from({ length: 32 }, (_, i) => `${968 + i}`),
  );
  assert.deepEqual([...new Set(did)], ["tcp 9.9.9.9:1080", "udp 9.9.9.9:1234 from 0.0.0.0:40000"]);
});

test("Association: drops datagrams to loopback and multicast addresses", async () => {
  const { socket, associates, sockets } = await proxied();
  await associates();
  for (const host of ["127.0.0.1", "::1", "239.192.152.143", "ff15::efc0:988f", "0.0.0.0"])
    socket.send(latin1Bytes("x"), { host, port: 6771 });
  assert.deepEqual(sockets[0]!.sent, []);
});

test("Association: accepts datagrams only from the relay, and drops malformed ones", async () => {
  const { associates, sockets, events } = await proxied();
  await associates();
  const { received } = sockets[0]!;
  const from = { host: "1.2.3.4", port: 6881 };
  const good = encodeSocksDatagram(from, latin1Bytes("hello"));
  received(good, { ...RELAY, port: 1235 });
  received(good, { ...RELAY, host: "10.9.8.7" });
  received(good, from);
  const fragment = good.slice();
  fragment[2] = 1;
  const named = encodeSocksDatagram({ host: "a.example", port: 1 }, latin1Bytes("name"));
  for (const bytes of [fragment, named, good.subarray(0, 6), new Uint8Array(0)]) received(bytes, RELAY);
  received(encodeSocksDatagram({ ...from, port: 0 }, latin1Bytes("port")), RELAY);
  assert.deepEqual(events, []);
  received(good, RELAY);
  assert.deepEqual(events, ["hello 1.2.3.4:6881"]);
});

test("Association: each name has its own association, which identifies its responses", async () => {
  const { confined, socket, associates, sockets, events, connections } = await proxied();
  await associates();
  const [placeholder] = await confined.lookup("tracker.example");
  socket.send(latin1Bytes("ask"), { host: placeholder!, port: 80 });
  await associates();
  assert.equal(connections.length, 2);
  assert.deepEqual(decodeSocksDatagram(fromHex(sockets[1]!.sent[0]!)!).from, {
    host: "tracker.example",
    port: 80,
  });
  sockets[1]!.received(encodeSocksDatagram({ host: "2a00::1", port: 80 }, latin1Bytes("answer")), RELAY);
  assert.deepEqual(events, [`answer ${placeholder}:80 is 2a00::1`]);
});

test("Association: at most sixteen names have one; idle ones are closed", async () => {
  const { confined, socket, connections, clock } = await proxied();
  for (let i = 0; i < 40; i++) {
    const [placeholder] = await confined.lookup(`t${i}.example`);
    socket.send(latin1Bytes("ask"), { host: placeholder!, port: 80 });
    await settled();
  }
  assert.equal(connections.filter(({ isClosed }) => !isClosed).length, 17);
  await clock.advance(120_000);
  // Their own time for an answer was over as well; the first one goes on trying.
  assert.ok(connections.filter(({ isClosed }) => !isClosed).length <= 1);
  socket.close();
  await clock.advance(120_000);
  assert.equal(connections.filter(({ isClosed }) => !isClosed).length, 0);
  assert.equal(clock.waiting, 0);
});

test("Association: one without a port fails, and is retried at growing intervals", async () => {
  const { associates, connections, sockets, clock } = await proxied();
  await associates("05000001000000000000");
  assert.deepEqual([sockets.length, connections[0]!.isClosed], [0, true]);
  await clock.advance(2_000);
  assert.equal(connections.length, 2);
  await associates();
  assert.equal(sockets.length, 1);
});
