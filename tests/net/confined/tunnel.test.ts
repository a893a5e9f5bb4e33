import assert from "node:assert/strict";
import { test } from "node:test";
import { fromHex, latin1Bytes, toHex } from "../../../src/base/bytes.ts";
import { SILENT_LOG } from "../../../src/base/log.ts";
import { parseProxy } from "../../../src/net/confined/proxy.ts";
import { ProxyAddress } from "../../../src/net/confined/proxy-address.ts";
import { ProxyHealth } from "../../../src/net/confined/proxy-health.ts";
import { openTunnel } from "../../../src/net/confined/tunnel.ts";
import { settled } from "../../engine/fake-clock.ts";
import { fakeMachine } from "./fake-machine.ts";

const DONE = "05000001000000000000";

/** A connection to 1.2.3.4:80 through a fake proxy. */
function tunnelTo(url: string) {
  const fake = fakeMachine({});
  const { runtime, clock, connections } = fake;
  const proxy = parseProxy(url);
  const health = new ProxyHealth(SILENT_LOG, proxy.text);
  const address = new ProxyAddress(proxy.host, clock, runtime.lookup);
  const events: string[] = [];
  const to = { host: "1.2.3.4", port: 80 };
  const open = () =>
    openTunnel(
      { proxy, net: runtime.net, clock, health, address },
      { command: "connect", to },
      to,
      {
        opened: () => void events.push("opened"),
        received: (bytes) => void events.push(`received ${toHex(bytes)}`),
        drained: () => void events.push("drained"),
        closed: (reason) => void events.push(`closed ${reason}`),
      },
      10_000,
    );
  const socket = open();
  const say = (hex: string) => connections.at(-1)!.handlers.received(fromHex(hex)!);
  const stands = async () => {
    await settled();
    connections.at(-1)!.handlers.opened!();
  };
  return { ...fake, health, events, socket, open, say, stands };
}

test("openTunnel: early writes wait for the handshake; bytes after it belong to the connection", async () => {
  const { socket, say, stands, events, connections } = tunnelTo("socks5://9.9.9.9:1080");
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
  assert.deepEqual(events, ["opened", "received beef"]);
  assert.equal(socket.bufferedBytes, 0);
  connections[0]!.handlers.closed("closed by the peer");
  assert.equal(events.at(-1), "closed closed by the peer");
});

test("openTunnel: a silent proxy times out and is logged; the next request fails immediately", async () => {
  const { stands, events, clock, health, open, connections } = tunnelTo("socks5://9.9.9.9:1080");
  await stands();
  await clock.advance(10_000);
  assert.deepEqual(events, ["closed no connection in 10000 ms"]);
  assert.match(health.problem(clock.now())!, /^SOCKS5 proxy 9\.9\.9\.9:1080: no connection in 10000 ms$/);
  open();
  await settled();
  assert.equal(connections.length, 1);
  assert.match(events.at(-1)!, /^closed SOCKS5 proxy/);
});

test("openTunnel: an unreachable destination and a close by the caller do not count as proxy failures", async () => {
  for (const url of ["socks5://9.9.9.9:1080", "http://9.9.9.9:3128"]) {
    const { stands, say, events, clock, health } = tunnelTo(url);
    await stands();
    if (url.startsWith("socks5")) say("0500");
    await clock.advance(10_000);
    assert.deepEqual(events, ["closed no connection in 10000 ms"]);
    assert.equal(health.problem(clock.now()), undefined);
    const given = tunnelTo(url);
    await settled();
    given.socket.close();
    await settled();
    assert.deepEqual([given.events, given.health.problem(clock.now())], [["closed closed by us"], undefined]);
  }
});

test("openTunnel: closed before connecting, it does not connect and reports closed once", async () => {
  const { socket, events, connections, clock } = tunnelTo("socks5://9.9.9.9:1080");
  socket.close();
  socket.close();
  await clock.advance(60_000);
  assert.deepEqual(events, ["closed closed by us"]);
  assert.equal(connections.length, 0);
  assert.equal(clock.waiting, 0);
});

test("openTunnel: malformed bytes close it, whatever follows", async () => {
  const { stands, say, events, connections, health, clock } = tunnelTo("socks5://9.9.9.9:1080");
  await stands();
  say("ff");
  say(`0500${DONE}`);
  await settled();
  assert.ok(connections[0]!.isClosed);
  assert.match(
    events.join(),
    /^closed SOCKS5 proxy 9\.9\.9\.9:1080: SOCKS5 reply: expected version 5, got 255/,
  );
  assert.ok(health.problem(clock.now()));
});
