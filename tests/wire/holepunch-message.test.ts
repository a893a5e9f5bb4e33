import assert from "node:assert/strict";
import { test } from "node:test";
import { DecodeError } from "../../src/base/errors.ts";
import {
  decodeHolepunchMessage,
  encodeHolepunchMessage,
  HOLEPUNCH_ERROR,
} from "../../src/wire/peer/holepunch-message.ts";

test("encodeHolepunchMessage: the bytes of BEP 55, and round trip", () => {
  const v4 = { kind: "connect", address: { host: "1.2.3.4", port: 0x1ae1 }, error: 0 } as const;
  assert.deepEqual([...encodeHolepunchMessage(v4)], [1, 0, 1, 2, 3, 4, 0x1a, 0xe1, 0, 0, 0, 0]);
  const v6 = {
    kind: "error",
    address: { host: "2001:db8::1", port: 1 },
    error: HOLEPUNCH_ERROR.noSupport,
  } as const;
  for (const message of [v4, v6]) {
    assert.deepEqual(decodeHolepunchMessage(encodeHolepunchMessage(message)), message);
  }
});

test("decodeHolepunchMessage: a missing error field is 0, an unknown type is undefined", () => {
  assert.deepEqual(decodeHolepunchMessage(Uint8Array.of(0, 0, 9, 9, 9, 9, 0, 5)), {
    kind: "rendezvous",
    address: { host: "9.9.9.9", port: 5 },
    error: 0,
  });
  assert.equal(decodeHolepunchMessage(Uint8Array.of(3, 0, 9, 9, 9, 9, 0, 5)), undefined);
});

for (const bytes of [
  [],
  [0],
  [0, 2, 1, 1, 1, 1, 0, 1],
  [0, 0, 1, 1, 1, 1, 0],
  [0, 1, ...Array(17).fill(1)],
]) {
  test(`decodeHolepunchMessage: refuses ${bytes.length} bytes: ${bytes.slice(0, 3)}`, () => {
    assert.throws(() => decodeHolepunchMessage(Uint8Array.from(bytes)), DecodeError);
  });
}
