import assert from "node:assert/strict";
import { test } from "node:test";
import { fromHex } from "../../src/base/bytes.ts";
import { DecodeError } from "../../src/base/errors.ts";
import { isTunerRequest, tunerIdOf, tunerReply } from "../../src/wire/tuner/discovery.ts";

/** A request for any tuner, as `hdhomerun_config discover` sends it. */
const ANY = fromHex("0002000c0104000000010204ffffffff4e507f35")!;

test("isTunerRequest: any tuner, another id, and malformed requests", () => {
  assert.equal(isTunerRequest(ANY, "1012345A"), true);
  for (let end = 0; end < ANY.length; end++)
    assert.throws(() => isTunerRequest(ANY.slice(0, end), "1012345A"), DecodeError);
  for (let i = 0; i < ANY.length; i++) {
    const damaged = ANY.slice();
    damaged[i]! ^= 0x10;
    assert.throws(() => isTunerRequest(damaged, "1012345A"), DecodeError, String(i));
  }
});

test("tunerIdOf: the digits of every id have the checksum that clients verify", () => {
  const table = [0xa, 0x5, 0xf, 0x6, 0x7, 0xc, 0x1, 0xb, 0x9, 0x2, 0x8, 0xd, 0x4, 0x3, 0xe, 0x0];
  for (let i = 0; i < 500; i++) {
    const id = tunerIdOf(((i * 2_654_435_761) >>> 0).toString(16).padStart(40, "0"));
    assert.match(id, /^[0-9A-F]{8}$/);
    const digits = [...id].map((digit) => Number.parseInt(digit, 16));
    assert.equal(
      digits.reduce((sum, digit, at) => sum ^ (at % 2 === 0 ? table[digit]! : digit), 0),
      0,
      id,
    );
  }
});

test("tunerReply: tells the id, the tuners and the addresses, with a checksum that the reader of requests accepts", () => {
  const reply = tunerReply({ id: "1012345A", tunerCount: 4, baseUrl: "http://192.168.1.5:6878" });
  const text = Buffer.from(reply).toString("latin1");
  assert.ok(text.includes("http://192.168.1.5:6878/lineup.json"));
  assert.deepEqual([...reply.slice(0, 2)], [0, 3]);
  assert.throws(() => isTunerRequest(reply, "1012345A"), /not a discovery request/);
});
