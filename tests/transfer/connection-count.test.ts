import assert from "node:assert/strict";
import { test } from "node:test";
import { ConnectionCount } from "../../src/transfer/connection-count.ts";

test("ConnectionCount.hasRoomFor: at the limit, an idle transfer gives up a connection for one with a player", () => {
  const count = new ConnectionCount(10);
  const make = (connections: number) => {
    const made = {
      connections,
      closeOne() {
        if (made.connections === 0) return false;
        made.connections--;
        return true;
      },
    };
    return made;
  };
  const [played, idle, empty] = [make(5), make(2), make(0)];
  count.open = 9;
  assert.ok(count.hasRoomFor(played));
  count.open = 10;
  assert.ok(!count.hasRoomFor(played), "no transfer is idle");
  count.setIdle(empty, true);
  count.setIdle(idle, true);
  assert.ok(!count.hasRoomFor(idle));
  assert.ok(count.hasRoomFor(played));
  assert.ok(count.hasRoomFor(played));
  assert.ok(!count.hasRoomFor(played));
  assert.deepEqual([played.connections, idle.connections], [5, 0]);
  count.setIdle(idle, false);
  idle.connections = 1;
  assert.ok(!count.hasRoomFor(played));
});
