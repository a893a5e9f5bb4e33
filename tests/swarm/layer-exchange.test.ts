import assert from "node:assert/strict";
import { test } from "node:test";
import { concatBytes } from "../../src/base/bytes.ts";
import { Merkle } from "../../src/base/merkle.ts";
import { seededRandom } from "../../src/base/random.ts";
import { instant } from "../../src/base/time.ts";
import type { SwarmLayout } from "../../src/swarm/contract.ts";
import { LayerExchange, type LayerExchangeOutput } from "../../src/swarm/layer-exchange.ts";
import { LayerTree } from "../../src/swarm/layer-tree.ts";
import type { HashRange } from "../../src/wire/hash-message.ts";
import { sha256 } from "../wire/make-torrent.ts";

const merkle = new Merkle(sha256);
const at = (ms: number) => instant(ms);
const PIECE_LENGTH = 32_768;
/** Two files of many pieces, and one of one piece between them, whose hash the metadata brings. */
const [FIRST, SECOND] = [2_000, 700];
const piecesOf = (count: number, seed: number) =>
  Array.from({ length: count }, (_, i) => sha256(Uint8Array.of(i, i >> 8, seed)));
const first = piecesOf(FIRST, 1);
const alone = sha256(Uint8Array.of(9));
const second = piecesOf(SECOND, 2);
const ALL = concatBytes([...first, alone, ...second]);
const rootOf = (row: readonly Uint8Array[]) => merkle.rootOf(row, 1);
const layers = [
  { root: rootOf(first), firstPiece: 0, pieceCount: FIRST },
  { root: rootOf(second), firstPiece: FIRST + 1, pieceCount: SECOND },
];
const trees = layers.map(
  ({ firstPiece, pieceCount }) =>
    new LayerTree(ALL.subarray(32 * firstPiece, 32 * (firstPiece + pieceCount)), 1, merkle),
);

function someExchange() {
  const pieceHashes = new Uint8Array(ALL.length);
  pieceHashes.set(alone, 32 * FIRST);
  const pieceCount = FIRST + 1 + SECOND;
  const layout: SwarmLayout = {
    ...{ pieceLength: PIECE_LENGTH, pieceCount, length: pieceCount * PIECE_LENGTH, pieceHashes },
    ...{ shortPieces: new Map(), layers, lacksLayers: true, isPrivate: false },
  };
  return { exchange: new LayerExchange(layout, merkle), pieceHashes };
}

function drain(exchange: LayerExchange): LayerExchangeOutput[] {
  const outputs: LayerExchangeOutput[] = [];
  for (let output = exchange.poll(); output; output = exchange.poll()) outputs.push(output);
  return outputs;
}

function answerTo(range: HashRange): Uint8Array<ArrayBuffer> {
  const tree = trees[layers.findIndex(({ root }) => root === range.root)]!;
  return tree.answer(range)!;
}

/** What each peer does when it is asked. */
type Manner = "right" | "wrong" | "reject" | "silent";

/** Asks and answers until nothing more comes of it; who lied leaves. */
function converse(exchange: LayerExchange, manners: Map<number, Manner>, now: number) {
  const seen: LayerExchangeOutput[] = [];
  for (let round = 0; round < 1_000; round++) {
    exchange.wake(at(now));
    exchange.ask(manners.keys(), at(now));
    const outputs = drain(exchange);
    if (outputs.length === 0) return seen;
    for (const output of outputs) {
      seen.push(output);
      if (output.kind === "liar") {
        manners.delete(output.connection);
        exchange.left(output.connection);
      }
      if (output.kind !== "ask") continue;
      const { connection, range } = output;
      const manner = manners.get(connection);
      if (manner === "reject") assert.ok(exchange.rejected(connection, range, at(now)));
      if (manner !== "right" && manner !== "wrong") continue;
      const hashes = answerTo(range);
      if (manner === "wrong") hashes[round % hashes.length]! ^= 1;
      assert.ok(exchange.received(connection, range, hashes));
    }
  }
  throw new Error("the exchange never ends");
}

const asksOf = (outputs: readonly LayerExchangeOutput[]) => outputs.filter((output) => output.kind === "ask");
const liarsOf = (outputs: readonly LayerExchangeOutput[]) =>
  outputs.flatMap((output) => (output.kind === "liar" ? [output.connection] : []));

