import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { parse } from "acorn";
import { createPageRoutes } from "../../routes/page.ts";
import { parseInfohash } from "../../src/base/ids.ts";
import type { TransferLease } from "../../src/playback/contract.ts";
import { buildWebAssets } from "../../src/web/assets.ts";
import { viewerArchive } from "../../src/web/static-viewer.ts";

const FILES = [
  { index: 0, name: "<b>a</b>.mkv", size: 10, offset: 0, mime: "video/x-matroska", isPlayable: true },
];
const TRACKS = [
  ...["video und h264", "audio ger A_TRUEHD", "audio eng A_TRUEHD", "audio ger aac", "subtitle fre subrip"],
].map((track) => {
  const [kind, language, codec] = track.split(" ");
  return { kind, language, codec };
});
/** A stream whose pages may connect to these trackers. */
const TRACKED = "cd".repeat(20);
const TRACKERS = ["wss://tracker.example/announce", "ws://127.0.0.1:6878/announce?a=1"];
/** The content, and the host name of the engine, for which trackers were requested. */
const described: [infohash: string, host: string][] = [];
let released = 0;
let builds = 0;
const assets = await buildWebAssets();
const app = createPageRoutes({
  assets: async () => {
    builds++;
    return assets;
  },
  digest: (text) => String(text.length),
  engine: {
    acquire: async ({ infohash }: { infohash: string }) =>
      ({
        transfer: {
          ...{ name: "a", files: FILES, media: async () => ({ tracks: TRACKS }) },
          ...(infohash === TRACKED && { segmentSource: async () => ({}) }),
        },
        release: () => released++,
      }) as unknown as TransferLease,
    silentSounds: async () => [{ language: "eng", codec: "truehd" }],
    webPeers: {
      describe: async (...[infohash, host]: [string, string]) => {
        described.push([infohash, host]);
        return { trackers: infohash === TRACKED ? TRACKERS : [] };
      },
    },
  } as never,
  signaling: { assignCode: () => "12345678", join: () => ({ received() {}, closed() {} }) },
  rooms: { assignId: () => "1", list: () => [], join: () => ({ received() {}, closed() {} }) },
  viewers: { viewerSharing: "ask", iceServers: [], turnServers: [] },
  viewerArchive,
});

// The app also answers errors, with their texts.
app.onError(() => new Response(null, { status: 500 }));
const ask = (path: string, init: RequestInit = {}) => app.request(path, init, {});

test("page: serves / and every file with a strict content security policy", async () => {
  for (const path of Object.keys(assets)) {
    const response = await ask(path);
    assert.equal(response.status, 200, path);
    const policy = response.headers.get("content-security-policy") ?? "";
    assert.match(policy, /default-src 'none'/);
    assert.doesNotMatch(policy, /unsafe|\*|http:/);
    assert.equal(response.headers.get("x-content-type-options"), "nosniff");
    assert.ok((await response.text()).length > 0);
  }
});

test("page: the page for viewers is an archive for another web server, with the address of its engine", async () => {
  const path = `/app/viewer-page/${"ab".repeat(20)}.zip`;
  const response = await ask(`${path}?engine=${encodeURIComponent("https://tv.example.org/a")}`);
  assert.equal(response.headers.get("content-type"), "application/zip");
  const text = new TextDecoder("latin1").decode(await response.arrayBuffer());
  assert.ok(text.startsWith("PK"));
  assert.ok(text.includes('content="https://tv.example.org/a/"'));
  assert.ok(text.includes('name="sluice-trackers" content=""'));
  const tracked = await ask(`/app/viewer-page/${TRACKED}.zip?engine=https://tv.example.org/`);
  const trackedText = new TextDecoder("latin1").decode(await tracked.arrayBuffer());
  assert.ok(
    trackedText.includes('name="sluice-trackers" content="wss://tracker.example ws://127.0.0.1:6878"'),
  );
  assert.deepEqual(described.at(-1), [TRACKED, "tv.example.org"]);
  for (const engine of ["", "file:///x", "https://me:pw@tv.example.org/", "https://tv.example.org/?a"])
    assert.equal((await ask(`${path}?engine=${encodeURIComponent(engine)}`)).status, 500, engine);
});

