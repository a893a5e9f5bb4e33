import assert from "node:assert/strict";
import { test } from "node:test";
import { latin1Bytes } from "../../../src/base/bytes.ts";
import type { SwarmOutput } from "../../../src/protocol/swarm/contract.ts";
import { MAX_HALF_OPEN } from "../../../src/protocol/swarm/limits.ts";
import { encodeHandshake } from "../../../src/wire/peer/handshake.ts";
import { makeContent, ScriptedPeer, ScriptedSwarm } from "./scripted.ts";

const content = makeContent(4, 2);
const OURS = "-SL0100-abcdefghijkl";
const address = (port: number) => ({ host: "127.0.0.1", port });

function connects(it: ScriptedSwarm) {
  return it.outputs.filter(
    (output): output is SwarmOutput & { kind: "connect" } => output.kind === "connect",
  );
}

/** Opens the connection to the swarm's only candidate and answers with a handshake of this peer id. */
function dialled(it: ScriptedSwarm, port: number, peerId: string): ScriptedPeer {
  it.input({ kind: "found", addresses: [address(port)], origin: "tracker" });
  const { connection } = connects(it).at(-1)!;
  const peer = new ScriptedPeer(it, connection);
  it.peers.set(connection, peer);
  it.input({ kind: "opened", connection });
  peer.raw(hello(it, peerId));
  return peer;
}

function hello(it: ScriptedSwarm, peerId: string): Uint8Array {
  const { infohash } = it;
  return encodeHandshake({
    infohash,
    peerId: latin1Bytes(peerId),
    extensions: false,
    fast: true,
    dht: false,
  });
}

function accepted(it: ScriptedSwarm, connection: number, peerId: string): ScriptedPeer {
  const peer = new ScriptedPeer(it, connection);
  it.peers.set(connection, peer);
  it.input({ kind: "accepted", connection, address: address(30_000 + connection) });
  peer.raw(hello(it, peerId));
  return peer;
}

test("Connections connects to candidates, a limited number at once", () => {
  const it = new ScriptedSwarm(content);
  const addresses = Array.from({ length: 60 }, (_, i) => address(1000 + i));
  it.input({ kind: "found", addresses, origin: "tracker" });
  assert.equal(connects(it).length, MAX_HALF_OPEN);
  it.input({ kind: "closed", connection: connects(it)[0]!.connection, reason: "refused" });
  assert.equal(connects(it).length, MAX_HALF_OPEN + 1);
});

test("Connections closes connections that do not open or do not complete the handshake in time", () => {
  const it = new ScriptedSwarm(content);
  it.input({ kind: "found", addresses: [address(1000)], origin: "tracker" });
  const { connection } = connects(it)[0]!;
  it.peers.set(connection, new ScriptedPeer(it, connection));
  it.pass(8_000);
  assert.match(it.peers.get(connection)!.closed!, /connect timeout/);
  it.input({ kind: "accepted", connection: 1, address: address(2000) });
  it.peers.set(1, new ScriptedPeer(it, 1));
  it.pass(11_000);
  assert.match(it.peers.get(1)!.closed!, /handshake timeout/);
});

test("Connections closes a connection to the engine itself and never connects to that address again", () => {
  const it = new ScriptedSwarm(content);
  const self = dialled(it, 1000, OURS);
  assert.match(self.closed!, /itself/);
  const count = connects(it).length;
  it.input({ kind: "found", addresses: [address(1000)], origin: "tracker" });
  assert.equal(connects(it).length, count);
});

test("Connections refuses a handshake with another infohash", () => {
  const it = new ScriptedSwarm(content);
  it.input({ kind: "accepted", connection: 1, address: address(2000) });
  const peer = new ScriptedPeer(it, 1);
  it.peers.set(1, peer);
  const greeting = hello(it, "-XX0000-000000000000");
  greeting[30]! ^= 1;
  peer.raw(greeting);
  assert.match(peer.closed!, /infohash/);
});

test("Connections keeps the older of two connections in the same direction", () => {
  const it = new ScriptedSwarm(content);
  const first = accepted(it, 1, "-XX0000-000000000000");
  const second = accepted(it, 3, "-XX0000-000000000000");
  assert.equal(first.closed, undefined);
  assert.match(second.closed!, /duplicate/);
});

test("Connections keeps, of two connections in opposite directions, the one opened by the smaller peer id", () => {
  for (const [theirs, isOursKept] of [
    ["-AA0000-000000000000", false],
    ["-XX0000-000000000000", true],
  ] as const) {
    for (const isOursFirst of [true, false]) {
      const it = new ScriptedSwarm(content);
      const early = isOursFirst ? dialled(it, 1000, theirs) : accepted(it, 1, theirs);
      const late = isOursFirst ? accepted(it, 1, theirs) : dialled(it, 1000, theirs);
      const [ours, other] = isOursFirst ? [early, late] : [late, early];
      assert.equal(ours.closed === undefined, isOursKept);
      assert.equal(other.closed === undefined, !isOursKept);
    }
  }
});

test("Connections takes a handshake that arrives byte by byte, with messages right behind it", () => {
  const it = new ScriptedSwarm(content);
  it.input({ kind: "accepted", connection: 1, address: address(2000) });
  const peer = new ScriptedPeer(it, 1);
  it.peers.set(1, peer);
  const greeting = hello(it, "-XX0000-000000000000");
  for (const byte of greeting.subarray(0, 60)) peer.raw(Uint8Array.of(byte));
  peer.raw(Uint8Array.of(...greeting.subarray(60), 0, 0, 0, 1, 14, 0, 0, 0, 1, 1));
  assert.equal(it.swarm.figures(it.now).seeds, 1);
  assert.equal(it.swarm.figures(it.now).unchokedByPeers, 1);
});
