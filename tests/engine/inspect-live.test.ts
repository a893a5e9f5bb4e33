import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { runtime } from "#runtime";
import { makeLiveTransportFile, parseLiveTransportFile } from "../../src/wire/live-transport.ts";
import { RECIPE, TRANSPORT_FILE } from "../wire/live-vectors.ts";
import { sha1 } from "../wire/make-torrent.ts";
import { inspectHouse as house } from "./inspect-house.ts";
import { servePages, type WebPages } from "./web-pages.ts";

const live = parseLiveTransportFile(TRANSPORT_FILE, sha1, runtime.ed25519Verifier);
const OPEN = { allowPrivateUrls: true };

let web: WebPages;
before(async () => {
  web = await servePages();
});
after(() => web.close());

test("analyze: a live stream that is known, by any of its names, and by the URL of its transport file", async () => {
  const { inspector, transfers } = house();
  transfers.kept.push(live);
  web.pages.set("/a.sluice", { body: TRANSPORT_FILE });
  const known = {
    contentType: "transport_file",
    transportType: "bt",
    contentId: live.contentId,
    infohash: live.infohash,
    itemUrl: null,
    title: "Example — Пример",
    isLive: 1,
    categories: ["informational"],
  };
  const magnet = `magnet:?xt=urn:btih:${live.infohash}&dn=Another`;
  for (const query of [magnet, live.contentId, live.infohash, `sluice:?magnet=${encodeURIComponent(magnet)}`])
    assert.deepEqual(await inspector.analyze(query, undefined, OPEN), known, query);
  const url = `${web.base}/a.sluice`;
  assert.deepEqual(await inspector.analyze(url, undefined, OPEN), { ...known, itemUrl: url });
  assert.equal((await inspector.analyze(url, "Mine", OPEN)).title, "Mine");
  const forged = TRANSPORT_FILE.slice();
  forged[forged.length - 2]! ^= 1;
  web.pages.set("/forged.sluice", { body: forged });
  await assert.rejects(inspector.analyze(`${web.base}/forged.sluice`, undefined, OPEN), {
    code: "bad_transport_file",
    message: /signature/,
  });
});

test("describe, keep: a live stream is one file without a size, with the bytes of its transport file", async () => {
  const { inspector, transfers } = house();
  const kept = await inspector.keep(TRANSPORT_FILE);
  assert.deepEqual(kept, {
    name: "Example — Пример",
    infohash: live.infohash,
    contentId: live.contentId,
    type: "live",
    transportType: "bt",
    files: [
      { index: 0, name: "Example channel.ts", size: 0, offset: 0, mime: "video/mp2t", isPlayable: true },
    ],
    transportFile: TRANSPORT_FILE,
  });
  assert.deepEqual(
    transfers.kept.map(({ contentId }) => contentId),
    [live.contentId],
  );
  for (const selector of [
    { kind: "infohash", infohash: live.infohash },
    { kind: "content_id", contentId: live.contentId },
    { kind: "transport_file", bytes: TRANSPORT_FILE },
  ] as const)
    assert.deepEqual(await inspector.describe(selector, OPEN), kept);
  assert.equal(await inspector.contentIdOf(live.infohash, OPEN), live.contentId);
  assert.deepEqual(await inspector.search("пример", 10), [{ name: kept.name, infohash: live.infohash }]);
  assert.equal(transfers.opened.length, 0);
});

test("describe: a magnet that turns out to be a live stream; nobody vouches for a content id of its", async () => {
  const { inspector, transfers } = house();
  const unsigned = parseLiveTransportFile(
    makeLiveTransportFile({ ...RECIPE, meta: {} }),
    sha1,
    runtime.ed25519Verifier,
  );
  transfers.prepare = (transfer) => {
    Object.assign(transfer, { live: { content: { file: unsigned, role: "viewer" } } });
    transfer.bringFiles([{ name: "a.ts", size: 0 }]);
  };
  const found = await inspector.describe({ kind: "infohash", infohash: live.infohash }, OPEN);
  assert.deepEqual(
    [found.type, found.name, found.contentId, found.transportFile],
    ["live", "Example channel", undefined, unsigned.bytes],
  );
  await assert.rejects(inspector.contentIdOf(live.infohash, OPEN), { code: "content_id_unknown" });
});
