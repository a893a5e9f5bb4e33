import assert from "node:assert/strict";
import { test } from "node:test";
import { concatBytes, latin1Bytes } from "../../../src/base/bytes.ts";
import { DecodeError } from "../../../src/base/errors.ts";
import type { MseHandshake } from "../../../src/protocol/mse/contract.ts";
import { MSE_METHOD, type MseMethod, mseCiphers, req1Hash } from "../../../src/wire/peer/mse.ts";
import { MSE_KEY_BYTES, mseKeyPair, mseSecret } from "../../../src/wire/peer/mse-keys.ts";
import { Rc4 } from "../../../src/wire/peer/rc4.ts";
import { seededRandom } from "../../seeded-random.ts";
import {
  INFOHASH,
  INITIAL,
  initiator,
  responder,
  runHandshake,
  seededDependencies,
  sha1,
} from "./handshake-pair.ts";

const { plain, rc4 } = MSE_METHOD;

test("MseInitiator and MseResponder agree on every method, in parts of any size, and pass on the payload", () => {
  const cases: readonly [offered: number, methods: readonly MseMethod[], chosen: MseMethod][] = [
    [plain | rc4, [rc4, plain], rc4],
    [plain | rc4, [plain, rc4], plain],
    [rc4, [plain, rc4], rc4],
    [plain, [rc4, plain], plain],
    [rc4, [rc4], rc4],
  ];
  for (const [i, [offered, methods, chosen]] of cases.entries()) {
    for (const step of [1, 7, 100, 4096]) {
      const dependencies = seededDependencies(seededRandom(100 * i + step));
      const { call, answer } = runHandshake(
        initiator(dependencies, offered),
        responder(dependencies, methods),
        step,
      );
      assert.equal(call?.method, chosen);
      assert.equal(answer?.method, chosen);
      assert.deepEqual(answer?.infohash, INFOHASH);
      const first = new Uint8Array(answer.rest.length);
      answer.stream.decrypt(answer.rest, first);
      assert.deepEqual(first, INITIAL);
      const there = Uint8Array.from({ length: 300 }, (_, at) => at);
      const sent = there.slice();
      call.stream.encrypt(sent);
      assert.equal(sent.join() === there.join(), chosen === plain, "in the clear or not, as was chosen");
      answer.stream.decrypt(sent, sent);
      assert.deepEqual(sent, there);
      answer.stream.encrypt(sent);
      call.stream.decrypt(sent.subarray(0, 100), sent);
      call.stream.decrypt(sent.subarray(100), sent.subarray(100));
      assert.deepEqual(sent, there);
      assert.equal(call.stream.isClear, chosen === plain);
    }
  }
});

test("MseInitiator and MseResponder pad each part by 0 to 512 bytes, every length as likely", () => {
  const dependencies = seededDependencies(seededRandom(1));
  const key = { min: 1e9, max: 0, sum: 0 };
  const choice = { min: 1e9, max: 0, sum: 0 };
  const note = (of: typeof key, length: number) => {
    of.min = Math.min(of.min, length);
    of.max = Math.max(of.max, length);
    of.sum += length;
  };
  const rounds = 400;
  for (let i = 0; i < rounds; i++) {
    const { sent } = runHandshake(initiator(dependencies), responder(dependencies), 4096);
    note(key, sent[0][0]!.length - MSE_KEY_BYTES);
    note(key, sent[1][0]!.length - MSE_KEY_BYTES);
    // Hashes, constant, offer, two lengths, payload; and constant, choice, length.
    note(choice, sent[0][1]!.length - 40 - 8 - 4 - 2 - 2 - INITIAL.length);
    note(choice, sent[1][1]!.length - 8 - 4 - 2);
  }
  for (const { min, max, sum } of [key, choice]) {
    assert.ok(min >= 0 && min < 10 && max <= 512 && max > 502, `from ${min} to ${max}`);
    assert.ok(Math.abs(sum / (2 * rounds) - 256) < 25, `on average ${sum / (2 * rounds)}`);
  }
});

test("MseResponder: refuses unknown content, methods that it does not accept, and an invalid key", () => {
  const dependencies = seededDependencies(seededRandom(2));
  const stranger = initiator(dependencies, 3, new Uint8Array(20).fill(1));
  assert.throws(() => runHandshake(stranger, responder(dependencies), 4096), DecodeError);
  assert.throws(
    () => runHandshake(initiator(dependencies, plain), responder(dependencies, [rc4]), 4096),
    DecodeError,
  );
  assert.throws(
    () => runHandshake(initiator(dependencies, 0x100 | rc4), responder(dependencies, [plain]), 4096),
    DecodeError,
  );
  assert.throws(() => responder(dependencies).receive(new Uint8Array(96)), DecodeError);
});