test("LayerExchange: all from one peer, each range asked once", () => {
  const { exchange, pieceHashes } = someExchange();
  const seen = converse(exchange, new Map([[1, "right"]]), 0);
  assert.equal(asksOf(seen).length, 4 + 2);
  assert.equal(seen.at(-1)?.kind, "complete");
  assert.equal(seen.filter(({ kind }) => kind === "complete").length, 1);
  assert.deepEqual(pieceHashes, ALL);
  assert.equal(exchange.nextWake(), undefined);
  assert.ok(exchange.isComplete);
});

test("LayerExchange: no peer is asked for more than four ranges at once, no range of more than two peers", () => {
  const { exchange } = someExchange();
  exchange.ask([1, 3, 5, 7, 9], at(0));
  exchange.ask([1, 3, 5, 7, 9], at(1));
  const asks = asksOf(drain(exchange));
  assert.equal(asks.length, 12);
  for (const connection of [1, 3, 5, 7, 9])
    assert.ok(asks.filter((ask) => ask.connection === connection).length <= 4);
  const places = asks.map(
    ({ range }) => `${layers.findIndex(({ root }) => root === range.root)} ${range.index}`,
  );
  for (const place of places) assert.equal(places.filter((other) => other === place).length, 2);
  assert.deepEqual(
    asks.slice(0, 4).map(({ connection }) => connection),
    [1, 1, 1, 1],
    "the most promising first",
  );
});

test("LayerExchange: a liar is known by its first wrong hash, and others are asked", () => {
  const { exchange, pieceHashes } = someExchange();
  const seen = converse(exchange, new Map<number, Manner>([[1, "wrong"], [3, "right"]]), 0); // biome-ignore format: pairs
  assert.deepEqual(liarsOf(seen)[0], 1);
  assert.ok(liarsOf(seen).every((liar) => liar === 1));
  assert.deepEqual(pieceHashes, ALL);
});

test("LayerExchange: hashes of another file, or of another place of the same, are a lie", () => {
  for (const other of [{ index: 512 }, { root: layers[1]!.root }]) {
    const { exchange, pieceHashes } = someExchange();
    exchange.ask([1], at(0));
    const [ask] = asksOf(drain(exchange));
    const wrong = trees["root" in other ? 1 : 0]!.answer({ ...ask!.range, proofLayers: 9, ...other })!;
    const cut = concatBytes([wrong, new Uint8Array(64)]).subarray(0, answerTo(ask!.range).length);
    assert.ok(exchange.received(1, ask!.range, cut));
    assert.deepEqual(liarsOf(drain(exchange)), [1]);
    assert.ok(
      pieceHashes.subarray(0, 32 * FIRST).every((byte) => byte === 0),
      "nothing of it is kept",
    );
  }
});

test("LayerExchange: an answer that nobody asked for is none, nor the same one twice", () => {
  const { exchange } = someExchange();
  exchange.ask([1], at(0));
  const [ask] = asksOf(drain(exchange));
  const hashes = answerTo(ask!.range);
  assert.equal(exchange.received(3, ask!.range, hashes), false);
  assert.equal(exchange.rejected(3, ask!.range, at(0)), false);
  assert.equal(exchange.received(1, { ...ask!.range, proofLayers: 3 }, hashes), false);
  assert.equal(exchange.received(1, ask!.range, hashes), true);
  assert.equal(exchange.received(1, ask!.range, hashes), false);
});

test("LayerExchange.wake: who is silent is not counted on, and holds nobody up", () => {
  const { exchange, pieceHashes } = someExchange();
  converse(exchange, new Map<number, Manner>([[1, "silent"], [3, "silent"]]), 0); // biome-ignore format: pairs
  assert.equal(exchange.nextWake(), 3_000);
  const seen = converse(exchange, new Map<number, Manner>([[1, "silent"], [3, "silent"], [5, "right"]]), 3_000); // biome-ignore format: pairs
  assert.equal(seen.at(-1)?.kind, "complete");
  assert.deepEqual(pieceHashes, ALL);
});

