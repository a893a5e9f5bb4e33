import assert from "node:assert/strict";
import { test } from "node:test";
import { DecodeError } from "../../src/base/errors.ts";
import type { Ed25519Sign } from "../../src/base/signature.ts";
import { ed25519Key, ed25519Verifier } from "../../src/runtime/crypto.ts";
import {
  encodeCertificate,
  encodeProof,
  provedRole,
  type RoleParties,
} from "../../src/wire/live/role-proof.ts";
import { INFOHASH, KEY, PROOFS } from "./live-vectors.ts";

const RELAY = ed25519Key(new Uint8Array(32).fill(5));
const PARTIES: RoleParties = {
  infohash: INFOHASH,
  prover: new Uint8Array(20).fill(1),
  verifier: new Uint8Array(20).fill(2),
  challenge: new Uint8Array(16).fill(3),
};
const UNTIL = 1_790_000_000_000;

const certify = (publicKey: Uint8Array, sign: Ed25519Sign) =>
  encodeCertificate({ publicKey, untilMs: UNTIL }, INFOHASH, sign);

function roleIn(bytes: Uint8Array, parties: RoleParties = PARTIES, now = UNTIL): string | undefined {
  return provedRole(bytes, parties, KEY.publicKey, ed25519Verifier, now);
}

test("provedRole accepts the key of the stream, and a relay with a certificate of it until that expires", () => {
  const certificate = certify(RELAY.publicKey, KEY.sign);
  const relay = encodeProof({ role: "relay", sign: RELAY.sign, certificate }, PARTIES);
  assert.equal(roleIn(encodeProof({ role: "source", sign: KEY.sign }, PARTIES)), "source");
  assert.equal(roleIn(encodeProof({ role: "relay", sign: KEY.sign }, PARTIES)), "relay");
  assert.equal(roleIn(relay), "relay");
  assert.equal(roleIn(relay, PARTIES, UNTIL + 1), undefined);
});

test("provedRole refuses a proof that was made for other peers, another challenge, stream or role", () => {
  const proof = encodeProof({ role: "source", sign: KEY.sign }, PARTIES);
  const other = new Uint8Array(20).fill(9);
  const changes: Partial<RoleParties>[] = [
    { prover: other },
    { verifier: other },
    { prover: PARTIES.verifier, verifier: PARTIES.prover },
    { challenge: other.subarray(0, 16) },
    { infohash: "00".repeat(20) as RoleParties["infohash"] },
  ];
  for (const change of changes) assert.equal(roleIn(proof, { ...PARTIES, ...change }), undefined);
  for (const role of [0, 1, 3]) {
    const changed = proof.slice();
    changed[1] = role;
    assert.equal(roleIn(changed), undefined, `role ${role}`);
  }
});

test("provedRole refuses a key of the prover's own, also with a certificate that it signed itself or as the source", () => {
  const own = certify(RELAY.publicKey, RELAY.sign);
  const right = certify(RELAY.publicKey, KEY.sign);
  for (const role of ["relay", "source"] as const)
    assert.equal(roleIn(encodeProof({ role, sign: RELAY.sign }, PARTIES)), undefined);
  assert.equal(
    roleIn(encodeProof({ role: "relay", sign: RELAY.sign, certificate: own }, PARTIES)),
    undefined,
  );
  assert.equal(
    roleIn(encodeProof({ role: "source", sign: RELAY.sign, certificate: right }, PARTIES)),
    undefined,
  );
});

test("provedRole throws DecodeError on wrong lengths", () => {
  const proof = encodeProof({ role: "source", sign: KEY.sign }, PARTIES);
  const long = proof.slice();
  long[3] = 1;
  for (const bytes of [proof.subarray(0, 67), proof.subarray(0, 40), new Uint8Array([...proof, 0]), long])
    assert.throws(() => roleIn(bytes), DecodeError);
});

test("the proofs of the test vectors are valid", () => {
  for (const { role, bytes, parties } of PROOFS) assert.equal(roleIn(bytes, parties), role);
});
