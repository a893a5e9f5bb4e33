import assert from "node:assert/strict";
import { test } from "node:test";
import { ServerSlots } from "../../../src/engine/web-seeds/server-slots.ts";

const NEVER = new AbortController().signal;
const MOST = 6;

/** Takes all that one server has, and tells of who waits. */
async function taken(slots: ServerSlots) {
  const gives = await Promise.all(Array.from({ length: MOST }, () => slots.take("a.example", NEVER)));
  const order: string[] = [];
  const wait = (name: string, signal = NEVER) => {
    const slot = slots.take("a.example", signal);
    slot.then(() => order.push(name)).catch(() => order.push(`${name} left`));
    return slot;
  };
  const settled = () => new Promise((resolve) => setImmediate(resolve));
  return { gives, order, wait, settled };
}

test("ServerSlots: who comes when there are enough waits for its turn; other servers are not concerned", async () => {
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
  assert.deepEqual(order, ["first"], "given back twice is given back once");
  gives[1]!();
  await settled();
  assert.deepEqual(order, ["first", "second"]);
});

test("ServerSlots: who goes away while it waits leaves its turn to the next", async () => {
  const { gives, order, wait, settled } = await taken(new ServerSlots());
  const leaving = new AbortController();
  wait("first", leaving.signal);
  wait("second");
  leaving.abort(new Error("gone"));
  gives[0]!();
  await settled();
  assert.deepEqual(order.toSorted(), ["first left", "second"]);
});
