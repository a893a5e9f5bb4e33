import assert from "node:assert/strict";
import { test } from "node:test";
import { concatBytes, equalBytes } from "../../../src/base/bytes.ts";
import { DecodeError } from "../../../src/base/errors.ts";
import { DIGEST_BYTES, Merkle } from "../../../src/base/merkle.ts";
import type { Sha256 } from "../../../src/base/signature.ts";
import type { SwarmLayout, SwarmSetup } from "../../../src/protocol/swarm/contract.ts";
import { layerRanges } from "../../../src/protocol/swarm/layer-ranges.ts";
import { LayerTree } from "../../../src/protocol/swarm/layer-tree.ts";
import { decodeHashMessage, encodeHashRange, type HashRange } from "../../../src/wire/peer/hash-message.ts";
import { MESSAGE } from "../../../src/wire/peer/peer-message.ts";
import { parseV2Info, parseV2TransportFile } from "../../../src/wire/torrent/v2-metainfo.ts";
import { sha1, sha256 } from "../../wire/make-torrent.ts";
import { makeV2Torrent } from "../../wire/make-v2-torrent.ts";
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

/** A swarm that knows only the infohash, receives the metadata, and lacks the layers. */
function magnetSwarm(changes: Partial<Omit<SwarmSetup, "info">> = {}, { infohash, infoBytes } = MADE) {
  const readInfo = (bytes: Uint8Array) => parseV2Info(bytes, sha256);
  const it = new ScriptedSwarm(content, { info: undefined, readInfo, infohash, ...changes });
  const learn = () => it.input({ kind: "info", infoBytes });
  return { it, learn };
}

/** A swarm with all hashes. */
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

/** The hash messages that the swarm has sent to a peer since the last call. */
const hashesSentTo = (peer: ScriptedPeer) =>
  peer.hashes.splice(0).map(({ id, payload }) => decodeHashMessage(id, payload));

/** Answers all hash requests; `change` may falsify some. */
function answer(peer: ScriptedPeer, change: (hashes: Uint8Array) => void = () => {}): number {
  const asked = hashesSentTo(peer);
  for (const { range } of asked) {
    if (peer.closed !== undefined) break;
    const hashes = answerTo(range);
    change(hashes);
    peer.send((writer) => writer.hash(MESSAGE.hashes, encodeHashRange(range), hashes));
  }
  return asked.length;
}

const isKnown = (it: ScriptedSwarm) => it.outputs.some(({ kind }) => kind === "metadata");
const request = (peer: ScriptedPeer, range: HashRange) =>
  peer.send((writer) => writer.hash(MESSAGE.hashRequest, encodeHashRange(range)));
const RANGES = FILE.info.layers!.flatMap((layer) => layerRanges(layer, PIECE));

