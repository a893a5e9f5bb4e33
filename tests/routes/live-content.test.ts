import assert from "node:assert/strict";
import { test } from "node:test";
import { runtime } from "#runtime";
import { contentIdOf } from "../../src/base/ids.ts";
import { parseLiveTransportFile } from "../../src/wire/live/transport-file.ts";
import { createTestInspector } from "../engine/test-inspector.ts";
import { TRANSPORT_FILE } from "../wire/live-vectors.ts";
import { sha1 } from "../wire/make-torrent.ts";
import { controlClient, withRealClient } from "./control-client.ts";

const { infohash } = parseLiveTransportFile(TRANSPORT_FILE, sha1, runtime.ed25519Verifier);
const contentId = contentIdOf(infohash);
const BASE64 = Buffer.from(TRANSPORT_FILE).toString("base64");

test("get_media_files, get_content_id, analyze_content: a live stream whose transport file is known", async () => {
  const { inspector, transfers } = createTestInspector();
  const { result, json } = controlClient({ inspect: inspector });
  const body = JSON.stringify({ transport_file_data: BASE64, dump_transport_file: 1 });
  const path = "/server/api?method=get_media_files&api_version=3";
  const { result: posted } = await json(path, { method: "POST", body });
  assert.deepEqual([posted.type, posted.infohash, posted.name], ["live", infohash, "Example — Пример"]);
  await inspector.keep(TRANSPORT_FILE);
  for (const selector of [{ infohash }, { content_id: contentId }]) {
    const found = await result("get_media_files", { ...selector, dump_transport_file: 1 });
    assert.equal(found.type, "live");
    assert.equal(found.transport_type, "bt");
    assert.equal(found.transport_file_data, BASE64);
    assert.equal(found.transport_file_cache_key, contentId);
    assert.deepEqual(found.files, [
      {
        infohash,
        type: "live",
        filename: "Example channel.ts",
        mime: "video/mp2t",
        transport_type: "bt",
        index: 0,
        size: 96_256 * 1800,
      },
    ]);
    assert.equal(found.size, 96_256 * 1800);
  }
  assert.deepEqual(await result("get_content_id", { infohash }), { content_id: contentId });
  const analysis = await result("analyze_content", { query: `sluice:?infohash=${infohash}` });
  assert.equal(analysis.is_live, 1);
  assert.equal(analysis.content_id, contentId);
  assert.deepEqual(analysis.categories, ["informational"]);
  assert.equal(transfers.opened.length, 0);
});

test(
  "playlist_add_item: an uploaded transport file of a live stream becomes a live item, and is stored",
  withRealClient(async (app) => {
    const { inspector, transfers } = createTestInspector();
    Object.defineProperty(app.engine, "inspect", { value: inspector });
    await app.result("playlist_add_item", { file: new File([TRANSPORT_FILE.slice()], "a.sluice") });
    const [item] = (await app.result("playlist_get")).playlist;
    assert.deepEqual(
      [item.title, item.infohash, item.content_id, item.is_live, item.content_type, item.is_multi_vod],
      ["Example — Пример", infohash, contentId, 1, "live", false],
    );
    assert.deepEqual(
      transfers.kept.map((file) => file.infohash),
      [infohash],
    );
    // The ids are now enough to identify it.
    for (const named of [
      { infohash },
      { content_id: contentId },
      { magnet: `magnet:?xt=urn:btih:${infohash}&dn=Another` },
      { magnet: `magnet:?xt=urn:btih:${"d".repeat(40)}&dn=Unknown` },
    ])
      await app.result("playlist_add_item", named);
    const { playlist } = await app.result("playlist_get");
    assert.deepEqual(
      playlist.map((each: { title: string; is_live: number }) => [each.title, each.is_live]).sort(),
      [...Array(4).fill(["Example — Пример", 1]), ["Unknown", -1]],
    );
    const forged = TRANSPORT_FILE.slice();
    forged[forged.length - 2]! ^= 1;
    const refused = await app.error("playlist_add_item", { file: new File([forged], "b.sluice") });
    assert.match(refused.message, /signature/);
    assert.equal(transfers.kept.length, 1);
  }),
);
