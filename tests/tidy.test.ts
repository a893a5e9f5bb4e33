import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** A room: a folder whose files import only from rooms of lower layers, and the packages that are listed. */
interface Room {
  readonly path: string;
  readonly layer: number;
  readonly packages: readonly string[];
}

const PURE = ["src/base", "src/wire", "src/media", "src/protocol"];

/** All rooms (docs/ARCHITECTURE.md). A file belongs to the room with the longest matching path; the folders inside a room are rooms too. */
const ROOMS: readonly Room[] = [
  { path: "src/base", layer: 0, packages: [] },
  { path: "src/runtime", layer: 1, packages: ["node:", "bun:", "ioredis"] },
  { path: "src/wire", layer: 1, packages: [] },
  { path: "src/wire/tuner", layer: 1, packages: [] },
  { path: "src/media", layer: 1, packages: [] },
  { path: "src/media/subtitles", layer: 1.1, packages: [] },
  { path: "src/media/test-pattern", layer: 1.1, packages: [] },
  { path: "src/async", layer: 2, packages: [] },
  { path: "src/protocol", layer: 2, packages: [] },
  { path: "src/outbound", layer: 3, packages: ["aws4fetch", "xz-decompress"] },
  { path: "src/remux/codecs", layer: 2.9, packages: [] },
  { path: "src/remux", layer: 3, packages: ["mediabunny", "mux.js"] },
  { path: "src/remux/streams", layer: 3.1, packages: ["mediabunny"] },
  { path: "src/storage", layer: 3, packages: [] },
  { path: "src/net/port-mapping", layer: 4, packages: [] },
  { path: "src/net/confined", layer: 4, packages: [] },
  { path: "src/net", layer: 4.1, packages: ["werift"] },
  { path: "src/devices", layer: 4.2, packages: [] },
  { path: "src/transfer/web-seeds", layer: 5, packages: [] },
  { path: "src/transfer", layer: 5.1, packages: [] },
  { path: "src/web-content", layer: 5.2, packages: [] },
  { path: "src/live/input", layer: 5.3, packages: [] },
  { path: "src/live/window", layer: 5.3, packages: [] },
  { path: "src/live/broadcast", layer: 5.4, packages: [] },
  { path: "src/live/web-fallback", layer: 5.4, packages: [] },
  { path: "src/live", layer: 5.5, packages: [] },
  { path: "src/playback/diagnosis", layer: 6, packages: [] },
  { path: "src/playback", layer: 6.1, packages: [] },
  { path: "src/cluster", layer: 6.85, packages: ["valibot"] },
  { path: "src/health", layer: 6.9, packages: ["valibot"] },
  { path: "src/accounts", layer: 6.95, packages: ["valibot", "jose"] },
  { path: "src/library", layer: 7, packages: ["valibot", "sax"] },
  { path: "src/catch-up", layer: 7.04, packages: ["valibot"] },
  { path: "src/recordings", layer: 7.05, packages: ["valibot"] },
  { path: "src/downloads", layer: 7.05, packages: ["valibot"] },
  { path: "src/engine", layer: 7.1, packages: [] },
  { path: "src/activity", layer: 7.15, packages: [] },
  { path: "src/web/page/languages", layer: 7.1, packages: [] },
  { path: "src/web/page/parts", layer: 7.11, packages: ["hls.js", "idb-keyval", "uqr"] },
  { path: "src/web/page/watch", layer: 7.12, packages: ["hls.js", "peerjs"] },
  { path: "src/web/page/studio", layer: 7.12, packages: ["hls.js"] },
  { path: "src/web/page/control", layer: 7.12, packages: [] },
  {
    path: "src/web/page/viewer",
    layer: 7.12,
    packages: ["hls.js", "idb-keyval", "peerjs", "@noble/ed25519", "@noble/hashes"],
  },
  { path: "src/web/page/shell", layer: 7.13, packages: [] },
  { path: "src/web", layer: 7.3, packages: ["node:", "esbuild"] },
  { path: "routes/http", layer: 7.8, packages: ["hono", "@hono/zod-validator", "zod"] },
  { path: "routes/control", layer: 7.9, packages: ["hono", "@hono/zod-validator", "zod"] },
  { path: "routes", layer: 8, packages: ["hono", "@hono/zod-validator", "zod"] },
  { path: "src/settings", layer: 9, packages: ["node:", "valibot"] },
  { path: "src/cli", layer: 9.1, packages: ["node:", "uqr", "#codec-scripts"] },
  { path: "src", layer: 9.2, packages: ["#runtime", "#web-assets"] },
];

