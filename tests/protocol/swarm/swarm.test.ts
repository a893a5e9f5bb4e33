import assert from "node:assert/strict";
import { test } from "node:test";
import { DecodeError } from "../../../src/base/errors.ts";
import { infohashOf } from "../../../src/base/ids.ts";
import { BLOCK, makeContent, ScriptedSwarm, sha1 } from "./scripted.ts";
import { someLimits } from "./some-limits.ts";

const content = makeContent(8, 4);
const { pieceLength } = content.layout;
const all = content.bytes.length;

test("Swarm requests nothing before a reader wants something, and nothing beyond its range", () => {
  const it = new ScriptedSwarm(content);
  const peer = it.peer().seed();
  assert.deepEqual(peer.received, ["have none", "interested"]);
  assert.equal(peer.requests.length, 0);
  it.want(pieceLength, 2 * pieceLength);
  for (let i = 0; i < 20; i++) peer.answer();
  assert.deepEqual(it.pieces, [1]);
});

test("Swarm fetches in order from one peer, and emits verified bytes", () => {
  const it = new ScriptedSwarm(content);
  const peer = it.peer().seed();
  it.want(0, all, pieceLength);
  for (let i = 0; i < 40; i++) peer.answer(1);
  assert.deepEqual(it.pieces, [0, 1, 2, 3, 4, 5, 6, 7]);
  for (const output of it.outputs) {
    if (output.kind !== "piece") continue;
    const start = output.piece * pieceLength;
    assert.deepEqual(output.bytes, content.bytes.slice(start, start + output.bytes.length));
  }
  assert.equal(peer.received.at(-1), "not interested");
  assert.equal(it.swarm.figures(it.now).wasted, 0);
});

test("Swarm serves an unchoked peer from the store, and rejects pieces it does not hold (BEP 6)", () => {
  const it = new ScriptedSwarm(content, { held: [0, 1] });
  const peer = it.peer();
  peer.send((writer) => {
    writer.haveNone();
    writer.interested();
  });
  assert.ok(peer.received.includes("unchoke"));
  peer.send((writer) => {
    writer.request(0, BLOCK, BLOCK);
    writer.request(5, 0, BLOCK);
  });
  assert.deepEqual(peer.rejected, [{ piece: 5, begin: 0, length: BLOCK }]);
  const read = it.outputs.find((output) => output.kind === "read");
  assert.ok(read && read.piece === 0 && read.begin === BLOCK);
  it.input({
    kind: "block",
    connection: peer.connection,
    piece: 0,
    begin: BLOCK,
    bytes: new Uint8Array(BLOCK),
  });
  assert.deepEqual(peer.blocks, [{ piece: 0, begin: BLOCK, length: BLOCK }]);
  it.input({ kind: "dropped", piece: 0 });
  peer.send((writer) => writer.request(0, 0, BLOCK));
  assert.equal(peer.rejected.at(-1)?.piece, 0);
});

test("Swarm reads no more for a peer than its socket takes", () => {
  const big = makeContent(100, 4);
  const it = new ScriptedSwarm(big, { held: Array.from({ length: 100 }, (_, i) => i) });
  const peer = it.peer();
  peer.send((writer) => {
    writer.haveNone();
    writer.interested();
  });
  peer.send((writer) => {
    for (let i = 0; i < 400; i++) writer.request(i >> 2, (i & 3) * BLOCK, i === 399 ? BLOCK / 2 : BLOCK);
  });
  const reads = () => it.outputs.filter((output) => output.kind === "read");
  const answer = (from: number) => {
    for (const read of reads().slice(from)) {
      it.input({ ...read, kind: "block", bytes: new Uint8Array(read.length) });
    }
  };
  const first = reads().length;
  assert.ok(first < 100);
  answer(0);
  const second = reads().length;
  assert.ok(second < 100, "nothing more while the socket is behind");
  it.input({ kind: "drained", connection: peer.connection });
  assert.ok(reads().length > second);
});

test("Swarm cancels unwanted requests, and accepts late blocks without a penalty", () => {
  const it = new ScriptedSwarm(content);
  const peer = it.peer().seed();
  it.want(0, all, pieceLength);
  const asked = [...peer.requests];
  assert.ok(asked.length > 0);
  it.input({ kind: "unwant", reader: 1 });
  assert.deepEqual(peer.cancelled, asked);
  peer.requests = asked;
  peer.answer();
  assert.equal(peer.closed, undefined);
  assert.deepEqual(it.pieces, []);
});

