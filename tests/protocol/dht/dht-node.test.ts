import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import type { PeerAddress } from "../../../src/base/address.ts";
import { latin1Bytes } from "../../../src/base/bytes.ts";
import { randomBelow } from "../../../src/base/random.ts";
import { type Instant, instant } from "../../../src/base/time.ts";
import type { DhtSetup } from "../../../src/protocol/dht/contract.ts";
import { DhtNode } from "../../../src/protocol/dht/dht-node.ts";
import { ed25519Verifier } from "../../../src/runtime/crypto.ts";
import type { KrpcMessage, KrpcReply, KrpcRequest } from "../../../src/wire/dht/krpc.ts";
import { decodeKrpc } from "../../../src/wire/dht/krpc-decode.ts";
import { encodeKrpc } from "../../../src/wire/dht/krpc-encode.ts";
import { nodeIdFor } from "../../../src/wire/dht/node-id.ts";
import { seededRandom } from "../../seeded-random.ts";

const SEED = Number(process.env.SLUICE_SIMULATION_SEED ?? 1);
const sha1 = (bytes: Uint8Array) => new Uint8Array(createHash("sha1").update(bytes).digest());
const HASH = new Uint8Array(20).fill(3);
const CLIENT = { host: "81.2.3.4", port: 6881 };

/** A node, and the datagrams it sends. */
class TestNode {
  readonly random = seededRandom(SEED);
  readonly node: DhtNode;
  now: Instant = instant(1_000);

  constructor(setup: Partial<DhtSetup> = {}) {
    const usual = { families: [4, 6] as const, sha1, verifierOf: ed25519Verifier, isReadOnly: false };
    this.node = new DhtNode({ ...usual, random: this.random, ...setup }, this.now);
  }

  /** Passes a datagram to the node; returns the datagrams it sends. */
  receive(bytes: Uint8Array, from: PeerAddress): { to: PeerAddress; bytes: Uint8Array }[] {
    this.node.handle({ kind: "received", bytes, from }, this.now);
    return this.sent();
  }

  /** Sends a query from an unproven address. */
  query(request: KrpcRequest, from: PeerAddress = CLIENT): KrpcMessage[] {
    const id = nodeIdFor(from.host, this.random);
    const query = encodeKrpc({
      kind: "query",
      transaction: latin1Bytes("tt"),
      id,
      isReadOnly: true,
      request,
    });
    return this.receive(query, from).map(({ bytes }) => decodeKrpc(bytes));
  }

  sent() {
    const sent: { to: PeerAddress; bytes: Uint8Array }[] = [];
    for (let output = this.node.poll(); output; output = this.node.poll())
      if (output.kind === "send") sent.push(output);
    return sent;
  }

  /** Announces a peer with a valid token. */
  announce(port: number, from: PeerAddress = CLIENT): KrpcMessage | undefined {
    const [reply] = this.query({ method: "get_peers", target: HASH, want: undefined, isScrape: false }, from);
    const token = (reply as KrpcReply).token!;
    return this.query({ method: "announce_peer", target: HASH, port, token, isSeed: false }, from)[0];
  }

  peersFor(from: PeerAddress): string[] {
    const [reply] = this.query({ method: "get_peers", target: HASH, want: undefined, isScrape: false }, from);
    return ((reply as KrpcReply).peers ?? []).map(({ host, port }) => `${host}:${port}`);
  }
}

test("DhtNode: stores peers that announce with their own token, and no others", () => {
  const peer = new TestNode();
  const bad = {
    method: "announce_peer",
    target: HASH,
    port: 1,
    token: latin1Bytes("123456"),
    isSeed: false,
  } as const;
  assert.deepEqual(
    peer.query(bad).map((reply) => reply.kind === "failure" && reply.code),
    [203],
  );
  assert.equal(peer.announce(7000)?.kind, "reply");
  assert.equal(peer.announce(0)?.kind, "reply");
  assert.deepEqual(peer.peersFor({ host: "9.9.9.9", port: 1 }).sort(), ["81.2.3.4:6881", "81.2.3.4:7000"]);
  // A token is valid only for its owner, and expires.
  const [reply] = peer.query({ method: "get_peers", target: HASH, want: undefined, isScrape: false });
  const token = (reply as KrpcReply).token!;
  const again = { method: "announce_peer", target: HASH, port: 1, token, isSeed: false } as const;
  assert.equal(peer.query(again, { host: "81.2.3.5", port: 6881 })[0]!.kind, "failure");
  peer.now = instant(peer.now + 11 * 60_000);
  assert.equal(peer.query(again)[0]!.kind, "failure");
  peer.now = instant(peer.now + 20 * 60_000);
  assert.deepEqual(peer.peersFor({ host: "9.9.9.9", port: 1 }), []);
});

test("DhtNode: shares private addresses only within the local network", () => {
  const peer = new TestNode();
  peer.announce(1, { host: "192.168.1.7", port: 5 });
  peer.announce(2, { host: "127.0.0.1", port: 5 });
  peer.announce(3, { host: "81.2.3.4", port: 5 });
  assert.deepEqual(peer.peersFor({ host: "9.9.9.9", port: 1 }), ["81.2.3.4:3"]);
  assert.deepEqual(peer.peersFor({ host: "10.0.0.9", port: 1 }).sort(), ["192.168.1.7:1", "81.2.3.4:3"]);
  assert.equal(peer.peersFor({ host: "127.0.0.1", port: 9 }).length, 3);
});

