import assert from "node:assert/strict";
import { test } from "node:test";
import { chunk, header, Scripted } from "./scripted.ts";

const MINUTE_MS = 60_000;

/** Advances one second in which no peer responds; returns the dialed addresses. */
function unanswered(swarm: Scripted): string[] {
  const before = swarm.outputs.length;
  swarm.pass(1_000);
  const calls = swarm.outputs.slice(before).flatMap((output) => (output.kind === "connect" ? [output] : []));
  for (const { connection } of calls) swarm.input({ kind: "closed", connection });
  return calls.map(({ address }) => address.host);
}

test("LiveSwarm dials an unreachable peer at growing intervals, and never gives it up", () => {
  const swarm = new Scripted();
  swarm.input({ kind: "found", addresses: [{ host: "192.0.2.7", port: 6881 }] });
  swarm.input({ kind: "closed", connection: swarm.of("connect")[0]!.connection });
  const callsIn = (minutes: number) => {
    let calls = 0;
    for (let second = 0; second < 60 * minutes; second++) calls += unanswered(swarm).length;
    return calls;
  };
  const first = callsIn(10);
  callsIn(20);
  const last = callsIn(10);
  assert.ok(
    first >= 4 && last >= 2 && last <= 3,
    `${first} calls in the first 10 minutes, ${last} in the last`,
  );
});

test("LiveSwarm accepts a banned peer again after a while, and not before", () => {
  const swarm = new Scripted();
  swarm.holder(100);
  swarm.pass(700);
  const admitted = (host: string) => {
    const before = swarm.sent("hello").length;
    swarm.peer(header(100), {}, host);
    return swarm.sent("hello").length > before;
  };
  const liar = swarm.peer(header(100), {}, "192.0.2.9");
  swarm.receive(liar, { kind: "header", isAnswer: false, header: header(101) });
  swarm.receive(liar, chunk(101, 0, false));
  assert.equal(swarm.of("banned").length, 1);
  swarm.pass(MINUTE_MS);
  assert.equal(admitted("192.0.2.9"), false);
  swarm.pass(10 * MINUTE_MS);
  assert.equal(admitted("192.0.2.9"), true);
});

test("LiveSwarm replaces sources and relays that have been gone for long by new ones", () => {
  const swarm = new Scripted();
  const leaves = (host: string) => {
    const connection = swarm.peer(header(100), { role: "relay" }, host);
    swarm.input({ kind: "closed", connection });
  };
  // A new address each day, as many households have.
  for (let day = 0; day < 32; day++) leaves(`100.${day}.0.1`);
  for (let second = 0; second < 180; second++) unanswered(swarm);
  leaves("101.0.0.1");
  let calls = 0;
  for (let second = 0; second < 20; second++)
    calls += unanswered(swarm).filter((host) => host === "101.0.0.1").length;
  assert.ok(calls >= 10, `${calls} calls in 20 s`);
});
