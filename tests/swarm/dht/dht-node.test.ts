import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import type { PeerAddress } from "../../../src/base/address.ts";
import { latin1Bytes } from "../../../src/base/bytes.ts";
import { randomBelow, seededRandom } from "../../../src/base/random.ts";
import { type Instant, instant } from "../../../src/base/time.ts";
import { ed25519Verifier } from "../../../src/runtime/crypto.ts";
import type { DhtSetup } from "../../../src/swarm/dht/contract.ts";
import { DhtNode } from "../../../src/swarm/dht/dht-node.ts";
import { nodeIdFor } from "../../../src/wire/dht-id.ts";
import type { KrpcAsk, KrpcMessage, KrpcReply } from "../../../src/wire/krpc.ts";
import { decodeKrpc } from "../../../src/wire/krpc-decode.ts";
import { encodeKrpc } from "../../../src/wire/krpc-encode.ts";

const SEED = Number(process.env.SLUICE_SIMULATION_SEED ?? 1);
const sha1 = (bytes: Uint8Array) => new Uint8Array(createHash("sha1").update(bytes).digest());
const HASH = new Uint8Array(20).fill(3);
const ASKER = { host: "81.2.3.4", port: 6881 };

/** A node, and what it sends. */
class Bench {
  readonly random = seededRandom(SEED);
  readonly node: DhtNode;
  now: Instant = instant(1_000);

  constructor(setup: Partial<DhtSetup> = {}) {
    const usual = { families: [4, 6] as const, sha1, verifierOf: ed25519Verifier, isReadOnly: false };
    this.node = new DhtNode({ ...usual, random: this.random, ...setup }, this.now);
  }

  /** Gives a datagram; what goes out for it. */
  give(bytes: Uint8Array, from: PeerAddress): { to: PeerAddress; bytes: Uint8Array }[] {
    this.node.handle({ kind: "received", bytes, from }, this.now);
    return this.sent();
  }

  /** Asks as a stranger would. */
  ask(ask: KrpcAsk, from: PeerAddress = ASKER): KrpcMessage[] {
    const id = nodeIdFor(from.host, this.random);
    const query = encodeKrpc({ kind: "query", transaction: latin1Bytes("tt"), id, isReadOnly: true, ask });
    return this.give(query, from).map(({ bytes }) => decodeKrpc(bytes));
  }

  sent() {
    const sent: { to: PeerAddress; bytes: Uint8Array }[] = [];
    for (let output = this.node.poll(); output; output = this.node.poll())
      if (output.kind === "send") sent.push(output);
    return sent;
  }

  /** A peer announces itself, as it should. */
  announce(port: number, from: PeerAddress = ASKER): KrpcMessage | undefined {
    const [reply] = this.ask({ method: "get_peers", target: HASH, want: undefined, isScrape: false }, from);
    const token = (reply as KrpcReply).token!;
    return this.ask({ method: "announce_peer", target: HASH, port, token, isSeed: false }, from)[0];
  }

  peersFor(from: PeerAddress): string[] {
    const [reply] = this.ask({ method: "get_peers", target: HASH, want: undefined, isScrape: false }, from);
    return ((reply as KrpcReply).peers ?? []).map(({ host, port }) => `${host}:${port}`);
  }
}

test("DhtNode: keeps who announced itself with a token of its own, and of nobody else", () => {
  const bench = new Bench();
  const bad = {
    method: "announce_peer",
    target: HASH,
    port: 1,
    token: latin1Bytes("123456"),
    isSeed: false,
  } as const;
  assert.deepEqual(
    bench.ask(bad).map((reply) => reply.kind === "failure" && reply.code),
    [203],
  );
  assert.equal(bench.announce(7000)?.kind, "reply");
  assert.equal(bench.announce(0)?.kind, "reply");
  assert.deepEqual(bench.peersFor({ host: "9.9.9.9", port: 1 }).sort(), ["81.2.3.4:6881", "81.2.3.4:7000"]);
  // A token is its owner's alone, and does not hold for ever.
  const [reply] = bench.ask({ method: "get_peers", target: HASH, want: undefined, isScrape: false });
  const token = (reply as KrpcReply).token!;
  const again = { method: "announce_peer", target: HASH, port: 1, token, isSeed: false } as const;
  assert.equal(bench.ask(again, { host: "81.2.3.5", port: 6881 })[0]!.kind, "failure");
  bench.now = instant(bench.now + 11 * 60_000);
  assert.equal(bench.ask(again)[0]!.kind, "failure");
  bench.now = instant(bench.now + 20 * 60_000);
  assert.deepEqual(bench.peersFor({ host: "9.9.9.9", port: 1 }), []);
});

test("DhtNode: tells addresses of a home to nobody outside it", () => {
  const bench = new Bench();
  bench.announce(1, { host: "192.168.1.7", port: 5 });
  bench.announce(2, { host: "127.0.0.1", port: 5 });
  bench.announce(3, { host: "81.2.3.4", port: 5 });
  assert.deepEqual(bench.peersFor({ host: "9.9.9.9", port: 1 }), ["81.2.3.4:3"]);
  assert.deepEqual(bench.peersFor({ host: "10.0.0.9", port: 1 }).sort(), ["192.168.1.7:1", "81.2.3.4:3"]);
  assert.equal(bench.peersFor({ host: "127.0.0.1", port: 9 }).length, 3);
});

