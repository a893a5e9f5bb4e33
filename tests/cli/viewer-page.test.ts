import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { run } from "../../src/cli/run.ts";
import { inFolder } from "../contract/folder.ts";
import { contextOf, runInProcess } from "./run-in-process.ts";

const INFOHASH = "ab".repeat(20);
const HTML = `<meta charset="utf-8" /><link href="../app/viewer/viewer.css" /><script src="../app/viewer/viewer.js"></script>`;
const ASSETS = {
  "/": "the app",
  "/watch": HTML,
  "/app/viewer/viewer.css": "css",
  "/app/viewer/viewer.js": `import{a}from"../chunk-ONE.js";`,
  "/app/viewer/worker.js": "worker",
  "/app/viewer/film-worker.js": "film",
  "/app/hls.worker.js": "hls",
  "/app/chunk-ONE.js": `import("./chunk-TWO.js")`,
  "/app/chunk-TWO.js": "two",
  "/app/chunk-OTHER.js": "not of this page",
};

async function write(folder: string, ...args: string[]) {
  const { context, written } = contextOf(["viewer-page", ...args], { dataDir: folder });
  const assets = Object.fromEntries(
    Object.entries(ASSETS).map(([path, text]) => [path, { type: "text/plain", text, isHashed: false }]),
  );
  const code = await run({ ...context, webAssets: async () => assets });
  return { code, ...written };
}

test("sluice viewer-page writes the page, what it loads, and nothing else; the page names its engine and stream", () =>
  inFolder(async (folder) => {
    const site = join(folder, "site");
    const flags = ["--infohash", INFOHASH.toUpperCase(), "--engine", "https://tv.example.org/a&b", "--json"];
    flags.push("--tracker", "wss://tracker.example.org/announce", "--tracker", "ws://10.0.0.1:80/");
    const { code, out, err } = await write(folder, site, ...flags);
    assert.deepEqual([code, err], [0, ""]);
    const { files } = JSON.parse(out) as { files: string[] };
    assert.deepEqual(files.sort(), [
      "app/chunk-ONE.js",
      "app/chunk-TWO.js",
      "app/hls.worker.js",
      "app/viewer/film-worker.js",
      "app/viewer/viewer.css",
      "app/viewer/viewer.js",
      "app/viewer/worker.js",
      "index.html",
    ]);
    assert.equal(await readFile(join(site, "app/chunk-TWO.js"), "utf8"), "two");
    const html = await readFile(join(site, "index.html"), "utf8");
    assert.ok(html.includes(`<meta name="sluice-engine" content="https://tv.example.org/a&amp;b/" />`), html);
    assert.ok(html.includes(`<meta name="sluice-infohash" content="${INFOHASH}" />`), html);
    assert.ok(
      html.includes(
        `'self' https://tv.example.org wss://tv.example.org wss://tracker.example.org ws://10.0.0.1;`,
      ),
      html,
    );
    assert.ok(
      html.includes(`<meta name="sluice-trackers" content="wss://tracker.example.org ws://10.0.0.1" />`),
      html,
    );
    assert.ok(html.includes(`src="app/viewer/viewer.js"`), html);
  }));

test("sluice viewer-page refuses an invalid stream, engine or folder", () =>
  inFolder(async (folder) => {
    const engine = ["--engine", "http://tv/"];
    const infohash = ["--infohash", INFOHASH];
    for (const args of [
      [...infohash, ...engine],
      [folder, ...engine],
      [folder, ...engine, "--infohash", "12"],
      [folder, ...infohash],
      [folder, ...infohash, "--engine", "tv.example.org"],
      [folder, ...infohash, "--engine", "http://me:secret@tv/"],
      [folder, ...infohash, "--engine", "http://tv/?a=1"],
      [folder, ...infohash, ...engine, "--tracker", "https://tracker/"],
    ]) {
      const { code, err } = await runInProcess(["viewer-page", ...args], { dataDir: folder });
      assert.equal(code, 2, args.join(" "));
      assert.match(err, /^sluice: viewer-page: /);
    }
  }));
