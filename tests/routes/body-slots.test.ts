import assert from "node:assert/strict";
import { test } from "node:test";
import { BodySlots, senderOf } from "../../routes/control/body-slots.ts";

const LIMITS = { total: 3, perSender: 2 };
const neighbour = (network: string) => ({ network, asker: "intranet" }) as const;
const HERE = { network: "7f000001", asker: "local" } as const;

test("BodySlots: one sender takes two places, all together three, and places come back", () => {
  const slots = new BodySlots(LIMITS);
  const [first] = [slots.take(neighbour("a")), slots.take(neighbour("a"))];
  assert.throws(() => slots.take(neighbour("a")), { code: "too_many" });
  slots.take(neighbour("b"));
  assert.throws(() => slots.take(neighbour("c")), { code: "too_many" });
  first();
  slots.take(neighbour("c"));
});

test("BodySlots: this host has places of its own, all of which it may take", () => {
  const slots = new BodySlots(LIMITS);
  for (const network of ["a", "b", "c"]) slots.take(neighbour(network));
  for (let i = 0; i < 3; i++) slots.take(HERE);
  assert.throws(() => slots.take(HERE), { code: "too_many" });
});

test("senderOf: an IPv4 address is a sender, and so are 64 bits of IPv6", () => {
  const from = (host: string) =>
    senderOf({ remote: { host, port: 1 }, local: { host: "192.168.1.2", port: 6878 } }).network;
  assert.notEqual(from("192.168.1.3"), from("192.168.1.4"));
  assert.equal(from("2001:db8:1:2::3"), from("2001:db8:1:2:ffff::"));
  assert.notEqual(from("2001:db8:1:2::3"), from("2001:db8:1:3::3"));
});
