import assert from "node:assert/strict";
import { test } from "node:test";
import { instant } from "../../../src/base/time.ts";
import { MAX_STORED_PEERS, MAX_SWARM_PEERS, PEER_MS } from "../../../src/protocol/dht/limits.ts";
import { PeerStore } from "../../../src/protocol/dht/peer-store.ts";
import { seededRandom } from "../../seeded-random.ts";

const infohash = (swarm: number) => Buffer.alloc(20, `swarm ${swarm}`);
const address = (n: number) => ({ host: `9.${(n >> 16) & 255}.${(n >> 8) & 255}.${n & 255}`, port: 1 });

test("PeerStore: a full store takes no peer until others have expired", () => {
  const store = new PeerStore(seededRandom(1));
  const swarms = Math.ceil(MAX_STORED_PEERS / MAX_SWARM_PEERS) + 1;
  for (let swarm = 0; swarm < swarms; swarm++)
    for (let n = 0; n < MAX_SWARM_PEERS; n++) store.add(infohash(swarm), address(n), false, instant(0));
  assert.equal(store.size, MAX_STORED_PEERS);
  store.add(infohash(swarms), address(1), false, instant(PEER_MS + 1));
  assert.equal(store.size, 1);
});
