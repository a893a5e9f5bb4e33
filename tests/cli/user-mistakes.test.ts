import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { SluiceError } from "../../src/base/errors.ts";
import { run } from "../../src/cli/run.ts";
import { runtimeCommand } from "../parts/engine.ts";
import { startProcess } from "../parts/process.ts";
import { type TempFolder, tempFolder } from "../parts/torrent-files.ts";
import { contextOf } from "./run-in-process.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const [RUNTIME, ...RUNTIME_ARGS] = runtimeCommand();

describe("user mistakes end with one line and an exit code", { timeout: 300_000 }, () => {
  let scratch: TempFolder;

  before(async () => {
    scratch = await tempFolder("mistakes");
  });
  after(() => scratch?.remove());

  async function failsWith(args: readonly string[], code: number, text: RegExp): Promise<void> {
    const command = [...RUNTIME_ARGS, "src/main.ts", ...args, "--http-port", "0", "--p2p-port", "0"];
    const env = { SLUICE_DATA_DIR: scratch.file("data"), XDG_CONFIG_HOME: scratch.path };
    const running = startProcess(RUNTIME, command, { cwd: ROOT, env });
    const ended = await new Promise<number | null>((resolve) => running.child.on("close", resolve));
    const lines = running.output().split("\n");
    const shown = lines.filter((line) => !/^\d\d:\d\d:\d\d\.\d{3} (info|warn) /.test(line));
    assert.equal(shown.length, 1, running.output());
    assert.match(shown[0]!, text);
    assert.equal(ended, code);
  }

  test("--host with an address of another machine", () =>
    failsWith(
      ["--host", "192.0.2.1"],
      1,
      /^sluice: cannot listen on 192\.0\.2\.1 .* (?:has no address|is not an address) .* --host\.$/,
    ));

  test("--host with a name that does not resolve", () =>
    failsWith(["--host", "tv.invalid"], 1, /^sluice: the name tv\.invalid has no address\. .*--host/));

  test("--p2p-host with an address of another machine", () =>
    failsWith(["--p2p-host", "192.0.2.1"], 1, /^sluice: cannot listen on 192\.0\.2\.1 .* --p2p-host\.$/));

  test("--p2p-host with a name", () =>
    failsWith(["--p2p-host", "tv.lan"], 2, /^sluice: p2p-host: expected an IP address .* is "tv\.lan"$/));

  test("--data-dir below a file", async () => {
    await writeFile(scratch.file("file"), "x");
    const folder = scratch.file("file/data");
    await failsWith(["--data-dir", folder], 1, /^sluice: cannot use .*: a file exists .* --data-dir\.$/);
  });

  test("--config with a file that does not exist", () =>
    failsWith(
      ["--config", scratch.file("none.json")],
      2,
      /^sluice: cannot read the config file .*none\.json/,
    ));
});

test("run: a full disk names the data folder, and exits with 1", async () => {
  const full = new SluiceError("disk_full", "the disk is full");
  const { context, written } = contextOf(["--http-port", "0"], { dataDir: "/full" });
  const runtime = { ...context.runtime, openStore: () => Promise.reject(full) };
  assert.equal(await run({ ...context, runtime }), 1);
  assert.equal(
    written.err,
    "sluice: the disk of /full is full. Free some space, or choose another data folder with --data-dir.\n",
  );
});

test("run: --help documents the exit codes", async () => {
  const { context, written } = contextOf(["--help"], { dataDir: "/data" });
  assert.equal(await run(context), 0);
  assert.match(written.out, /\nExit codes\n {2}0 .*\n {2}1 .*\n {2}2 .*\n {2}3 .*\n {2}130 /);
});
