import assert from "node:assert/strict";
import { test } from "node:test";
import { Lab, type LabNode, PIECE_MS } from "./lab.ts";
import { ABOUT, Scripted } from "./scripted.ts";

/** A source and viewers in one private network that have played for some seconds. */
function playing(viewers: number): { lab: Lab; source: LabNode; viewers: LabNode[] } {
  const lab = new Lab(1);
  const source = lab.add({ role: "source" });
  lab.produce(source, 3_000);
  const nodes = Array.from({ length: viewers }, () => {
    const node = lab.add();
    node.tracker = () => [source.address];
    node.handle({ kind: "found", addresses: [source.address] });
    return node;
  });
  lab.produce(source, 5_000);
  return { lab, source, viewers: nodes };
}

/** Kills the source and restarts it after `awayMs`, with the sequence number that the clock gives. */
function restart(lab: Lab, source: LabNode, awayMs: number): LabNode {
  lab.kill(source);
  const away = Math.floor(awayMs / PIECE_MS);
  lab.pass(away * PIECE_MS);
  lab.seq += away;
  lab.randomAccessEvery = 1;
  return lab.add({ role: "source", host: source.address.host });
}

function seqs(node: LabNode): number[] {
  return node.played.map(({ seq }) => seq);
}

test("LiveSwarm reconnects to a killed source within 3 s of its first piece, and plays everything", () => {
  for (const awayMs of [500, 2_000, 8_000, 25_000]) {
    const { lab, source, viewers } = playing(5);
    const last = lab.seq - 1;
    const again = restart(lab, source, awayMs);
    const first = lab.seq;
    const firstAt = lab.now;
    lab.produce(again, 6_000);
    for (const viewer of viewers) {
      const resumed = viewer.played.find(({ seq }) => seq === first);
      assert.ok(resumed !== undefined, `away ${awayMs} ms: begins with the first piece`);
      assert.ok(resumed.at - firstAt <= 3_000, `away ${awayMs} ms: back after ${resumed.at - firstAt} ms`);
      const expected = [last, ...Array.from({ length: 24 }, (_, i) => first + i)];
      assert.deepEqual(seqs(viewer).slice(seqs(viewer).indexOf(last)).slice(0, 25), expected);
      assert.deepEqual(viewer.skipped, []);
      assert.equal(viewer.figures.skippedPieces, 0);
    }
  }
});

test("LiveSwarm requests no numbers that were never made, and advertises all of them as held", () => {
  const { lab, source, viewers } = playing(3);
  const again = restart(lab, source, 2_000);
  lab.produce(again, 3_000);
  for (const viewer of viewers) {
    assert.equal(viewer.figures.lastSeq, lab.seq - 1);
    assert.ok(viewer.figures.peers >= 1);
    assert.deepEqual(
      viewer.outputs.filter(({ kind }) => kind === "forked" || kind === "banned"),
      [],
    );
  }
});

test("LiveSwarm does not wait the whole lag for pieces that a killed source made and never sent", () => {
  const { lab, source, viewers } = playing(3);
  // Made and recorded, but lost with the process.
  lab.piece();
  lab.piece();
  const again = restart(lab, source, 4_000);
  const first = lab.seq;
  const firstAt = lab.now;
  lab.produce(again, 6_000);
  for (const viewer of viewers) {
    const resumed = viewer.played.find(({ seq }) => seq === first);
    assert.ok(resumed && resumed.at - firstAt <= 3_000, `back after ${resumed && resumed.at - firstAt} ms`);
  }
});

test("LiveSwarm follows a new epoch, whose numbers may start anywhere", () => {
  const { lab, source, viewers } = playing(4);
  lab.kill(source);
  lab.pass(2_000);
  lab.epoch = 150;
  lab.seq = 3;
  lab.randomAccessEvery = 4;
  const again = lab.add({ role: "source", host: source.address.host });
  lab.produce(again, 6_000);
  for (const viewer of viewers) {
    const later = viewer.played.filter(({ epoch }) => epoch === 150).map(({ seq }) => seq);
    assert.ok(later.length > 32, `${later.length} pieces`);
    assert.deepEqual(
      later,
      later.map((_, i) => later[0]! + i),
    );
    assert.deepEqual(
      viewer.outputs.filter(({ kind }) => kind === "forked" || kind === "banned"),
      [],
    );
  }
});

