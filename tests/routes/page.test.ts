import assert from "node:assert/strict";
import { test } from "node:test";
import { createPage } from "../../routes/page.ts";
import { parseInfohash } from "../../src/base/ids.ts";
import type { TransferLease } from "../../src/engine/engine.ts";
import { readWebAssets } from "../../src/web/assets.ts";

const FILES = [
  { index: 0, name: "<b>a</b>.mkv", size: 10, offset: 0, mime: "video/x-matroska", isPlayable: true },
];
const TRACKS = ["video und", "audio ger", "audio eng", "audio ger", "subtitle fre"].map((track) => {
  const [kind, language] = track.split(" ");
  return { kind, language };
});
let released = 0;
const app = createPage({
  assets: readWebAssets(),
  digest: (text) => String(text.length),
  engine: {
    acquire: async () =>
      ({
        transfer: { name: "a", files: FILES, media: async () => ({ tracks: TRACKS }) },
        release: () => released++,
      }) as unknown as TransferLease,
  },
});

// As the house does, but without its words.
app.onError(() => new Response(null, { status: 500 }));

test("page serves / and every file under a strict content security policy", async () => {
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

test("page answers 304 to the entity tag it gave", async () => {
  const etag = (await app.request("/")).headers.get("etag") ?? "";
  const again = await app.request("/", { headers: { "if-none-match": etag } });
  assert.equal(again.status, 304);
  assert.equal(await again.text(), "");
});

test("page has nothing inline, and asks for nothing from elsewhere", async () => {
  const html = await (await app.request("/")).text();
  assert.doesNotMatch(html, / on\w+=|style=|<style|javascript:/);
  for (const [, target] of html.matchAll(/(?:src|href)="([^"]*)"/g))
    assert.match(target!, /^\/(app|playlist)\//);
});

test("page scripts import only files that are served, and write no HTML", async () => {
  const assets = readWebAssets();
  for (const [path, { text }] of Object.entries(assets)) {
    if (!path.endsWith(".js") || /hls|idb/.test(path)) continue;
    assert.doesNotMatch(text, /innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(/, path);
    // Types are named in comments, and not fetched.
    const code = text.replaceAll(/\/\*\*[\s\S]*?\*\//g, "");
    for (const [, name] of code.matchAll(/(?:^import .*?|import\()"?(?:.*? from )?"([^"]+)"/gm)) {
      assert.ok(`/app/${name!.replace("./", "")}` in assets, `${path} imports ${name}`);
    }
  }
});

test("page lists the files of content and lets it go", async () => {
  const response = await app.request(`/app/content/${parseInfohash("a".repeat(40))}`);
  assert.deepEqual(await response.json(), { name: "a", files: FILES });
  assert.equal(released, 1);
});

test("page tells the languages of a file's sound, each once, and lets the content go", async () => {
  const before = released;
  const response = await app.request(`/app/content/${"a".repeat(40)}/0/languages`);
  assert.deepEqual(await response.json(), ["ger", "eng"]);
  assert.equal((await app.request(`/app/content/${"a".repeat(40)}/7/languages`)).status, 500);
  assert.equal(released, before + 2);
});