test("page: other sites may embed the page for viewers, and no other", async () => {
  const policyOf = async (path: string) =>
    (await app.request(path, {}, {})).headers.get("content-security-policy") ?? "";
  const viewer = await policyOf(`/watch/${"ab".repeat(20)}`);
  assert.match(viewer, /^default-src 'none';.*; frame-ancestors \*$/);
  assert.doesNotMatch(viewer, /unsafe|http:/);
  assert.match(await policyOf("/"), /frame-ancestors 'none'$/);
  assert.equal((await app.request("/watch/nothing", {}, {})).status, 404);
});

test("page: the page for viewers may connect to the trackers of its stream, and to no other server", async () => {
  const response = await ask(`/watch/${TRACKED}`);
  const policy = response.headers.get("content-security-policy") ?? "";
  assert.match(policy, /; connect-src 'self' wss:\/\/tracker\.example ws:\/\/127\.0\.0\.1:6878; /);
  const other = await ask(`/watch/${"ab".repeat(20)}`);
  assert.match(other.headers.get("content-security-policy") ?? "", /; connect-src 'self'; /);
  assert.notEqual(response.headers.get("etag"), other.headers.get("etag"));
});

test("page: answers 304 for its entity tag", async () => {
  const etag = (await ask("/")).headers.get("etag") ?? "";
  const again = await ask("/", { headers: { "if-none-match": etag } });
  assert.equal(again.status, 304);
  assert.equal(await again.text(), "");
});

