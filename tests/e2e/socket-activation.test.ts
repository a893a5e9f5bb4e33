import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { engineCommand, freePort } from "../parts/engine.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { run, startProcess } from "../parts/process.ts";
import { tempFolder } from "../parts/torrent-files.ts";

const { test } = await testsThatNeed("perl");

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
/** Listens as descriptor 3 and becomes the program of the arguments, as systemd starts a service with a socket unit. */
const LISTEN_AND_EXEC = `$^F = 3;
socket(S, PF_INET, SOCK_STREAM, 0) or die; setsockopt(S, SOL_SOCKET, SO_REUSEADDR, 1);
bind(S, sockaddr_in(shift, INADDR_LOOPBACK)) or die; listen(S, 64) or die; fileno(S) == 3 or die;
$ENV{LISTEN_PID} = $$; $ENV{LISTEN_FDS} = 1; exec @ARGV or die;`;

test("socket activation: a request before the start is answered, and one during a restart within the process", {
  timeout: 60_000,
}, async () => {
  const scratch = await tempFolder("socket-activation");
  const port = await freePort();
  const env = {
    ...{ SLUICE_DATA_DIR: scratch.path, XDG_CONFIG_HOME: scratch.path, SLUICE_P2P_PORT: "0" },
    // Another port, which must not be used.
    SLUICE_HTTP_PORT: "1",
  };
  const engine = startProcess(
    "perl",
    ["-MSocket", "-e", LISTEN_AND_EXEC, `${port}`, ...engineCommand(), "serve"],
    { cwd: ROOT, env },
  );
  try {
    const control = async (method: string, token = "") => {
      const query = new URLSearchParams({ api_version: "3", method, token });
      const headers = { connection: "close" };
      const response = await fetch(`http://127.0.0.1:${port}/server/api?${query}`, { headers });
      return (await response.json()) as { result: unknown };
    };
    const { token } = (await untilListening(() => control("get_api_access_token"))).result as {
      token: string;
    };
    assert.equal((await control("restart_engine", token)).result, "ok");
    await engine.line((line) => line.includes("stopping"));
    assert.deepEqual((await control("get_api_access_token")).result, { token });
  } finally {
    await engine.stop();
    await scratch.remove();
  }
});

test("a config file that is passed as an open descriptor is read", async () => {
  const scratch = await tempFolder("descriptor");
  try {
    await writeFile(scratch.file("config.json"), JSON.stringify({ "http-port": 12_345 }));
    const script = 'exec 5<"$0"; exec "$@" settings --config /dev/fd/5';
    const printed = await run("sh", ["-c", script, scratch.file("config.json"), ...engineCommand()]);
    assert.match(printed, /12345/);
  } finally {
    await scratch.remove();
  }
});

/** Perl needs a moment until it listens; from then on, no request may fail. */
async function untilListening<T>(request: () => Promise<T>): Promise<T> {
  for (let tries = 0; ; tries++) {
    try {
      return await request();
    } catch (error) {
      if (tries === 400) throw error;
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
  }
}