/** Rooms above the runtime see its contract only; the program (settings, cli, main) chooses the implementation. */
const SEES_RUNTIME = /^src\/(runtime|settings|cli|main|guide-worker)/;
/** Of the engine and the library, routes see the facades and the contracts. */
const FACADE = /\/(engine|library|contract|[a-z-]+-contract|segment-source)\.ts$|^src\/base\//;

const MAX_ROOM_LINES = 9_000;
const MAX_FOLDER_FILES = 70;
const MAX_LINES = 400;

/** This file names what others must not. */
const SELF = "tests/tidy.test.ts";

interface SourceFile {
  /** Below the root, with `/`. */
  readonly path: string;
  readonly text: string;
}

const sources = ["src", "routes"].flatMap((folder) => filesBelow(folder, /(?<!\.d)\.(ts|js)$/));
const all = [...sources, ...filesBelow("tests", /\.(ts|js|mjs|py)$/), ...filesBelow("docs", /\.md$/)];

test("tidy: rooms import from lower layers only, and only their own packages", () => {
  const faults = sources.flatMap((file) =>
    importsOf(file)
      .filter((target) => !isAllowed(file.path, target))
      .map((target) => `${file.path} imports ${target}`),
  );
  assert.deepEqual(faults, []);
});

test("tidy: no circle of imports; imports of types count", () => {
  const targets = new Map(
    sources.map((file) => [file.path, importsOf(file).filter((target) => target.includes("/"))] as const),
  );
  assert.deepEqual(circlesOf(targets), []);
});

test("tidy: no room has more than 9,000 lines, no folder more than 70 files", () => {
  const lines = new Map<string, number>();
  const files = new Map<string, number>();
  for (const { path, text } of sources) {
    const room = roomOf(path).path === "src/protocol" ? dirname(path) : roomOf(path).path;
    lines.set(room, (lines.get(room) ?? 0) + text.split("\n").length - 1);
    files.set(dirname(path), (files.get(dirname(path)) ?? 0) + 1);
  }
  assert.deepEqual(
    [...lines].filter(([, count]) => count > MAX_ROOM_LINES),
    [],
  );
  assert.deepEqual(
    [...files].filter(([, count]) => count > MAX_FOLDER_FILES),
    [],
  );
});

