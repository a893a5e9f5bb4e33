import assert from "node:assert/strict";
import { chmod, readFile, writeFile } from "node:fs/promises";
import { test } from "node:test";
import { SILENT_LOG } from "../../src/base/log.ts";
import { passedSocket, serviceManager } from "../../src/cli/service-manager.ts";
import { tempFolder } from "../parts/torrent-files.ts";

test("serviceManager: reports the start, each watchdog interval and the end to systemd", async () => {
  const folder = await tempFolder("notify");
  try {
    const program = folder.file("systemd-notify");
    await writeFile(program, `#!/bin/sh\necho "$2" >> "${folder.file("states")}"\n`);
    await chmod(program, 0o755);
    const manager = serviceManager(
      { NOTIFY_SOCKET: "/run/systemd/notify", WATCHDOG_USEC: "100000", PATH: `${folder.path}:/usr/bin:/bin` },
      SILENT_LOG,
    );
    const states = async () => (await readFile(folder.file("states"), "utf8").catch(() => "")).split("\n");
    const seen = async (state: string) => {
      while (!(await states()).includes(state)) await new Promise((resolve) => setTimeout(resolve, 20));
    };
    manager.ready();
    await seen("READY=1");
    await seen("WATCHDOG=1");
    manager.close();
    await seen("STOPPING=1");
  } finally {
    await folder.remove();
  }
});

test("serviceManager: a missing systemd-notify is reported, and nothing runs without a service manager", async () => {
  const warnings: string[] = [];
  const warned = new Promise<void>((resolve) => {
    const warn = (message: string) => {
      warnings.push(message);
      resolve();
    };
    serviceManager({ NOTIFY_SOCKET: "/x", PATH: "/nowhere" }, { ...SILENT_LOG, warn }).ready();
  });
  await warned;
  assert.deepEqual(warnings, ["cannot report to systemd"]);
  const idle = serviceManager({}, SILENT_LOG);
  idle.ready();
  idle.close();
});

test("passedSocket: the descriptor of systemd's socket for this process only, and one socket only", () => {
  const LISTEN_PID = String(process.pid);
  assert.equal(passedSocket({}), undefined);
  assert.equal(passedSocket({ LISTEN_PID, LISTEN_FDS: "0" }), undefined);
  assert.equal(passedSocket({ LISTEN_PID: "1", LISTEN_FDS: "1" }), undefined);
  assert.equal(passedSocket({ LISTEN_PID, LISTEN_FDS: "1" }), 3);
  assert.throws(() => passedSocket({ LISTEN_PID, LISTEN_FDS: "2" }), /systemd passes 2 sockets/);
});
