import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** What the files of a room may import: other rooms or single files, and packages. Itself is always allowed. */
interface Room {
  readonly path: string;
  readonly imports: readonly string[];
  readonly packages: readonly string[];
}

const PURE = ["src/base", "src/wire", "src/media", "src/swarm"];

/** The house, top floor first: the first room whose path fits is the one. `*` allows everything. */
const ROOMS: readonly Room[] = [
  {
    path: "src/web/page",
    imports: ["src/runtime/contract.ts"],
    packages: ["hls.js", "idb-keyval", "peerjs"],
  },
  {
    path: "src/web",
    imports: ["src/runtime/contract.ts"],
    packages: ["node:", "hls.js", "idb-keyval", "peerjs"],
  },
  { path: "src/cli", imports: ["*"], packages: ["node:"] },
  {
    path: "routes",
    imports: [
      "src/base",
      "src/engine/engine.ts",
      "src/engine/contract.ts",
      "src/engine/diagnosis/contract.ts",
      "src/engine/live/broadcast-contract.ts",
      "src/library/library.ts",
      "src/library/contract.ts",
      "src/runtime/contract.ts",
    ],
    packages: ["hono", "@hono/zod-validator", "zod"],
  },
  {
    path: "src/engine",
    imports: [
      ...["src/base", "src/wire", "src/media", "src/swarm", "src/remux", "src/outbound"],
      "src/runtime/contract.ts",
    ],
    packages: [],
  },
  {
    path: "src/library",
    imports: ["src/base", "src/media", "src/outbound", "src/runtime/contract.ts"],
    packages: ["valibot", "jose"],
  },
  { path: "src/outbound", imports: ["src/base", "src/runtime/contract.ts"], packages: [] },
  { path: "src/remux", imports: ["src/base", "src/media"], packages: ["mediabunny", "mux.js"] },
  { path: "src/swarm", imports: ["src/base", "src/wire"], packages: [] },
  { path: "src/wire", imports: ["src/base"], packages: [] },
  { path: "src/media", imports: ["src/base"], packages: [] },
  { path: "src/runtime", imports: ["src/base"], packages: ["node:"] },
  { path: "src/base", imports: [], packages: [] },
  { path: "src", imports: ["*"], packages: ["node:", "valibot", "#runtime", "#web-assets"] },
];

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

test("tidy: the rooms import downwards only, and the packages that are theirs", () => {
  const faults = sources.flatMap((file) => {
    const room = roomOf(file.path);
    return importsOf(file.text)
      .filter((target) => !isAllowed(room, file.path, target))
      .map((target) => `${file.path} imports ${target}`);
  });
  assert.deepEqual(faults, []);
});

test("tidy: the pure rooms have no clock, timer, promise scheduling, chance, Buffer or console", () => {
  const words =
    /\b(Date\.now|new Date|performance\.|setTimeout|setInterval|setImmediate|queueMicrotask|process\.|Math\.random|crypto\.|Buffer\b|console\.|async |await |new Promise|fetch\()/;
  assert.deepEqual(linesWith(sources.filter(isPure), words), []);
});

test("tidy: only main asks which runtime runs, and only the tower touches the machine", () => {
  const asking = sources.filter(({ path }) => !path.startsWith("src/runtime/"));
  assert.deepEqual(linesWith(asking, /\b(Bun|Deno)\.|globalThis\.(Bun|Deno)/), []);
  const outsiders = asking.filter(({ path }) => !/^src\/(cli|web)\//.test(path) && path !== "src/main.ts");
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

test("tidy: whatever is exported is used by another file", () => {
  const users = [...sources, ...filesBelow("tests", /\.(ts|js)$/)].map(({ path, text }) => ({
    path,
    words: new Set(text.match(/\w+/g)),
  }));
  const unused = sources.flatMap(({ path, text }) =>
    [...text.matchAll(/^export (?:async )?(?:function|class|const|interface|type) (\w+)/gm)]
      .map(([, name]) => name!)
      .filter((name) => !users.some((user) => user.path !== path && user.words.has(name)))
      // The shape of what is exported and used may be exported too.
      .filter((name) => !text.split("\n").some((line) => isSignatureWith(line, name)))
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

function roomOf(path: string): Room {
  return ROOMS.find((room) => path.startsWith(`${room.path}/`))!;
}

function isPure({ path }: SourceFile): boolean {
  return PURE.some((room) => path.startsWith(`${room}/`));
}

function importsOf(text: string): string[] {
  const statements = text.matchAll(
    /^(?:import|export)\b[^"';]*?\bfrom "([^"]+)"|^import "([^"]+)"|\bimport\("([^"]+)"\)/gm,
  );
  return [...statements].map(([, from, bare, dynamic]) => from ?? bare ?? dynamic!);
}

function isAllowed(room: Room, path: string, target: string): boolean {
  if (!target.startsWith(".")) {
    return room.packages.some(
      (name) => target === name || target.startsWith(name.endsWith(":") ? name : `${name}/`),
    );
  }
  const file = relative(ROOT, resolve(ROOT, dirname(path), target)).replaceAll("\\", "/");
  if (file.startsWith(`${room.path}/`) || room.imports.includes("*")) return true;
  return room.imports.some((allowed) => file === allowed || file.startsWith(`${allowed}/`));
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
