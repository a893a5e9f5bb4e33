import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { infohashOf } from "../../../src/base/ids.ts";
import { instant } from "../../../src/base/time.ts";
import { MAX_METADATA_BYTES } from "../../../src/protocol/swarm/limits.ts";
import { MetadataExchange } from "../../../src/protocol/swarm/metadata-exchange.ts";
import { seededRandom } from "../../seeded-random.ts";

const PIECE = 16 * 1024;
const at = (ms: number) => instant(ms);
const sha1 = (bytes: Uint8Array) => new Uint8Array(createHash("sha1").update(bytes).digest());
const random = seededRandom(5);
const info = Uint8Array.from({ length: 5 * PIECE + 100 }, () => random() * 256);
const fake = info.map((byte, i) => (i % PIECE === 9 ? byte ^ 1 : byte));
const infohash = infohashOf(sha1(info));

type MetadataExchangeOutput = NonNullable<ReturnType<MetadataExchange["poll"]>>;

function drain(exchange: MetadataExchange): MetadataExchangeOutput[] {
  const outputs: MetadataExchangeOutput[] = [];
  for (let output = exchange.poll(); output; output = exchange.poll()) outputs.push(output);
  return outputs;
}

/** Answers requests from the bytes that each connection holds, until there is no further output. */
function converse(
  exchange: MetadataExchange,
  holders: Map<number, Uint8Array>,
  now = 0,
): MetadataExchangeOutput[] {
  const seen: MetadataExchangeOutput[] = [];
  for (let round = 0; round < 1000; round++) {
    const outputs = drain(exchange);
    if (outputs.length === 0) return seen;
    for (const output of outputs) {
      seen.push(output);
      if (output.kind !== "send" || output.message.kind !== "request") continue;
      const bytes = holders.get(output.connection);
      if (!bytes) continue;
      const { piece } = output.message;
      const part = bytes.slice(piece * PIECE, (piece + 1) * PIECE);
      exchange.received(
        output.connection,
        { kind: "data", piece, totalBytes: bytes.length, bytes: part },
        at(now),
      );
      part.fill(0);
    }
  }
  throw new Error("the exchange never ends");
}

const bannedIn = (outputs: MetadataExchangeOutput[]) =>
  outputs.flatMap((output) => (output.kind === "ban" ? [output.connection] : []));

test("MetadataExchange: fetches all pieces from one peer in one round of requests", () => {
  const exchange = new MetadataExchange(infohash, sha1);
  exchange.joined(1, info.length, at(0));
  const seen = converse(exchange, new Map([[1, info]]));
  assert.equal(seen.filter(({ kind }) => kind === "send").length, 6);
  assert.deepEqual(exchange.infoBytes, info);
  assert.equal(exchange.nextWake(), undefined);
});

test("MetadataExchange: several peers share the requests, and a silent one delays nothing", () => {
  const exchange = new MetadataExchange(infohash, sha1);
  exchange.joined(1, info.length, at(0));
  exchange.joined(3, info.length, at(0));
  converse(exchange, new Map([[3, info]]));
  assert.deepEqual(exchange.infoBytes, info, "the doubles made it whole without the silent peer");
});

test("MetadataExchange.wake: late pieces are requested from another peer", () => {
  const exchange = new MetadataExchange(infohash, sha1);
  for (const silent of [1, 3, 5]) exchange.joined(silent, info.length, at(0));
  drain(exchange);
  exchange.joined(7, info.length, at(10));
  assert.deepEqual(drain(exchange), [], "three are asked for each piece already");
  assert.equal(exchange.nextWake(), 1_000);
  exchange.wake(at(1_000));
  converse(exchange, new Map([[7, info]]), 1_000);
  assert.deepEqual(exchange.infoBytes, info);
});

for (const [silent, withinMs] of [
  [10, 2_000],
  [50, 4_000],
] as const) {
  test(`MetadataExchange: ${silent} silent peers delay one good peer by at most ${withinMs} ms`, () => {
    const small = info.subarray(0, 1_000);
    const exchange = new MetadataExchange(infohashOf(sha1(small)), sha1);
    for (let id = 1; id <= silent + 1; id++) exchange.joined(id, small.length, at(0));
    const asked = new Map<number, number>();
    let now = 0;
    for (; !exchange.infoBytes && now <= withinMs; now = exchange.nextWake() ?? now) {
      exchange.wake(at(now));
      const seen = converse(exchange, new Map([[silent + 1, small]]), now);
      for (const output of seen)
        if (output.kind === "send") asked.set(output.connection, (asked.get(output.connection) ?? 0) + 1);
    }
    assert.deepEqual(exchange.infoBytes, small);
    assert.equal(Math.max(...asked.values()), 1, "each peer is asked once");
  });
}