test("MseInitiator: refuses a method that it has not offered, and two at once", () => {
  const dependencies = seededDependencies(seededRandom(3));
  // The responder chooses an offered method, so the test changes its choice in transit.
  for (const lie of [plain, plain | rc4, 0, 4]) {
    const other = responder(dependencies, [rc4]);
    let parts = 0;
    const liar: MseHandshake = {
      receive: (bytes) => other.receive(bytes),
      take() {
        const bytes = other.take();
        // The choice follows the key, encrypted by a key stream: flipping its bits flips those of the choice.
        if (bytes && parts++ === 1) bytes[11]! ^= rc4 ^ lie;
        return bytes;
      },
    };
    assert.throws(() => runHandshake(initiator(dependencies, rc4), liar, 4096), DecodeError, `method ${lie}`);
  }
});

/** A side with one bit of its second message flipped: RC4 encrypts, but does not authenticate. */
function bent(end: MseHandshake, at: number, bits: number): MseHandshake {
  let parts = 0;
  return {
    receive: (bytes) => end.receive(bytes),
    take() {
      const bytes = end.take();
      if (bytes && parts++ === 1) bytes[at]! ^= bits;
      return bytes;
    },
  };
}

test("MseResponder: refuses a handshake with a wrong verification constant", () => {
  const dependencies = seededDependencies(seededRandom(5));
  // The key is followed by two hashes, then the constant.
  const broken = bent(initiator(dependencies), 40 + 7, 1);
  assert.throws(() => runHandshake(broken, responder(dependencies), 4096), /verification constant/);
});

test("MseResponder and MseInitiator refuse padding longer than 512 bytes", () => {
  const dependencies = seededDependencies(seededRandom(6));
  // The high byte of the length follows the constant and the methods.
  const call = bent(initiator(dependencies), 40 + 8 + 4, 0x80);
  assert.throws(() => runHandshake(call, responder(dependencies), 4096), /padding of \d+ bytes/);
  const answer = bent(responder(dependencies), 8 + 4, 0x80);
  assert.throws(() => runHandshake(initiator(dependencies), answer, 4096), /padding of \d+ bytes/);
});

test("mseCiphers: the initiator uses keyA, the responder keyB, from byte 1024 on", () => {
  const secret = new Uint8Array(96).fill(7);
  const stream = (name: string) => {
    const rc4 = new Rc4(sha1(concatBytes([latin1Bytes(name), secret, INFOHASH])));
    const bytes = new Uint8Array(1024 + 16);
    rc4.apply(bytes, bytes);
    return bytes.slice(1024);
  };
  for (const isCaller of [true, false]) {
    const { ours, theirs } = mseCiphers(secret, INFOHASH, isCaller, sha1);
    const made = [ours, theirs].map((cipher) => {
      const bytes = new Uint8Array(16);
      cipher.apply(bytes, bytes);
      return bytes;
    });
    assert.deepEqual(made, isCaller ? [stream("keyA"), stream("keyB")] : [stream("keyB"), stream("keyA")]);
  }
});

test("MseResponder and MseInitiator search at most 512 bytes for the end of the padding", () => {
  const dependencies = seededDependencies(seededRandom(4));
  const { privateKey, publicKey } = mseKeyPair(new Uint8Array(20).fill(3));
  for (const [padBytes, isTaken] of [
    [0, true],
    [512, true],
    [513, false],
    [600, false],
  ] as const) {
    const end = responder(dependencies);
    end.receive(publicKey);
    const theirs = end.take()!.subarray(0, MSE_KEY_BYTES);
    const mark = req1Hash(mseSecret(privateKey, theirs), sha1);
    const feed = () => {
      end.receive(new Uint8Array(padBytes));
      end.receive(mark);
    };
    if (isTaken) assert.doesNotThrow(feed);
    else assert.throws(feed, DecodeError, `${padBytes} bytes`);
  }
  const call = initiator(dependencies);
  call.receive(publicKey);
  assert.throws(() => call.receive(new Uint8Array(600)), DecodeError);
});