test("DhtNode: one address cannot fill a swarm, nor get more than three bytes per byte sent", () => {
  const peer = new TestNode();
  for (let port = 1; port < 40; port++) peer.announce(port);
  for (let i = 0; i < 200; i++) peer.announce(1, { host: `90.${i}.3.4`, port: 5 });
  const unproven = { host: "9.9.9.9", port: 1 };
  const request = { method: "get_peers", target: HASH, want: [4, 6], isScrape: true } as const;
  const id = new Uint8Array(20);
  const query = encodeKrpc({
    kind: "query",
    transaction: latin1Bytes("tt"),
    id,
    isReadOnly: true,
    request,
  });
  const [answer] = peer.receive(query, unproven);
  assert.ok(answer!.bytes.length <= 3 * query.length, `${answer!.bytes.length} for ${query.length}`);
  // A proven address gets larger responses.
  peer.announce(1, unproven);
  const [more] = peer.receive(query, unproven);
  assert.ok(more!.bytes.length > 1000 && more!.bytes.length <= 1400, `${more!.bytes.length}`);
  const all = peer.peersFor(unproven);
  assert.ok(all.length > 50);
  assert.ok(all.filter((peer) => peer.startsWith("81.2.3.4:")).length <= 4);
});

test("DhtNode: answers samples and unknown methods with a target, and refuses other methods (BEP 51)", () => {
  const peer = new TestNode();
  peer.announce(1);
  const [sample] = peer.query({ method: "sample_infohashes", target: HASH, want: undefined });
  assert.deepEqual((sample as KrpcReply).samples?.infohashes, HASH);
  assert.equal((sample as KrpcReply).samples?.count, 1);
  assert.equal(peer.query({ method: "other", target: HASH, want: undefined })[0]!.kind, "reply");
});

test("DhtNode: a read-only node answers no queries, and says so in its own (BEP 43)", () => {
  const peer = new TestNode({ isReadOnly: true });
  assert.deepEqual(peer.query({ method: "ping" }), []);
  peer.node.handle({ kind: "nodes", addresses: [CLIENT] }, peer.now);
  const [query] = peer.sent();
  const message = decodeKrpc(query!.bytes);
  assert.ok(message.kind === "query" && message.isReadOnly);
});

test("DhtNode: accepts an answer only from the queried address", () => {
  const peer = new TestNode();
  peer.node.handle({ kind: "nodes", addresses: [CLIENT] }, peer.now);
  const [query] = peer.sent();
  const { transaction } = decodeKrpc(query!.bytes);
  const answer = (id: Uint8Array) => encodeKrpc({ kind: "reply", transaction, id });
  const id = nodeIdFor(CLIENT.host, peer.random);
  peer.receive(answer(id), { ...CLIENT, port: 6882 });
  peer.receive(answer(id), { ...CLIENT, host: "81.2.3.5" });
  assert.equal(peer.node.figures().nodes4, 0);
  peer.receive(answer(id), CLIENT);
  assert.equal(peer.node.figures().nodes4, 1);
});

/** Sends `count` datagrams from forged addresses; returns the cost, and what the node sent. */
function flood(count: number) {
  const peer = new TestNode();
  const random = seededRandom(SEED + 1);
  const target = HASH;
  const requests: KrpcRequest[] = [
    { method: "ping" },
    { method: "get_peers", target, want: [4, 6], isScrape: true },
    { method: "find_node", target, want: undefined },
    { method: "announce_peer", target, port: 1, token: latin1Bytes("abcdef"), isSeed: false },
    { method: "put", token: latin1Bytes("abcdef"), item: { value: latin1Bytes("1:x") }, cas: undefined },
  ];
  const id = new Uint8Array(20).fill(9);
  const bytes = requests.map((request) =>
    encodeKrpc({ kind: "query", transaction: latin1Bytes("tt"), id, isReadOnly: false, request }),
  );
  const broken = latin1Bytes("d1:ad2:id20:aaaa");
  let given = 0;
  let sent = 0;
  for (let i = 0; i < count; i++) {
    const host = `${20 + randomBelow(random, 80)}.${randomBelow(random, 256)}.${randomBelow(random, 256)}.9`;
    const datagram = i % 3 === 0 ? broken : bytes[i % bytes.length]!;
    given += datagram.length;
    // A million in a minute.
    peer.now = instant(1_000 + i * 0.06);
    for (const { bytes } of peer.receive(datagram, { host, port: 6881 })) sent += bytes.length;
    if (i % 1_000 === 0) peer.node.wake(peer.now);
    for (const { bytes } of peer.sent()) sent += bytes.length;
  }
  return { peer, given, sent };
}

test("DhtNode: a flood of forged datagrams leaves no state, and causes few responses", () => {
  console.log(`seed ${SEED}`);
  const { peer, given, sent } = flood(Number(process.env.SLUICE_FLOOD ?? 30_000));
  assert.ok(sent <= 3 * given, `${sent} for ${given}`);
  const { peers, items, nodes4, dropped, malformed } = peer.node.figures();
  assert.deepEqual({ peers, items, nodes4 }, { peers: 0, items: 0, nodes4: 0 });
  assert.ok(dropped > malformed, `${dropped} dropped`);
  // A known node is still answered.
  peer.node.handle({ kind: "nodes", addresses: [CLIENT] }, peer.now);
  const query = peer.sent().find(({ to }) => to.host === CLIENT.host);
  const { transaction } = decodeKrpc(query!.bytes);
  peer.receive(encodeKrpc({ kind: "reply", transaction, id: nodeIdFor(CLIENT.host, peer.random) }), CLIENT);
  assert.equal(peer.node.figures().nodes4, 1);
});
