import assert from "node:assert/strict";
import { test } from "node:test";
import { fromHex } from "../../src/base/bytes.ts";
import { DecodeError } from "../../src/base/errors.ts";
import { parseMagnet } from "../../src/wire/torrent/magnet.ts";

const HASH = "de2fb17b7a45e455815ca4894197bf45e75ee01f";
const BASE = `magnet:?xt=urn:btih:${HASH}`;

test("parseMagnet reads every parameter (BEP 9, 53)", () => {
  const magnet = parseMagnet(
    `${BASE}&dn=A+film%20%C3%A9&xl=12345&tr=http%3A%2F%2Fa.example%2Fannounce%3Fk%3D1&tr=udp://b.example:80` +
      "&x.pe=1.2.3.4:5&x.pe=[2001:DB8::1]:6&x.pe=Host.example:7&so=7,0,2-4&ws=http://w.example/f&xs=https://x.example/t" +
      "&unknown=1",
  );
  assert.deepEqual(magnet, {
    infohash: HASH,
    displayName: "A film é",
    trackers: ["http://a.example/announce?k=1", "udp://b.example:80"],
    peers: [
      { host: "1.2.3.4", port: 5 },
      { host: "2001:db8::1", port: 6 },
      { host: "host.example", port: 7 },
    ],
    selectOnly: [0, 2, 3, 4, 7],
    exactLength: 12_345,
    exactSources: ["https://x.example/t"],
    webSeeds: ["http://w.example/f"],
  });
});

test("parseMagnet reads every form of infohash", () => {
  const forms = [
    BASE,
    `MAGNET:?XT=URN:BTIH:${HASH.toUpperCase()}`,
    "magnet:?xt=urn:btih:3YX3C632IXSFLAK4USEUDF57IXTV5YA7",
    `magnet:?xt=urn%3Abtih%3A${HASH}`,
    `magnet:?xt.1=urn:sha1:ABC&xt.2=urn:btih:${HASH}`,
    `magnet:?dn=x&amp;xt=urn:btih:${HASH}`,
    ` ${BASE} `,
    `magnet:?xt=urn:btmh:1220${"ab".repeat(32)}&xt=urn:btih:${HASH}`,
  ];
  const second = `magnet:?xt=urn:btmh:1220${"AB".repeat(32)}`;
  assert.equal(parseMagnet(second).infohash, "ab".repeat(20));
  for (const form of forms) assert.equal(parseMagnet(form).infohash, HASH, form);
});

const BAD: readonly (readonly [string, RegExp])[] = [
  ["", /expected magnet:/],
  ["http://a.example/", /expected magnet:/],
  ["magnet:?", /no infohash/],
  ["magnet:?dn=x", /no infohash/],
  ["magnet:?xt=urn:btih:", /40 hex digits/],
  [`magnet:?xt=urn:btih:${HASH}0`, /40 hex digits/],
  [`magnet:?xt=urn:btih:${HASH.slice(1)}g`, /40 hex digits/],
  [`magnet:?xt=urn:btmh:1220${"ab".repeat(31)}`, /no infohash/],
  [`magnet:?xt=urn:btmh:1114${"ab".repeat(32)}`, /no infohash/],
  [`${BASE}&dn=${"x".repeat(70_000)}`, /longer than/],
  [`magnet:?xs=urn:btpk:${"ab".repeat(31)}`, /64 hex digits/],
  [`magnet:?xs=urn:btpk:${"ab".repeat(32)}0`, /64 hex digits/],
  [`magnet:?xs=urn:btpk:${"gg".repeat(32)}`, /64 hex digits/],
  [`magnet:?xs=urn:btpk:${"ab".repeat(32)}&s=abc`, /salt/],
  [`magnet:?xs=urn:btpk:${"ab".repeat(32)}&s=live`, /salt/],
  [`magnet:?xs=urn:btpk:${"ab".repeat(32)}&s=${"ab".repeat(65)}`, /salt/],
  [`magnet:?xs=urn:btpk:${"ab".repeat(32)}&xt=urn:btih:${HASH}0`, /40 hex digits/],
];

test("parseMagnet: an `as` URL counts as web seed and as source of the transport file", () => {
  const { exactSources, webSeeds } = parseMagnet(`${BASE}&as=http://a.example/f&ws=http://w.example/f`);
  assert.deepEqual(exactSources, ["http://a.example/f"]);
  assert.deepEqual(webSeeds, ["http://w.example/f", "http://a.example/f"]);
});

const KEY = "0123456789abcdefABCDEF0123456789".repeat(2);
const BY_KEY = `magnet:?xs=urn:btpk:${KEY}`;

test("parseMagnet reads public key and salt if there is no infohash (BEP 46)", () => {
  const table: readonly (readonly [string, string])[] = [
    [BY_KEY, ""],
    [`${BY_KEY}&s=`, ""],
    [`${BY_KEY}&s=6C697665`, "6c697665"],
    [`MAGNET:?s=00&XS=URN:BTPK:${KEY}`, "00"],
    [`${BY_KEY}&s=${"ab".repeat(64)}`, "ab".repeat(64)],
    [`magnet:?xs=http://a.example/t&xs.1=urn%3Abtpk%3A${KEY}&xt=urn:sha1:ABC`, ""],
    [`magnet:?xs=urn:btpk:12&xs=urn:btpk:${KEY}`, ""],
  ];
  for (const [text, salt] of table) {
    const magnet = parseMagnet(text);
    assert.ok(magnet.infohash === undefined, text);
    assert.deepEqual(magnet.item, { key: fromHex(KEY), salt: fromHex(salt) }, text);
  }
  const { exactSources, trackers, displayName } = parseMagnet(`${BY_KEY}&tr=udp://t:1&dn=a&xs=http://a/t`);
  assert.deepEqual([exactSources, trackers, displayName], [["http://a/t"], ["udp://t:1"], "a"]);
});

test("parseMagnet: an infohash takes precedence over a key", () => {
  assert.deepEqual(parseMagnet(`${BY_KEY}&s=00&xt=urn:btih:${HASH}`), parseMagnet(BASE));
});

test("parseMagnet refuses links without an infohash", () => {
  for (const [text, message] of BAD) {
    assert.throws(
      () => parseMagnet(text),
      (error) => error instanceof DecodeError && message.test(error.message),
      text.slice(0, 80),
    );
  }
});

test("parseMagnet ignores malformed optional parameters", () => {
  const magnet = parseMagnet(
    `${BASE}&tr=ftp://x&tr=javascript:1&x.pe=127.1:5&x.pe=0x7f.1:5&x.pe=1.2.3.4:0&x.pe=1.2.3.4:70000&x.pe=[::g]:1` +
      "&x.pe=a b:1&so=x,-1&xl=-5&ws=file:///etc/passwd&xs=magnet:x&dn=%00..",
  );
  assert.deepEqual(magnet, { infohash: HASH, trackers: [], peers: [], exactSources: [], webSeeds: [] });
});

test("parseMagnet limits the number of entries", () => {
  const trackers = Array.from({ length: 500 }, (_, i) => `&tr=udp://t${i}.example:1`).join("");
  const magnet = parseMagnet(`${BASE}${trackers}&so=0-999999`);
  assert.equal(magnet.trackers.length, 100);
  assert.equal(magnet.selectOnly!.length, 10_000);
  // Repeated indices count.
  assert.equal(parseMagnet(`${BASE}&so=0-5999,0-5999,7000`).selectOnly!.at(-1), 5999);
});
