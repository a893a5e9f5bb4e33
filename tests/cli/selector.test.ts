import assert from "node:assert/strict";
import { test } from "node:test";
import { selectorOf } from "../../src/cli/selector.ts";

const ID = "ab".repeat(20);
const MAGNET = `magnet:?xt=urn:btih:${ID}&x.pe=192.168.1.5:20001`;

test("selectorOf: accepts every form of link", async () => {
  const forms: readonly [string, object][] = [
    [MAGNET, { kind: "magnet", magnet: MAGNET }],
    [`sluice:?magnet=${encodeURIComponent(MAGNET)}`, { kind: "magnet", magnet: MAGNET }],
    [`sluice://${ID}`, { kind: "content_id", contentId: ID }],
    [`acestream://${ID}`, { kind: "content_id", contentId: ID }],
    [`sluice:?infohash=${ID}`, { kind: "infohash", infohash: ID }],
    [ID.toUpperCase(), { kind: "infohash", infohash: ID }],
    ["http://x.example/a.sluice", { kind: "url", url: "http://x.example/a.sluice" }],
  ];
  for (const [text, selector] of forms) assert.deepEqual(await selectorOf(text), selector, text);
});

test("selectorOf: an invalid link and a missing file are usage errors", async () => {
  await assert.rejects(selectorOf("sluice:?magnet=x"), {
    code: "bad_configuration",
    message: /is invalid/,
  });
  await assert.rejects(selectorOf("no-such.sluice"), {
    code: "bad_configuration",
    message: /is not a magnet/,
  });
});