test("tidy: the pure rooms have no clock, timer, promise scheduling, chance, Buffer or console", () => {
  const words =
    /\b(Date\.now|new Date|performance\.|setTimeout|setInterval|setImmediate|queueMicrotask|process\.|Math\.random|crypto\.|Buffer\b|console\.|async |await |new Promise|fetch\()/;
  assert.deepEqual(linesWith(sources.filter(isPure), words), []);
});

test("tidy: only main asks which runtime runs, and only the tower touches the machine", () => {
  const asking = sources.filter(({ path }) => !path.startsWith("src/runtime/"));
  assert.deepEqual(linesWith(asking, /\b(Bun|Deno)\.|globalThis\.(Bun|Deno)/), []);
  const outsiders = asking.filter(
    ({ path }) => !/^src\/(cli|web)\//.test(path) && !/^src\/(main|program)\.ts$/.test(path),
  );
  assert.deepEqual(linesWith(outsiders, /\bprocess\.|from "node:/), []);
});

test("tidy: no file is longer than 400 lines, and half of them are short", () => {
  const lengths = sources.map(({ path, text }) => ({ path, lines: text.split("\n").length - 1 }));
  assert.deepEqual(
    lengths.filter(({ lines }) => lines > MAX_LINES),
    [],
  );
  const sorted = lengths.map(({ lines }) => lines).sort((a, b) => a - b);
  assert.ok(
    (sorted[sorted.length >> 1] ?? 0) <= 150,
    `the median file has ${sorted[sorted.length >> 1]} lines`,
  );
});

test("tidy: files are named in kebab-case", () => {
  const names = sources.filter(({ path }) => !/^[a-z0-9/-]+\.(ts|js)$/.test(path)).map(({ path }) => path);
  assert.deepEqual(names, []);
});

test("tidy: no default exports, barrels, enums or namespaces", () => {
  const words = /^\s*export default|^export \* from|^\s*(export )?(const )?enum |^\s*(export )?namespace /;
  assert.deepEqual(linesWith(sources, words), []);
});

test("tidy: every exported function, class and constant has a docstring", () => {
  const faults = sources.flatMap(({ path, text }) => {
    const lines = text.split("\n");
    return lines.flatMap((line, i) => {
      const exported = /^export (?:async )?(?:function|class|const) (\w+)/.exec(line);
      if (exported === null) return [];
      const before = lines[i - 1] ?? "";
      // A run of constants under one comment explains itself together.
      const isRun = line.startsWith("export const") && /;$/.test(before);
      return before.endsWith("*/") || isRun ? [] : [`${path}: ${exported[1]}`];
    });
  });
  assert.deepEqual(faults, []);
});

test("tidy: every CHOICE(name) in the code has its row in docs/choices.md, and every row its place in the code", () => {
  const table = all.find(({ path }) => path === "docs/choices.md")?.text ?? "";
  const rows = [...table.matchAll(/^\| `([\w-]+)` \|/gm)].map(([, name]) => name!);
  const named = sources.flatMap(({ text }) =>
    [...text.matchAll(/CHOICE\(([\w-]+)\)/g)].map(([, name]) => name!),
  );
  assert.deepEqual([...new Set(named)].sort(), rows.sort());
});

test("tidy: every export is used by another file that is not a test", () => {
  const users = [...sources, ...filesBelow("examples", /\.ts$/)].map(({ path, text }) => ({
    path,
    words: new Set(text.match(/\w+/g)),
  }));
  const unused = sources.flatMap(({ path, text }) =>
    [...text.matchAll(/^export (?:async )?(?:function|class|const|interface|type) (\w+)/gm)]
      .map(([, name]) => name!)
      .filter((name) => !users.some((user) => user.path !== path && user.words.has(name)))
      // The types in an exported signature, and the class that an exported function constructs, may be exported too.
      .filter((name) => !text.split("\n").some((line) => isSignatureWith(line, name)))
      .filter((name) => !text.includes(`=> new ${name}(`) && !text.includes(`return new ${name}(`))
      .map((name) => `${path}: ${name}`),
  );
  assert.deepEqual(unused, []);
});

test("tidy: nothing is left for later", () => {
  const left = all.filter(({ path, text }) => path !== SELF && /\b(TODO|FIXME|XXX)\b/.test(text));
  assert.deepEqual(
    left.map(({ path }) => path),
    [],
  );
});

test("tidy: nothing names a machine path or a package registry", () => {
  const words = /\/work\/\w|\/root\/|\/tmp\/|\/home\/(?!u\b)|registry\.np|jsr\.io/;
  const others = all.filter(({ path }) => path !== SELF);
  assert.deepEqual(linesWith(others, words), []);
});

function filesBelow(folder: string, name: RegExp): SourceFile[] {
  const entries = readdirSync(join(ROOT, folder), { withFileTypes: true, recursive: true });
  return entries
    .filter((entry) => entry.isFile() && name.test(entry.name))
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)).replaceAll("\\", "/"))
    .filter((path) => !path.includes("node_modules/") && !path.includes("/fixtures/"))
    .map((path) => ({ path, text: readFileSync(join(ROOT, path), "utf8") }));
}

