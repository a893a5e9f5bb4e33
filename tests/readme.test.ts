import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { settingsTable, variableOf } from "../src/settings/settings.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const read = (path: string) => readFileSync(join(ROOT, path), "utf8");
const packageJson = JSON.parse(read("package.json"));
const denoJson = JSON.parse(read("deno.json"));

/** The pages of the project, by path below the root. */
const pages = [
  ...["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].filter((path) => existsSync(join(ROOT, path))),
  ...filesBelow("docs", ".md"),
].map((path) => ({ path, text: read(path) }));

test("README fits on a few screens, and its screenshot is small", () => {
  assert.ok(read("README.md").split("\n").length < 200);
  assert.ok(statSync(join(ROOT, "docs/images/start-page.png")).size < 150_000);
});

test("docs/settings.md has every setting with its variable, default and meaning (UPDATE_DOCS=1 rewrites it)", () => {
  const rows = Object.values(settingsTable({ dataDir: "" }))
    .map(
      (setting) =>
        `| \`--${setting.name}\` | \`${variableOf(setting)}\` | ${setting.shownDefault} | ${setting.help} |`,
    )
    .join("\n");
  const path = "docs/settings.md";
  if (process.env.UPDATE_DOCS === "1") {
    writeFileSync(join(ROOT, path), read(path).replace(/^\| `--.*\n?$/ms, `${rows}\n`));
  }
  assert.ok(read(path).endsWith(`\n${rows}\n`), `the table should be:\n${rows}`);
});

test("the documentation names only scripts that exist", () => {
  for (const { path, text } of pages) {
    for (const [, name] of text.matchAll(/(?:npm|bun) run ([\w:]+)/g))
      assert.ok(packageJson.scripts[name!], `${path}: ${name}`);
    for (const [, name] of text.matchAll(/deno task ([\w:]+)/g))
      assert.ok(denoJson.tasks[name!], `${path}: ${name}`);
  }
});

test("the documentation names only flags that exist as settings or in the command line's source", () => {
  const settings = new Set(Object.values(settingsTable({ dataDir: "" })).map(({ name }) => name));
  const cli = filesBelow("src/cli", ".ts").map(read).join("\n");
  const users = pages.filter(
    ({ path }) => path === "README.md" || /^docs\/(?!benchmarks)[a-z]+\.md$/.test(path),
  );
  const unknown = users.flatMap(({ path, text }) =>
    [...text.matchAll(/`(?:sluice \w+ )?--([a-z][a-z-]+)/g)]
      .map(([, name]) => name!)
      .filter((name) => !settings.has(name) && !cli.includes(`"${name}"`) && !cli.includes(`--${name}`))
      .map((name) => `${path}: --${name}`),
  );
  assert.deepEqual(unknown, []);
});

test("README quotes only texts that the start page has", () => {
  const page = filesBelow("src/web/page", "").map(read).join("\n");
  const quoted = [...read("README.md").matchAll(/“([^”]+)”/g)].map(([, text]) => text!);
  assert.deepEqual(
    quoted.filter((text) => !page.includes(text)),
    [],
  );
});

test("links between pages lead to files and headings that exist", () => {
  const broken = pages.flatMap(({ path, text }) =>
    [...text.matchAll(/\]\(([^)\s]+)\)|(?:src|href)="([^"]+)"/g)]
      .map(([, link, attribute]) => link ?? attribute!)
      .filter((link) => !/^[a-z]+:/.test(link))
      .filter((link) => {
        const [file, heading] = link.split("#");
        const target = file === "" ? path : relative(ROOT, join(ROOT, dirname(path), file!));
        if (!existsSync(join(ROOT, target))) return true;
        return heading !== undefined && !headingsOf(read(target)).includes(heading);
      })
      .map((link) => `${path}: ${link}`),
  );
  assert.deepEqual(broken, []);
});

