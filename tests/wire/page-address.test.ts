import assert from "node:assert/strict";
import { test } from "node:test";
import { addressScope } from "../../src/base/address.ts";
import { isPlausibleAddress } from "../../src/protocol/live/live-codec.ts";
import { ENGINE_OF_PAGE, pageAddress, pageIdOf } from "../../src/wire/live/page-address.ts";

test("pageAddress: the vectors of docs/live-protocol.md, and back", () => {
  for (const [id, host] of [
    ["0123456789abcdef", "100::123:4567:89ab:cdef"],
    ["0000000000000001", "100::1"],
    ["ffffffffffffffff", "100::ffff:ffff:ffff:ffff"],
  ] as const) {
    const address = pageAddress(id);
    assert.deepEqual(address, { host, port: 1 });
    assert.equal(pageIdOf(address!), id);
  }
  for (const id of ["", "0000000000000000", "0123", "0123456789abcdeg"])
    assert.equal(pageAddress(id), undefined);
  for (const host of ["100::", "100:0:0:1::1", "192.0.2.1", "2001:db8::1"])
    assert.equal(pageIdOf({ host, port: 1 }), undefined, host);
  assert.equal(pageIdOf({ host: "100::1", port: 2 }), undefined);
});

test("pageAddress: only pages believe a candidate that is a page; engines never call one", () => {
  const page = pageAddress("0123456789abcdef")!;
  assert.equal(addressScope(page.host), "unspecified");
  for (const host of ["127.0.0.1", "192.168.1.5", "8.8.8.8", "2001:db8::1", "fd00::1"])
    assert.equal(isPlausibleAddress(page, { host, port: 1 }), false, host);
  assert.ok(isPlausibleAddress(page, pageAddress("0000000000000001")!));
  assert.ok(isPlausibleAddress(page, ENGINE_OF_PAGE));
});