test("MetadataExchange: the late answer of a slow peer is accepted", () => {
  const exchange = new MetadataExchange(infohash, sha1);
  exchange.joined(1, info.length, at(0));
  exchange.wake(at(9_000));
  assert.equal(exchange.nextWake(), 30_000);
  converse(exchange, new Map([[1, info]]), 9_500);
  assert.deepEqual(exchange.infoBytes, info);
});

test("MetadataExchange: a peer that was silent is asked again after a pause", () => {
  const exchange = new MetadataExchange(infohash, sha1);
  exchange.joined(1, info.length, at(0));
  assert.equal(drain(exchange).length, 6);
  exchange.wake(at(1_000));
  assert.deepEqual(drain(exchange), []);
  exchange.wake(at(30_000));
  assert.equal(drain(exchange).length, 6);
});

test("MetadataExchange: a single lying peer is banned, an honest one then serves", () => {
  const exchange = new MetadataExchange(infohash, sha1);
  exchange.joined(1, info.length, at(0));
  assert.deepEqual(bannedIn(converse(exchange, new Map([[1, fake]]))), [1]);
  exchange.joined(3, info.length, at(1));
  assert.deepEqual(bannedIn(converse(exchange, new Map([[3, info]]), 1)), []);
  assert.deepEqual(exchange.infoBytes, info);
});

for (const liars of [[1], [5], [1, 3], [1, 3, 5, 7, 9, 11]]) {
  test(`MetadataExchange: liars ${liars} among eight peers are found, and only they`, () => {
    const exchange = new MetadataExchange(infohash, sha1);
    const holders = new Map<number, Uint8Array>();
    for (let id = 1; id < 16; id += 2) holders.set(id, liars.includes(id) ? fake : info);
    for (const id of holders.keys()) exchange.joined(id, info.length, at(0));
    const accused = bannedIn(converse(exchange, holders));
    assert.deepEqual(exchange.infoBytes, info);
    for (const id of accused) assert.ok(liars.includes(id), `innocent ${id}`);
  });
}

test("MetadataExchange: a wrong size from one peer does not delay the others", () => {
  const exchange = new MetadataExchange(infohash, sha1);
  exchange.joined(1, MAX_METADATA_BYTES, at(0));
  exchange.joined(3, 17, at(0));
  exchange.joined(5, info.length, at(0));
  converse(exchange, new Map([[5, info]]));
  assert.deepEqual(exchange.infoBytes, info);
});

test("MetadataExchange: four silent peers with wrong sizes do not block the right size", () => {
  const exchange = new MetadataExchange(infohash, sha1);
  for (let id = 1; id < 9; id += 2) exchange.joined(id, 1000 + id, at(0));
  exchange.joined(9, info.length, at(0));
  let now = 0;
  for (; !exchange.infoBytes && now < 60_000; now += 500) {
    exchange.wake(at(now));
    converse(exchange, new Map([[9, info]]), now);
  }
  assert.ok(now <= 12_000, `took ${now} ms`);
});

for (const size of [0, -1, 1.5, MAX_METADATA_BYTES + 1, Number.NaN, undefined]) {
  test(`MetadataExchange.joined: requests nothing from a peer that claims ${size} bytes`, () => {
    const exchange = new MetadataExchange(infohash, sha1);
    exchange.joined(1, size, at(0));
    assert.deepEqual(drain(exchange), []);
  });
}

test("MetadataExchange: a peer is paused after a reject, and asked again later", () => {
  const exchange = new MetadataExchange(infohash, sha1);
  exchange.joined(1, info.length, at(0));
  drain(exchange);
  exchange.received(1, { kind: "reject", piece: 0 }, at(5));
  assert.deepEqual(drain(exchange), []);
  assert.equal(exchange.nextWake(), 30_005);
  exchange.wake(at(30_005));
  converse(exchange, new Map([[1, info]]), 30_005);
  assert.deepEqual(exchange.infoBytes, info);
});

