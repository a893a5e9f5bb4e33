import assert from "node:assert/strict";
import { test } from "node:test";
import { concatBytes, latin1Bytes } from "../../../src/base/bytes.ts";
import { DecodeError } from "../../../src/base/errors.ts";
import { seededRandom } from "../../../src/base/random.ts";
import type { MseHandshake } from "../../../src/swarm/mse/contract.ts";
import { MSE_METHOD, type MseMethod, mseCiphers, req1Hash } from "../../../src/wire/mse.ts";
import { MSE_KEY_BYTES, mseKeyPair, mseSecret } from "../../../src/wire/mse-keys.ts";
import { Rc4 } from "../../../src/wire/rc4.ts";
import { answerer, caller, INFOHASH, INITIAL, meet, sha1, toolsOf } from "./ends.ts";

const { plain, rc4 } = MSE_METHOD;

test("MseCaller and MseAnswerer meet on every method, in parts of any size, and hand over what was sent along", () => {
  const cases: readonly [offered: number, methods: readonly MseMethod[], chosen: MseMethod][] = [
    [plain | rc4, [rc4, plain], rc4],
    [plain | rc4, [plain, rc4], plain],
    [rc4, [plain, rc4], rc4],
    [plain, [rc4, plain], plain],
    [rc4, [rc4], rc4],
  ];
  for (const [i, [offered, methods, chosen]] of cases.entries()) {
    for (const step of [1, 7, 100, 4096]) {
      const tools = toolsOf(seededRandom(100 * i + step));
      const { call, answer } = meet(caller(tools, offered), answerer(tools, methods), step);
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

test("MseCaller and MseAnswerer pad each part by 0 to 512 bytes, every length as likely", () => {
  const tools = toolsOf(seededRandom(1));
  const key = { min: 1e9, max: 0, sum: 0 };
  const choice = { min: 1e9, max: 0, sum: 0 };
  const note = (of: typeof key, length: number) => {
    of.min = Math.min(of.min, length);
    of.max = Math.max(of.max, length);
    of.sum += length;
  };
  const rounds = 400;
  for (let i = 0; i < rounds; i++) {
    const { sent } = meet(caller(tools), answerer(tools), 4096);
    note(key, sent[0][0]!.length - MSE_KEY_BYTES);
    note(key, sent[1][0]!.length - MSE_KEY_BYTES);
    // Hashes, zeros, offer, two lengths, greeting; and zeros, choice, length.
    note(choice, sent[0][1]!.length - 40 - 8 - 4 - 2 - 2 - INITIAL.length);
    note(choice, sent[1][1]!.length - 8 - 4 - 2);
  }
  for (const { min, max, sum } of [key, choice]) {
    assert.ok(min >= 0 && min < 10 && max <= 512 && max > 502, `from ${min} to ${max}`);
    assert.ok(Math.abs(sum / (2 * rounds) - 256) < 25, `on average ${sum / (2 * rounds)}`);
  }
});

test("MseAnswerer: refuses content that it does not have, methods that it does not take, and a key that is none", () => {
  const tools = toolsOf(seededRandom(2));
  const stranger = caller(tools, 3, new Uint8Array(20).fill(1));
  assert.throws(() => meet(stranger, answerer(tools), 4096), DecodeError);
  assert.throws(() => meet(caller(tools, plain), answerer(tools, [rc4]), 4096), DecodeError);
  assert.throws(() => meet(caller(tools, 0x100 | rc4), answerer(tools, [plain]), 4096), DecodeError);
  assert.throws(() => answerer(tools).receive(new Uint8Array(96)), DecodeError);
});

test("MseCaller: refuses a method that it has not offered, and two at once", () => {
  const tools = toolsOf(seededRandom(3));
  // Who answers takes plain where it is there, so it has to be made to lie.
  for (const lie of [plain, plain | rc4, 0, 4]) {
    const other = answerer(tools, [rc4]);
    let parts = 0;
    const liar: MseHandshake = {
      receive: (bytes) => other.receive(bytes),
      take() {
        const bytes = other.take();
        // Behind the key comes the choice, under a key stream: another choice is the same with other bits.
        if (bytes && parts++ === 1) bytes[11]! ^= rc4 ^ lie;
        return bytes;
      },
    };
    assert.throws(() => meet(caller(tools, rc4), liar, 4096), DecodeError, `method ${lie}`);
  }
});

/** An end of which one bit of what it says second arrives as another: RC4 hides bits, and does not guard them. */
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

test("MseAnswerer: refuses a handshake whose constant is another: the keys are not the same", () => {
  const tools = toolsOf(seededRandom(5));
  // Behind the key come two hashes, and then the constant.
  const broken = bent(caller(tools), 40 + 7, 1);
  assert.throws(() => meet(broken, answerer(tools), 4096), /verification constant/);
});

test("MseAnswerer and MseCaller refuse padding that says it is longer than 512 bytes", () => {
  const tools = toolsOf(seededRandom(6));
  // The high byte of the length is behind the constant and the methods.
  const call = bent(caller(tools), 40 + 8 + 4, 0x80);
  assert.throws(() => meet(call, answerer(tools), 4096), /padding that is too long/);
  const answer = bent(answerer(tools), 8 + 4, 0x80);
  assert.throws(() => meet(caller(tools), answer, 4096), /padding that is too long/);
});

test("mseCiphers: the caller's stream is keyA's, the other keyB's, from byte 1024 on", () => {
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

test("MseAnswerer and MseCaller look no further than 512 bytes for the end of the padding", () => {
  const tools = toolsOf(seededRandom(4));
  const { privateKey, publicKey } = mseKeyPair(new Uint8Array(20).fill(3));
  for (const [padBytes, isTaken] of [
    [0, true],
    [512, true],
    [513, false],
    [600, false],
  ] as const) {
    const end = answerer(tools);
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
  const call = caller(tools);
  call.receive(publicKey);
  assert.throws(() => call.receive(new Uint8Array(600)), DecodeError);
});
