import assert from "node:assert/strict";
import { test } from "node:test";
import { parse } from "acorn";
import { buildWebAssets } from "../../src/web/assets.ts";

/** Their users have a browser of 2021 at least (docs/broadcasting.md). */
const NEWER = ["/app/viewer/worker.js", "/app/viewer/film-worker.js"];

test("buildWebAssets: every script is ES2019, and `import()`, which Chromium has since 63", async () => {
  const scripts = Object.entries(await buildWebAssets()).filter(
    ([path, { type }]) => type.startsWith("text/javascript") && !NEWER.includes(path),
  );
  assert.ok(scripts.length > 20, String(scripts.length));
  for (const [path, { text }] of scripts)
    assert.doesNotThrow(
      () => parse(text.replaceAll(/\bimport\(/g, "load("), { ecmaVersion: 2019, sourceType: "module" }),
      path,
    );
});