test("the documentation names only source files and folders that exist", () => {
  const files = ["src", "routes", "tests", ".ci", ".github"]
    .filter((folder) => existsSync(join(ROOT, folder)))
    .flatMap((folder) => filesBelow(folder, ""));
  const packages = { ...packageJson.dependencies, ...packageJson.devDependencies };
  const exists = (name: string) =>
    name in packages || files.some((file) => `/${file}`.endsWith(`/${name}`)) || existsSync(join(ROOT, name));
  const missing = pages
    .filter(({ path }) => path !== "CONTRIBUTING.md")
    .flatMap(({ path, text }) =>
      [...text.matchAll(/`((?:[\w.-]+\/)*[\w-]+(?:\.test)?\.(?:ts|js)|(?:src|routes|tests)\/[\w./-]*)`/g)]
        .map(([, name]) => name!)
        .filter((name) => !exists(name.replace(/\/$/, "")))
        .map((name) => `${path}: ${name}`),
    );
  assert.deepEqual(missing, []);
});

test("every CHOICE(name) in the documentation has a row in docs/choices.md", () => {
  const rows = new Set([...read("docs/choices.md").matchAll(/^\| `([\w-]+)` \|/gm)].map(([, name]) => name!));
  const unknown = pages.flatMap(({ path, text }) =>
    [...text.matchAll(/CHOICE\(([\w-]+)\)/g)]
      .filter(([, name]) => name !== "name" && !rows.has(name!))
      .map(([call]) => `${path}: ${call}`),
  );
  assert.deepEqual(unknown, []);
});

test("docs/ARCHITECTURE.md has every room", () => {
  const architecture = read("docs/ARCHITECTURE.md");
  const rooms = readdirSync(join(ROOT, "src"), { withFileTypes: true }).filter((entry) =>
    entry.isDirectory(),
  );
  assert.deepEqual(
    rooms.map(({ name }) => `\`src/${name}/\``).filter((room) => !architecture.includes(room)),
    [],
  );
});

test("package.json: every dependency has its line of reason in docs/ARCHITECTURE.md", () => {
  const architecture = read("docs/ARCHITECTURE.md");
  for (const name of Object.keys({ ...packageJson.dependencies, ...packageJson.devDependencies })) {
    assert.ok(architecture.includes(`| \`${name}\` |`), name);
  }
});

test("package.json: every shipped dependency is in NOTICE", () => {
  const notice = read("NOTICE");
  for (const name of Object.keys(packageJson.dependencies)) {
    assert.match(notice, new RegExp(`(^|[\\s,])${name}([\\s,]|$)`, "m"), name);
  }
});

test("deno.json: compile takes in the page, and start and test set up first", () => {
  assert.match(
    denoJson.tasks.compile,
    /write-assets\.ts && deno compile .*--include src\/web\/built-page\.json/,
  );
  assert.match(denoJson.tasks.compile, /src\/main\.ts'$/);
  // Excluding all of node_modules would leave out the codecs, which are read when they are first needed.
  const excluded = [...denoJson.tasks.compile.matchAll(/--exclude node_modules\/(\S+)/g)].map(
    ([, name]) => name,
  );
  assert.ok(excluded.includes("bun"));
  const needed = Object.keys(packageJson.dependencies).filter(
    (name) => !["bun", "esbuild", "tsx"].includes(name),
  );
  assert.deepEqual(
    needed.filter((name) => excluded.some((each) => name.split("/")[0] === each || name === each)),
    [],
  );
  for (const task of ["start", "test"]) assert.match(denoJson.tasks[task], /^sh .ci\/setup && /);
});

/** Paths below the root, with `/`, of the files of `folder` that end with `suffix`. */
function filesBelow(folder: string, suffix: string): string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(suffix))
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)).replaceAll("\\", "/"))
    .filter((path) => !path.includes("node_modules/"));
}

/** The anchors of a page's headings, as GitHub makes them. */
function headingsOf(text: string): string[] {
  return [...text.matchAll(/^#+ (.+)$/gm)].map(([, title]) =>
    title!
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-"),
  );
}