test("DhtNode: one address cannot fill a swarm, nor make it tell more than three bytes for one", () => {
  const bench = new Bench();
  for (let port = 1; port < 40; port++) bench.announce(port);
  for (let i = 0; i < 200; i++) bench.announce(1, { host: `90.${i}.3.4`, port: 5 });
  const stranger = { host: "9.9.9.9", port: 1 };
  const ask = { method: "get_peers", target: HASH, want: [4, 6], isScrape: true } as const;
  const id = new Uint8Array(20);
  const query = encodeKrpc({ kind: "query", transaction: latin1Bytes("tt"), id, isReadOnly: true, ask });
  const [answer] = bench.give(query, stranger);
  assert.ok(answer!.bytes.length <= 3 * query.length, `${answer!.bytes.length} for ${query.length}`);
  // Whoever has shown that it hears us gets more.
  bench.announce(1, stranger);
  const [more] = bench.give(query, stranger);
  assert.ok(more!.bytes.length > 1000 && more!.bytes.length <= 1400, `${more!.bytes.length}`);
  const all = bench.peersFor(stranger);
  assert.ok(all.length > 50);
  assert.ok(all.filter((peer) => peer.startsWith("81.2.3.4:")).length <= 4);
});

test("DhtNode: answers samples, unknown methods with a target, and says what it does not know (BEP 51)", () => {
  const bench = new Bench();
  bench.announce(1);
  const [sample] = bench.ask({ method: "sample_infohashes", target: HASH, want: undefined });
  assert.deepEqual((sample as KrpcReply).samples?.infohashes, HASH);
  assert.equal((sample as KrpcReply).samples?.count, 1);
  assert.equal(bench.ask({ method: "other", target: HASH, want: undefined })[0]!.kind, "reply");
});

test("DhtNode: a node that cannot be asked answers nobody, and says so when it asks (BEP 43)", () => {
  const bench = new Bench({ isReadOnly: true });
  assert.deepEqual(bench.ask({ method: "ping" }), []);
  bench.node.handle({ kind: "nodes", addresses: [ASKER] }, bench.now);
  const [query] = bench.sent();
  const message = decodeKrpc(query!.bytes);
  assert.ok(message.kind === "query" && message.isReadOnly);
});

test("DhtNode: believes no answer but that of the address it asked", () => {
  const bench = new Bench();
  bench.node.handle({ kind: "nodes", addresses: [ASKER] }, bench.now);
  const [query] = bench.sent();
  const { transaction } = decodeKrpc(query!.bytes);
  const answer = (id: Uint8Array) => encodeKrpc({ kind: "reply", transaction, id });
  const id = nodeIdFor(ASKER.host, bench.random);
  bench.give(answer(id), { ...ASKER, port: 6882 });
  bench.give(answer(id), { ...ASKER, host: "81.2.3.5" });
  assert.equal(bench.node.figures().nodes4, 0);
  bench.give(answer(id), ASKER);
  assert.equal(bench.node.figures().nodes4, 1);
});

/** `count` datagrams from forged addresses, faster than anybody reads: what they cost, and what went out. */
function flood(count: number) {
  const bench = new Bench();
  const random = seededRandom(SEED + 1);
  const target = HASH;
  const asks: KrpcAsk[] = [
    { method: "ping" },
    { method: "get_peers", target, want: [4, 6], isScrape: true },
    { method: "find_node", target, want: undefined },
    { method: "announce_peer", target, port: 1, token: latin1Bytes("abcdef"), isSeed: false },
    { method: "put", token: latin1Bytes("abcdef"), item: { value: latin1Bytes("1:x") }, cas: undefined },
  ];
  const id = new Uint8Array(20).fill(9);
  const bytes = asks.map((ask) =>
    encodeKrpc({ kind: "query", transaction: latin1Bytes("tt"), id, isReadOnly: false, ask }),
  );
  const broken = latin1Bytes("d1:ad2:id20:aaaa");
  let given = 0;
  let sent = 0;
  for (let i = 0; i < count; i++) {
    const host = `${20 + randomBelow(random, 80)}.${randomBelow(random, 256)}.${randomBelow(random, 256)}.9`;
    const datagram = i % 3 === 0 ? broken : bytes[i % bytes.length]!;
    given += datagram.length;
    // A million in a minute.
    bench.now = instant(1_000 + i * 0.06);
    for (const { bytes } of bench.give(datagram, { host, port: 6881 })) sent += bytes.length;
    if (i % 1_000 === 0) bench.node.wake(bench.now);
    for (const { bytes } of bench.sent()) sent += bytes.length;
  }
  return { bench, given, sent };
}

test("DhtNode: a flood of forged datagrams leaves nothing behind, and little goes out for it", () => {
  console.log(`seed ${SEED}`);
  const { bench, given, sent } = flood(Number(process.env.SLUICE_FLOOD ?? 30_000));
  assert.ok(sent <= 3 * given, `${sent} for ${given}`);
  const { peers, items, nodes4, dropped, malformed } = bench.node.figures();
  assert.deepEqual({ peers, items, nodes4 }, { peers: 0, items: 0, nodes4: 0 });
  assert.ok(dropped > malformed, `${dropped} dropped`);
  // A node that one knows is heard all the same.
  bench.node.handle({ kind: "nodes", addresses: [ASKER] }, bench.now);
  const query = bench.sent().find(({ to }) => to.host === ASKER.host);
  const { transaction } = decodeKrpc(query!.bytes);
  bench.give(encodeKrpc({ kind: "reply", transaction, id: nodeIdFor(ASKER.host, bench.random) }), ASKER);
  assert.equal(bench.node.figures().nodes4, 1);
});