test("Swarm continues a piece if the reader comes back soon", () => {
  const it = new ScriptedSwarm(content);
  const peer = it.peer().seed();
  it.want(0, pieceLength, pieceLength);
  peer.answer(3);
  it.input({ kind: "unwant", reader: 1 });
  it.want(0, pieceLength, pieceLength, 2);
  assert.deepEqual(peer.requests, [{ piece: 0, begin: 3 * BLOCK, length: BLOCK }]);
  peer.answer();
  assert.deepEqual(it.pieces, [0]);
});

test("Swarm fetches a dropped piece again", () => {
  const it = new ScriptedSwarm(content);
  const peer = it.peer().seed();
  it.want(0, pieceLength);
  peer.answer(4);
  it.input({ kind: "dropped", piece: 0 });
  for (let i = 0; i < 4; i++) peer.answer();
  assert.deepEqual(it.pieces, [0, 0]);
});

test("Swarm starts no piece without a buffer, and continues once buffers are free", () => {
  const it = new ScriptedSwarm(content);
  it.budget = 1;
  const peer = it.peer().seed();
  it.want(0, all);
  for (let i = 0; i < 10; i++) peer.answer();
  assert.deepEqual(it.pieces, [0]);
  it.budget = 2;
  it.input({ kind: "buffers" });
  for (let i = 0; i < 10; i++) peer.answer();
  assert.deepEqual(it.pieces, [0, 1, 2]);
});

test("Swarm reuses the buffer of a later piece for a waiting reader", () => {
  const it = new ScriptedSwarm(content);
  it.budget = 2;
  const peer = it.peer().seed();
  it.want(5 * pieceLength, 7 * pieceLength);
  peer.answer(3);
  it.want(0, pieceLength, pieceLength, 2);
  for (let i = 0; i < 3; i++) peer.answer(3);
  assert.deepEqual(it.pieces.slice(0, 2), [5, 0]);
});

test("Swarm requests the urgent blocks of a silent peer from another within a second", () => {
  const it = new ScriptedSwarm(content);
  const mute = it.peer().seed();
  it.want(0, pieceLength, pieceLength);
  assert.equal(mute.requests.length, 4);
  const good = it.peer().seed();
  it.pass(1_000);
  assert.equal(good.requests.length, 4);
  good.answer();
  assert.deepEqual(it.pieces, [0]);
  assert.equal(mute.cancelled.length, 4);
});

test("Swarm requests blocks that are not urgent only once", () => {
  const it = new ScriptedSwarm(content);
  const mute = it.peer().seed();
  const good = it.peer().seed();
  it.want(0, all, 0);
  for (let i = 0; i < 40; i++) {
    good.answer();
    it.pass(20);
  }
  const owed = new Set(mute.requests.map(({ piece, begin }) => `${piece} ${begin}`));
  assert.ok(owed.size > 0);
  assert.equal(it.swarm.figures(it.now).wasted, 0);
  assert.ok(it.pieces.length >= 6);
});

test("Swarm releases the blocks of a peer that chokes, and accepts rejects", () => {
  for (const fast of [true, false]) {
    const it = new ScriptedSwarm(content);
    const first = it.peer({ fast });
    first.send((writer) => {
      writer.bitfield(Uint8Array.of(0xff));
      writer.unchoke();
    });
    it.want(0, pieceLength);
    const asked = [...first.requests];
    const second = it.peer().seed();
    assert.equal(second.requests.length, 0);
    first.send((writer) => {
      writer.choke();
      if (fast) for (const { piece, begin, length } of asked) writer.reject(piece, begin, length);
    });
    assert.deepEqual(second.requests, asked);
  }
});

test("Swarm requests allowed fast pieces from a choking peer (BEP 6): first only those that a reader waits for", () => {
  const it = new ScriptedSwarm(content);
  const peer = it.peer();
  peer.send((writer) => writer.haveAll());
  it.want(0, all, 2 * pieceLength);
  assert.equal(peer.requests.length, 0);
  peer.send((writer) => writer.allowedFast(3));
  assert.equal(peer.requests.length, 0, "it may unchoke us any moment");
  peer.send((writer) => writer.allowedFast(1));
  assert.ok(peer.requests.length > 0 && peer.requests.every(({ piece }) => piece === 1));
  peer.answer();
  it.pass(6_000);
  assert.ok(peer.requests.length > 0 && peer.requests.every(({ piece }) => piece === 3));
});

