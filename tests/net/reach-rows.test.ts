import assert from "node:assert/strict";
import { test } from "node:test";
import type { DhtFigures } from "../../src/net/contract.ts";
import type { PortMappingFigures } from "../../src/net/port-mapping/port-mapping.ts";
import { dhtRow, localRow, routerRow } from "../../src/net/reach-rows.ts";

const DHT: DhtFigures = { nodes4: 0, nodes6: 0, lookups: 0, bytesIn: 0, bytesOut: 0 };
const ROUTER: PortMappingFigures = {
  state: "mapped",
  externalAddress: "203.0.113.7",
  externalPort: 8621,
  by: "PCP",
  router: "192.168.1.1",
  isGuessed: false,
  isBehindAnother: false,
  problem: undefined,
};

test("dhtRow: off, no response, few nodes, enough nodes", () => {
  assert.match(dhtRow(undefined).text, /DHT is off/);
  assert.deepEqual(
    [dhtRow(DHT).level, dhtRow(DHT).text],
    ["warn", "No DHT node has responded: no data received."],
  );
  assert.equal(dhtRow({ ...DHT, nodes4: 3 }).level, "note");
  assert.equal(dhtRow({ ...DHT, nodes4: 15, nodes6: 9 }).level, "ok");
});

test("routerRow: states the external address, or why the port is not mapped", () => {
  assert.match(routerRow(undefined).text, /Port mapping is off/);
  assert.equal(routerRow(ROUTER).text, "The router forwards 203.0.113.7:8621 to this machine (PCP).");
  assert.match(routerRow({ ...ROUTER, externalAddress: undefined }).text, /forwards port 8621/);
  assert.match(routerRow({ ...ROUTER, isBehindAnother: true }).text, /another router/);
  assert.match(routerRow({ ...ROUTER, state: "failed", problem: "no response" }).text, /no response/);
  assert.equal(routerRow({ ...ROUTER, state: "unneeded" }).level, "ok");
  assert.equal(routerRow({ ...ROUTER, state: "looking" }).level, "note");
});

test("localRow: shows the number of networks and of received announcements", () => {
  assert.match(localRow(undefined).text, /is off/);
  assert.match(localRow({ networks: 0, announcesSent: 0, announcesReceived: 0 }).text, /No local network/);
  assert.match(
    localRow({ networks: 2, announcesSent: 1, announcesReceived: 0 }).text,
    /2 networks; no announcement/,
  );
});
