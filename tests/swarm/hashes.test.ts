import assert from "node:assert/strict";
import { test } from "node:test";
import { concatBytes, equalBytes } from "../../src/base/bytes.ts";
import { DecodeError } from "../../src/base/errors.ts";
import { DIGEST_BYTES, Merkle } from "../../src/base/merkle.ts";
import type { Sha256 } from "../../src/base/signature.ts";
import type { SwarmLayout, SwarmSetup } from "../../src/swarm/contract.ts";
import { layerRanges } from "../../src/swarm/layer-ranges.ts";
import { LayerTree } from "../../src/swarm/layer-tree.ts";
import { decodeHashMessage, encodeHashRange, type HashRange } from "../../src/wire/hash-message.ts";
import { MESSAGE } from "../../src/wire/peer-message.ts";
import { parseV2Info, parseV2TransportFile } from "../../src/wire/v2-metainfo.ts";
import { sha1, sha256 } from "../wire/make-torrent.ts";
import { makeV2Torrent } from "../wire/make-v2-torrent.ts";
import { type Content, type ScriptedPeer, ScriptedSwarm } from "./scripted.ts";
import { someLimits } from "./some-limits.ts";

const merkle = new Merkle(sha256);
const PIECE = 16_384;
const FILM = Uint8Array.from({ length: 600 * PIECE - 5_000 }, (_, i) => Math.imul(i, 0x9e3779b1) >>> 13);
const EXTRA = FILM.subarray(PIECE, 4 * PIECE);
const MADE = made({});
const FILE = parseV2TransportFile(MADE.bytes, sha1, sha256);
const content: Content = { bytes: concatBytes([FILM, new Uint8Array(5_000), EXTRA]), layout: FILE.info };

function made(info: Readonly<Record<string, number>>) {
  const files = { "film.mkv": FILM, "z.jpg": EXTRA };
  return makeV2Torrent({ name: "top", files, pieceLength: PIECE, info });
}

/** A swarm that knows the infohash only, gets the metadata, and lacks the layers. */
function magnetSwarm(changes: Partial<Omit<SwarmSetup, "info">> = {}, { infohash, infoBytes } = MADE) {
  const readInfo = (bytes: Uint8Array) => parseV2Info(bytes, sha256);
  const it = new ScriptedSwarm(content, { info: undefined, readInfo, infohash, ...changes });
  const learn = () => it.input({ kind: "info", infoBytes });
  return { it, learn };
}

/** A swarm that has all hashes. */
const fullSwarm = (changes: Partial<Omit<SwarmSetup, "info">> = {}) =>
  new ScriptedSwarm(content, { info: { layout: FILE.info, infoBytes: FILE.infoBytes }, ...changes });

const TREES = FILE.info.layers!.map(({ root, firstPiece, pieceCount }) => {
  const hashes = FILE.info.pieceHashes.subarray(
    firstPiece * DIGEST_BYTES,
    (firstPiece + pieceCount) * DIGEST_BYTES,
  );
  return { root, tree: new LayerTree(hashes, 0, merkle) };
});

function answerTo(range: HashRange): Uint8Array<ArrayBuffer> {
  return TREES.find(({ root }) => root.every((byte, i) => byte === range.root[i]))!.tree.answer(range)!;
}

/** What the swarm has said to a peer about hashes since the last time. */
const saidTo = (peer: ScriptedPeer) =>
  peer.hashes.splice(0).map(({ id, payload }) => decodeHashMessage(id, payload));

/** Answers all requests for hashes; `change` may falsify some. */
function answer(peer: ScriptedPeer, change: (hashes: Uint8Array) => void = () => {}): number {
  const asked = saidTo(peer);
  for (const { range } of asked) {
    if (peer.closed !== undefined) break;
    const hashes = answerTo(range);
    change(hashes);
    peer.say((writer) => writer.hash(MESSAGE.hashes, encodeHashRange(range), hashes));
  }
  return asked.length;
}

const isKnown = (it: ScriptedSwarm) => it.outputs.some(({ kind }) => kind === "metadata");
const ask = (peer: ScriptedPeer, range: HashRange) =>
  peer.say((writer) => writer.hash(MESSAGE.hashRequest, encodeHashRange(range)));
const RANGES = FILE.info.layers!.flatMap((layer) => layerRanges(layer, PIECE));

