import assert from "node:assert/strict";
import { test } from "node:test";
import { ServerSlots } from "../../../src/transfer/web-seeds/server-slots.ts";

const NEVER = new AbortController().signal;
const LIMIT = 6;

/** Takes all slots of a server. `wait` queues a request; `order` records which requests end, in order. */
async function taken(slots: ServerSlots) {
  const gives = await Promise.all(Array.from({ length: LIMIT }, () => slots.take("a.example", NEVER)));
  const order: string[] = [];
  const wait = (name: string, signal = NEVER) => {
    const slot = slots.take("a.example", signal);
    slot.then(() => order.push(name)).catch(() => order.push(`${name} left`));
    return slot;
  };
  const settled = () => new Promise((resolve) => setImmediate(resolve));
  return { gives, order, wait, settled };
}

test("ServerSlots: requests above the limit of a server wait in order; other servers are unaffected", async () => {
  const slots = new ServerSlots();
  const { gives, order, wait, settled } = await taken(slots);
  wait("first");
  wait("second");
  (await slots.take("b.example", NEVER))();
  await settled();
  assert.deepEqual(order, []);
  gives[0]!();
  gives[0]!();
  await settled();
  assert.deepEqual(order, ["first"], "a second release does nothing");
  gives[1]!();
  await settled();
  assert.deepEqual(order, ["first", "second"]);
});

test("ServerSlots: a request cancelled in the queue lets the next one proceed", async () => {
  const { gives, order, wait, settled } = await taken(new ServerSlots());
  const leaving = new AbortController();
  wait("first", leaving.signal);
  wait("second");
  leaving.abort(new Error("gone"));
  gives[0]!();
  await settled();
  assert.deepEqual(order.toSorted(), ["first left", "second"]);
});