test("page: contains no inline code and no URLs of other servers", async () => {
  const html = await (await ask("/")).text();
  assert.doesNotMatch(html, / on\w+=|style=|<style|javascript:/);
  for (const [, target] of html.matchAll(/(?:src|href)="([^"]*)"/g))
    assert.match(target!, /^(?:#\/|(?:app|playlist)\/)/);
});

test("page: is built once, and its files are compressed if the browser accepts that", async () => {
  const packed = await ask("/app/shell/main.js", { headers: { "accept-encoding": "br, gzip" } });
  assert.equal(packed.headers.get("content-encoding"), "gzip");
  const unpacked = packed.body!.pipeThrough(new DecompressionStream("gzip"));
  assert.equal(await new Response(unpacked).text(), assets["/app/shell/main.js"]!.text);
  const plain = await ask("/app/shell/main.js");
  assert.equal(plain.headers.get("content-encoding"), null);
  assert.equal(builds, 1);
});

test("page: the first load is at most 150 kB before a player is needed", async () => {
  // What index.html names, and what those scripts import statically.
  const wanted = [
    "/",
    ...[...assets["/"]!.text.matchAll(/(?:src|href)="(app\/[^"]+)"/g)].map(([, to]) => `/${to}`),
  ];
  // The first place is loaded at once.
  wanted.push(
    ...dynamicImportsOf("/app/shell/main.js").filter((path) => assets[path]!.text.includes("link-form")),
  );
  let bytes = 0;
  for (const path of wanted) {
    const response = await ask(path, { headers: { "accept-encoding": "gzip" } });
    bytes += (await response.arrayBuffer()).byteLength;
    if (path.endsWith(".js"))
      for (const other of importsOf(path)) if (!wanted.includes(other)) wanted.push(other);
  }
  assert.ok(wanted.includes("/app/shell/main.js") && wanted.length >= 5, wanted.join());
  assert.ok(bytes <= 150_000, `${bytes} bytes: ${wanted.join(", ")}`);
});

test("page: scripts are ES2019 with dynamic imports of files that are served", async () => {
  for (const [path, { text }] of Object.entries(assets)) {
    if (!path.endsWith(".js")) continue;
    for (const name of dynamicImportsOf(path)) assert.ok(name in assets, `${path} imports ${name}`);
    // Chromium has had dynamic imports since version 63. Acorn knows them as a part of ES2020.
    const es2019 = text.replaceAll(/\bimport\(/g, "load(");
    // The workers of the page for viewers are for browsers of 2021.
    const ecmaVersion = /^\/app\/viewer\/(?:film-)?worker/.test(path) ? 2022 : 2019;
    assert.doesNotThrow(() => parse(es2019, { ecmaVersion, sourceType: "module" }), path);
  }
});

test("page: its own modules write no HTML", () => {
  const folder = new URL("../../src/web/page/", import.meta.url);
  const modules = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith(".js"),
  );
  assert.ok(modules.length > 30);
  const writes = /(?:innerHTML|outerHTML)\s*\+?=|insertAdjacentHTML|document\.write|eval\(/;
  assert.deepEqual(
    modules.filter((name) => writes.test(readFileSync(new URL(name, folder), "utf8"))),
    [],
  );
});

test("page: the styles need no flex gaps and no short logical properties", () => {
  for (const [path, { text }] of Object.entries(assets)) {
    if (!path.endsWith(".css")) continue;
    const short = /[{;](?:inset|(?:margin|padding)-(?:inline|block)):[^;}]*/.exec(text);
    assert.equal(short, null, path);
  }
  const rows = /\.no-flex-gap \.row>\*\+\*\{margin-inline-start:/;
  assert.ok(rows.test(assets["/app/shell/style.css"]!.text));
});

test("page: lists the files of content and the order to play them, and releases it", async () => {
  const response = await ask(`/app/content/${parseInfohash("a".repeat(40))}`);
  assert.deepEqual(await response.json(), { name: "a", files: FILES, order: [0] });
  assert.equal(released, 1);
});

test("page: lists each audio language of a file once, and the sound that cannot be decoded, and releases the content", async () => {
  const before = released;
  const response = await ask(`/app/content/${"a".repeat(40)}/0/languages`);
  // German can be heard in another codec.
  const silent = [{ language: "eng", codec: "A_TRUEHD" }];
  assert.deepEqual(await response.json(), { languages: ["ger", "eng"], silent, opaque: [] });
  assert.equal((await ask(`/app/content/${"a".repeat(40)}/7/languages`)).status, 500);
  assert.equal(released, before + 2);
});

test("page: names the sound of a stream that cannot be decoded", async () => {
  const response = await ask(`/app/content/${TRACKED}/0/languages`);
  const silent = [{ language: "eng", codec: "truehd" }];
  assert.deepEqual(await response.json(), { languages: [], silent, opaque: [] });
});

test("page: /webui/player/<id> opens the page with the content", async () => {
  const id = "AB".repeat(20);
  const target = async (path: string) => {
    const response = await ask(`/webui/player/${path}`);
    return [response.status, response.headers.get("location")];
  };
  assert.deepEqual(await target(id), [302, `/#acestream://${"ab".repeat(20)}`]);
  assert.deepEqual(await target("../x"), [404, null]);
  assert.deepEqual(await target("<script>"), [302, "/"]);
});

/** The static imports of a script, as paths of the page. */
function importsOf(path: string): string[] {
  return [...assets[path]!.text.matchAll(/\b(?:import|export)\b[^"'();]*"(\.\.?\/[^"]+)"/g)].map(([, name]) =>
    pathOf(name!, path),
  );
}

/** The dynamic imports of a script, as paths of the page. */
function dynamicImportsOf(path: string): string[] {
  return [...assets[path]!.text.matchAll(/\bimport\("([^"]+)"\)/g)].map(([, name]) => pathOf(name!, path));
}

function pathOf(name: string, from: string): string {
  return new URL(name, `http://page${from}`).pathname;
}
