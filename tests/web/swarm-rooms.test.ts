import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import type { Infohash } from "../../src/base/ids.ts";
import { SwarmRooms } from "../../src/web/swarm-rooms.ts";
import { FakeClock } from "../engine/fake-clock.ts";

const [ONE, OTHER] = ["ab".repeat(20), "cd".repeat(20)] as [Infohash, Infohash];

function openRooms() {
  const clock = new FakeClock();
  const rooms = new SwarmRooms((length) => new Uint8Array(randomBytes(length)), clock);
  const join = (infohash = ONE, host = "192.168.1.5", id = rooms.assignId(infohash, host) ?? "") => {
    const sent: Record<string, unknown>[] = [];
    let isClosed = false;
    const handlers = rooms.join(infohash, id, host, {
      send: (text) => void sent.push(JSON.parse(text)),
      close: () => {
        isClosed = true;
      },
    });
    const receive = (message: unknown) => handlers.received(JSON.stringify(message));
    return { id, sent, receive, closed: handlers.closed, isClosed: () => isClosed };
  };
  return { clock, rooms, join };
}

test("SwarmRooms: names the other pages of the room, and relays messages between them", () => {
  const { rooms, join } = openRooms();
  const [a, b, elsewhere] = [join(), join(ONE, "192.168.1.6"), join(OTHER)];
  assert.match(a.id, /^[0-9a-f]{16}$/);
  assert.deepEqual(rooms.list(ONE, a.id, "192.168.1.5"), [b.id]);
  a.receive({ type: "OFFER", src: "0", dst: b.id, payload: 1 });
  assert.deepEqual(b.sent.at(-1), { type: "OFFER", src: a.id, dst: b.id, payload: 1 });
  a.receive({ type: "OFFER", dst: elsewhere.id, payload: 1 });
  assert.equal(elsewhere.sent.length, 1);
  assert.deepEqual(a.sent.at(-1), { type: "EXPIRE", src: elsewhere.id, dst: a.id });
  b.closed();
  assert.deepEqual(rooms.list(ONE, a.id, "192.168.1.5"), []);
});

test("SwarmRooms: only the household that was assigned an id connects under it, once and within 30 s", async () => {
  const { clock, rooms, join } = openRooms();
  const page = join();
  assert.ok(join(ONE, "192.168.1.5", page.id).isClosed());
  const id = rooms.assignId(ONE, "192.168.1.5")!;
  assert.ok(join(ONE, "192.168.7.7", id).isClosed());
  assert.ok(join(OTHER, "192.168.1.5", id).isClosed());
  assert.deepEqual(rooms.list(ONE, page.id, "192.168.1.5"), []);
  await clock.advance(30_000);
  rooms.assignId(ONE, "192.168.1.5");
  assert.ok(join(ONE, "192.168.1.5", id).isClosed());
});

test("SwarmRooms: limits the pages and requests of a household, the names in a list, and the messages of a page", () => {
  const { rooms, join } = openRooms();
  const pages = Array.from({ length: 70 }, () => join());
  assert.equal(pages.filter((page) => !page.isClosed()).length, 64);
  const first = pages[0]!;
  assert.equal(rooms.list(ONE, first.id, "192.168.1.5")!.length, 24);
  assert.equal(join(ONE, "192.168.9.9").isClosed(), false);
  for (let i = 0; i < 400; i++) first.receive({ type: "CANDIDATE", dst: pages[1]!.id });
  assert.equal(first.isClosed(), false);
  first.receive({ type: "CANDIDATE", dst: pages[1]!.id });
  assert.ok(first.isClosed());
  const lists = Array.from({ length: 200 }, () => rooms.list(ONE, "", "192.168.1.5"));
  assert.equal(lists.at(-1), undefined);
  assert.ok(rooms.list(ONE, "", "192.168.9.9"));
});
