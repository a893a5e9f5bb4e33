import assert from "node:assert/strict";
import { test } from "node:test";
import { instant } from "../../../src/base/time.ts";
import { LiveBans } from "../../../src/engine/live/live-bans.ts";
import { LivePlaces } from "../../../src/engine/live/live-places.ts";

const at = (host: string, port = 1_000) => ({ host, port });
const [T0, LATER] = [instant(0), instant(600_001)];

test("LiveBans: an address is not spoken to for ten minutes, its host not after three liars", () => {
  const bans = new LiveBans();
  bans.add(at("8.8.8.8"), T0);
  assert.equal(bans.has(at("8.8.8.8"), instant(599_000)), true);
  assert.equal(bans.has(at("8.8.8.8", 2), T0), false);
  bans.add(at("8.8.8.8", 3), T0);
  bans.add(at("8.8.8.8", 4), T0);
  assert.equal(bans.has(at("8.8.8.8", 2), T0), true);
  assert.equal(bans.has(at("8.8.8.8"), LATER), false);
  assert.equal(bans.has(at("8.8.8.8", 2), LATER), false);
});

test("LiveBans: programs on this machine are not each other's fault, and memory is bounded", () => {
  const bans = new LiveBans();
  for (let port = 1; port <= 5_000; port++) bans.add(at("127.0.0.1", port), T0);
  assert.equal(bans.has(at("127.0.0.1", 6_000), T0), false);
  assert.equal(bans.has(at("127.0.0.1", 5_000), T0), true);
  assert.equal(bans.size, 1_000);
});

test("LivePlaces.found: none that are banned, ours or no address, and each with who told of it", () => {
  const places = new LivePlaces(undefined);
  places.bans.add(at("8.8.8.8"), T0);
  places.isOurs(at("9.9.9.9"));
  const told = [at("8.8.8.8"), at("9.9.9.9"), at("1.1.1.1", 0), at("1.1.1.1")];
  assert.deepEqual(places.found(told, "tracker", T0), [at("1.1.1.1")]);
  assert.equal(places.originOf(at("1.1.1.1")), "tracker");
});

test("LivePlaces.isReachable: not for a while after nobody answered, and then not on a peer's word", () => {
  const places = new LivePlaces(undefined);
  places.failed(at("1.1.1.1"), T0);
  assert.equal(places.isReachable(at("1.1.1.1"), T0), false);
  assert.deepEqual(places.found([at("1.1.1.1")], "pex", T0), []);
  assert.deepEqual(places.found([at("1.1.1.1")], "tracker", T0), [at("1.1.1.1")]);
  assert.equal(places.isReachable(at("1.1.1.1"), LATER), true);
  places.answered(at("1.1.1.1"));
  assert.equal(places.isReachable(at("1.1.1.1"), T0), true);
});

test("LivePlaces: a private source calls its relays alone, and lets in nobody from elsewhere", () => {
  const places = new LivePlaces([at("1.1.1.1")]);
  assert.deepEqual(places.found([at("1.1.1.1"), at("1.1.1.1", 2), at("2.2.2.2")], "magnet", T0), [
    at("1.1.1.1"),
  ]);
  assert.equal(places.admits(at("1.1.1.1", 54_321), T0), true);
  assert.equal(places.admits(at("2.2.2.2"), T0), false);
});

test("LivePlaces.isRelay: whom the source lists, of late; anybody where it lists none", () => {
  assert.equal(new LivePlaces(undefined).isRelay(at("1.1.1.1")), true);
  const places = new LivePlaces(undefined, [at("1.1.1.1")]);
  places.listRelays([]);
  assert.equal(places.isRelay(at("1.1.1.1")), true);
  assert.equal(places.isRelay(at("1.1.1.1", 2)), false);
  places.listRelays([at("2.2.2.2")]);
  assert.equal(places.isRelay(at("1.1.1.1")), false);
  assert.equal(places.isRelay(at("2.2.2.2")), true);
});
