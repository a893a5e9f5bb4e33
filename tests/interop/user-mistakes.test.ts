import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { chmod, mkdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { engineCommand } from "../parts/engine.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { startProcess } from "../parts/process.ts";
import { type TempFolder, tempFolder } from "../parts/torrent-files.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const COMMAND = [...engineCommand(), "--http-port", "0", "--p2p-port", "0"];
const QUOTED = COMMAND.map((word) => `'${word}'`).join(" ");

const { after, before, describe, test } = await testsThatNeed("namespaces");

describe("user mistakes that need root to provoke", { timeout: 300_000 }, () => {
  let scratch: TempFolder;

  before(async () => {
    scratch = await tempFolder("mistakes");
    await chmod(scratch.path, 0o777);
    await mkdir(scratch.file("disk"));
  });
  after(() => scratch?.remove());

  /** Runs a shell script with a mount namespace of its own; `$SLUICE` starts the program. */
  async function shell(script: string, env: Record<string, string | undefined> = {}) {
    const running = startProcess("unshare", ["--mount", "sh", "-c", script.replaceAll("$SLUICE", QUOTED)], {
      cwd: ROOT,
      env: { SLUICE_DATA_DIR: scratch.file("disk"), XDG_CONFIG_HOME: scratch.path, ...env },
    });
    const code = await new Promise<number | null>((resolve) => running.child.on("close", resolve));
    return { code, output: running.output() };
  }

  test("a full disk", async () => {
    const disk = scratch.file("disk");
    const { code, output } = await shell(
      `mount -t tmpfs -o size=200k none '${disk}' && head -c 1M /dev/zero > '${disk}/x'; exec $SLUICE`,
    );
    assert.match(output, /^sluice: the disk of .*disk is full\. .*--data-dir\.$/m);
    assert.doesNotMatch(output, /\n +at /);
    assert.equal(code, 1);
  });

  test("a read-only disk", async () => {
    const { code, output } = await shell(
      `mount -t tmpfs -o ro none '${scratch.file("disk")}' && exec $SLUICE`,
    );
    assert.match(output, /^sluice: cannot use .*disk\/library: .* --data-dir\.$/);
    assert.equal(code, 1);
  });

  test("a port that only root may use", async (t) => {
    const first = readFileSync("/proc/sys/net/ipv4/ip_unprivileged_port_start", "utf8");
    if (Number(first) <= 80) return t.skip("this machine lets every user listen on port 80");
    const { code, output } = await shell(
      `exec setpriv --reuid 65534 --regid 65534 --clear-groups $SLUICE --http-port 80 --data-dir '${scratch.file("unprivileged")}'`,
    );
    assert.match(output, /^sluice: cannot listen on .* port 80: permission denied; .* --http-port\.$/);
    assert.equal(code, 1);
  });

  test("a user without a home folder", async () => {
    const user = "exec setpriv --reuid 54321 --regid 54321 --clear-groups $SLUICE";
    const nowhere = { HOME: undefined, SLUICE_DATA_DIR: undefined, XDG_CONFIG_HOME: undefined };
    const started = await shell(user, nowhere);
    assert.match(started.output, /^sluice: this user has no home folder .*HOME.*--data-dir\.$/);
    assert.equal(started.code, 2);
    const version = await shell(`${user} --version`, nowhere);
    assert.match(version.output, /^\d+\.\d+\.\d+$/);
    assert.equal(version.code, 0);
  });
});
