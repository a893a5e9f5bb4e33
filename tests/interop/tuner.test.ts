import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { engineCommand } from "../parts/engine.ts";
import { makeSpaces, type Space } from "../parts/namespaces.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { startProcess } from "../parts/process.ts";
import { tempFolder } from "../parts/torrent-files.ts";

const { test } = await testsThatNeed("hdhomerun", "curl", "namespaces");

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** Calls a control method from within a namespace. Rejects with the message of the engine. */
async function call<T>(
  space: Space,
  method: string,
  values: Readonly<Record<string, string>> = {},
): Promise<T> {
  const data = Object.entries(values).flatMap(([name, value]) => ["--data-urlencode", `${name}=${value}`]);
  const url = `http://127.0.0.1:6878/server/api/${method}`;
  const { result, error } = JSON.parse(await space.run("curl", "-s", "-G", url, ...data)) as {
    result: T;
    error: { message: string } | null;
  };
  if (error) throw new Error(error.message);
  return result;
}

/** Runs hdhomerun_config. Its exit status says nothing: 1 is success. */
function configOf(space: Space) {
  return (...args: string[]): Promise<string> =>
    space.run("sh", "-c", 'hdhomerun_config "$@" 2>&1; true', "sh", ...args);
}

test("hdhomerun_config finds one device, scans, and saves a channel that it has chosen", {
  timeout: 240_000,
}, async () => {
  const scratch = await tempFolder("tuner");
  const spaces = makeSpaces();
  const stops: (() => Promise<unknown>)[] = [];
  try {
    const [ours, tv] = [await spaces.make("ours"), await spaces.make("tv")];
    await spaces.wire(
      { space: ours, device: "lan", addresses: ["192.168.5.1/24"] },
      { space: tv, device: "lan", addresses: ["192.168.5.2/24"] },
    );
    const [command, ...args] = engineCommand();
    const engine = startProcess("ip", [...ours.prefix.slice(1), command, ...args, "serve"], {
      cwd: ROOT,
      env: {
        ...{ SLUICE_DHT: "off", SLUICE_LSD: "off", SLUICE_PORT_MAPPING: "off", SLUICE_STORE: "memory" },
        ...{ SLUICE_TUNER: "on", SLUICE_DATA_DIR: scratch.file("data"), XDG_CONFIG_HOME: scratch.path },
      },
    });
    stops.push(() => engine.stop());
    await engine.line((line) => line.includes("Open"));
    const { token } = await call<{ token: string }>(ours, "get_api_access_token");
    for (const name of ["One", "Two"]) {
      const asked = { test_pattern: "1", name, token };
      const { infohash } = await call<{ infohash: string }>(ours, "broadcast_start", asked);
      await call(ours, "playlist_add_item", { infohash, title: name, is_live: "1", token });
    }
    const config = configOf(tv);
    const found = await config("discover");
    assert.match(found, /^hdhomerun device [0-9A-F]{8} found at 192\.168\.5\.1\n$/);
    assert.equal(await config("discover", "192.168.5.1"), found);
    const id = found.split(" ")[2]!;
    assert.equal(await config(id, "get", "/sys/model"), "hdhomerun4_atsc\n");
    const scanned = await config("192.168.5.1", "scan", "/tuner0");
    assert.deepEqual(
      [...scanned.matchAll(/^PROGRAM (\d+): \1 (\w+)$/gm)].map(([, , name]) => name),
      ["One", "Two"],
    );
    const [, hertz] = /SCANNING: (\d+).*\nLOCK: 8vsb/.exec(scanned)!;
    const programme = /^PROGRAM (\d+): \d+ Two$/m.exec(scanned)![1]!;
    assert.equal(await config(id, "set", "/tuner0/channel", `auto:${hertz}`), "");
    assert.equal(await config(id, "set", "/tuner0/program", programme), "");
    const file = scratch.file("saved.ts");
    // Interrupted as by a user; the statistics follow.
    const statistics = await tv.run(
      "sh",
      "-c",
      `timeout -s INT 12 hdhomerun_config ${id} save /tuner0 ${file} 2>&1; true`,
    );
    const [, packets, errors] =
      /(\d+) packets received, (0 overflow errors, 0 network errors, 0 transport errors, 0 sequence errors)/.exec(
        statistics,
      ) ?? assert.fail(statistics);
    assert.ok(Number(packets) > 100 && errors, statistics);
    const saved = await readFile(file);
    assert.ok(saved.length > 0 && saved.length % 188 === 0);
    for (let at = 0; at < saved.length; at += 188) assert.equal(saved[at], 0x47);
    // The stream ends with its client.
    const status = await config(id, "get", "/tuner0/status");
    assert.match(status, /bps=0 pps=0/);
  } finally {
    for (const stop of stops.reverse()) await stop();
    await spaces.remove();
    await scratch.remove();
  }
});
