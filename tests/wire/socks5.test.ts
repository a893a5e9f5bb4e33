import assert from "node:assert/strict";
import { test } from "node:test";
import { concatBytes, fromHex, latin1Bytes, toHex } from "../../src/base/bytes.ts";
import { DecodeError } from "../../src/base/errors.ts";
import {
  decodeSocksDatagram,
  decodeSocksMethod,
  decodeSocksPasswordReply,
  decodeSocksReply,
  encodeSocksDatagram,
  encodeSocksGreeting,
  encodeSocksPassword,
  encodeSocksRequest,
  socksErrorText,
} from "../../src/wire/socks5.ts";

const bytes = (hex: string) => fromHex(hex.replaceAll(" ", ""))!;

test("encodeSocksGreeting: offers a password only if there is one", () => {
  assert.equal(toHex(encodeSocksGreeting(false)), "050100");
  assert.equal(toHex(encodeSocksGreeting(true)), "05020002");
});

test("encodeSocksRequest: each address type of RFC 1928 5", () => {
  const asked = (host: string) => toHex(encodeSocksRequest("connect", { host, port: 0x1ae1 }));
  assert.equal(asked("1.2.3.4"), "05010001010203041ae1");
  assert.equal(asked("2001:db8::1"), "0501000420010db80000000000000000000000011ae1");
  assert.equal(asked("a.example"), `0501000309${toHex(latin1Bytes("a.example"))}1ae1`);
  assert.equal(toHex(encodeSocksRequest("associate", { host: "0.0.0.0", port: 0 })), "05030001000000000000");
  assert.throws(() => asked("a".repeat(256)), RangeError);
});

test("encodeSocksPassword: length-prefixed, at most 255 bytes each", () => {
  assert.equal(toHex(encodeSocksPassword(latin1Bytes("me"), latin1Bytes("pw"))), "01026d65027077");
  assert.throws(() => encodeSocksPassword(new Uint8Array(256), new Uint8Array(1)), RangeError);
});

test("decodeSocksMethod, decodeSocksPasswordReply: wait for two bytes, and refuse malformed replies", () => {
  assert.equal(decodeSocksMethod(bytes("")), undefined);
  assert.equal(decodeSocksMethod(bytes("05")), undefined);
  assert.equal(decodeSocksMethod(bytes("0500")), "none");
  assert.equal(decodeSocksMethod(bytes("0502")), "password");
  assert.equal(decodeSocksMethod(bytes("05ff")), "no_acceptable");
  assert.throws(() => decodeSocksMethod(bytes("0501")), DecodeError);
  assert.throws(() => decodeSocksMethod(bytes("04")), DecodeError);
  assert.throws(() => decodeSocksMethod(latin1Bytes("HTTP/1.1 400")), /this is an HTTP proxy/);
  assert.equal(decodeSocksPasswordReply(bytes("01")), undefined);
  assert.equal(decodeSocksPasswordReply(bytes("0100")), true);
  assert.equal(decodeSocksPasswordReply(bytes("0500")), true);
  assert.equal(decodeSocksPasswordReply(bytes("0101")), false);
  assert.throws(() => decodeSocksPasswordReply(bytes("0700")), DecodeError);
});

test("decodeSocksReply: decodes complete replies, returns undefined for partial ones, and leaves later bytes", () => {
  const answers = [
    ["050000010a0000010438", "10.0.0.1", 1080],
    ["0500000420010db80000000000000000000000010438", "2001:db8::1", 1080],
    [`0500000304${toHex(latin1Bytes("here"))}0438`, "here", 1080],
    [`0500000307${toHex(latin1Bytes("1.2.3.4"))}0438`, "1.2.3.4", 1080],
    ["05000003000438", "", 1080],
  ] as const;
  for (const [hex, host, port] of answers) {
    const whole = bytes(hex);
    for (let length = 0; length < whole.length; length++)
      assert.equal(decodeSocksReply(whole.subarray(0, length)), undefined, `${hex} cut to ${length}`);
    const expected = { code: 0, bound: { host, port }, length: whole.length };
    assert.deepEqual(decodeSocksReply(concatBytes([whole, bytes("aabb")])), expected);
  }
  assert.equal(decodeSocksReply(bytes("05050001000000000000"))?.code, 5);
  for (const hex of ["0400000100000000", "05000002", "050000ff"])
    assert.throws(() => decodeSocksReply(bytes(hex)), DecodeError);
  assert.match(socksErrorText(5), /refused/);
  assert.match(socksErrorText(200), /200/);
});

test("decodeSocksDatagram: reverses encodeSocksDatagram, and refuses fragments and truncated datagrams", () => {
  const payload = bytes("00ff10");
  for (const host of ["1.2.3.4", "2001:db8::9", "tracker.example"]) {
    const wrapped = encodeSocksDatagram({ host, port: 6969 }, payload);
    const read = decodeSocksDatagram(wrapped);
    assert.deepEqual({ ...read.from, hex: toHex(read.payload) }, { host, port: 6969, hex: "00ff10" });
    for (let length = 0; length < wrapped.length - payload.length; length++)
      assert.throws(() => decodeSocksDatagram(wrapped.subarray(0, length)), DecodeError);
    wrapped[2] = 1;
    assert.throws(() => decodeSocksDatagram(wrapped), /fragment/);
  }
});
