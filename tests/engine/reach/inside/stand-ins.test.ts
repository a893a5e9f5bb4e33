import assert from "node:assert/strict";
import { test } from "node:test";
import { addressScope } from "../../../../src/base/address.ts";
import { instant } from "../../../../src/base/time.ts";
import { ProxyHealth } from "../../../../src/engine/reach/inside/proxy-health.ts";
import { StandIns } from "../../../../src/engine/reach/inside/stand-ins.ts";
import { SILENT } from "../../fake-house.ts";

test("StandIns: a name keeps its address while it is used, and the one longest unused gives its away", () => {
  const standIns = new StandIns();
  const first = standIns.of("tracker.example");
  assert.equal(standIns.of("Tracker.Example."), first);
  const all = new Set([first]);
  for (let i = 1; i < 762; i++) all.add(standIns.of(`n${i}.example`));
  assert.equal(all.size, 762);
  // Whoever checks addresses must take them for any others.
  for (const address of all) assert.equal(addressScope(address), "global");
  assert.equal(standIns.nameOf(first), "tracker.example");
  const given = standIns.of("late.example");
  assert.equal(standIns.nameOf(given), "late.example");
  assert.notEqual(given, first);
  assert.equal(standIns.nameOf("192.0.3.1"), undefined);
});

test("StandIns: refuses what is no name of a host", () => {
  for (const name of ["", "a b", "a\r\nb", "\u00e4.example", "-a", "a:80", "x".repeat(254)])
    assert.throws(() => new StandIns().of(name), { code: "url_refused" }, name);
});

test("ProxyHealth: one tries at growing distances, the others fail at once; those on their way do not count", () => {
  const health = new ProxyHealth(SILENT, "proxy");
  assert.equal(health.problem(instant(0)), undefined);
  health.failed("gone", instant(0));
  for (let i = 0; i < 50; i++) health.failed("gone", instant(10));
  let [at, tries] = [10, 0];
  for (; at < 120_000; at += 10) {
    if (health.problem(instant(at)) !== undefined) continue;
    tries++;
    assert.equal(health.problem(instant(at)), "gone");
    health.failed("gone", instant(at));
  }
  // 1, 3, 7, 15, 31, 61, 91 s: twice as late each time, until half a minute.
  assert.equal(tries, 7);
  health.worked();
  assert.equal(health.problem(instant(at)), undefined);
});
