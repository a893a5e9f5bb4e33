import assert from "node:assert/strict";
import { test } from "node:test";
import { fromHex, latin1Bytes, toHex } from "../../../../src/base/bytes.ts";
import { parseProxy } from "../../../../src/engine/reach/inside/proxy.ts";
import { ProxyHealth } from "../../../../src/engine/reach/inside/proxy-health.ts";
import { ProxyPlace } from "../../../../src/engine/reach/inside/proxy-place.ts";
import { openTunnel } from "../../../../src/engine/reach/inside/tunnel.ts";
import { settled } from "../../fake-clock.ts";
import { SILENT } from "../../fake-house.ts";
import { fakeMachine } from "./fake-machine.ts";

const DONE = "05000001000000000000";

/** A connection to 1.2.3.4:80 through a proxy that says what the test says. */
function tunnelTo(url: string) {
  const fake = fakeMachine({});
  const { runtime, clock, connections } = fake;
  const proxy = parseProxy(url);
  const health = new ProxyHealth(SILENT, proxy.text);
  const place = new ProxyPlace(proxy.host, clock, runtime.lookup);
  const heard: string[] = [];
  const to = { host: "1.2.3.4", port: 80 };
  const open = () =>
    openTunnel(
      { proxy, net: runtime.net, clock, health, place },
      { command: "connect", to },
      to,
      {
        opened: () => void heard.push("opened"),
        received: (bytes) => void heard.push(`received ${toHex(bytes)}`),
        drained: () => void heard.push("drained"),
        closed: (reason) => void heard.push(`closed ${reason}`),
      },
      10_000,
    );
  const socket = open();
  const say = (hex: string) => connections.at(-1)!.handlers.received(fromHex(hex)!);
  const stands = async () => {
    await settled();
    connections.at(-1)!.handlers.opened!();
  };
  return { ...fake, health, heard, socket, open, say, stands };
}

test("openTunnel: what is written early waits for the proxy's yes, and its rest is the connection's", async () => {
  const { socket, say, stands, heard, connections } = tunnelTo("socks5://9.9.9.9:1080");
  assert.equal(socket.write(latin1Bytes("hello")), true);
  assert.equal(socket.write(new Uint8Array(64 * 1024)), false);
  assert.equal(socket.bufferedBytes, 5 + 64 * 1024);
  await stands();
  const { written } = connections[0]!;
  assert.deepEqual(written, ["050100"]);
  say("0500");
  assert.equal(written.length, 2);
  say(`${DONE}beef`);
  assert.deepEqual(written.slice(2), [toHex(latin1Bytes("hello")), "00".repeat(64 * 1024)]);
  assert.deepEqual(heard, ["opened", "received beef"]);
  assert.equal(socket.bufferedBytes, 0);
  connections[0]!.handlers.closed("closed by the peer");
  assert.equal(heard.at(-1), "closed closed by the peer");
});

test("openTunnel: a proxy that never says a word is left, and told of; the next one fails at once", async () => {
  const { stands, heard, clock, health, open, connections } = tunnelTo("socks5://9.9.9.9:1080");
  await stands();
  await clock.advance(10_000);
  assert.deepEqual(heard, ["closed no connection in 10000 ms"]);
  assert.match(health.problem(clock.now())!, /^SOCKS5 proxy 9\.9\.9\.9:1080: no connection in 10000 ms$/);
  open();
  await settled();
  assert.equal(connections.length, 1);
  assert.match(heard.at(-1)!, /^closed SOCKS5 proxy/);
});

test("openTunnel: a place that does not answer is not the proxy's fault, nor is who gives up", async () => {
  for (const url of ["socks5://9.9.9.9:1080", "http://9.9.9.9:3128"]) {
    const { stands, say, heard, clock, health } = tunnelTo(url);
    await stands();
    if (url.startsWith("socks5")) say("0500");
    await clock.advance(10_000);
    assert.deepEqual(heard, ["closed no connection in 10000 ms"]);
    assert.equal(health.problem(clock.now()), undefined);
    const given = tunnelTo(url);
    await settled();
    given.socket.close();
    await settled();
    assert.deepEqual([given.heard, given.health.problem(clock.now())], [["closed closed by us"], undefined]);
  }
});

test("openTunnel: closed before it was dialled, nothing is dialled, and closed is told once", async () => {
  const { socket, heard, connections, clock } = tunnelTo("socks5://9.9.9.9:1080");
  socket.close();
  socket.close();
  await clock.advance(60_000);
  assert.deepEqual(heard, ["closed closed by us"]);
  assert.equal(connections.length, 0);
  assert.equal(clock.waiting, 0);
});

test("openTunnel: garbage closes it, whatever comes after", async () => {
  const { stands, say, heard, connections, health, clock } = tunnelTo("socks5://9.9.9.9:1080");
  await stands();
  say("ff");
  say(`0500${DONE}`);
  await settled();
  assert.ok(connections[0]!.isClosed);
  assert.match(
    heard.join(),
    /^closed SOCKS5 proxy 9\.9\.9\.9:1080: SOCKS5 answer: expected version 5, got 255/,
  );
  assert.ok(health.problem(clock.now()));
});
