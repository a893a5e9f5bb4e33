import assert from "node:assert/strict";
import { test } from "node:test";
import { header, Scripted } from "./scripted.ts";

/** Lets dials fail for `seconds`; returns the number of dials to each host. */
function dials(swarm: Scripted, seconds: number): Map<string, number> {
  const counts = new Map<string, number>();
  let seen = 0;
  for (let second = 0; second < seconds; second++) {
    swarm.pass(1_000);
    const calls = swarm.of("connect").slice(seen);
    seen += calls.length;
    for (const { connection, address } of calls) {
      counts.set(address.host, (counts.get(address.host) ?? 0) + 1);
      swarm.input({ kind: "closed", connection });
    }
  }
  return counts;
}

test("LiveSwarm dials the ports of one host seldom, whatever peers name them", () => {
  for (const [host, most] of [
    ["203.0.113.7", 8 + 6],
    ["192.168.1.7", 64 + 60],
  ] as const) {
    const swarm = new Scripted();
    for (let i = 0; i < 40; i++) {
      const addresses = Array.from({ length: 80 }, (_, port) => ({ host, port: 1_000 + 80 * i + port }));
      swarm.input({ kind: "found", addresses });
    }
    const count = dials(swarm, 60).get(host) ?? 0;
    assert.ok(count > 0 && count <= most + 1, `${host}: ${count} dials in a minute`);
  }
});

test("LiveSwarm dials a peer that left often only if it has proved to be the source or a relay", () => {
  for (const isProved of [false, true]) {
    const swarm = new Scripted();
    const connection = swarm.peer(header(100), {}, "203.0.113.9");
    if (isProved) swarm.input({ kind: "proved", connection, role: "source" });
    swarm.input({ kind: "closed", connection });
    const count = dials(swarm, 30).get("203.0.113.9") ?? 0;
    if (isProved) assert.ok(count > 20, `${count} dials`);
    else assert.ok(count <= 1, `${count} dials`);
  }
});
