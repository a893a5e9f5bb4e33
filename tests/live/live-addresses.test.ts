import assert from "node:assert/strict";
import { test } from "node:test";
import { instant } from "../../src/base/time.ts";
import { LiveAddresses } from "../../src/live/live-addresses.ts";

const at = (host: string, port = 1_000) => ({ host, port });
const [T0, LATER] = [instant(0), instant(600_001)];

test("LiveBans: bans an address for ten minutes, and a host after three addresses", () => {
  const { bans } = new LiveAddresses(undefined);
  bans.add(at("8.8.8.8"), T0);
  assert.equal(bans.has(at("8.8.8.8"), instant(599_000)), true);
  assert.equal(bans.has(at("8.8.8.8", 2), T0), false);
  bans.add(at("8.8.8.8", 3), T0);
  bans.add(at("8.8.8.8", 4), T0);
  assert.equal(bans.has(at("8.8.8.8", 2), T0), true);
  assert.equal(bans.has(at("8.8.8.8"), LATER), false);
  assert.equal(bans.has(at("8.8.8.8", 2), LATER), false);
});

test("LiveBans: programs on this machine are banned separately, and memory is limited", () => {
  const { bans } = new LiveAddresses(undefined);
  for (let port = 1; port <= 5_000; port++) bans.add(at("127.0.0.1", port), T0);
  assert.equal(bans.has(at("127.0.0.1", 6_000), T0), false);
  assert.equal(bans.has(at("127.0.0.1", 5_000), T0), true);
  assert.equal(bans.size, 1_000);
});

test("LiveAddresses.found: skips banned, own and invalid addresses, and remembers the origin", () => {
  const addresses = new LiveAddresses(undefined);
  addresses.bans.add(at("8.8.8.8"), T0);
  addresses.addOwn(at("9.9.9.9"));
  const addressesFound = [at("8.8.8.8"), at("9.9.9.9"), at("1.1.1.1", 0), at("1.1.1.1")];
  assert.deepEqual(addresses.found(addressesFound, "tracker", T0), [at("1.1.1.1")]);
  assert.equal(addresses.originOf(at("1.1.1.1")), "tracker");
});

test("LiveAddresses.isReachable: false for a while after a failure, and PEX does not change that", () => {
  const addresses = new LiveAddresses(undefined);
  addresses.markUnreachable(at("1.1.1.1"), T0);
  assert.equal(addresses.isReachable(at("1.1.1.1"), T0), false);
  assert.deepEqual(addresses.found([at("1.1.1.1")], "pex", T0), []);
  assert.deepEqual(addresses.found([at("1.1.1.1")], "tracker", T0), [at("1.1.1.1")]);
  assert.equal(addresses.isReachable(at("1.1.1.1"), LATER), true);
  addresses.markReachable(at("1.1.1.1"));
  assert.equal(addresses.isReachable(at("1.1.1.1"), T0), true);
});

test("LiveAddresses: a private source connects to its relays only, and accepts only them", () => {
  const addresses = new LiveAddresses([at("1.1.1.1")]);
  assert.deepEqual(addresses.found([at("1.1.1.1"), at("1.1.1.1", 2), at("2.2.2.2")], "magnet", T0), [
    at("1.1.1.1"),
  ]);
  assert.equal(addresses.admits(at("1.1.1.1", 54_321), T0), true);
  assert.equal(addresses.admits(at("2.2.2.2"), T0), false);
});

test("LiveAddresses.isRelay: relays in the latest list, and no others", () => {
  assert.equal(new LiveAddresses(undefined).isRelay(at("1.1.1.1")), false);
  const addresses = new LiveAddresses(undefined, [at("1.1.1.1")]);
  addresses.listRelays([]);
  assert.equal(addresses.isRelay(at("1.1.1.1")), true);
  assert.equal(addresses.isRelay(at("1.1.1.1", 2)), false);
  addresses.listRelays([at("2.2.2.2")]);
  assert.equal(addresses.isRelay(at("1.1.1.1")), false);
  assert.equal(addresses.isRelay(at("2.2.2.2")), true);
});