test("Swarm: a magnet of version 2 fetches the piece layers, then pieces (BEP 52)", () => {
  const { it, learn } = magnetSwarm();
  const peer = it.peer().seed();
  it.want(0, content.bytes.length, PIECE);
  assert.deepEqual(hashesSentTo(peer), [], "nothing is known yet");
  learn();
  assert.equal(isKnown(it), false);
  assert.equal(it.swarm.figures(it.now).lacksLayers, true);
  assert.equal(peer.requests.length, 0);
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

test("Swarm: a peer that sends hashes with a wrong root is banned, and another is asked", () => {
  const { it, learn } = magnetSwarm();
  const culprit = it.peer().seed();
  learn();
  const honest = it.peer().seed();
  answer(culprit, (hashes) => {
    hashes[40]! ^= 1;
  });
  assert.match(culprit.closed ?? "", /do not lead to the root/);
  assert.ok(it.outputs.some(({ kind }) => kind === "banned"));
  assert.equal(isKnown(it), false);
  for (let round = 0; round < 3; round++) answer(honest);
  assert.ok(isKnown(it));
  assert.equal(honest.closed, undefined);
});

test("Swarm: after a reject or a timeout another peer is asked for the hashes", () => {
  for (const isSilent of [false, true]) {
    const { it, learn } = magnetSwarm();
    const first = it.peer().seed();
    learn();
    const asked = hashesSentTo(first);
    assert.equal(asked.length, 3);
    if (!isSilent)
      for (const { range } of asked)
        first.send((writer) => writer.hash(MESSAGE.hashReject, encodeHashRange(range)));
    const second = it.peer();
    it.pass(isSilent ? 3_000 : 0);
    for (let round = 0; round < 3; round++) answer(second);
    assert.ok(isKnown(it));
    assert.equal(first.closed, undefined);
  }
});

test("Swarm: requests to a peer that disconnects are sent to another at once", () => {
  const { it, learn } = magnetSwarm();
  const gone = it.peer().seed();
  learn();
  const stays = it.peer();
  hashesSentTo(stays);
  it.input({ kind: "closed", connection: gone.connection, reason: "gone" });
  const other = it.peer();
  assert.equal(hashesSentTo(other).length, 3, "only one pending request is left");
});

test("Swarm: seeds are asked for hashes first", () => {
  const { it, learn } = magnetSwarm();
  const [first, second] = [it.peer(), it.peer()];
  const seed = it.peer().seed();
  learn();
  assert.equal(hashesSentTo(seed).length, 3);
  assert.equal(hashesSentTo(first).length, 3, "one further request per range");
  assert.equal(hashesSentTo(second).length, 0);
});

test("Swarm: unrequested hashes close the connection", () => {
  const { it, learn } = magnetSwarm();
  const [early, twice, reject, broken] = [it.peer(), it.peer(), it.peer(), it.peer()];
  const hashes = answerTo(RANGES[0]!);
  early.send((writer) => writer.hash(MESSAGE.hashes, encodeHashRange(RANGES[0]!), hashes));
  assert.match(early.closed ?? "", /unrequested/);
  learn();
  const [asked] = hashesSentTo(twice);
  for (let i = 0; i < 2; i++)
    twice.send((writer) =>
      writer.hash(MESSAGE.hashes, encodeHashRange(asked!.range), answerTo(asked!.range)),
    );
  assert.match(twice.closed ?? "", /unrequested/);
  const other = { ...RANGES[0]!, index: 512 };
  reject.send((writer) => writer.hash(MESSAGE.hashReject, encodeHashRange(other)));
  assert.match(reject.closed ?? "", /unrequested/);
  broken.send((writer) => writer.hash(MESSAGE.hashRequest, new Uint8Array(47)));
  assert.match(broken.closed ?? "", /hash message/);
});

test("Swarm: answers hash requests with their proof, also of choked peers", () => {
  const it = fullSwarm();
  const peer = it.peer();
  for (const range of RANGES) request(peer, range);
  const sent = hashesSentTo(peer);
  assert.deepEqual(
    sent.map(({ kind }) => kind),
    ["hashes", "hashes", "hashes"],
  );
  for (const [i, message] of sent.entries())
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
      request(peer, each);
      const [{ kind, range: answered }] = hashesSentTo(peer) as [ReturnType<typeof decodeHashMessage>];
      assert.equal(kind, "reject");
      assert.deepEqual(encodeHashRange(answered), encodeHashRange(each));
    }
    assert.equal(peer.closed, undefined);
  }
});

test("Swarm: one peer gets 1 MiB of hashes in a burst, then 256 KiB/s, with at most 16 requests queued", () => {
  const it = fullSwarm();
  const [greedy, other] = [it.peer(), it.peer()];
  let hashes = 0;
  let rejects = 0;
  const count = () => {
    for (const { kind } of hashesSentTo(greedy)) kind === "hashes" ? hashes++ : rejects++;
  };
  for (let i = 0; i < 200; i++) request(greedy, RANGES[0]!);
  count();
  assert.ok(hashes >= 63 && hashes <= 65, `${hashes} at once`);
  assert.equal(rejects, 200 - hashes - 16);
  it.pass(1_000);
  count();
  assert.equal(hashes + rejects, 200, "all are answered");
  for (let i = 0; i < 10; i++) {
    for (let j = 0; j < 30; j++) request(greedy, RANGES[0]!);
    it.pass(1_000);
  }
  count();
  const bytes = hashes * answerTo(RANGES[0]!).length;
  assert.ok(bytes < 1.1 * (1024 + 11 * 256) * 1024, `${bytes} in 11 s`);
  assert.ok(bytes > 0.9 * (1024 + 10 * 256) * 1024, `${bytes} in 11 s`);
  request(other, RANGES[0]!);
  assert.equal(hashesSentTo(other)[0]?.kind, "hashes", "others do not wait for it");
});

test("Swarm: all peers together get 8 MiB of hashes in a burst, then 1 MiB/s, shared among them", () => {
  const it = fullSwarm();
  const peers = Array.from({ length: 20 }, () => it.peer());
  const counts = peers.map(() => 0);
  for (let ms = 0; ms < 10_000; ms += 100) {
    for (const [i, peer] of peers.entries()) {
      for (let j = 0; j < 4; j++) request(peer, RANGES[0]!);
      counts[i]! += hashesSentTo(peer).filter(({ kind }) => kind === "hashes").length;
    }
    it.pass(100);
  }
  const bytes = counts.reduce((sum, count) => sum + count) * answerTo(RANGES[0]!).length;
  assert.ok(bytes > 0.9 * 18 * 2 ** 20 && bytes < 1.1 * 18 * 2 ** 20, `${bytes} in 10 s`);
  assert.ok(Math.min(...counts) > 0.5 * Math.max(...counts), `${counts}`);
});

