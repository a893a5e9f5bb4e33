import assert from "node:assert/strict";
import { test } from "node:test";
import { concatBytes } from "../../../src/base/bytes.ts";
import { Merkle } from "../../../src/base/merkle.ts";
import { instant } from "../../../src/base/time.ts";
import type { SwarmLayout } from "../../../src/protocol/swarm/contract.ts";
import { LayerExchange } from "../../../src/protocol/swarm/layer-exchange.ts";
import { LayerTree } from "../../../src/protocol/swarm/layer-tree.ts";
import type { HashRange } from "../../../src/wire/peer/hash-message.ts";
import { seededRandom } from "../../seeded-random.ts";
import { sha256 } from "../../wire/make-torrent.ts";

const merkle = new Merkle(sha256);
const at = (ms: number) => instant(ms);
const PIECE_LENGTH = 32_768;
/** Two files of many pieces, and a file of one piece between them, whose hash the metadata contains. */
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

type LayerExchangeOutput = NonNullable<ReturnType<LayerExchange["poll"]>>;

function drain(exchange: LayerExchange): LayerExchangeOutput[] {
  const outputs: LayerExchangeOutput[] = [];
  for (let output = exchange.poll(); output; output = exchange.poll()) outputs.push(output);
  return outputs;
}

function answerTo(range: HashRange): Uint8Array<ArrayBuffer> {
  const tree = trees[layers.findIndex(({ root }) => root === range.root)]!;
  return tree.answer(range)!;
}

/** How a peer behaves when it is asked. */
type Behaviour = "right" | "wrong" | "reject" | "silent";

/** Requests and answers until there is no further output; a banned peer disconnects. */
function run(exchange: LayerExchange, behaviours: Map<number, Behaviour>, now: number) {
  const seen: LayerExchangeOutput[] = [];
  for (let round = 0; round < 1_000; round++) {
    exchange.wake(at(now));
    exchange.request(behaviours.keys(), at(now));
    const outputs = drain(exchange);
    if (outputs.length === 0) return seen;
    for (const output of outputs) {
      seen.push(output);
      if (output.kind === "ban") {
        behaviours.delete(output.connection);
        exchange.peerLeft(output.connection);
      }
      if (output.kind !== "request") continue;
      const { connection, range } = output;
      const behaviour = behaviours.get(connection);
      assert.ok(behaviour !== "reject" || exchange.rejected(connection, range, at(now)));
      if (behaviour !== "right" && behaviour !== "wrong") continue;
      const hashes = answerTo(range);
      if (behaviour === "wrong") hashes[round % hashes.length]! ^= 1;
      assert.ok(exchange.received(connection, range, hashes));
    }
  }
  throw new Error("the exchange never ends");
}

const requestsIn = (outputs: readonly LayerExchangeOutput[]) =>
  outputs.filter((output) => output.kind === "request");
const bannedIn = (outputs: readonly LayerExchangeOutput[]) =>
  outputs.flatMap((output) => (output.kind === "ban" ? [output.connection] : []));

test("LayerExchange: fetches all ranges from one peer, each requested once", () => {
  const { exchange, pieceHashes } = someExchange();
  const seen = run(exchange, new Map([[1, "right"]]), 0);
  assert.equal(requestsIn(seen).length, 4 + 2);
  assert.equal(seen.at(-1)?.kind, "complete");
  assert.equal(seen.filter(({ kind }) => kind === "complete").length, 1);
  assert.deepEqual(pieceHashes, ALL);
  assert.equal(exchange.nextWake(), undefined);
  assert.ok(exchange.isComplete);
});

test("LayerExchange: at most four ranges are requested from one peer, and each range from at most two peers", () => {
  const { exchange } = someExchange();
  exchange.request([1, 3, 5, 7, 9], at(0));
  exchange.request([1, 3, 5, 7, 9], at(1));
  const requests = requestsIn(drain(exchange));
  assert.equal(requests.length, 12);
  for (const connection of [1, 3, 5, 7, 9])
    assert.ok(requests.filter((request) => request.connection === connection).length <= 4);
  const places = requests.map(
    ({ range }) => `${layers.findIndex(({ root }) => root === range.root)} ${range.index}`,
  );
  for (const place of places) assert.equal(places.filter((other) => other === place).length, 2);
  assert.deepEqual(
    requests.slice(0, 4).map(({ connection }) => connection),
    [1, 1, 1, 1],
    "the most promising first",
  );
});

test("LayerExchange: the first wrong hash bans its sender, and other peers are asked", () => {
  const { exchange, pieceHashes } = someExchange();
  const seen = run(exchange, new Map<number, Behaviour>([[1, "wrong"], [3, "right"]]), 0); // biome-ignore format: pairs
  assert.deepEqual(bannedIn(seen)[0], 1);
  assert.ok(bannedIn(seen).every((liar) => liar === 1));
  assert.deepEqual(pieceHashes, ALL);
});

test("LayerExchange: hashes of another file, or of another place in the file, are wrong", () => {
  for (const other of [{ index: 512 }, { root: layers[1]!.root }]) {
    const { exchange, pieceHashes } = someExchange();
    exchange.request([1], at(0));
    const [ask] = requestsIn(drain(exchange));
    const wrong = trees["root" in other ? 1 : 0]!.answer({ ...ask!.range, proofLayers: 9, ...other })!;
    const cut = concatBytes([wrong, new Uint8Array(64)]).subarray(0, answerTo(ask!.range).length);
    assert.ok(exchange.received(1, ask!.range, cut));
    assert.deepEqual(bannedIn(drain(exchange)), [1]);
    assert.ok(
      pieceHashes.subarray(0, 32 * FIRST).every((byte) => byte === 0),
      "nothing of it is kept",
    );
  }
});

