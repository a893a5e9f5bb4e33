import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { runtime } from "#runtime";
import { contentIdOf } from "../../src/base/ids.ts";
import { makeLiveTransportFile, parseLiveTransportFile } from "../../src/wire/live/transport-file.ts";
import { RECIPE, TRANSPORT_FILE } from "../wire/live-vectors.ts";
import { sha1 } from "../wire/make-torrent.ts";
import { createTestInspector } from "./test-inspector.ts";
import { servePages, type WebPages } from "./web-pages.ts";

const live = parseLiveTransportFile(TRANSPORT_FILE, sha1, runtime.ed25519Verifier);
const OPEN = { allowPrivateUrls: true };

let web: WebPages;
before(async () => {
  web = await servePages();
});
after(() => web.close());

test("analyze: a known live stream by each kind of link, and by the URL of its transport file", async () => {
  const { inspector, transfers } = createTestInspector();
  transfers.kept.push(live);
  web.pages.set("/a.sluice", { body: TRANSPORT_FILE });
  const known = {
    contentType: "transport_file",
    transportType: "bt",
    contentId: contentIdOf(live.infohash),
    infohash: live.infohash,
    itemUrl: null,
    title: "Example — Пример",
    isLive: 1,
    categories: ["informational"],
  };
  const magnet = `magnet:?xt=urn:btih:${live.infohash}&dn=Another`;
  for (const query of [magnet, live.fileHash, live.infohash, `sluice:?magnet=${encodeURIComponent(magnet)}`])
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

test("describe, keep: a live stream has a single file with the size of its window, and the bytes of its transport file", async () => {
  const { inspector, transfers } = createTestInspector();
  const kept = await inspector.keep(TRANSPORT_FILE);
  assert.deepEqual(kept, {
    name: "Example — Пример",
    infohash: live.infohash,
    contentId: contentIdOf(live.infohash),
    type: "live",
    transportType: "bt",
    files: [
      {
        index: 0,
        name: "Example channel.ts",
        size: 173_260_800,
        offset: 0,
        mime: "video/mp2t",
        isPlayable: true,
      },
    ],
    transportFile: TRANSPORT_FILE,
  });
  assert.deepEqual(
    transfers.kept.map(({ infohash }) => infohash),
    [live.infohash],
  );
  for (const selector of [
    { kind: "infohash", infohash: live.infohash },
    { kind: "content_id", contentId: contentIdOf(live.infohash) },
    { kind: "transport_file", bytes: TRANSPORT_FILE },
  ] as const)
    assert.deepEqual(await inspector.describe(selector, OPEN), kept);
  assert.equal(
    await inspector.contentIdOf({ kind: "infohash", infohash: live.infohash }, OPEN),
    live.infohash,
  );
  assert.deepEqual(await inspector.search("пример", 10), [{ name: kept.name, infohash: live.infohash }]);
  assert.equal(transfers.opened.length, 0);
});

test("describe: a magnet whose metadata is a live stream has the content id of its infohash", async () => {
  const { inspector, transfers } = createTestInspector();
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
    ["live", "Example channel", live.infohash, unsigned.bytes],
  );
});
