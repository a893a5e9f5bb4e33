import assert from "node:assert/strict";
import { test } from "node:test";
import { addressText } from "../../../src/base/address.ts";
import { Lab, type LabNode, type LabOptions } from "./lab.ts";

/** A source, and viewers that play, each of which can serve only a few others. */
function audience(
  viewers: number,
  options: LabOptions = {},
): { lab: Lab; source: LabNode; viewers: LabNode[] } {
  const lab = new Lab(2);
  const source = lab.add({ role: "source", ...options });
  lab.produce(source, 2_000);
  const nodes = Array.from({ length: viewers }, () => join(lab, source, { upload: 60_000 }));
  lab.produce(source, 3_000);
  return { lab, source, viewers: nodes };
}

/** Adds an engine that joins through the source, which is all that its tracker knows. */
function join(lab: Lab, source: LabNode, options: LabOptions): LabNode {
  const node = lab.add(options);
  node.tracker = () => [source.address];
  node.handle({ kind: "found", addresses: [source.address] });
  return node;
}

function isWhole(node: LabNode, fromSeq: number): boolean {
  const seqs = node.played.map(({ seq }) => seq).filter((seq) => seq >= fromSeq);
  return node.skipped.length === 0 && seqs.length > 0 && seqs.every((seq, i) => seq === seqs[0]! + i);
}

test("LiveSwarm as a relay gets all stripes from the source itself, although all places are taken", () => {
  const { lab, source, viewers } = audience(10);
  const relay = join(lab, source, { role: "relay" });
  lab.produce(source, 12_000);
  assert.deepEqual(
    relay.swarm.depths(),
    Array.from({ length: 16 }, () => 1),
  );
  for (const node of [relay, ...viewers]) assert.ok(isWhole(node, lab.seq - 60), `${node.address.host}`);
});

test("LiveSwarm feeds viewers without upload from a relay, so that the source uploads little", () => {
  const lab = new Lab(2);
  const source = lab.add({ role: "source" });
  lab.produce(source, 2_000);
  const relay = join(lab, source, { role: "relay" });
  lab.produce(source, 1_000);
  const viewers = Array.from({ length: 20 }, () => {
    const node = join(lab, source, { upload: 0 });
    node.handle({ kind: "found", addresses: [relay.address] });
    return node;
  });
  lab.produce(source, 5_000);
  const before = source.chunksSent;
  const from = lab.seq;
  lab.produce(source, 10_000);
  for (const viewer of viewers) assert.ok(isWhole(viewer, from), `${viewer.address.host} ${viewer.skipped}`);
  const copies = (source.chunksSent - before) / (16 * (lab.seq - from));
  assert.ok(copies <= 3, `${copies} copies`);
});

test("LiveSwarm treats a peer as a relay from its proof on", () => {
  const lab = new Lab(2);
  const source = lab.add({ role: "source" });
  const relay = lab.add({ role: "relay", claims: "viewer", upload: 0 });
  lab.produce(source, 2_000);
  const viewers = Array.from({ length: 8 }, () => join(lab, source, {}));
  lab.produce(source, 3_000);
  relay.handle({ kind: "found", addresses: [source.address] });
  lab.produce(source, 8_000);
  assert.ok(relay.swarm.depths().some((depth) => depth > 1));
  for (const { node, connection } of relay.links.values())
    node.handle({ kind: "proved", connection, role: "relay" });
  lab.produce(source, 8_000);
  assert.ok(relay.swarm.depths().every((depth) => depth === 1));
  for (const viewer of viewers) assert.ok(isWhole(viewer, lab.seq - 60));
});

test("LiveSwarm as a private source connects to its relays only", () => {
  const lab = new Lab(2);
  const listed = new Set(["10.0.0.2:8621"]);
  const setup = { isAllowed: (address: { host: string; port: number }) => listed.has(addressText(address)) };
  const source = lab.add({ role: "source", setup });
  const relay = lab.add({ role: "relay" });
  source.handle({ kind: "found", addresses: [relay.address, { host: "10.0.0.3", port: 8621 }] });
  const stranger = lab.add();
  lab.produce(source, 2_000);
  stranger.handle({ kind: "found", addresses: [source.address] });
  lab.produce(source, 3_000);
  assert.equal(source.figures.peers, 1);
  assert.equal(stranger.figures.peers, 0);
  assert.equal(stranger.played.length, 0);
  stranger.handle({ kind: "found", addresses: [relay.address] });
  lab.produce(source, 3_000);
  assert.ok(isWhole(stranger, 0));
  assert.equal(source.figures.peers, 1);
});

test("LiveSwarm connects many engines of one machine or one private network", () => {
  for (const host of ["127.0.0.1", "192.168.1.7", "::1"]) {
    const lab = new Lab(1);
    const source = lab.add({ role: "source", host, port: 9_000 });
    lab.produce(source, 2_000);
    const viewers = Array.from({ length: 30 }, (_, i) => {
      const node = lab.add({ host, port: 9_001 + i, upload: 100_000 });
      node.tracker = () => [source.address];
      node.handle({ kind: "found", addresses: [source.address] });
      return node;
    });
    lab.produce(source, 4_000);
    const from = lab.seq;
    lab.produce(source, 6_000);
    for (const viewer of viewers) {
      assert.ok(viewer.figures.peers > 4, `${viewer.figures.peers} peers`);
      assert.ok(isWhole(viewer, from), `${addressText(viewer.address)} ${viewer.skipped}`);
    }
  }
});

test("LiveSwarm accepts few connections of one public network", () => {
  const lab = new Lab(1);
  const source = lab.add({ role: "source", host: "11.0.0.1" });
  lab.produce(source, 1_000);
  for (let i = 0; i < 10; i++) {
    const node = lab.add({ host: `12.0.0.${i + 1}` });
    node.handle({ kind: "found", addresses: [source.address] });
  }
  lab.pass(1_000);
  assert.equal(source.figures.peers, 4);
});