test("LayerExchange: unrequested and repeated answers are refused", () => {
  const { exchange } = someExchange();
  exchange.request([1], at(0));
  const [ask] = requestsIn(drain(exchange));
  const hashes = answerTo(ask!.range);
  assert.equal(exchange.received(3, ask!.range, hashes), false);
  assert.equal(exchange.rejected(3, ask!.range, at(0)), false);
  assert.equal(exchange.received(1, { ...ask!.range, proofLayers: 3 }, hashes), false);
  assert.equal(exchange.received(1, ask!.range, hashes), true);
  assert.equal(exchange.received(1, ask!.range, hashes), false);
});

test("LayerExchange.wake: a silent peer does not delay the others", () => {
  const { exchange, pieceHashes } = someExchange();
  run(exchange, new Map<number, Behaviour>([[1, "silent"], [3, "silent"]]), 0); // biome-ignore format: pairs
  assert.equal(exchange.nextWake(), 3_000);
  const seen = run(exchange, new Map<number, Behaviour>([[1, "silent"], [3, "silent"], [5, "right"]]), 3_000); // biome-ignore format: pairs
  assert.equal(seen.at(-1)?.kind, "complete");
  assert.deepEqual(pieceHashes, ALL);
});

test("LayerExchange: many silent peers that are asked first delay the layers by seconds only", () => {
  const { exchange, pieceHashes } = someExchange();
  const behaviours = new Map<number, Behaviour>();
  for (let id = 1; id < 160; id += 2) behaviours.set(id, id === 159 ? "right" : "silent");
  let now = 0;
  for (; !exchange.isComplete && now < 120_000; now += 1_000) {
    const requests = requestsIn(run(exchange, behaviours, now));
    assert.ok(requests.length <= 4 * behaviours.size);
  }
  assert.deepEqual(pieceHashes, ALL);
  assert.ok(now <= 15_000, `it took ${now} ms`);
});

test("LayerExchange: many rejecting peers that are asked first do not prevent asking others", () => {
  const { exchange, pieceHashes } = someExchange();
  const ids = Array.from({ length: 80 }, (_, i) => 2 * i + 1);
  const due: { readonly at: number; readonly answer: () => void }[] = [];
  let now = 0;
  for (; !exchange.isComplete && now < 120_000; now += 100) {
    exchange.wake(at(now));
    for (const { answer } of due.splice(0, due.findIndex((each) => each.at > now) >>> 0)) answer();
    exchange.request(ids, at(now));
    for (const { connection, range } of requestsIn(drain(exchange)))
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

test("LayerExchange: accepts late answers", () => {
  const { exchange, pieceHashes } = someExchange();
  let now = 0;
  for (; !exchange.isComplete && now < 60_000; now += 4_000) {
    exchange.wake(at(now));
    exchange.request([1], at(now));
    // Each answer takes four seconds, so it is late.
    for (const { range } of requestsIn(drain(exchange))) {
      exchange.wake(at(now + 3_999));
      assert.ok(exchange.received(1, range, answerTo(range)));
    }
  }
  assert.deepEqual(pieceHashes, ALL);
  assert.ok(now <= 12_000, `it took ${now} ms`);
});

test("LayerExchange: a peer that rejects four times is paused for ten seconds", () => {
  const { exchange, pieceHashes } = someExchange();
  const seen = run(exchange, new Map([[1, "reject"]]), 0);
  assert.equal(requestsIn(seen).length, 4);
  assert.equal(exchange.nextWake(), 10_000);
  assert.equal(run(exchange, new Map([[1, "right"]]), 9_999).length, 0);
  run(exchange, new Map([[1, "right"]]), 10_000);
  assert.deepEqual(pieceHashes, ALL);
});

test("LayerExchange.peerLeft: ranges requested from the peer are requested from others at once", () => {
  const { exchange, pieceHashes } = someExchange();
  exchange.request([1, 3], at(0));
  drain(exchange);
  exchange.peerLeft(1);
  exchange.peerLeft(3);
  assert.equal(exchange.nextWake(), undefined);
  run(exchange, new Map([[5, "right"]]), 1);
  assert.deepEqual(pieceHashes, ALL);
});

for (let seed = 1; seed <= 20; seed++)
  test(`LayerExchange: with wrong, rejecting, silent and leaving peers, an honest peer still completes (seed ${seed})`, () => {
    const random = seededRandom(seed);
    const { exchange, pieceHashes } = someExchange();
    const kinds: Behaviour[] = ["wrong", "reject", "silent"];
    const behaviours = new Map<number, Behaviour>();
    for (let id = 1; id < 30; id += 2) behaviours.set(id, kinds[Math.floor(random() * 3)]!);
    const liars: number[] = [];
    for (let now = 0; !exchange.isComplete && now < 120_000; now += 1_000) {
      if (now === 5_000) behaviours.set(101, "right");
      liars.push(...bannedIn(run(exchange, behaviours, now)));
      const gone = [...behaviours.keys()].filter((id) => id !== 101 && random() < 0.05);
      for (const id of gone) {
        behaviours.delete(id);
        exchange.peerLeft(id);
      }
    }
    assert.ok(exchange.isComplete);
    assert.ok(!liars.includes(101));
    assert.deepEqual(pieceHashes, ALL);
  });
