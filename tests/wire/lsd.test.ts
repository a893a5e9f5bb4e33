import assert from "node:assert/strict";
import { test } from "node:test";
import { latin1Bytes, latin1Text } from "../../src/base/bytes.ts";
import { DecodeError } from "../../src/base/errors.ts";
import type { Infohash } from "../../src/base/ids.ts";
import { decodeLsdAnnounce, encodeLsdAnnounce, MAX_LSD_INFOHASHES } from "../../src/wire/lsd.ts";

const A = "a1".repeat(20) as Infohash;
const B = "b2".repeat(20) as Infohash;
const HEAD = "BT-SEARCH * HTTP/1.1\r\nHost: 239.192.152.143:6771\r\n";

test("encodeLsdAnnounce: the format of BEP 14, for both families", () => {
  const announce = { port: 6881, infohashes: [A, B], cookie: "c00c1e" };
  assert.equal(
    latin1Text(encodeLsdAnnounce(4, announce)),
    `${HEAD}Port: 6881\r\nInfohash: ${A}\r\nInfohash: ${B}\r\ncookie: c00c1e\r\n\r\n\r\n`,
  );
  assert.match(latin1Text(encodeLsdAnnounce(6, announce)), /^Host: \[ff15::efc0:988f\]:6771\r$/m);
});

test("encodeLsdAnnounce: the maximum number of infohashes fits into one datagram", () => {
  const infohashes = Array.from(
    { length: MAX_LSD_INFOHASHES },
    (_, i) => i.toString(16).padStart(40, "0") as Infohash,
  );
  const bytes = encodeLsdAnnounce(6, { port: 65_535, infohashes, cookie: "12345678" });
  assert.ok(bytes.length <= 1400, `${bytes.length} bytes`);
  assert.deepEqual(decodeLsdAnnounce(bytes).infohashes, infohashes);
});

const TAKEN: readonly [what: string, text: string, announce: ReturnType<typeof decodeLsdAnnounce>][] = [
  [
    "as libtorrent writes it",
    `${HEAD}Port: 6881\r\nInfohash: ${A}\r\ncookie: 1a2b\r\n\r\n\r\n`,
    { port: 6881, infohashes: [A], cookie: "1a2b" },
  ],
  [
    "upper case, other headers, no cookie, one empty line",
    `${HEAD}INFOHASH:${A.toUpperCase()}\r\nX-Thing: 1\r\nport:  1 \r\n\r\n`,
    { port: 1, infohashes: [A], cookie: undefined },
  ],
  [
    "one infohash twice is one",
    `${HEAD}Port: 65535\r\nInfohash: ${A}\r\nInfohash: ${A}\r\n\r\n`,
    { port: 65_535, infohashes: [A], cookie: undefined },
  ],
  [
    "a cookie of an unusual length is ignored",
    `${HEAD}Port: 2\r\nInfohash: ${A}\r\ncookie: ${"x".repeat(65)}\r\n\r\n`,
    { port: 2, infohashes: [A], cookie: undefined },
  ],
];
for (const [what, text, announce] of TAKEN) {
  test(`decodeLsdAnnounce: ${what}`, () => assert.deepEqual(decodeLsdAnnounce(latin1Bytes(text)), announce));
}

const REFUSED: readonly [what: string, text: string][] = [
  ["nothing", ""],
  ["an answer of SSDP", "HTTP/1.1 200 OK\r\n\r\n"],
  ["another version", `BT-SEARCH * HTTP/1.0\r\nPort: 1\r\nInfohash: ${A}\r\n\r\n`],
  ["no port", `${HEAD}Infohash: ${A}\r\n\r\n`],
  ["two ports", `${HEAD}Port: 1\r\nPort: 2\r\nInfohash: ${A}\r\n\r\n`],
  ["port 0", `${HEAD}Port: 0\r\nInfohash: ${A}\r\n\r\n`],
  ["port 65536", `${HEAD}Port: 65536\r\nInfohash: ${A}\r\n\r\n`],
  ["a port that is no number", `${HEAD}Port: 0x50\r\nInfohash: ${A}\r\n\r\n`],
  ["no infohash", `${HEAD}Port: 6881\r\n\r\n`],
  ["a short infohash", `${HEAD}Port: 6881\r\nInfohash: ${A.slice(2)}\r\n\r\n`],
  ["an infohash in base 32", `${HEAD}Port: 6881\r\nInfohash: ${"a".repeat(32)}\r\n\r\n`],
  ["a header without a colon", `${HEAD}Port 6881\r\nInfohash: ${A}\r\n\r\n`],
  ["a control character", `${HEAD}Port: 6881\x00\r\nInfohash: ${A}\r\n\r\n`],
  ["more than a datagram holds", `${HEAD}Port: 6881\r\nInfohash: ${A}\r\nX: ${"x".repeat(1400)}\r\n\r\n`],
];
for (const [what, text] of REFUSED) {
  test(`decodeLsdAnnounce: refuses ${what}`, () =>
    assert.throws(() => decodeLsdAnnounce(latin1Bytes(text)), DecodeError));
}
