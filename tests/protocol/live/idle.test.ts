import assert from "node:assert/strict";
import { test } from "node:test";
import type { LiveAbout } from "../../../src/protocol/live/messages.ts";
import { ABOUT, chunk, header, Scripted, STRIPES } from "./scripted.ts";

const SOURCE: { about: LiveAbout } = { about: { ...ABOUT, role: "source", digest: 1 } };

/** A source on air. */
function source(): Scripted {
  const swarm = new Scripted(SOURCE);
  const chunks = Array.from({ length: STRIPES }, (_, stripe) => chunk(100, stripe).bytes);
  swarm.input({ kind: "produced", header: header(100), chunks });
  return swarm;
}

/** Connects a peer; returns its connection if it was accepted. */
function connect(swarm: Scripted, host: string): number | undefined {
  const before = swarm.sent("hello").length;
  const connection = swarm.peer(undefined, {}, host);
  return swarm.sent("hello").length > before ? connection : undefined;
}

function subscribe(swarm: Scripted, connection: number): void {
  const subscription = { stripes: 1, epoch: 1, startSeq: 100, backfillPieces: 0, have: [0] };
  swarm.receive(connection, { kind: "subscribe", ...subscription, isDesperate: false });
}

/** Keeps idle peers alive. */
function idle(swarm: Scripted, connections: readonly number[], ms: number): void {
  for (let passed = 0; passed < ms; passed += 500) {
    for (const connection of connections) swarm.receiveWindow(connection, 99);
    swarm.pass(500);
  }
}

for (const [name, hostOf] of [
  ["one local address", () => "127.0.0.1"],
  ["one local network", (i: number) => `127.0.0.${1 + (i % 250)}`],
  ["one household", () => "192.168.1.9"],
  ["one public network", (i: number) => `11.7.7.${1 + (i % 250)}`],
  ["one IPv6 network", (i: number) => `2001:db8:1:2::${1 + i}`],
  ["many networks", (i: number) => `11.${i}.7.1`],
] as const) {
  test(`LiveSwarm admits newcomers within seconds after 150 idle connections of ${name}`, () => {
    const swarm = source();
    const child = connect(swarm, hostOf(0))!;
    subscribe(swarm, child);
    const strangers = Array.from({ length: 150 }, (_, i) => connect(swarm, hostOf(i)));
    const accepted = strangers.filter((connection) => connection !== undefined);
    assert.ok(accepted.length < 130, `${accepted.length} accepted`);
    idle(swarm, [child, ...accepted], 2_500);
    for (let i = 0; i < 3; i++) {
      const newcomer = connect(swarm, hostOf(200 + i));
      assert.ok(newcomer !== undefined, `newcomer ${i}`);
      subscribe(swarm, newcomer);
    }
    const closed = swarm.of("close").map(({ connection }) => connection);
    assert.ok(!closed.includes(child), "the child keeps its connection");
  });
}

test("LiveSwarm limits the connections of one local address", () => {
  const swarm = source();
  const accepted = Array.from({ length: 60 }, () => connect(swarm, "127.0.0.1")).filter(Boolean);
  assert.equal(accepted.length, 40);
  assert.ok(connect(swarm, "127.0.0.2") !== undefined);
});

test("LiveSwarm.mayAdmit: false only while no place is free, none can be taken, and no peer there is silent", () => {
  const swarm = source();
  const mayAdmit = (host: string) => swarm.swarm.mayAdmit({ host, port: 50_000 });
  const connections = Array.from({ length: 40 }, () => connect(swarm, "127.0.0.1")!);
  assert.equal(mayAdmit("127.0.0.1"), false);
  assert.equal(mayAdmit("127.0.0.2"), true);
  idle(swarm, connections.slice(1), 1_500);
  assert.equal(mayAdmit("127.0.0.1"), true, "a restarted peer replaces the silent one");
  for (const connection of connections) {
    swarm.receiveWindow(connection, 99);
    subscribe(swarm, connection);
  }
  assert.equal(swarm.sent("subscribed").length > 0, true);
  idle(swarm, connections, 2_500);
  assert.equal(mayAdmit("127.0.0.1"), true, "idle peers without a place give way");
});

test("LiveSwarm as the source gives the places of a stripe to more than one public network", () => {
  const swarm = source();
  const [first, twin, other] = ["11.1.1.1", "11.1.1.2", "11.2.2.2"].map((host) => connect(swarm, host)!);
  for (const connection of [first!, twin!, other!]) {
    swarm.receiveWindow(connection, 99);
    subscribe(swarm, connection);
  }
  const granted = [first!, twin!, other!].map((connection) => swarm.sent("subscribed", connection).length);
  assert.deepEqual(granted, [1, 0, 1]);
});
