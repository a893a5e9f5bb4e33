import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { runInNewContext } from "node:vm";
import {
  bytesText,
  clockText,
  languageName,
  sparklinePath,
  speedText,
  statusText,
} from "../../src/web/page/parts/figures.js";
import { linkTitle, readLink } from "../../src/web/page/parts/link.js";

const HASH = "0123456789abcdef0123456789ABCDEF01234567";

test("readLink: parses magnet links, infohashes, content ids and URLs", () => {
  assert.deepEqual(readLink(` magnet:?xt=urn:btih:${HASH} `)?.parameter, "magnet");
  assert.deepEqual(readLink(HASH), { parameter: "infohash", value: HASH.toLowerCase() });
  assert.deepEqual(readLink("abcdefghijklmnopqrstuvwxyz234567")?.parameter, "infohash");
  assert.deepEqual(readLink(`acestream://${HASH}`), { parameter: "content_id", value: HASH.toLowerCase() });
  assert.deepEqual(readLink("https://example.org/a.torrent")?.parameter, "url");
});

test("readLink: parses the links that this program prints", () => {
  const hash = HASH.toLowerCase();
  const magnet = `magnet:?xt=urn:btih:${hash}&dn=A stream`.replace(" ", "+");
  assert.deepEqual(readLink(`sluice:?magnet=${encodeURIComponent(magnet)}`), {
    parameter: "magnet",
    value: magnet,
  });
  assert.deepEqual(readLink(`sluice:?infohash=${HASH}`), { parameter: "infohash", value: hash });
  assert.deepEqual(readLink(`sluice:?content_id=${HASH}`), { parameter: "content_id", value: hash });
  assert.deepEqual(readLink(`sluice://${HASH}`), { parameter: "content_id", value: hash });
  for (const text of [
    "sluice:",
    "sluice:?",
    "sluice:?infohash=12",
    "sluice:?url=file:///etc",
    "sluice:?magnet=sluice:?",
  ])
    assert.equal(readLink(text), undefined, text);
});

test("readLink: rejects everything else", () => {
  for (const text of ["", "film", "javascript:alert(1)", "file:///etc/passwd", HASH.slice(1), "ftp://a/b"]) {
    assert.equal(readLink(text), undefined, text);
  }
});

test("linkTitle: returns the name in a magnet link, the last part of a URL, or the start of a hash", () => {
  const title = (text: string) => linkTitle(readLink(text)!);
  assert.equal(title(`magnet:?xt=urn:btih:${HASH}&dn=A+film%21`), "A film!");
  assert.equal(title(`magnet:?xt=urn:btih:${HASH}`), "01234567…");
  assert.equal(title("https://example.org/x/A%20film.torrent?key=1"), "A film.torrent");
  assert.equal(title("https://example.org/x/%zz.torrent"), "%zz.torrent");
  assert.equal(title(HASH), "01234567…");
});

test("bytesText, speedText, statusText, languageName: format values for display", () => {
  assert.equal(bytesText(1_400_000_000), "1.4 GB");
  assert.equal(speedText(1000), "1.0 MB/s");
  assert.equal(statusText("prefuf", 0), "Looking for peers");
  assert.equal(statusText("prebuf", 3), "Buffering");
  assert.equal(statusText("dl", 3), "Playing");
  assert.equal(languageName("und"), "Unknown");
  assert.equal(languageName("not a language"), "not a language");
});

test("clockText: shows hours only if there are any", () => {
  assert.equal(clockText(65.9), "1:05");
  assert.equal(clockText(3723), "1:02:03");
  assert.equal(clockText(-3), "0:00");
});

test("sparklinePath: spans the box, and is empty for fewer than two values", () => {
  assert.equal(sparklinePath([], 100, 20), "");
  assert.equal(sparklinePath([5], 100, 20), "");
  assert.equal(sparklinePath([0, 10], 100, 20), "M0.0 19.0L100.0 1.0");
});

test("old-browsers.js: the functions that it adds work without those of the browser", () => {
  const script = readFileSync(new URL("../../src/web/page/shell/old-browsers.js", import.meta.url), "utf8");
  const element = {
    style: {},
    append() {},
    appendChild() {},
    remove() {},
    setAttribute() {},
    scrollHeight: 1,
  };
  const classes = { classList: { add() {} }, ...element };
  const page = {
    fullscreenElement: null,
    createElement: () => Object.assign(new EventTarget(), element, { click() {} }),
    documentElement: classes,
    body: element,
  };
  const owners = {
    Event,
    EventTarget,
    AbortController,
    AbortSignal,
    Blob,
    Element: class {},
    DocumentFragment: class {},
  };
  const missing = "delete Object.hasOwn; delete Object.fromEntries; delete Array.prototype.at;";
  const used = `[Object.hasOwn({ a: 1 }, "a"), Object.hasOwn({}, "toString"), Object.fromEntries([["b", 2]]).b, [3].at(-1)].join()`;
  const result = runInNewContext(`${missing}\n${script}\n${used}`, { ...owners, document: page, window: {} });
  assert.equal(result, "true,false,2,3");
});
