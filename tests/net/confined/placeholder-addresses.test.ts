import assert from "node:assert/strict";
import { test } from "node:test";
import { addressScope } from "../../../src/base/address.ts";
import { SILENT_LOG } from "../../../src/base/log.ts";
import { instant } from "../../../src/base/time.ts";
import { PlaceholderAddresses } from "../../../src/net/confined/placeholder-addresses.ts";
import { ProxyHealth } from "../../../src/net/confined/proxy-health.ts";

test("PlaceholderAddresses: a name in use keeps its address; the least recently used one is reassigned", () => {
  const standIns = new PlaceholderAddresses();
  const first = standIns.of("tracker.example");
  assert.equal(standIns.of("Tracker.Example."), first);
  const all = new Set([first]);
  for (let i = 1; i < 762; i++) all.add(standIns.of(`n${i}.example`));
  assert.equal(all.size, 762);
  // Code that checks addresses must treat them as any other address.
  for (const address of all) assert.equal(addressScope(address), "global");
  assert.equal(standIns.nameOf(first), "tracker.example");
  const given = standIns.of("late.example");
  assert.equal(standIns.nameOf(given), "late.example");
  assert.notEqual(given, first);
  assert.equal(standIns.nameOf("192.0.3.1"), undefined);
});

test("PlaceholderAddresses: rejects malformed host names", () => {
  for (const name of ["", "a b", "a\r\nb", "\u00e4.example", "-a", "a:80", "x".repeat(254)])
    assert.throws(() => new PlaceholderAddresses().of(name), { code: "url_refused" }, name);
});

test("ProxyHealth: one request tries at growing intervals, the others fail immediately; earlier requests do not count", () => {
  const health = new ProxyHealth(SILENT_LOG, "proxy");
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