test("LayerExchange: a crowd that is silent, and asked first, costs seconds, not the patience of who waits", () => {
  const { exchange, pieceHashes } = someExchange();
  const manners = new Map<number, Manner>();
  for (let id = 1; id < 160; id += 2) manners.set(id, id === 159 ? "right" : "silent");
  let now = 0;
  for (; !exchange.isComplete && now < 120_000; now += 1_000) {
    const asks = asksOf(converse(exchange, manners, now));
    assert.ok(asks.length <= 4 * manners.size);
  }
  assert.deepEqual(pieceHashes, ALL);
  assert.ok(now <= 15_000, `it took ${now} ms`);
});

test("LayerExchange: a crowd that rejects, and is asked first, does not keep others from being asked", () => {
  const { exchange, pieceHashes } = someExchange();
  const ids = Array.from({ length: 80 }, (_, i) => 2 * i + 1);
  const due: { readonly at: number; readonly answer: () => void }[] = [];
  let now = 0;
  for (; !exchange.isComplete && now < 120_000; now += 100) {
    exchange.wake(at(now));
    for (const { answer } of due.splice(0, due.findIndex((each) => each.at > now) >>> 0)) answer();
    exchange.ask(ids, at(now));
    for (const { connection, range } of asksOf(drain(exchange)))
      due.push({
        at: now + 1_000,
        answer: () =>
          connection === 159
            ? exchange.received(connection, range, answerTo(range))
            : exchange.rejected(connection, range, at(now)),
      });
  }
  assert.deepEqual(pieceHashes, ALL);
  assert.ok(now <= 30_000, `it took ${now} ms`);
});

test("LayerExchange: what comes late is welcome still", () => {
  const { exchange, pieceHashes } = someExchange();
  let now = 0;
  for (; !exchange.isComplete && now < 60_000; now += 4_000) {
    exchange.wake(at(now));
    exchange.ask([1], at(now));
    // Each answer takes four seconds, and is late by then.
    for (const { range } of asksOf(drain(exchange))) {
      exchange.wake(at(now + 3_999));
      assert.ok(exchange.received(1, range, answerTo(range)));
    }
  }
  assert.deepEqual(pieceHashes, ALL);
  assert.ok(now <= 12_000, `it took ${now} ms`);
});

test("LayerExchange: who rejects four times rests for ten seconds, and is asked again", () => {
  const { exchange, pieceHashes } = someExchange();
  const seen = converse(exchange, new Map([[1, "reject"]]), 0);
  assert.equal(asksOf(seen).length, 4);
  assert.equal(exchange.nextWake(), 10_000);
  assert.equal(converse(exchange, new Map([[1, "right"]]), 9_999).length, 0);
  converse(exchange, new Map([[1, "right"]]), 10_000);
  assert.deepEqual(pieceHashes, ALL);
});

test("LayerExchange.left: what a peer was asked for is asked of others at once", () => {
  const { exchange, pieceHashes } = someExchange();
  exchange.ask([1, 3], at(0));
  drain(exchange);
  exchange.left(1);
  exchange.left(3);
  assert.equal(exchange.nextWake(), undefined);
  converse(exchange, new Map([[5, "right"]]), 1);
  assert.deepEqual(pieceHashes, ALL);
});

for (let seed = 1; seed <= 20; seed++)
  test(`LayerExchange: a crowd that lies, rejects, is silent and leaves cannot keep an honest peer from helping (seed ${seed})`, () => {
    const random = seededRandom(seed);
    const { exchange, pieceHashes } = someExchange();
    const kinds: Manner[] = ["wrong", "reject", "silent"];
    const manners = new Map<number, Manner>();
    for (let id = 1; id < 30; id += 2) manners.set(id, kinds[Math.floor(random() * 3)]!);
    const liars: number[] = [];
    for (let now = 0; !exchange.isComplete && now < 120_000; now += 1_000) {
      if (now === 5_000) manners.set(101, "right");
      liars.push(...liarsOf(converse(exchange, manners, now)));
      const gone = [...manners.keys()].filter((id) => id !== 101 && random() < 0.05);
      for (const id of gone) {
        manners.delete(id);
        exchange.left(id);
      }
    }
    assert.ok(exchange.isComplete);
    assert.ok(!liars.includes(101));
    assert.deepEqual(pieceHashes, ALL);
  });
