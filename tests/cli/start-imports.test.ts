import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

test("version, help and completions load neither the engine nor the library", () => {
  const rooms = new Set([...loadedWith("src/main.ts")].map(roomOf));
  assert.ok(rooms.has("src/cli"));
  for (const room of [
    "engine",
    "library",
    "live",
    "net",
    "playback",
    "protocol",
    "remux",
    "storage",
    "transfer",
  ])
    assert.ok(!rooms.has(`src/${room}`), room);
  for (const name of ["hono", "zod", "mediabunny", "uqr"]) assert.ok(!rooms.has(name), name);
});

test("the start of the engine leaves out what is loaded when it is first used", () => {
  const modules = loadedWith("src/cli/serve.ts");
  assert.ok(modules.has("src/engine/engine.ts"));
  for (const name of ["src/remux/open-media.ts", "mediabunny", "mux.js", "jose", "sax", "routes/openapi.ts"])
    assert.ok(!modules.has(name), name);
});

/** Returns the files and packages that a file loads by static imports, itself included. Imports of types load nothing. */
function loadedWith(entry: string): ReadonlySet<string> {
  const modules = new Set([entry]);
  for (const path of modules) {
    if (!/^(src|routes)\/.*\.ts$/.test(path)) continue;
    const statements = readFileSync(join(ROOT, path), "utf8").matchAll(
      /^(?:import|export)\b(?! type\b)[^"';]*?\bfrom "([^"]+)"|^import "([^"]+)"/gm,
    );
    for (const [, from, bare] of statements) {
      const target = from ?? bare!;
      modules.add(target.startsWith(".") ? join(dirname(path), target).replaceAll("\\", "/") : target);
    }
  }
  return modules;
}

function roomOf(module: string): string {
  return module.startsWith("src/") ? dirname(module) : module;
}
