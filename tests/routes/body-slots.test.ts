import assert from "node:assert/strict";
import { test } from "node:test";
import { BodySlots, senderOf } from "../../routes/control/body-slots.ts";

const LIMITS = { total: 3, perSender: 2 };
const neighbour = (subnet: string) => ({ subnet, isLocal: false });
const LOCAL = { subnet: "7f000001", isLocal: true };

test("BodySlots: a sender gets two slots, all senders together three, and slots are released", () => {
  const slots = new BodySlots(LIMITS);
  const [first] = [slots.take(neighbour("a")), slots.take(neighbour("a"))];
  assert.throws(() => slots.take(neighbour("a")), { code: "too_many" });
  slots.take(neighbour("b"));
  assert.throws(() => slots.take(neighbour("c")), { code: "too_many" });
  first();
  slots.take(neighbour("c"));
});

test("BodySlots: this host has slots of its own, without a limit per sender", () => {
  const slots = new BodySlots(LIMITS);
  for (const subnet of ["a", "b", "c"]) slots.take(neighbour(subnet));
  for (let i = 0; i < 3; i++) slots.take(LOCAL);
  assert.throws(() => slots.take(LOCAL), { code: "too_many" });
});

test("senderOf: each IPv4 address is a sender, and each IPv6 /64 network", () => {
  const from = (host: string) =>
    senderOf({ remote: { host, port: 1 }, local: { host: "192.168.1.2", port: 6878 } }).subnet;
  assert.notEqual(from("192.168.1.3"), from("192.168.1.4"));
  assert.equal(from("2001:db8:1:2::3"), from("2001:db8:1:2:ffff::"));
  assert.notEqual(from("2001:db8:1:2::3"), from("2001:db8:1:3::3"));
});
