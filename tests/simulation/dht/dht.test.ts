import assert from "node:assert/strict";
import { test } from "node:test";
import { addressText } from "../../../src/base/address.ts";
import { latin1Bytes } from "../../../src/base/bytes.ts";
import { randomBelow } from "../../../src/base/random.ts";
import { ed25519Key } from "../../../src/runtime/crypto.ts";
import { itemMessage, mutableTarget } from "../../../src/wire/dht/item.ts";
import { testsThatNeed } from "../../parts/needs.ts";
import { DhtNetwork, type SimulatedNode, sha1 } from "./dht-network.ts";
import { joinGang } from "./sybil.ts";

const { test: longTest } = await testsThatNeed("time");

const SEED = Number(process.env.SLUICE_SIMULATION_SEED ?? 1);
const NODES = 150;

/** A network that has run for a while. */
function network(options?: ConstructorParameters<typeof DhtNetwork>[1]): DhtNetwork {
  console.log(`seed ${SEED}`);
  const net = new DhtNetwork(SEED, options);
  net.populate(NODES, 30);
  net.run(12_000);
  return net;
}

function someone(net: DhtNetwork): SimulatedNode {
  return net.members[randomBelow(net.random, net.members.length)]!;
}

function newcomer(net: DhtNetwork): SimulatedNode {
  return net.join({ found: [someone(net).address] });
}

function randomHash(net: DhtNetwork): Uint8Array {
  return Uint8Array.from({ length: 20 }, () => randomBelow(net.random, 256));
}

function announce(node: SimulatedNode, infohash: Uint8Array) {
  const task = node.nextTask();
  node.input({ kind: "peers", task, infohash, announce: { port: 7000, isSeed: false } });
  return node.finish(task);
}

/** Looks up peers: the time until the first one, and all that were found. */
function look(net: DhtNetwork, node: SimulatedNode, infohash: Uint8Array) {
  const beganAt = net.events.now;
  const task = node.nextTask();
  node.input({ kind: "peers", task, infohash, announce: undefined });
  const report = node.finish(task);
  const found = node.of(task).flatMap(({ at, output }) => (output.kind === "peers" ? [{ at, output }] : []));
  const peers = found.flatMap(({ output }) => output.addresses.map(addressText));
  return { report, peers, firstMs: found[0] ? found[0].at - beganAt : Number.POSITIVE_INFINITY };
}

test("DhtNode: a new node finds the first peer within 1.5 s, with at most 60 queries", () => {
  const net = network();
  const firsts: number[] = [];
  for (let i = 0; i < 20; i++) {
    const infohash = randomHash(net);
    const announced = announce(someone(net), infohash);
    assert.ok(announced && announced.stored >= 8, `stored ${announced?.stored}`);
    const { report, peers, firstMs } = look(net, newcomer(net), infohash);
    firsts.push(firstMs);
    assert.equal(peers.length, 1);
    assert.ok(
      report!.queries <= 60 && announced.queries <= 60,
      `${report!.queries} and ${announced.queries} questions`,
    );
  }
  assert.ok(Math.max(...firsts) <= 1_500, `first peers after ${firsts.map(Math.round)} ms`);
});

test("DhtNode: peers are found with a third of the nodes gone and a tenth of the datagrams lost", () => {
  const net = network({ loss: 0.1 });
  const wanted = Array.from({ length: 10 }, () => randomHash(net));
  const announcers = wanted.map((infohash) => {
    const node = someone(net);
    announce(node, infohash);
    return node;
  });
  for (const node of net.members.filter((node) => !announcers.includes(node)))
    if (net.random() < 1 / 3) node.leave();
  const alive = net.members.filter((node) => net.inhabitants.has(addressText(node.address)));
  const founds = wanted.map((infohash) => {
    const node = net.join({ found: alive.slice(0, 3).map(({ address }) => address) });
    return look(net, node, infohash);
  });
  const ok = founds.filter(({ peers }) => peers.length > 0);
  assert.equal(ok.length, 10, `found ${ok.length} of 10`);
  const slowest = Math.max(...ok.map(({ firstMs }) => firstMs));
  assert.ok(slowest < 6_000, `the slowest first peer after ${slowest} ms`);
});

longTest(
  "DhtNode: 200 false nodes around an infohash, with ids of their choice, cannot hide its peers (BEP 42)",
  () => {
    const net = network();
    const infohash = randomHash(net);
    // From 20 networks of 256 addresses, which an attacker could rent.
    const gang = joinGang(net, { target: infohash, count: 200, networks: 20 });
    for (const sybil of gang)
      for (const node of net.members) if (net.random() < 0.2) sybil.greet(node.address);
    net.run(20_000);
    const announced = announce(someone(net), infohash);
    const founds = Array.from({ length: 5 }, () => look(net, someone(net), infohash));
    assert.ok(gang.some(({ asked }) => asked > 0));
    assert.ok(announced!.queries <= 60, `${announced!.queries} questions`);
    for (const { peers, report } of founds) {
      assert.equal(peers.length, 1, `found ${peers.length}, seed ${SEED}`);
      assert.ok(report!.queries <= 60, `${report!.queries} questions`);
    }
  },
);

test("DhtNode: items are put and found again; of mutable items the latest one (BEP 44)", () => {
  const net = network();
  const value = latin1Bytes("d3:key5:valuee");
  const put = (node: SimulatedNode, item: Parameters<SimulatedNode["put"]>[0]) => node.finish(node.put(item));
  assert.ok(put(someone(net), { value })!.stored >= 8);
  assert.deepEqual(newcomer(net).find({ target: sha1(value) })?.value, value);
  assert.equal(newcomer(net).find({ target: randomHash(net) }), undefined);

  const { publicKey: key, sign } = ed25519Key(new Uint8Array(32).fill(4));
  const salt = latin1Bytes("live");
  const signed = (sequence: number) => {
    const words = latin1Bytes(`i${sequence}e`);
    return {
      value: words,
      signed: { key, salt, sequence, signature: sign(itemMessage(salt, sequence, words)) },
    };
  };
  const target = mutableTarget(key, salt, sha1);
  assert.ok(put(someone(net), signed(5))!.stored >= 8);
  assert.ok(put(someone(net), signed(6))!.stored >= 8);
  // A node with a newer item refuses an older one, and its sender is notified.
  const late = someone(net);
  const task = late.put(signed(4));
  assert.ok(late.finish(task)!.stored <= 4);
  assert.ok(late.of(task).some(({ output }) => output.kind === "item"));
  assert.equal(newcomer(net).find({ target, signedBy: { key, salt } })?.signed?.sequence, 6);
});

longTest("DhtNode: a network that starts with one node connects by itself", () => {
  console.log(`seed ${SEED}`);
  const net = new DhtNetwork(SEED);
  const first = net.join();
  for (let i = 0; i < 60; i++) net.events.after(100 * i, () => void net.join({ found: [first.address] }));
  net.run(40_000);
  const infohash = randomHash(net);
  assert.ok(announce(net.members[7]!, infohash)!.stored >= 8);
  assert.equal(look(net, net.members[50]!, infohash).peers.length, 1);
  // The nodes have agreed on each other's addresses: the ids match the addresses now.
  const seen = net.members.filter(({ outputs }) => outputs.some(({ output }) => output.kind === "address"));
  assert.ok(seen.length > 50, `${seen.length} of 61 know their address`);
});