test("Swarm: hashes respect the upload limit", () => {
  const it = fullSwarm({ limits: someLimits({ uploadLimit: 20_000 }) });
  const peer = it.peer();
  it.pass(1_000);
  for (let i = 0; i < 12; i++) request(peer, RANGES[0]!);
  assert.ok(hashesSentTo(peer).length < 4);
  it.pass(4_000);
  const bytes = hashesSentTo(peer).length * answerTo(RANGES[0]!).length;
  assert.ok(bytes > 50_000 && bytes < 110_000, `${bytes} in 4 s`);
});

test("Swarm: a request for too many hashes is rejected, and does not charge the upload limit", () => {
  const it = fullSwarm({ limits: someLimits({ uploadLimit: 100_000 }) });
  const [hostile, honest] = [it.peer(), it.peer()];
  it.pass(1_000);
  for (const length of [1024, 0xffff_ffff]) {
    request(hostile, { ...RANGES[0]!, length, proofLayers: 0xffff_ffff });
    assert.equal(hashesSentTo(hostile)[0]?.kind, "reject");
  }
  request(honest, RANGES[0]!);
  request(hostile, RANGES[0]!);
  it.pass(1_000);
  assert.equal(hashesSentTo(honest)[0]?.kind, "hashes");
  assert.equal(hashesSentTo(hostile)[0]?.kind, "hashes", "nor of its own share");
});

test("Swarm: the tree of a large file is computed in steps, once, and later answers are cheap", () => {
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
  assert.ok(workOf(() => request(peer, single)) < 10_000);
  assert.equal(hashesSentTo(peer).length, 0);
  for (let i = 0; i < 10; i++)
    assert.ok(workOf(() => request(peer, single)) < 2_000, "waiting costs nothing");
  assert.ok(workOf(() => it.pass(100)) < 15_000);
  it.pass(900);
  assert.equal(hashesSentTo(peer).length, 11);
  assert.ok(hashed < pieceCount + 100, `${hashed} hashes`);
  assert.equal(
    workOf(() => request(peer, single)),
    0,
  );
  assert.equal(hashesSentTo(peer)[0]?.kind, "hashes");
});

test("Swarm: hash requests of several peers share a small upload limit in turn", () => {
  const it = fullSwarm({ limits: someLimits({ uploadLimit: 20_000 }) });
  const peers = [it.peer(), it.peer(), it.peer()];
  it.pass(1_000);
  for (const peer of peers) for (let i = 0; i < 16; i++) request(peer, RANGES[0]!);
  it.pass(8_000);
  const counts = peers.map((peer) => hashesSentTo(peer).length);
  assert.ok(Math.min(...counts) >= 2 && Math.max(...counts) <= 6, `${counts}`);
});

test("Swarm: a transport file received while layers are being fetched completes them", () => {
  const { it, learn } = magnetSwarm();
  const peer = it.peer().seed();
  it.want(0, PIECE);
  learn();
  const late = hashesSentTo(peer);
  it.input({ kind: "info", infoBytes: Uint8Array.of(100, 101), layout: content.layout });
  assert.equal(isKnown(it), false, "that of other content is not");
  it.input({ kind: "info", infoBytes: FILE.infoBytes, layout: FILE.info });
  assert.ok(isKnown(it));
  for (const { range } of late)
    peer.send((writer) => writer.hash(MESSAGE.hashes, encodeHashRange(range), answerTo(range)));
  assert.equal(peer.closed, undefined, "answers to what was asked may still come");
  peer.answer();
  assert.deepEqual(it.pieces, [0]);
  assert.equal(it.outputs.filter(({ kind }) => kind === "metadata").length, 1);
});

test("Swarm: a transport file supplies layers, so peers are not asked for them", () => {
  const readInfo = () => {
    throw new DecodeError("transport file", 0, "too many piece layers");
  };
  const { it } = magnetSwarm({ readInfo });
  it.input({ kind: "info", infoBytes: FILE.infoBytes, layout: FILE.info });
  assert.ok(isKnown(it));
  assert.ok(!it.outputs.some(({ kind }) => kind === "failed"));
});

test("Swarm: private content exchanges no peers while its layers are being fetched (BEP 27)", () => {
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