test("Swarm: a magnet of version 2 asks for the piece layers, and then plays (BEP 52)", () => {
  const { it, learn } = magnetSwarm();
  const peer = it.peer().seed();
  it.want(0, content.bytes.length, PIECE);
  assert.deepEqual(saidTo(peer), [], "nothing is known yet");
  learn();
  assert.equal(isKnown(it), false);
  assert.equal(it.swarm.figures(it.now).lacksLayers, true);
  assert.equal(peer.asked.length, 0);
  assert.equal(answer(peer), 3);
  const output = it.outputs.find(({ kind }) => kind === "metadata");
  assert.ok(output?.kind === "metadata");
  assert.deepEqual(output.layout.pieceHashes, FILE.info.pieceHashes);
  assert.equal(output.layout.lacksLayers, false);
  assert.equal(it.swarm.figures(it.now).lacksLayers, false);
  for (let round = 0; round < 2_000 && it.pieces.length < 603; round++) {
    peer.answer();
    it.pass(100);
  }
  assert.equal(it.pieces.length, 603);
  assert.equal(it.swarm.figures(it.now).wasted, 0);
  assert.equal(peer.closed, undefined);
});

test("Swarm: who sends hashes that do not fit is banned, and another is asked", () => {
  const { it, learn } = magnetSwarm();
  const liar = it.peer().seed();
  learn();
  const honest = it.peer().seed();
  answer(liar, (hashes) => {
    hashes[40]! ^= 1;
  });
  assert.match(liar.closed ?? "", /do not fit the root/);
  assert.ok(it.outputs.some(({ kind }) => kind === "banned"));
  assert.equal(isKnown(it), false);
  for (let round = 0; round < 3; round++) answer(honest);
  assert.ok(isKnown(it));
  assert.equal(honest.closed, undefined);
});

test("Swarm: after a reject, or silence, another is asked for the hashes", () => {
  for (const isSilent of [false, true]) {
    const { it, learn } = magnetSwarm();
    const first = it.peer().seed();
    learn();
    const asked = saidTo(first);
    assert.equal(asked.length, 3);
    if (!isSilent)
      for (const { range } of asked)
        first.say((writer) => writer.hash(MESSAGE.hashReject, encodeHashRange(range)));
    const second = it.peer();
    it.pass(isSilent ? 3_000 : 0);
    for (let round = 0; round < 3; round++) answer(second);
    assert.ok(isKnown(it));
    assert.equal(first.closed, undefined);
  }
});

test("Swarm: what a peer was asked for when it left is asked of another at once", () => {
  const { it, learn } = magnetSwarm();
  const gone = it.peer().seed();
  learn();
  const stays = it.peer();
  saidTo(stays);
  it.input({ kind: "closed", connection: gone.connection, reason: "gone" });
  const other = it.peer();
  assert.equal(saidTo(other).length, 3, "as only one is counted on now");
});

test("Swarm: those who have everything are asked first", () => {
  const { it, learn } = magnetSwarm();
  const [first, second] = [it.peer(), it.peer()];
  const seed = it.peer().seed();
  learn();
  assert.equal(saidTo(seed).length, 3);
  assert.equal(saidTo(first).length, 3, "one more each, to be on the safe side");
  assert.equal(saidTo(second).length, 0);
});

test("Swarm: hashes that nobody asked for cost their sender the connection", () => {
  const { it, learn } = magnetSwarm();
  const [early, twice, reject, broken] = [it.peer(), it.peer(), it.peer(), it.peer()];
  const hashes = answerTo(RANGES[0]!);
  early.say((writer) => writer.hash(MESSAGE.hashes, encodeHashRange(RANGES[0]!), hashes));
  assert.match(early.closed ?? "", /nobody asked for/);
  learn();
  const [asked] = saidTo(twice);
  for (let i = 0; i < 2; i++)
    twice.say((writer) => writer.hash(MESSAGE.hashes, encodeHashRange(asked!.range), answerTo(asked!.range)));
  assert.match(twice.closed ?? "", /nobody asked for/);
  const other = { ...RANGES[0]!, index: 512 };
  reject.say((writer) => writer.hash(MESSAGE.hashReject, encodeHashRange(other)));
  assert.match(reject.closed ?? "", /nobody asked for/);
  broken.say((writer) => writer.hash(MESSAGE.hashRequest, new Uint8Array(47)));
  assert.match(broken.closed ?? "", /hash message/);
});

test("Swarm: answers who asks for hashes, with their proof, also while it is choked", () => {
  const it = fullSwarm();
  const peer = it.peer();
  for (const range of RANGES) ask(peer, range);
  const said = saidTo(peer);
  assert.deepEqual(
    said.map(({ kind }) => kind),
    ["hashes", "hashes", "hashes"],
  );
  for (const [i, message] of said.entries())
    assert.ok(message.kind === "hashes" && equalBytes(message.hashes, answerTo(RANGES[i]!)));
});

