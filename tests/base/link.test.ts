import assert from "node:assert/strict";
import { test } from "node:test";
import { type Link, parseLink } from "../../src/base/link.ts";

const ID = "94c2fd8fb9bc8f2fc71a2cbe9d4b866f227a0209";
const HASH = "de2fb17b7a45e455815ca4894197bf45e75ee01f";
const BASE32 = "3YX3C632IXSFLAK4USEUDF57IXTV5YA7";
const contentId = (fileIndex?: number) =>
  ({ kind: "content_id", contentId: ID, ...(fileIndex !== undefined && { fileIndex }) }) as unknown as Link;
const infohash = (fileIndex?: number) =>
  ({ kind: "infohash", infohash: HASH, ...(fileIndex !== undefined && { fileIndex }) }) as unknown as Link;
const magnet = (text: string) => ({ kind: "magnet", magnet: text, infohash: HASH }) as unknown as Link;
const url = (text: string): Link => ({ kind: "url", url: text });

/** Checks that each link parses to the expected value. */
function table(cases: Readonly<Record<string, Link | undefined>>): void {
  for (const [text, link] of Object.entries(cases)) assert.deepEqual(parseLink(text), link, text);
}

test("parseLink: bare ids of either case are content ids", () => {
  table({
    [ID]: contentId(),
    [` ${ID.toUpperCase()}\n`]: contentId(),
    [ID.slice(1)]: undefined,
    [`${ID}0`]: undefined,
    [ID.replace("9", "g")]: undefined,
    [BASE32]: undefined,
  });
});

test("parseLink: acestream and sluice URIs, with and without slashes, with a plain or encoded question mark", () => {
  for (const scheme of ["acestream", "sluice", "AceStream"])
    table({
      [`${scheme}://${ID}`]: contentId(),
      [`${scheme}:${ID}`]: contentId(),
      [`${scheme}://${ID}/?index=3`]: contentId(3),
      [`${scheme}:?content_id=${ID}&index=2`]: contentId(2),
      [`${scheme}://?content_id=${ID}`]: contentId(),
      [`${scheme}:%3Fcontent_id=${ID}`]: contentId(),
      [`${scheme}://%3fid=${ID}`]: contentId(),
      [`${scheme}:?infohash=${HASH}&index=0`]: infohash(0),
      [`${scheme}://?infohash=${HASH.toUpperCase()}`]: infohash(),
      [`${scheme}:?infohash=${BASE32}`]: infohash(),
      [`${scheme}:?url=http%3A%2F%2Fh%2Fa.torrent%3Fb%3Dc%26d`]: url("http://h/a.torrent?b=c&d"),
      [`${scheme}:?data=https://h/a.acelive`]: url("https://h/a.acelive"),
      [`${scheme}:?magnet=magnet%3A%3Fxt%3Durn%3Abtih%3A${HASH}%26dn%3Da`]: magnet(
        `magnet:?xt=urn:btih:${HASH}&dn=a`,
      ),
      [`${scheme}:?magnet=magnet:?xt=urn:btih:${HASH}&dn=a%20b&tr=http://t/1&tr=http://t/2&index=1`]: magnet(
        `magnet:?xt=urn:btih:${HASH}&dn=a%20b&tr=http://t/1&tr=http://t/2`,
      ),
      [`${scheme}:?data=file:///etc/passwd`]: undefined,
      [`${scheme}:?content_id=1`]: undefined,
      [`${scheme}:`]: undefined,
      [`${scheme}://`]: undefined,
    });
});

test("parseLink: magnets in hexadecimal and base 32; the v2 infohash counts only without a v1 infohash", () => {
  for (const text of [
    `magnet:?xt=urn:btih:${HASH}`,
    `MAGNET:?dn=x&xt.1=URN:BTIH:${BASE32}&tr=udp%3A%2F%2Ft`,
    `magnet:?xt=urn%3Abtih%3A${HASH}&amp;dn=b`,
    `magnet:?xt=urn:btmh:1220ab&xt=urn:btih:${HASH}`,
    `magnet:?xt=urn:btih:${HASH}&xt=urn:btmh:1220ab`,
  ])
    assert.deepEqual(parseLink(text), magnet(text), text);
  const second = `magnet:?xt=urn:btmh:1220${HASH}${"ab".repeat(12)}`;
  assert.deepEqual(parseLink(second), magnet(second));
  table({ "magnet:?xt=urn:btmh:1220ab": undefined, "magnet:?dn=a": undefined, "magnet:": undefined });
});

