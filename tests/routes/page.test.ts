import assert from "node:assert/strict";
import { test } from "node:test";
import { createPageRoutes } from "../../routes/page.ts";
import { parseInfohash } from "../../src/base/ids.ts";
import type { TransferLease } from "../../src/playback/contract.ts";
import { readWebAssets } from "../../src/web/assets.ts";

const FILES = [
  { index: 0, name: "<b>a</b>.mkv", size: 10, offset: 0, mime: "video/x-matroska", isPlayable: true },
];
const TRACKS = ["video und", "audio ger", "audio eng", "audio ger", "subtitle fre"].map((track) => {
  const [kind, language] = track.split(" ");
  return { kind, language };
});
let released = 0;
const app = createPageRoutes({
  assets: readWebAssets(),
  digest: (text) => String(text.length),
  engine: {
    acquire: async () =>
      ({
        transfer: { name: "a", files: FILES, media: async () => ({ tracks: TRACKS }) },
        release: () => released++,
      }) as unknown as TransferLease,
  },
  signaling: { assignCode: () => "12345678", join: () => ({ received() {}, closed() {} }) },
});

// The app also answers errors, with their texts.
app.onError(() => new Response(null, { status: 500 }));

test("page: serves / and every file with a strict content security policy", async () => {
  for (const path of Object.keys(readWebAssets())) {
    const response = await app.request(path);
    assert.equal(response.status, 200, path);
    const policy = response.headers.get("content-security-policy") ?? "";
    assert.match(policy, /default-src 'none'/);
    assert.doesNotMatch(policy, /unsafe|\*|http:/);
    assert.equal(response.headers.get("x-content-type-options"), "nosniff");
    assert.ok((await response.text()).length > 0);
  }
});

test("page: answers 304 for its entity tag", async () => {
  const etag = (await app.request("/")).headers.get("etag") ?? "";
  const again = await app.request("/", { headers: { "if-none-match": etag } });
  assert.equal(again.status, 304);
  assert.equal(await again.text(), "");
});

test("page: contains no inline code and no URLs of other servers", async () => {
  const html = await (await app.request("/")).text();
  assert.doesNotMatch(html, / on\w+=|style=|<style|javascript:/);
  for (const [, target] of html.matchAll(/(?:src|href)="([^"]*)"/g))
    assert.match(target!, /^\/(app|playlist)\//);
});

test("page: scripts import only files that are served, and write no HTML", async () => {
  const assets = readWebAssets();
  for (const [path, { text }] of Object.entries(assets)) {
    if (!path.endsWith(".js") || /hls|idb/.test(path)) continue;
    assert.doesNotMatch(text, /innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(/, path);
    // Imports in comments are types, which browsers do not load.
    const code = text.replaceAll(/\/\*\*[\s\S]*?\*\//g, "");
    for (const [, name] of code.matchAll(/(?:^import .*?|import\()"?(?:.*? from )?"([^"]+)"/gm)) {
      assert.ok(`/app/${name!.replace("./", "")}` in assets, `${path} imports ${name}`);
    }
  }
});

test("page: lists the files of content and the order to play them, and releases it", async () => {
  const response = await app.request(`/app/content/${parseInfohash("a".repeat(40))}`);
  assert.deepEqual(await response.json(), { name: "a", files: FILES, order: [0] });
  assert.equal(released, 1);
});

test("page: lists each audio language of a file once, and releases the content", async () => {
  const before = released;
  const response = await app.request(`/app/content/${"a".repeat(40)}/0/languages`);
  assert.deepEqual(await response.json(), { languages: ["ger", "eng"], silent: [], opaque: [] });
  assert.equal((await app.request(`/app/content/${"a".repeat(40)}/7/languages`)).status, 500);
  assert.equal(released, before + 2);
});

test("page: /webui/player/<id> opens the page with the content", async () => {
  const id = "AB".repeat(20);
  const target = async (path: string) => {
    const response = await app.request(`/webui/player/${path}`);
    return [response.status, response.headers.get("location")];
  };
  assert.deepEqual(await target(id), [302, `/#acestream://${"ab".repeat(20)}`]);
  assert.deepEqual(await target("../x"), [404, null]);
  assert.deepEqual(await target("<script>"), [302, "/"]);
});