test("Swarm bans a single lying peer and no other, and fetches the piece again", () => {
  const it = new ScriptedSwarm(content);
  const liar = it.peer().seed();
  it.want(0, pieceLength, pieceLength);
  liar.answer(4, (block) => block.fill(1));
  assert.ok(liar.closed);
  assert.deepEqual(it.pieces, []);
  const good = it.peer().seed();
  good.answer();
  assert.deepEqual(it.pieces, [0]);
  assert.equal(good.closed, undefined);
  const banned = it.outputs.filter((output) => output.kind === "banned");
  assert.equal(banned.length, 1);
});

test("Swarm serves several readers in turn", () => {
  const it = new ScriptedSwarm(content);
  const peer = it.peer();
  it.want(0, 4 * pieceLength, 4 * pieceLength, 1);
  it.want(4 * pieceLength, all, 4 * pieceLength, 2);
  peer.seed();
  for (let i = 0; i < 40; i++) peer.answer(1);
  assert.deepEqual(it.pieces, [0, 4, 1, 5, 2, 6, 3, 7]);
});

test("Swarm fetches the rarest piece first beyond the urgent range", () => {
  const it = new ScriptedSwarm(content);
  const common = it.peer();
  common.send((writer) => writer.bitfield(Uint8Array.of(0b11111011)));
  const peer = it.peer();
  peer.send((writer) => {
    writer.bitfield(Uint8Array.of(0b11111110));
    writer.unchoke();
  });
  it.want(0, all, pieceLength);
  for (let i = 0; i < 12; i++) peer.answer(1);
  assert.deepEqual(it.pieces.slice(0, 2), [0, 5]);
});

const HOSTILE: [name: string, bytes: number[]][] = [
  ["a message of 4 GiB", [0xff, 0xff, 0xff, 0xff, 7]],
  ["a bitfield too long", [0, 0, 0, 3, 5, 0, 0]],
  ["a have beyond the end", [0, 0, 0, 5, 4, 0, 0, 0, 8]],
  ["a block of a piece that is not", [0, 0, 0, 10, 7, 0, 0, 0, 9, 0, 0, 0, 0, 1]],
  ["a request of no bytes", [0, 0, 0, 13, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]],
  ["a request over the end of a piece", [0, 0, 0, 13, 6, 0, 0, 0, 0, 0, 0, 255, 255, 0, 0, 64, 0]],
  ["an extended message without BEP 10", [0, 0, 0, 3, 20, 0, 1]],
];

for (const [name, bytes] of HOSTILE) {
  test(`Swarm closes the peer that sends ${name}, and no other`, () => {
    const it = new ScriptedSwarm(content);
    const good = it.peer().seed();
    const bad = it.peer().seed();
    it.want(0, all, pieceLength);
    bad.raw(Uint8Array.from(bytes));
    assert.ok(bad.closed);
    assert.equal(good.closed, undefined);
    for (let i = 0; i < 40; i++) good.answer();
    assert.equal(it.pieces.length, 8);
  });
}

test("Swarm disconnects a peer that sends unrequested blocks, and never uses them", () => {
  const it = new ScriptedSwarm(content);
  const good = it.peer().seed();
  it.want(0, all, pieceLength);
  const bad = it.peer();
  for (let i = 0; i < 70 && !bad.closed; i++) bad.send((writer) => writer.block(0, 0, new Uint8Array(BLOCK)));
  assert.ok(bad.closed);
  for (let i = 0; i < 40; i++) good.answer();
  assert.equal(it.pieces.length, 8);
  assert.equal(good.closed, undefined);
});

test("Swarm closes connections on handshake and idle timeouts, and sends keep-alives", () => {
  const it = new ScriptedSwarm(content);
  const peer = it.peer().seed();
  it.pass(91_000);
  assert.equal(peer.received.at(-1), "keep-alive");
  it.pass(60_000);
  assert.match(peer.closed!, /idle timeout/);
});

test("Swarm closes everything on stop and requests nothing afterwards", () => {
  const it = new ScriptedSwarm(content);
  const peer = it.peer().seed();
  it.want(0, all, pieceLength);
  it.input({ kind: "stop" });
  assert.equal(peer.closed, "stopped");
  it.pass(5_000);
  assert.equal(it.swarm.nextWake(), undefined);
});