test("Swarm: rejects requests for hashes that it does not have", () => {
  const range = RANGES[0]!;
  const bad: HashRange[] = [
    { ...range, root: sha256(range.root) },
    { ...range, baseLayer: 1 },
    { ...range, index: 1024 },
    { ...range, length: 0xffff_ffff },
  ];
  for (const [it, ranges] of [
    [fullSwarm(), bad],
    [magnetSwarm().it, [range]],
  ] as const) {
    const peer = it.peer();
    for (const each of ranges) {
      ask(peer, each);
      const [{ kind, range: said }] = saidTo(peer) as [ReturnType<typeof decodeHashMessage>];
      assert.equal(kind, "reject");
      assert.deepEqual(encodeHashRange(said), encodeHashRange(each));
    }
    assert.equal(peer.closed, undefined);
  }
});

test("Swarm: one peer gets a MiB of hashes at once and then 256 KiB a second; more than 16 wait for nobody", () => {
  const it = fullSwarm();
  const [greedy, other] = [it.peer(), it.peer()];
  let hashes = 0;
  let rejects = 0;
  const count = () => {
    for (const { kind } of saidTo(greedy)) kind === "hashes" ? hashes++ : rejects++;
  };
  for (let i = 0; i < 200; i++) ask(greedy, RANGES[0]!);
  count();
  assert.ok(hashes >= 63 && hashes <= 65, `${hashes} at once`);
  assert.equal(rejects, 200 - hashes - 16);
  it.pass(1_000);
  count();
  assert.equal(hashes + rejects, 200, "all are answered");
  for (let i = 0; i < 10; i++) {
    for (let j = 0; j < 30; j++) ask(greedy, RANGES[0]!);
    it.pass(1_000);
  }
  count();
  const bytes = hashes * answerTo(RANGES[0]!).length;
  assert.ok(bytes < 1.1 * (1024 + 11 * 256) * 1024, `${bytes} in 11 s`);
  assert.ok(bytes > 0.9 * (1024 + 10 * 256) * 1024, `${bytes} in 11 s`);
  ask(other, RANGES[0]!);
  assert.equal(saidTo(other)[0]?.kind, "hashes", "others do not wait for it");
});

test("Swarm: all together get 8 MiB of hashes at once and then 1 MiB a second, each of them some", () => {
  const it = fullSwarm();
  const peers = Array.from({ length: 20 }, () => it.peer());
  const counts = peers.map(() => 0);
  for (let ms = 0; ms < 10_000; ms += 100) {
    for (const [i, peer] of peers.entries()) {
      for (let j = 0; j < 4; j++) ask(peer, RANGES[0]!);
      counts[i]! += saidTo(peer).filter(({ kind }) => kind === "hashes").length;
    }
    it.pass(100);
  }
  const bytes = counts.reduce((sum, count) => sum + count) * answerTo(RANGES[0]!).length;
  assert.ok(bytes > 0.9 * 18 * 2 ** 20 && bytes < 1.1 * 18 * 2 ** 20, `${bytes} in 10 s`);
  assert.ok(Math.min(...counts) > 0.5 * Math.max(...counts), `${counts}`);
});

test("Swarm: hashes go out within the upload limit", () => {
  const it = fullSwarm({ limits: someLimits({ uploadLimit: 20_000 }) });
  const peer = it.peer();
  it.pass(1_000);
  for (let i = 0; i < 12; i++) ask(peer, RANGES[0]!);
  assert.ok(saidTo(peer).length < 4);
  it.pass(4_000);
  const bytes = saidTo(peer).length * answerTo(RANGES[0]!).length;
  assert.ok(bytes > 50_000 && bytes < 110_000, `${bytes} in 4 s`);
});

test("Swarm: who asks for more hashes than are ever answered is rejected, and uses up nothing of the upload limit", () => {
  const it = fullSwarm({ limits: someLimits({ uploadLimit: 100_000 }) });
  const [hostile, honest] = [it.peer(), it.peer()];
  it.pass(1_000);
  for (const length of [1024, 0xffff_ffff]) {
    ask(hostile, { ...RANGES[0]!, length, proofLayers: 0xffff_ffff });
    assert.equal(saidTo(hostile)[0]?.kind, "reject");
  }
  ask(honest, RANGES[0]!);
  ask(hostile, RANGES[0]!);
  it.pass(1_000);
  assert.equal(saidTo(honest)[0]?.kind, "hashes");
  assert.equal(saidTo(hostile)[0]?.kind, "hashes", "nor of its own share");
});

