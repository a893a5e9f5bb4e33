import assert from "node:assert/strict";
import { test } from "node:test";
import type { DhtFigures } from "../../../src/engine/reach/contract.ts";
import type { PortMappingFigures } from "../../../src/engine/reach/port-mapping/port-mapping.ts";
import { dhtRow, localRow, routerRow } from "../../../src/engine/reach/reach-rows.ts";

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

test("dhtRow: off, silent, few nodes, enough", () => {
  assert.match(dhtRow(undefined).text, /is off/);
  assert.deepEqual(
    [dhtRow(DHT).level, dhtRow(DHT).text],
    ["warn", "No node has answered: not a byte has come."],
  );
  assert.equal(dhtRow({ ...DHT, nodes4: 3 }).level, "note");
  assert.equal(dhtRow({ ...DHT, nodes4: 15, nodes6: 9 }).level, "ok");
});

test("routerRow: what it does, and what to do where it does nothing", () => {
  assert.match(routerRow(undefined).text, /not asked/);
  assert.equal(routerRow(ROUTER).text, "It lets peers in at 203.0.113.7:8621 (PCP).");
  assert.match(routerRow({ ...ROUTER, externalAddress: undefined }).text, /at port 8621/);
  assert.match(routerRow({ ...ROUTER, isBehindAnother: true }).text, /another router/);
  assert.match(routerRow({ ...ROUTER, state: "failed", problem: "nothing answers" }).text, /nothing answers/);
  assert.equal(routerRow({ ...ROUTER, state: "unneeded" }).level, "ok");
  assert.equal(routerRow({ ...ROUTER, state: "looking" }).level, "note");
});

test("localRow: how many networks, and whether anybody was heard", () => {
  assert.match(localRow(undefined).text, /not looked for/);
  assert.match(localRow({ networks: 0, announcesSent: 0, announcesHeard: 0 }).text, /no network/);
  assert.match(localRow({ networks: 2, announcesSent: 1, announcesHeard: 0 }).text, /2 networks; nobody/);
});
