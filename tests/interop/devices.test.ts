import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { runtimeCommand } from "../parts/engine.ts";
import { makeSpaces, type Space } from "../parts/namespaces.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { startProcess } from "../parts/process.ts";
import { tempFolder } from "../parts/torrent-files.ts";

const { test } = await testsThatNeed("gmediarender", "curl", "namespaces");

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const PATTERN = { test_pattern: "1", name: "pattern" };

/** Calls a control method from within a namespace. Rejects with the message of the engine. */
async function call(
  space: Space,
  method: string,
  values: Readonly<Record<string, string>> = {},
): Promise<unknown> {
  const data = Object.entries(values).flatMap(([name, value]) => ["--data-urlencode", `${name}=${value}`]);
  const url = `http://127.0.0.1:6878/server/api/${method}`;
  const { result, error } = JSON.parse(await space.run("curl", "-s", "-G", url, ...data)) as {
    result: unknown;
    error: { message: string } | null;
  };
  if (error) throw new Error(error.message);
  return result;
}

/** Waits until a device reports this state. */
async function state(space: Space, id: string, wanted: string): Promise<void> {
  for (let left = 60; ; left--) {
    const { status } = (await call(space, "aircast_get_status", { device_id: id })) as { status: string };
    if (status === wanted) return;
    assert.ok(left > 0, `the device is ${status}, not ${wanted}`);
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
}

test("gmediarender is found, plays, pauses and stops; nothing is sent on a network that was not chosen", {
  timeout: 240_000,
}, async () => {
  const scratch = await tempFolder("devices");
  const spaces = makeSpaces();
  const stops: (() => Promise<unknown>)[] = [];
  try {
    const [ours, tv, away] = [await spaces.make("ours"), await spaces.make("tv"), await spaces.make("away")];
    // Without IPv6 the kernel itself sends nothing on an idle network.
    for (const space of [ours, tv, away])
      await space.run("sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1");
    await spaces.wire(
      { space: ours, device: "lan", addresses: ["192.168.5.1/24"] },
      { space: tv, device: "lan", addresses: ["192.168.5.2/24"] },
    );
    await spaces.wire(
      { space: ours, device: "guests", addresses: ["192.168.6.1/24"] },
      { space: away, device: "guests", addresses: ["192.168.6.2/24"] },
    );
    await tv.run("ip", "route", "add", "default", "dev", "lan");
    const sinks = ["audio", "video"].map((kind) => `--gstout-${kind}pipe=fakesink sync=true`);
    const renderer = startProcess("ip", [
      ...tv.prefix.slice(1),
      ...["gmediarender", "-I", "lan", "-f", "Living room", "--logfile", "/dev/null", ...sinks],
    ]);
    stops.push(() => renderer.stop());
    await renderer.line((line) => line.includes("Ready"));
    const [command, ...args] = runtimeCommand();
    const engine = startProcess("ip", [...ours.prefix.slice(1), command, ...args, "src/main.ts", "serve"], {
      cwd: ROOT,
      env: {
        ...{ SLUICE_DHT: "off", SLUICE_LSD: "off", SLUICE_PORT_MAPPING: "off", SLUICE_STORE: "memory" },
        ...{ SLUICE_DLNA: "on", SLUICE_DEVICE_INTERFACES: "lan" },
        SLUICE_DATA_DIR: scratch.file("data"),
        XDG_CONFIG_HOME: scratch.path,
      },
    });
    stops.push(() => engine.stop());
    await engine.line((line) => line.includes("Open"));
    const { players } = (await call(ours, "get_available_players")) as {
      players: { id: string; name: string; type: string }[];
    };
    const found = players.find(({ name }) => name === "Living room");
    assert.equal(found?.type, "aircast");
    const { id } = found!;
    const { token } = (await call(ours, "get_api_access_token")) as { token: string };
    const { infohash } = (await call(ours, "broadcast_start", { ...PATTERN, token })) as { infohash: string };
    for (let round = 0; round < 3; round++) {
      await call(ours, "open_in_player", { player_id: id, infohash });
      await state(ours, id, "playing");
      await call(ours, "aircast_pause", { device_id: id });
      await state(ours, id, "paused");
      await call(ours, "aircast_stop", { device_id: id });
      await state(ours, id, "idle");
    }
    const sent = await ours.run("cat", "/sys/class/net/guests/statistics/tx_packets");
    assert.equal(sent.trim(), "0");
  } finally {
    for (const stop of stops.reverse()) await stop();
    await spaces.remove();
    await scratch.remove();
  }
});