test("LiveSwarm follows a second source with the same key and a later epoch, while the first one continues", () => {
  const { lab, source, viewers } = playing(4);
  const standby = lab.add({ role: "source" });
  const { seq } = lab;
  for (const viewer of viewers) viewer.handle({ kind: "found", addresses: [standby.address] });
  lab.pass(100);
  for (let i = 0; i < 40; i++) {
    const [epoch, at] = [lab.epoch, lab.seq];
    const old = lab.piece();
    source.handle({ kind: "produced", ...old });
    lab.epoch = 160;
    lab.seq = 10_000 + i;
    standby.handle({ kind: "produced", ...lab.piece({ randomAccessOffset: 0 }) });
    [lab.epoch, lab.seq] = [epoch, at + 1];
    lab.pass(PIECE_MS);
  }
  assert.ok(lab.seq > seq);
  for (const viewer of viewers) {
    const from = viewer.played.findIndex(({ epoch }) => epoch === 160);
    const later = viewer.played.slice(from);
    assert.ok(later.length > 24, `${later.length} pieces`);
    assert.ok(later.every(({ epoch }) => epoch === 160));
  }
});

test("LiveSwarm seeks no peers and requests nothing after the stream has ended", () => {
  const { lab, source, viewers } = playing(3);
  lab.isEnd = true;
  source.handle({ kind: "produced", ...lab.piece() });
  lab.pass(3_000);
  for (const viewer of viewers) assert.ok(viewer.figures.hasEnded);
  assert.ok(source.figures.hasEnded);
  const finds = viewers.map((viewer) => viewer.outputs.filter(({ kind }) => kind === "find").length);
  lab.kill(source);
  lab.pass(60_000);
  assert.deepEqual(
    viewers.map((viewer) => viewer.outputs.filter(({ kind }) => kind === "find").length),
    finds,
  );
  // A source that continues in spite of it is followed.
  lab.isEnd = false;
  lab.seq += 480;
  lab.randomAccessEvery = 1;
  const again = lab.add({ role: "source", host: source.address.host });
  again.handle({ kind: "found", addresses: viewers.map(({ address }) => address) });
  lab.produce(again, 3_000);
  for (const viewer of viewers) {
    assert.equal(viewer.figures.hasEnded, false);
    assert.ok(viewer.played.at(-1)!.seq >= lab.seq - 10);
  }
});

test("LiveSwarm of a source dials its listed relays early, if they start after it", () => {
  const relay = { host: "11.1.1.1", port: 1 };
  const scripted = new Scripted({
    about: { ...ABOUT, role: "source" },
    isRelay: ({ host }) => host === relay.host,
  });
  const calls = () =>
    scripted.outputs.flatMap((output) => (output.kind === "connect" ? [output.connection] : []));
  scripted.input({ kind: "found", addresses: [relay] });
  for (let i = 1; i <= 10; i++) {
    assert.equal(calls().length, i);
    scripted.input({ kind: "closed", connection: calls().at(-1)! });
    scripted.pass(1_500);
  }
});

test("LiveSwarm dials its source again although it has enough neighbours", () => {
  const lab = new Lab(20);
  const host = (i: number) => `${20 + (i >> 8)}.${i & 255}.1.1`;
  const source = lab.add({ role: "source", host: host(0) });
  lab.produce(source, 3_000);
  const viewers: LabNode[] = [];
  for (let i = 1; i <= 40; i++) {
    const node = lab.add({ host: host(i), upload: 48_000 });
    node.handle({ kind: "found", addresses: [source.address, ...viewers.map(({ address }) => address)] });
    viewers.push(node);
    lab.produce(source, 250);
  }
  lab.produce(source, 3_000);
  assert.ok(viewers.every(({ figures }) => figures.peers >= 24));
  const again = restart(lab, source, 2_000);
  const first = lab.seq;
  const firstAt = lab.now;
  lab.produce(again, 5_000);
  for (const viewer of viewers) {
    const resumed = viewer.played.find(({ seq }) => seq === first);
    assert.ok(resumed && resumed.at - firstAt <= 3_000, `back after ${resumed && resumed.at - firstAt} ms`);
    assert.deepEqual(viewer.skipped, []);
  }
});
