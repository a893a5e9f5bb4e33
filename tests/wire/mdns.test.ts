import assert from "node:assert/strict";
import { test } from "node:test";
import { DecodeError } from "../../src/base/errors.ts";
import { decodeMdnsServices, encodeMdnsQuery } from "../../src/wire/mdns.ts";
import { mdnsAnswer } from "./mdns-answer.ts";

const CAST = "_googlecast._tcp.local";
const ANSWER = {
  type: CAST,
  instance: "Chromecast-0123",
  port: 32_123,
  address: "192.168.1.9",
  texts: { id: "0123", fn: "Den = TV", Md: "Chromecast" },
};

test("decodeMdnsServices: puts the records of a compressed response together", () => {
  const [service, ...others] = decodeMdnsServices(mdnsAnswer(ANSWER), [CAST]);
  assert.equal(others.length, 0);
  assert.deepEqual(service, {
    type: CAST,
    instance: "Chromecast-0123",
    port: 32_123,
    addresses: ["192.168.1.9"],
    texts: new Map([
      ["id", "0123"],
      ["fn", "Den = TV"],
      ["md", "Chromecast"],
    ]),
    isAlive: true,
  });
  assert.deepEqual(decodeMdnsServices(mdnsAnswer(ANSWER), ["_other._tcp.local"]), []);
});

test("decodeMdnsServices: a time to live of 0 is a goodbye, and a query holds no services", () => {
  assert.equal(decodeMdnsServices(mdnsAnswer({ ...ANSWER, ttl: 0 }), [CAST])[0]!.isAlive, false);
  assert.deepEqual(decodeMdnsServices(encodeMdnsQuery([CAST]), [CAST]), []);
});

test("encodeMdnsQuery: one question for each type", () => {
  const query = Buffer.from(encodeMdnsQuery(["_a._tcp.local", CAST])).toString("latin1");
  assert.equal(query.slice(0, 12), "\0\0\0\0\0\x02\0\0\0\0\0\0");
  assert.equal(query.slice(12, 31), "\x02_a\x04_tcp\x05local\0\0\x0c\0\x01");
});

test("decodeMdnsServices: refuses cut and endless names and records", () => {
  const answer = mdnsAnswer(ANSWER);
  for (let length = 0; length < answer.length; length++)
    assert.throws(() => decodeMdnsServices(answer.subarray(0, length), [CAST]), DecodeError, String(length));
  const loop = Buffer.from("000084000000000100000000c00c000c00010000007800020000", "hex");
  assert.throws(() => decodeMdnsServices(loop, [CAST]), /earlier name/);
});
