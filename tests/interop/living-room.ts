import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { engineCommand, runtimeCommand } from "../parts/engine.ts";
import { makeSpaces, type Space } from "../parts/namespaces.ts";
import { type RunningProcess, run, startProcess } from "../parts/process.ts";
import { type TempFolder, tempFolder } from "../parts/torrent-files.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const FILM = "-c:v libx264 -preset ultrafast -g 25 -pix_fmt yuv420p -c:a aac -movflags +faststart".split(" ");

/** An engine in a network of its own with a device: programs started with `inTv` see only that network. */
export interface LivingRoom extends AsyncDisposable {
  readonly scratch: TempFolder;
  readonly tv: Space;
  /** A network of the engine that it was not told to use. */
  readonly ours: Space;
  /** The magnet links of the films. */
  readonly films: readonly string[];
  /** Starts a program in the network of the device; it ends with the room. */
  inTv(
    command: string,
    args: readonly string[],
    env?: Record<string, string | undefined>,
    stdin?: "pipe",
  ): RunningProcess;
  /** Calls a control method. Rejects with the message of the engine. */
  call<T>(method: string, values?: Readonly<Record<string, string>>): Promise<T>;
}

/** Makes films of `seconds` each, and starts an engine that searches devices and serves media in the network of the device. */
export async function livingRoom(count: number, seconds: number): Promise<LivingRoom> {
  const scratch = await tempFolder("devices");
  const spaces = makeSpaces();
  const stops: (() => Promise<unknown>)[] = [];
  const [ours, tv, away] = [await spaces.make("ours"), await spaces.make("tv"), await spaces.make("away")];
  const end = async () => {
    // Programs that a script has started do not get its signals, and keep its output open.
    for (const space of [tv, ours])
      for (const pid of (await run("ip", ["netns", "pids", space.name])).split("\n").filter(Boolean))
        process.kill(Number(pid), "SIGKILL");
    for (const stop of stops.reverse()) await stop();
    await spaces.remove();
    await scratch.remove();
  };
  try {
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
    const start = (
      space: Space,
      command: string,
      args: readonly string[],
      options: Parameters<typeof startProcess>[2] = {},
    ) => {
      const started = startProcess("ip", [...space.prefix.slice(1), command, ...args], {
        cwd: ROOT,
        ...options,
      });
      stops.push(() => started.stop());
      return started;
    };
    const names = Array.from({ length: count }, (_, i) => scratch.file(`Film ${i + 1}.mp4`));
    const inputs = ["testsrc2=s=320x180:r=25", "sine"].flatMap((each) => ["-f", "lavfi", "-i", each]);
    const original = scratch.file("original.mp4");
    await run("ffmpeg", ["-v", "error", ...inputs, "-t", String(seconds), ...FILM, original]);
    for (const name of names)
      await run("ffmpeg", ["-v", "error", "-i", original, "-c", "copy", "-metadata", `title=${name}`, name]);
    const [command, ...args] = runtimeCommand();
    const seeder = start(ours, command, [...args, "tests/parts/run-seeder.ts", ...names]);
    const films: string[] = [];
    for (const name of names) {
      const known = new Set(films);
      films.push(await seeder.line((line) => line.startsWith("magnet:") && !known.has(line)));
      assert.ok(name);
    }
    const [program, ...programArgs] = engineCommand();
    const engine = start(ours, program, [...programArgs, "serve"], {
      env: {
        ...{ SLUICE_DHT: "off", SLUICE_LSD: "off", SLUICE_PORT_MAPPING: "off", SLUICE_STORE: "memory" },
        ...{ SLUICE_DLNA: "on", SLUICE_DEVICE_INTERFACES: "lan" },
        ...{ SLUICE_DATA_DIR: scratch.file("data"), XDG_CONFIG_HOME: scratch.path },
      },
    });
    await engine.line((line) => line.includes("Open"));
    const ask = async <T>(method: string, values: Readonly<Record<string, string>>): Promise<T> => {
      const data = Object.entries(values).flatMap(([name, value]) => [
        "--data-urlencode",
        `${name}=${value}`,
      ]);
      const url = `http://127.0.0.1:6878/server/api/${method}`;
      const answer = await ours.run("curl", "-s", "-G", url, ...data);
      const { result, error } = JSON.parse(answer) as { result: T; error: { message: string } | null };
      if (error) throw new Error(`${method}: ${error.message}`);
      return result;
    };
    const { token } = await ask<{ token: string }>("get_api_access_token", {});
    return {
      ...{ scratch, tv, ours, films },
      inTv: (program, given, env, stdin) =>
        start(tv, program, given, { cwd: scratch.path, ...(env && { env }), ...(stdin && { stdin }) }),
      call: (method, values = {}) => ask(method, { token, ...values }),
      [Symbol.asyncDispose]: end,
    };
  } catch (error) {
    await end();
    throw error;
  }
}

interface DeviceStatus {
  readonly status: string;
  readonly position: number | null;
}

/** Waits until a device is found by this name; resolves to its id. */
export async function deviceNamed({ call }: LivingRoom, name: string): Promise<string> {
  for (let left = 60; ; left--) {
    const { players } = await call<{ players: { id: string; name: string; type: string }[] }>(
      "get_available_players",
    );
    // The others are programs of the engine's computer.
    const found = players.find((player) => player.type === "aircast" && player.name.includes(name));
    if (found) return found.id;
    assert.ok(left > 0, `found only ${players.map((player) => player.name)}`);
    await pause(500);
  }
}

/** Waits until a device reports a status that `isWanted`. */
export async function untilDevice(
  { call }: LivingRoom,
  id: string,
  isWanted: (status: DeviceStatus) => boolean,
): Promise<void> {
  for (let left = 80; ; left--) {
    const status = await call<DeviceStatus>("aircast_get_status", { device_id: id });
    if (isWanted(status)) return;
    assert.ok(left > 0, `${isWanted}, but the device reports ${JSON.stringify(status)}`);
    await pause(250);
  }
}

/** Plays, pauses, continues, seeks in and stops a film. */
export async function playsFilm(room: LivingRoom, id: string, film: string): Promise<void> {
  const device = { device_id: id };
  await room.call("open_in_player", { player_id: id, magnet: film });
  await untilDevice(room, id, ({ status }) => status === "playing");
  await room.call("aircast_pause", device);
  await untilDevice(room, id, ({ status }) => status === "paused");
  await room.call("aircast_play", device);
  await untilDevice(room, id, ({ status }) => status === "playing");
  await room.call("aircast_seek", { ...device, value: "60" });
  await untilDevice(
    room,
    id,
    ({ status, position }) => status === "playing" && position! >= 58 && position! < 100,
  );
  await room.call("aircast_stop", device);
  await untilDevice(room, id, ({ status }) => status === "idle");
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