test("Swarm takes peers of private content from trackers and links only (BEP 27)", () => {
  const secret = { ...content, layout: { ...content.layout, isPrivate: true } };
  const it = new ScriptedSwarm(secret);
  const addresses = [{ host: "127.0.0.1", port: 5_000 }];
  for (const origin of ["pex", "dht", "lsd"] as const) it.input({ kind: "found", addresses, origin });
  assert.equal(it.outputs.filter((output) => output.kind === "connect").length, 0);
  it.input({ kind: "found", addresses, origin: "tracker" });
  assert.equal(it.outputs.filter((output) => output.kind === "connect").length, 1);
});

test("Swarm respects the download limit, and continues as it allows", () => {
  const big = makeContent(16, 16);
  const it = new ScriptedSwarm(big, { limits: someLimits({ downloadLimit: 1024 * 1024 }) });
  const peer = it.peer().seed();
  it.want(0, big.bytes.length, big.layout.pieceLength);
  for (let i = 0; i < 200; i++) {
    peer.answer();
    it.pass(10);
  }
  const { downloaded } = it.swarm.figures(it.now);
  assert.ok(downloaded > 1.8 * 1024 * 1024 && downloaded < 2.8 * 1024 * 1024, `${downloaded}`);
});

/** A swarm that knows only the infohash, and its metadata. */
function magnetSwarm(readInfo: (bytes: Uint8Array) => typeof content.layout) {
  const infoBytes = Uint8Array.of(100, 49, 101);
  const it = new ScriptedSwarm(content, { info: undefined, readInfo, infohash: infohashOf(sha1(infoBytes)) });
  return { it, infoBytes };
}

test("Swarm fails and stops if verified metadata cannot be decoded", () => {
  const { it, infoBytes } = magnetSwarm(() => {
    throw new DecodeError("metainfo", 3, "no piece hashes");
  });
  const peer = it.peer();
  it.want(0, pieceLength);
  it.input({ kind: "info", infoBytes });
  const failed = it.outputs.find((output) => output.kind === "failed");
  assert.match(failed?.reason ?? "", /no piece hashes/);
  // The peer connected to the swarm, and did not send a listening port.
  assert.deepEqual(failed?.peers, []);
  assert.equal(peer.closed, "stopped");
  it.pass(5_000);
  assert.equal(it.swarm.nextWake(), undefined);
});

test("Swarm accepts metadata from another source if it matches the infohash", () => {
  const { it, infoBytes } = magnetSwarm(() => content.layout);
  const peer = it.peer().seed();
  it.want(0, pieceLength);
  it.input({ kind: "info", infoBytes: Uint8Array.of(100, 50, 101) });
  assert.equal(peer.requests.length, 0);
  it.input({ kind: "info", infoBytes });
  assert.ok(it.outputs.some((output) => output.kind === "metadata"));
  peer.answer();
  assert.deepEqual(it.pieces, [0]);
  it.input({ kind: "info", infoBytes });
  assert.equal(it.outputs.filter((output) => output.kind === "metadata").length, 1);
});

test("Swarm drops peers of other origins when a magnet's content turns out to be private (BEP 27)", () => {
  const { it, infoBytes } = magnetSwarm(() => ({ ...content.layout, isPrivate: true }));
  const origins = ["tracker", "pex", "dht", "lsd", "magnet"] as const;
  for (const [i, origin] of origins.entries()) {
    // Two of each origin: one that answers, and one that does not and is tried again.
    const addresses = [1, 2].map((n) => ({ host: `127.0.0.${n}`, port: 5_001 + i }));
    it.input({ kind: "found", addresses, origin });
  }
  const called = it.outputs.filter((output) => output.kind === "connect");
  assert.equal(called.length, 10);
  for (const { connection, address } of called) {
    if (address.host === "127.0.0.1") it.input({ kind: "opened", connection });
    else it.input({ kind: "closed", connection, reason: "refused" });
  }
  const incoming = it.peer();
  it.input({ kind: "info", infoBytes });
  const closed = new Set(it.outputs.flatMap((output) => (output.kind === "close" ? output.connection : [])));
  const left = called.filter(({ connection }) => closed.has(connection)).map(({ address }) => address.port);
  assert.deepEqual(left, [5_002, 5_003, 5_004]);
  assert.equal(incoming.closed, undefined);
  const before = it.outputs.length;
  it.pass(600_000);
  const again = it.outputs
    .slice(before)
    .flatMap((output) => (output.kind === "connect" ? output.address : []));
  const tried = new Set(again.filter(({ host }) => host === "127.0.0.2").map(({ port }) => port));
  assert.deepEqual([...tried].sort(), [5_001, 5_005]);
  assert.ok(!again.some(({ port }) => left.includes(port)));
});
