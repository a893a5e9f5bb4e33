import assert from "node:assert/strict";
import { mkdir, readdir, symlink, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { testsThatNeed } from "../parts/needs.ts";
import { run } from "../parts/process.ts";
import { type TempFolder, tempFolder } from "../parts/torrent-files.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const { after, before, describe, test } = await testsThatNeed("time");

describe("the packed package", { timeout: 240_000 }, () => {
  let scratch: TempFolder;

  /** Packs the package and unpacks it where `npm install` would, with links to the dependencies. */
  before(async () => {
    scratch = await tempFolder("package");
    await run("npm", ["pack", "--silent", "--prefix", ROOT, ROOT, "--pack-destination", scratch.path]);
    await mkdir(scratch.file("node_modules/sluice"), { recursive: true });
    const [tarball] = (await readdir(scratch.path)).filter((name) => name.endsWith(".tgz"));
    const target = ["-C", scratch.file("node_modules/sluice"), "--strip-components=1"];
    await run("tar", ["-xzf", scratch.file(tarball!), ...target]);
    for (const name of await readdir(`${ROOT}node_modules`)) {
      if (name !== "sluice")
        await symlink(`${ROOT}node_modules/${name}`, scratch.file(`node_modules/${name}`));
    }
    await writeFile(scratch.file("package.json"), '{"type":"module"}');
  });
  after(() => scratch?.remove());

  test("bin/sluice.js runs on Node, also where Node has no node:sqlite", async () => {
    const bin = scratch.file("node_modules/sluice/bin/sluice.js");
    assert.match(await run("node", [bin, "--version"]), /^\d+\.\d+\.\d+\n$/);
    assert.match(await run("node", [bin, "version"]), /^sluice \S+ \((node|bun) /);
  });

  test("startEngine is importable from Node, and typed", async () => {
    const script = scratch.file("program.mjs");
    await writeFile(
      script,
      `import { startEngine } from "sluice";
       const settings = { "data-dir": ${JSON.stringify(scratch.file("data"))}, "p2p-port": 0, store: "memory" };
       const engine = await startEngine({ settings: { ...settings, dht: "off", lsd: "off", "port-mapping": "off" } });
       console.log((await engine.call("get_version")).engine);
       await engine.close();
       process.exit(0);`,
    );
    assert.equal(await run("node", [script]), "Sluice\n");
    const typed = scratch.file("program.ts");
    await writeFile(
      typed,
      `import { type EmbeddedEngine, type KeyValueStore, startEngine } from "sluice";
       declare const store: KeyValueStore;
       const engine: EmbeddedEngine = await startEngine({ settings: {}, store });
       export const port: number = engine.p2pPort;
       // @ts-expect-error: settings are required
       await startEngine({});`,
    );
    const options = ["--noEmit", "--module", "nodenext", "--target", "es2022", "--strict", "--skipLibCheck"];
    await run(`${ROOT}node_modules/.bin/tsc`, ["--ignoreConfig", ...options, typed]);
  });
});
