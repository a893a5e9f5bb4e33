import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { latin1Bytes, toHex } from "../../src/base/bytes.ts";
import { DecodeError } from "../../src/base/errors.ts";
import { ed25519Key, ed25519Verifier } from "../../src/runtime/crypto.ts";
import { addressFilter } from "../../src/wire/dht/bloom-filter.ts";
import { isSignedItem, itemMessage, itemTarget, mutableTarget } from "../../src/wire/dht/item.ts";
import {
  compareDistance,
  isNodeIdFor,
  nodeIdFor,
  randomIdNear,
  sharedBits,
} from "../../src/wire/dht/node-id.ts";
import { decodeDhtState, encodeDhtState, MAX_DHT_STATE_BYTES } from "../../src/wire/dht/saved-nodes.ts";
import { seededRandom } from "../seeded-random.ts";

const sha1 = (bytes: Uint8Array) => new Uint8Array(createHash("sha1").update(bytes).digest());

test("isNodeIdFor: the examples of BEP 42", () => {
  const examples: [host: string, start: string, last: number][] = [
    ["124.31.75.21", "5fbfbf", 1],
    ["21.75.31.124", "5a3ce9", 86],
    ["65.23.51.170", "a5d432", 22],
    ["84.124.73.14", "1b0321", 65],
    ["43.213.53.83", "e56f6c", 90],
  ];
  for (const [host, start, last] of examples) {
    const id = new Uint8Array(20);
    id.set([0, 2, 4].map((at) => Number.parseInt(start.slice(at, at + 2), 16)));
    id[19] = last;
    assert.ok(isNodeIdFor(id, host), host);
    id[0]! ^= 1;
    assert.ok(!isNodeIdFor(id, host), host);
  }
});

test("nodeIdFor: a valid id for either family; any id without a global address", () => {
  const random = seededRandom(1);
  for (let i = 0; i < 200; i++) {
    const v4 = `${20 + (i % 60)}.${i}.7.9`;
    const v6 = `2a00:${i.toString(16)}::5`;
    for (const host of [v4, v6]) assert.ok(isNodeIdFor(nodeIdFor(host, random), host), host);
    assert.ok(!isNodeIdFor(nodeIdFor(v4, random), "8.8.4.4"));
    assert.ok(isNodeIdFor(nodeIdFor(undefined, random), "192.168.1.7"));
  }
});

test("compareDistance, sharedBits, randomIdNear: by XOR, from the first bit on", () => {
  const random = seededRandom(2);
  const own = nodeIdFor(undefined, random);
  for (let bits = 0; bits < 160; bits++) {
    const near = randomIdNear(own, bits, random);
    assert.equal(sharedBits(own, near), bits);
    const nearer = bits < 159 ? randomIdNear(own, bits + 1, random) : own;
    assert.ok(compareDistance(own, nearer, near) < 0);
  }
  assert.equal(sharedBits(own, own), 160);
});

test("isSignedItem, itemTarget: the examples of BEP 44", () => {
  assert.equal(
    toHex(itemTarget({ value: latin1Bytes("12:Hello World!") }, sha1)),
    "e5f96f6f38320f0f33959cb4d3d656452117aadb",
  );
  const key = hex("77ff84905a91936367c01360803104f92432fcd904a43511876df5cdf3e7e548");
  assert.equal(
    toHex(mutableTarget(key, new Uint8Array(0), sha1)),
    "4a533d47ec9c7d95b1ad75f576cffc641853b750",
  );
  assert.equal(
    toHex(mutableTarget(key, latin1Bytes("foobar"), sha1)),
    "411eba73b6f087ca51a3795d9c8c938d365e32c1",
  );
  const value = latin1Bytes("12:Hello World!");
  assert.equal(
    toHex(itemMessage(latin1Bytes("foobar"), 1, value)),
    toHex(latin1Bytes("4:salt6:foobar3:seqi1e1:v12:Hello World!")),
  );
  const signature = hex(
    "305ac8aeb6c9c151fa120f120ea2cfb923564e11552d06a5d856091e5e853cff1260d3f39e4999684aa92eb73ffd136e6f4f3ecbfda0ce53a1608ecd7ae21f01",
  );
  const signed = { key, salt: new Uint8Array(0), sequence: 1, signature };
  assert.ok(isSignedItem(value, signed, ed25519Verifier));
  assert.ok(!isSignedItem(value, { ...signed, sequence: 2 }, ed25519Verifier));
  assert.ok(!isSignedItem(value, { ...signed, salt: latin1Bytes("x") }, ed25519Verifier));
  const weak = { ...signed, key: new Uint8Array(32), signature: ed25519Key(new Uint8Array(32)).sign(value) };
  assert.ok(!isSignedItem(value, weak, ed25519Verifier));
});

test("addressFilter: the example of BEP 33", () => {
  const hosts = [
    ...Array.from({ length: 256 }, (_, i) => `192.0.2.${i}`),
    ...Array.from({ length: 0x3e8 }, (_, i) => `2001:db8::${i.toString(16)}`),
  ];
  const filter = toHex(addressFilter(hosts, sha1));
  assert.ok(
    filter.startsWith("f6c3f5eaa07ffd91bde89f777f26fb2bff37bdb8fb2bbaa2fd3ddde7bacfff75ee7ccbae"),
    filter,
  );
  assert.equal(filter.length, 512);
});

test("encodeDhtState, decodeDhtState: round trip; refuses malformed states", () => {
  const random = seededRandom(3);
  const nodes = Array.from({ length: 400 }, (_, i) => ({
    id: nodeIdFor(undefined, random),
    address: { host: `1.2.${i >> 8}.${i & 255}`, port: 6881 },
  }));
  const id = nodeIdFor(undefined, random);
  const bytes = encodeDhtState({ families: [{ family: 4, id, nodes }] });
  assert.ok(bytes.length < MAX_DHT_STATE_BYTES);
  const [family, ...others] = decodeDhtState(bytes).families;
  assert.deepEqual(others, []);
  assert.deepEqual(family, { family: 4, id, nodes: nodes.slice(0, 300) });
  assert.deepEqual(decodeDhtState(latin1Bytes("de")).families, []);
  for (const text of ["", "d2:n4dee", "d2:n4d2:id3:abcee"])
    assert.throws(() => decodeDhtState(latin1Bytes(text)), DecodeError);
});

function hex(text: string): Uint8Array {
  return Uint8Array.from(text.match(/../g)!, (pair) => Number.parseInt(pair, 16));
}
