import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import { createSignedLinks } from "../../routes/http/signed-links.ts";
import { openMedia } from "../../src/remux/open-media.ts";
import { filmTorrent } from "../engine/fake-engine.ts";
import { fixture } from "../parts/media-fixtures.ts";
import { memoryAccess } from "../remux/media-checks.ts";
import { fakeApp } from "./client.ts";

const film = filmTorrent();
const CONTENT = `/vod/${film.infohash}/1`;
const KEY = "k".repeat(32);
const now = () => Math.floor(Date.now() / 1000);

async function signedApp() {
  const links = createSignedLinks(KEY, now);
  const app = fakeApp({ dependencies: { signedLinks: links } });
  const media = await openMedia(memoryAccess(await fixture("front.mp4")), { targetSeconds: 2 });
  app.transfers.prepare = (transfer) => {
    transfer.bringFiles(["a.mp4", "b.mkv"].map((name) => ({ name, size: 5000 })));
    transfer.bringData();
    transfer.media = async () => media;
  };
  return { ...app, links };
}

test("signed links: play until they expire, with their segments; unsigned ones are refused", async () => {
  const { call, links } = await signedApp();
  assert.equal((await call(`${CONTENT}/index.m3u8`)).status, 403);
  assert.equal((await call(`${CONTENT}/0.ts`)).status, 403);
  const link = await links.sign(CONTENT, now() + 600);
  const manifest = await call(`${link}/index.m3u8`);
  assert.equal(manifest.status, 200);
  assert.match(await manifest.text(), /\n0\.ts\n/, "segments are relative, so they have the same signature");
  assert.equal((await call(`${link}/0.ts`)).status, 200);
  const access = await call(`${link}/access`);
  assert.equal(access.status, 204);
  assert.equal(access.headers.get("cache-control"), "public, max-age=60");
  const short = await call(`${await links.sign(CONTENT, now() + 20)}/access`);
  assert.match(short.headers.get("cache-control")!, /max-age=(20|19)$/, "not longer than the link");
});

test("signed links: HMAC-SHA256 of the expiry, a line feed and the path, in base64url", async () => {
  const { call } = await signedApp();
  const expires = now() + 600;
  const signature = createHmac("sha256", KEY).update(`${expires}\n${CONTENT}`).digest("base64url");
  assert.equal((await call(`/signed/${expires}/${signature}${CONTENT}/index.m3u8`)).status, 200);
});

test("signed links: refused if they have expired, or if anything in them was changed", async () => {
  const { call, links } = await signedApp();
  const expired = await call(`${await links.sign(CONTENT, now() - 1)}/index.m3u8`);
  assert.equal(expired.status, 403);
  const link = await links.sign(CONTENT, now() + 600);
  const [, , expires = "", signature = ""] = link.split("/");
  const other = createSignedLinks("x".repeat(32), now);
  const changed = [
    link.replace(expires, String(Number(expires) + 1)),
    link.replace(signature, `${signature.slice(0, -2)}AA`),
    link.replace(signature, signature.slice(1)),
    link.replace(signature, `${signature}A`),
    link.replace(expires, `0${expires}`),
    link.replace(expires, `${expires}.0`),
    link.replace(CONTENT, `/vod/${film.infohash}/0`),
    link.replace(CONTENT, `/live/${film.infohash}`),
    link.replace(film.infohash, "0".repeat(40)),
    await other.sign(CONTENT, now() + 600),
  ];
  for (const path of changed) {
    assert.equal((await call(`${path}/index.m3u8`)).status, 403, path);
    assert.equal((await call(`${path}/access`)).status, 403, path);
  }
});

test("signed links: without a key there are none", async () => {
  const { call } = fakeApp();
  const link = await createSignedLinks(KEY, now).sign(CONTENT, now() + 600);
  assert.equal((await call(`${link}/access`)).status, 404);
});