test("Swarm: the tree of a large file is made bit by bit, once, and then each answer is cheap", () => {
  const pieceCount = 65_536;
  const root = sha256(Uint8Array.of(1));
  const layout: SwarmLayout = {
    ...{ pieceLength: PIECE, pieceCount, length: pieceCount * PIECE, isPrivate: false },
    ...{ shortPieces: new Map(), layers: [{ root, firstPiece: 0, pieceCount }] },
    pieceHashes: new Uint8Array(32 * pieceCount).fill(7),
  };
  let hashed = 0;
  const count: Sha256 = (bytes) => {
    hashed++;
    return sha256(bytes);
  };
  const it = new ScriptedSwarm(
    { bytes: FILM, layout },
    { info: { layout, infoBytes: MADE.infoBytes }, sha256: count },
  );
  const workOf = (what: () => void) => {
    const before = hashed;
    what();
    return hashed - before;
  };
  const peer = it.peer();
  const single: HashRange = { root, baseLayer: 0, index: 4_242, length: 1, proofLayers: 15 };
  assert.ok(workOf(() => ask(peer, single)) < 10_000);
  assert.equal(saidTo(peer).length, 0);
  for (let i = 0; i < 10; i++) assert.ok(workOf(() => ask(peer, single)) < 2_000, "waiting costs nothing");
  assert.ok(workOf(() => it.pass(100)) < 15_000);
  it.pass(900);
  assert.equal(saidTo(peer).length, 11);
  assert.ok(hashed < pieceCount + 100, `${hashed} hashes`);
  assert.equal(
    workOf(() => ask(peer, single)),
    0,
  );
  assert.equal(saidTo(peer)[0]?.kind, "hashes");
});

test("Swarm: those who ask for hashes share a small upload limit by turns", () => {
  const it = fullSwarm({ limits: someLimits({ uploadLimit: 20_000 }) });
  const peers = [it.peer(), it.peer(), it.peer()];
  it.pass(1_000);
  for (const peer of peers) for (let i = 0; i < 16; i++) ask(peer, RANGES[0]!);
  it.pass(8_000);
  const counts = peers.map((peer) => saidTo(peer).length);
  assert.ok(Math.min(...counts) >= 2 && Math.max(...counts) <= 6, `${counts}`);
});

test("Swarm: a transport file that comes while layers are asked for is enough", () => {
  const { it, learn } = magnetSwarm();
  const peer = it.peer().seed();
  it.want(0, PIECE);
  learn();
  const late = saidTo(peer);
  it.input({ kind: "info", infoBytes: Uint8Array.of(100, 101), layout: content.layout });
  assert.equal(isKnown(it), false, "that of other content is not");
  it.input({ kind: "info", infoBytes: FILE.infoBytes, layout: FILE.info });
  assert.ok(isKnown(it));
  for (const { range } of late)
    peer.say((writer) => writer.hash(MESSAGE.hashes, encodeHashRange(range), answerTo(range)));
  assert.equal(peer.closed, undefined, "answers to what was asked may still come");
  peer.answer();
  assert.deepEqual(it.pieces, [0]);
  assert.equal(it.outputs.filter(({ kind }) => kind === "metadata").length, 1);
});

test("Swarm: a transport file tells more than its metadata: layers that peers would not be asked for", () => {
  const readInfo = () => {
    throw new DecodeError("transport file", 0, "too many piece layers");
  };
  const { it } = magnetSwarm({ readInfo });
  it.input({ kind: "info", infoBytes: FILE.infoBytes, layout: FILE.info });
  assert.ok(isKnown(it));
  assert.ok(!it.outputs.some(({ kind }) => kind === "failed"));
});

test("Swarm: private content keeps to itself while its layers are asked for (BEP 27)", () => {
  const secret = made({ private: 1 });
  const { it, learn } = magnetSwarm({ dhtPort: 7 }, secret);
  it.input({ kind: "found", addresses: [{ host: "127.0.0.1", port: 5_000 }], origin: "pex" });
  learn();
  assert.equal(isKnown(it), false);
  assert.ok(it.outputs.some(({ kind }) => kind === "private"));
  assert.ok(
    it.outputs.some((output) => output.kind === "close" && output.reason === "the content is private"),
  );
  const before = it.outputs.length;
  it.input({ kind: "found", addresses: [{ host: "127.0.0.1", port: 5_001 }], origin: "dht" });
  assert.ok(!it.outputs.slice(before).some(({ kind }) => kind === "connect"));
});
