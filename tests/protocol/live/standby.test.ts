import assert from "node:assert/strict";
import { test } from "node:test";
import { Lab, type LabNode, PIECE_MS } from "./lab.ts";
import { ABOUT, chunk, header, Scripted, STRIPES } from "./scripted.ts";

/** Longer than a standby waits for the next piece. */
const FIRST_WIN_TIMEOUT_MS = 2_500;
/** A later epoch, whose numbers follow the clock. */
const LATER = 150;

/** A source, a standby, and viewers that know both. */
function watched(viewers: number, delayMs: number) {
  const lab = new Lab(delayMs);
  const source = lab.add({ role: "source" });
  lab.produce(source, 3_000);
  const standby = lab.add({ role: "relay" });
  standby.handle({ kind: "found", addresses: [source.address] });
  const nodes = Array.from({ length: viewers }, () => {
    const node = lab.add();
    node.tracker = () => [source.address, standby.address];
    node.handle({ kind: "found", addresses: [source.address, standby.address] });
    return node;
  });
  lab.produce(source, 6_000);
  return { lab, source, standby, viewers: nodes };
}

/** The standby continues as the source, at its address. */
function takeOver(lab: Lab, standby: LabNode, known: readonly LabNode[]): LabNode {
  standby.handle({ kind: "stop" });
  lab.kill(standby);
  lab.pass(50);
  lab.epoch = LATER;
  const source = lab.add({ role: "source", host: standby.address.host });
  source.handle({ kind: "found", addresses: known.map(({ address }) => address) });
  return source;
}

test("LiveSwarm: viewers of a killed source miss only the pieces before the standby takes over", () => {
  for (const delayMs of [1, 40]) {
    const { lab, source, standby, viewers } = watched(8, delayMs);
    const figures = standby.figures;
    assert.deepEqual([figures.newest?.epoch, figures.newest?.seq], [100, figures.lastSeq]);
    lab.kill(source);
    lab.pass(FIRST_WIN_TIMEOUT_MS);
    const silent = standby.figures;
    assert.ok(lab.now - silent.heardAt! < 1_000, "its peers are witnesses that nothing comes");
    lab.seq += FIRST_WIN_TIMEOUT_MS / PIECE_MS;
    const [first, firstAt] = [lab.seq, lab.now];
    lab.produce(takeOver(lab, standby, viewers), 6_000);
    for (const viewer of viewers) {
      const later = viewer.played.filter(({ epoch }) => epoch === LATER);
      const seqs = later.map(({ seq }) => seq);
      // The pieces made before the viewers reconnected, up to the next random access piece, are the gap.
      assert.ok(seqs[0]! - first <= 8, `${delayMs} ms: begins ${seqs[0]! - first} pieces in`);
      assert.ok(later[0]!.at - firstAt <= 1_500, `${delayMs} ms: back after ${later[0]!.at - firstAt} ms`);
      assert.deepEqual(
        seqs.slice(0, 32),
        Array.from({ length: 32 }, (_, i) => seqs[0]! + i),
      );
      assert.deepEqual(viewer.skipped, []);
      assert.equal(viewer.outputs.filter(({ kind }) => kind === "forked" || kind === "banned").length, 0);
    }
  }
});

test("LiveSwarm: no viewer follows a source that returns with its old epoch, and it receives the later one", () => {
  const { lab, source, standby, viewers } = watched(6, 5);
  lab.kill(source);
  lab.pass(FIRST_WIN_TIMEOUT_MS);
  lab.seq += FIRST_WIN_TIMEOUT_MS / PIECE_MS;
  const taking = takeOver(lab, standby, viewers);
  lab.produce(taking, 4_000);
  const stale = lab.add({ role: "source", host: source.address.host });
  stale.handle({ kind: "found", addresses: viewers.map(({ address }) => address) });
  const others = () => stale.outputs.flatMap((output) => (output.kind === "forked" ? output.header : []));
  for (let i = 0; i < 24; i++) {
    lab.epoch = 100;
    stale.handle({ kind: "produced", ...lab.piece() });
    lab.epoch = LATER;
    lab.seq--;
    taking.handle({ kind: "produced", ...lab.piece() });
    lab.pass(PIECE_MS);
  }
  assert.equal(others()[0]?.epoch, LATER);
  for (const viewer of viewers) {
    const from = viewer.played.findIndex(({ epoch }) => epoch === LATER);
    assert.ok(viewer.played.slice(from).every(({ epoch }) => epoch === LATER));
    assert.ok(viewer.played.length - from > 40, `${viewer.played.length - from} pieces`);
  }
  assert.equal(taking.outputs.filter(({ kind }) => kind === "forked").length, 0);
});

test("LiveSwarm: a source learns from its viewers that they follow another source", () => {
  const { lab, source, standby, viewers } = watched(6, 5);
  // It is still on air, and reaches the other source only through viewers.
  const taking = takeOver(lab, standby, viewers);
  let heardAfterMs: number | undefined;
  for (let i = 0; i < 24 && heardAfterMs === undefined; i++) {
    lab.epoch = 100;
    source.handle({ kind: "produced", ...lab.piece() });
    lab.epoch = LATER;
    lab.seq--;
    taking.handle({ kind: "produced", ...lab.piece() });
    lab.pass(PIECE_MS);
    if (source.outputs.some((output) => output.kind === "forked" && output.header.epoch === LATER))
      heardAfterMs = (i + 1) * PIECE_MS;
  }
  assert.ok(heardAfterMs !== undefined && heardAfterMs <= 2_000, `after ${heardAfterMs} ms`);
});

/** A source with ten pieces, and a peer that has the same sequence numbers in `epoch`. */
function sourceBeside(epoch: number, mayShareEpoch: boolean) {
  const swarm = new Scripted({ about: { ...ABOUT, role: "source", digest: 9 }, mayShareEpoch });
  const peer = swarm.peer(undefined);
  const chunks = Array.from({ length: STRIPES }, (_, stripe) => chunk(100, stripe).bytes);
  for (let seq = 100; seq < 110; seq++) swarm.input({ kind: "produced", header: header(seq), chunks });
  swarm.receiveWindow(peer, 109, epoch);
  swarm.pass(5_000);
  return swarm.sent("headerRequest").map((asked) => [asked.epoch, asked.firstSeq, asked.count]);
}

test("LiveSwarm as the source requests a header from a peer that announces a later epoch, once for each piece", () => {
  for (const mayShareEpoch of [true, false]) {
    assert.deepEqual(sourceBeside(2, mayShareEpoch), [[2, 109, 1]]);
    assert.deepEqual(sourceBeside(0, mayShareEpoch), []);
  }
});

test("LiveSwarm as a source that may share its epoch requests headers of its own epoch", () => {
  assert.deepEqual(sourceBeside(1, true), [[1, 109, 1]]);
  assert.deepEqual(sourceBeside(1, false), []);
});