test("parseLink: a playback URL of an engine on any host becomes its content", () => {
  for (const host of ["http://127.0.0.1:6878", "https://engine.example", "http://[2001:db8::1]:62000"])
    table({
      [`${host}/ace/getstream?id=${ID}&hlc=1&transcode_audio=0`]: contentId(),
      [`${host}/ace/getstream?content_id=${ID}&_idx=2`]: contentId(2),
      [`${host}/ace/manifest.m3u8?infohash=${HASH}&pid=x&.mp4`]: infohash(),
      [`${host}/hls/manifest.m3u8?manifest_url=http%3A%2F%2Fh%2Flive.m3u8`]: url("http://h/live.m3u8"),
      [`${host}/ace/getstream/?url=http%3A%2F%2Fh%2Fa.torrent`]: url("http://h/a.torrent"),
      [`${host}/ace/getstream?magnet=magnet%3A%3Fxt%3Durn%3Abtih%3A${HASH}`]: magnet(
        `magnet:?xt=urn:btih:${HASH}`,
      ),
      [`${host}/ace/getstream?url=${encodeURIComponent(`http://h/ace/getstream?infohash=${HASH}`)}`]:
        infohash(),
      [`${host}/ace/getstream?id=acestream://${ID}`]: contentId(),
      [`${host}/play/infohash/${HASH}/`]: infohash(),
      [`${host}/pid/${ID}/stream.mp4`]: contentId(),
      [`${host}/content_id/${ID}`]: contentId(),
      [`${host}/infohash/${HASH}/0/stream.ts`]: infohash(),
      [`${host}/ace/r/${HASH}/0123456789abcdef0123456789abcdef`]: infohash(),
      [`${host}/ace/m/${HASH}/0123456789abcdef0123456789abcdef.m3u8`]: infohash(),
      // Not playback URLs of an engine, or without content: ordinary URLs.
      [`${host}/ace/getstream?id=123`]: url(`${host}/ace/getstream?id=123`),
      [`${host}/pid/${ID}0`]: url(`${host}/pid/${ID}0`),
      [`${host}/x/ace/getstream?id=${ID}`]: url(`${host}/x/ace/getstream?id=${ID}`),
    });
});

test("parseLink: http and https URLs in canonical form, and no other schemes", () => {
  table({
    "HTTP://Example.COM:80/a b?c=d#e": url("http://example.com/a%20b?c=d#e"),
    "https://user:pw@h.example/x.m3u8": url("https://user:pw@h.example/x.m3u8"),
    "http://0177.1/": url("http://127.0.0.1/"),
    "http://": undefined,
    "http://a b/": undefined,
    "http:/h": undefined,
  });
  for (const text of [
    "file:///etc/passwd",
    "data:text/html,x",
    "javascript:alert(1)",
    "ftp://h/a",
    "rtsp://h/a",
    "rtmp://h/a",
    "udp://@239.0.0.1:1234",
    "mailto:a@b",
    "",
    "hello",
    "/ace/getstream?id=1",
    "C:\\film.mp4",
  ])
    assert.equal(parseLink(text), undefined, text);
});

test("parseLink: refuses links that are too long or nested too deep", () => {
  assert.equal(parseLink(`magnet:?xt=urn:btih:${HASH}&dn=${"x".repeat(70_000)}`), undefined);
  assert.equal(parseLink(`http://h/${"x".repeat(20_000)}`), undefined);
  let text = "http://h/a";
  for (let i = 0; i < 6; i++) text = `sluice:?url=${encodeURIComponent(text)}`;
  assert.equal(parseLink(text), undefined);
});

test("parseLink: a magnet with only a public key has no infohash (BEP 46)", () => {
  const key = "ab".repeat(32);
  const byKey = (text: string): Link => ({ kind: "magnet", magnet: text, infohash: undefined });
  const salted = `magnet:?xs=urn:btpk:${key}&s=6c697665`;
  table({
    [`magnet:?xs=urn:btpk:${key}`]: byKey(`magnet:?xs=urn:btpk:${key}`),
    [salted]: byKey(salted),
    [`sluice:?magnet=${encodeURIComponent(salted)}`]: byKey(salted),
    [`sluice:?magnet=${salted}&index=1`]: byKey(salted),
    [`${salted}&xt=urn:btih:${HASH}`]: magnet(`${salted}&xt=urn:btih:${HASH}`),
    [`magnet:?xs=urn:btpk:${key}0`]: undefined,
    [`magnet:?xs=urn:btpk:${key}&s=x`]: undefined,
    "magnet:?xs=http://h/a.torrent": undefined,
  });
});
