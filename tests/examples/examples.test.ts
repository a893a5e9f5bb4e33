import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { runtimeCommand } from "../parts/engine.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { startProcess } from "../parts/process.ts";
import { type TempFolder, tempFolder } from "../parts/torrent-files.ts";

const { after, before, describe, test } = await testsThatNeed("time");

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const [RUNTIME, ...RUNTIME_ARGS] = runtimeCommand();

/** The examples with their arguments after the data folder, and lines that they print. */
const EXAMPLES: readonly (readonly [name: string, args: string[], lines: RegExp[]])[] = [
  ["embed", [], [/^engine: .*"engine": "Sluice"/m, /^own server: 200 text\/html/m, /^players: 200$/m]],
  ["mount", [], [/^own: 200 my own path$/m, /^engine: 200 text\/html/m]],
  ["custom-store", [], [/^same token after a restart: true$/m]],
  [
    "broadcast",
    ["2"],
    [/^link: sluice:\?magnet=/m, /^preview: http:/m, /^example: (good|waiting)/m, /^stopped$/m],
  ],
];

describe("examples", { timeout: 120_000 }, () => {
  let scratch: TempFolder;

  before(async () => {
    scratch = await tempFolder("examples");
  });
  after(() => scratch?.remove());

  for (const [name, args, lines] of EXAMPLES) {
    test(`examples/${name}.ts runs`, async () => {
      const command = [...RUNTIME_ARGS, `examples/${name}.ts`, scratch.file(name), ...args];
      const running = startProcess(RUNTIME, command, { cwd: ROOT });
      const code = await new Promise<number | null>((resolve) => running.child.on("close", resolve));
      assert.equal(code, 0, running.output());
      for (const line of lines) assert.match(running.output(), line);
    });
  }
});
