import assert from "node:assert/strict";
import { copyFile, cp, mkdir, readFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { freePort } from "../parts/engine.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { run, startProcess } from "../parts/process.ts";
import { tempFolder } from "../parts/torrent-files.ts";

// Copies some hundred packages and starts Deno twice.
const { test } = await testsThatNeed("time");

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const DENO = join(ROOT, "node_modules/.bin/deno");

const GUIDE = `<tv><channel id="a"><display-name>A</display-name></channel>
  <programme channel="a" start="20260101100000 +0000" stop="20260101110000 +0000"><title>News</title></programme></tv>`;

test("deno compile: the files that it takes in are enough to serve the page, to decode sound and to read guides", {
  timeout: 180_000,
}, async () => {
  const { tasks } = JSON.parse(await readFile(join(ROOT, "deno.json"), "utf8"));
  const excluded = [...tasks.compile.matchAll(/--exclude (\S+)/g)].map(([, path]) => join(ROOT, path));
  const folder = await tempFolder("deno-files");
  try {
    const copy = async (path: string) => {
      const to = join(folder.path, relative(ROOT, path));
      await mkdir(dirname(to), { recursive: true });
      await copyFile(path, to);
    };
    // The modules that the compiler finds: static imports, dynamic ones whose path is a literal, and those of included scripts.
    const found = new Set<string>();
    for (const [, entry] of tasks.compile.matchAll(/ (?:--include )?(src\/\S+\.ts)(?=[ ']|$)/g)) {
      const { modules } = JSON.parse(await run(DENO, ["info", "--json", join(ROOT, entry)]));
      for (const { local } of modules as { local?: string }[])
        if (local?.startsWith(ROOT) && !local.includes("node_modules")) found.add(local);
    }
    assert.ok(found.size > 500);
    for (const path of [...found, join(ROOT, "deno.json"), join(ROOT, "package.json")]) await copy(path);
    await cp(join(ROOT, "node_modules"), join(folder.path, "node_modules"), {
      recursive: true,
      filter: (path) => !excluded.includes(path) && !/node_modules\/\.bin/.test(path),
    });
    const write = `import { buildWebAssets } from ${JSON.stringify(pathToFileURL(join(ROOT, "src/web/assets.ts")).href)};
      Deno.writeTextFileSync(${JSON.stringify(folder.file("src/web/built-page.json"))}, JSON.stringify(await buildWebAssets()));`;
    await run(DENO, ["eval", write]);
    const codecs = `import { codecProgram } from ${JSON.stringify(pathToFileURL(folder.file("src/runtime/codec-scripts-files.ts")).href)};
      for (const name of ["aac", "ac3", "dts", "mpeg", "opus"]) console.log(name, ((p) => (p.wasm ?? p.script).length > 10_000)(codecProgram(name)));`;
    const read = await run(DENO, ["eval", codecs]);
    assert.deepEqual(read.trim().split("\n"), ["aac true", "ac3 true", "dts true", "mpeg true", "opus true"]);
    const guide = `import { startWorker } from ${JSON.stringify(pathToFileURL(folder.file("src/runtime/worker.ts")).href)};
      import { createWorkerReader } from ${JSON.stringify(pathToFileURL(folder.file("src/library/guide/guide-reading.ts")).href)};
      const read = createWorkerReader((name, handlers) => startWorker("deno", name, handlers));
      const options = { from: 0, to: 2 ** 32, signal: new AbortController().signal, onProgrammes() {} };
      await read(new Response(${JSON.stringify(GUIDE)}).body, ${JSON.stringify(folder.file("guide"))}, options);`;
    await run(DENO, ["eval", guide]);
    assert.match(await readFile(folder.file("guide"), "utf8"), /News/);
    const port = await freePort();
    const engine = startProcess(DENO, ["run", "-A", folder.file("src/main.ts")], {
      cwd: folder.path,
      env: {
        SLUICE_HTTP_PORT: String(port),
        SLUICE_P2P_PORT: "0",
        SLUICE_DATA_DIR: folder.file("data"),
        XDG_CONFIG_HOME: folder.path,
      },
    });
    try {
      await engine.line((line) => line.includes(`:${port}/`));
      assert.match(await (await fetch(`http://127.0.0.1:${port}/`)).text(), /<title>Sluice/);
      const script = await fetch(`http://127.0.0.1:${port}/app/shell/main.js`);
      assert.equal(script.status, 200);
      await script.body?.cancel();
    } finally {
      await engine.stop();
    }
  } finally {
    await folder.remove();
  }
});