/** Whether a line belongs to an exported signature, or to a member of an exported shape, that names `type`. */
function isSignatureWith(line: string, type: string): boolean {
  return new RegExp(`[:<|&(] ?(readonly )?${type}\\b`).test(line) && !/^export (interface|type) /.test(line);
}

/** The room with the longest path that contains the file. */
function roomOf(path: string): Room {
  return ROOMS.filter((room) => path.startsWith(`${room.path}/`)).reduce((a, b) =>
    a.path.length >= b.path.length ? a : b,
  );
}

function isPure({ path }: SourceFile): boolean {
  return PURE.some((room) => path.startsWith(`${room}/`));
}

/** What a file imports: packages by name, files by their path below the root. */
function importsOf({ path, text }: SourceFile): string[] {
  const statements = text.matchAll(
    /^(?:import|export)\b[^"';]*?\bfrom "([^"]+)"|^import "([^"]+)"|\bimport\("([^"]+)"\)/gm,
  );
  return [...statements].map(([, from, bare, dynamic]) => {
    const target = from ?? bare ?? dynamic!;
    if (!target.startsWith(".")) return target;
    return relative(ROOT, resolve(ROOT, dirname(path), target)).replaceAll("\\", "/");
  });
}

function isAllowed(path: string, target: string): boolean {
  const room = roomOf(path);
  if (!/^(src|routes)\//.test(target)) {
    return (
      target === "package.json" ||
      room.packages.some(
        (name) => target === name || target.startsWith(name.endsWith(":") ? name : `${name}/`),
      )
    );
  }
  const other = roomOf(target);
  if (other === room) return room.path !== "src/protocol" || dirname(path) === dirname(target);
  // The contract of a room is also that of the folders inside it.
  if (target === `${dirname(dirname(path))}/contract.ts`) return true;
  if (
    other.path === "src/runtime" &&
    !/^src\/runtime\/(worker-)?contract\.ts$/.test(target) &&
    !SEES_RUNTIME.test(path)
  )
    return false;
  if (/^routes/.test(path) && !/^routes/.test(target) && !FACADE.test(target)) return false;
  return other.layer < room.layer;
}

/** Groups of files that import each other, directly or through others (Tarjan's strongly connected components). */
function circlesOf(targets: ReadonlyMap<string, readonly string[]>): string[][] {
  const circles: string[][] = [];
  const order = new Map<string, number>();
  const lowest = new Map<string, number>();
  const stack: string[] = [];
  const visit = (path: string): number => {
    const number = order.size;
    order.set(path, number);
    let low = number;
    stack.push(path);
    for (const target of targets.get(path) ?? []) {
      if (!targets.has(target)) continue;
      if (!order.has(target)) low = Math.min(low, visit(target));
      else if (stack.includes(target)) low = Math.min(low, order.get(target)!);
    }
    lowest.set(path, low);
    if (low === number) {
      const circle = stack.splice(stack.lastIndexOf(path));
      if (circle.length > 1) circles.push(circle.sort());
    }
    return low;
  };
  for (const path of targets.keys()) if (!order.has(path)) visit(path);
  return circles;
}

/** `path:line: text` of each line of code (no comments) that fits. */
function linesWith(files: readonly SourceFile[], words: RegExp): string[] {
  return files.flatMap(({ path, text }) =>
    text
      .split("\n")
      .map((line, i) => [i + 1, line.replace(/^\s*(\/?\*|\/\/).*|\s\/\/ .*$/, "")] as const)
      .filter(([, code]) => words.test(code))
      .map(([number, code]) => `${path}:${number}: ${code.trim()}`),
  );
}