test("MetadataExchange: unrequested data is ignored", () => {
  const exchange = new MetadataExchange(infohash, sha1);
  const bytes = info.slice(0, PIECE);
  exchange.received(9, { kind: "data", piece: 0, totalBytes: info.length, bytes }, at(0));
  exchange.joined(1, info.length, at(0));
  exchange.received(1, { kind: "data", piece: 77, totalBytes: info.length, bytes }, at(0));
  assert.deepEqual(bannedIn(drain(exchange)), []);
});

test("MetadataExchange: serves known pieces, rejects unknown ones, and stops answering a flood", () => {
  const exchange = new MetadataExchange(infohash, sha1, info);
  exchange.joined(1, undefined, at(0));
  exchange.received(1, { kind: "request", piece: 5 }, at(0));
  const [data] = drain(exchange);
  assert.ok(data?.kind === "send" && data.message.kind === "data");
  assert.deepEqual(data.message.bytes, info.subarray(5 * PIECE));
  exchange.received(1, { kind: "request", piece: 6 }, at(0));
  const [reject] = drain(exchange);
  assert.ok(reject?.kind === "send" && reject.message.kind === "reject");
  for (let i = 0; i < 1000; i++) exchange.received(1, { kind: "request", piece: 0 }, at(1));
  assert.equal(drain(exchange).length, 2 * 6 + 8 - 2);
});

test("MetadataExchange: rejects requests before the metadata is known", () => {
  const exchange = new MetadataExchange(infohash, sha1);
  exchange.joined(1, undefined, at(0));
  exchange.received(1, { kind: "request", piece: 0 }, at(0));
  const [reject] = drain(exchange);
  assert.ok(reject?.kind === "send" && reject.message.kind === "reject");
});

test("MetadataExchange: random mixes of honest, lying, silent, rejecting and leaving peers (300 seeds)", () => {
  for (let seed = 1; seed <= 300; seed++) {
    const random = seededRandom(seed);
    const kinds = ["honest", "liar", "partial liar", "silent", "rejecter", "wrong size"] as const;
    const crowd = Array.from({ length: 2 + Math.floor(random() * 12) }, (_, i) => ({
      id: 2 * i + 1,
      kind: i === 0 ? "honest" : kinds[Math.floor(random() * kinds.length)]!,
    }));
    const kindOf = new Map<number, (typeof kinds)[number]>(crowd.map(({ id, kind }) => [id, kind]));
    const exchange = new MetadataExchange(infohash, sha1);
    const joining = [...crowd].sort(() => random() - 0.5);
    const waiting: { connection: number; piece: number }[] = [];
    let now = 0;
    for (; !exchange.infoBytes && now < 300_000; now += 50) {
      const joiner = joining.pop();
      if (joiner)
        exchange.joined(joiner.id, info.length + (joiner.kind === "wrong size" ? joiner.id : 0), at(now));
      else if (random() < 0.02)
        exchange.peerLeft(crowd[1 + Math.floor(random() * (crowd.length - 1))]!.id, at(now));
      exchange.wake(at(now));
      for (const output of drain(exchange)) {
        if (output.kind === "ban") {
          const kind = kindOf.get(output.connection);
          assert.ok(kind !== "honest" && kind !== "silent" && kind !== "rejecter", `seed ${seed}: ${kind}`);
        } else if (output.kind === "send" && output.message.kind === "request") {
          waiting.push({ connection: output.connection, piece: output.message.piece });
        }
      }
      while (waiting.length > 0 && random() < 0.7) {
        const [{ connection, piece }] = waiting.splice(Math.floor(random() * waiting.length), 1) as [
          (typeof waiting)[number],
        ];
        const kind = kindOf.get(connection)!;
        if (kind === "silent") continue;
        if (kind === "rejecter") exchange.received(connection, { kind: "reject", piece }, at(now));
        else {
          const isFake = kind === "liar" || kind === "wrong size" || (kind === "partial liar" && piece === 2);
          const bytes = (isFake ? fake : info).slice(piece * PIECE, (piece + 1) * PIECE);
          exchange.received(connection, { kind: "data", piece, totalBytes: info.length, bytes }, at(now));
        }
      }
    }
    assert.deepEqual(exchange.infoBytes, info, `seed ${seed}: ${JSON.stringify(crowd)}`);
  }
});
