import assert from "node:assert/strict";
import { chmod } from "node:fs/promises";
import { testsThatNeed } from "../parts/needs.ts";
import { deviceNamed, type LivingRoom, livingRoom, pause, playsFilm, untilDevice } from "./living-room.ts";

const { test } = await testsThatNeed("gmediarender", "curl", "ffmpeg", "namespaces");
const { test: vlcTest } = await testsThatNeed("vlc", "curl", "ffmpeg", "namespaces");

const ROUNDS = Number(process.env.DEVICE_ROUNDS ?? 2);
const PLAYED = Number(process.env.DEVICE_PLAYED ?? 2);
const SLOW = { timeout: 240_000 + 30_000 * (ROUNDS + PLAYED) };
const FILM_SECONDS = 120;

test(
  "gmediarender plays, pauses, seeks and stops; nothing is sent on a network that was not chosen",
  SLOW,
  async () => {
    await using room = await livingRoom(1, FILM_SECONDS);
    const sinks = ["audio", "video"].map((kind) => `--gstout-${kind}pipe=fakesink sync=true`);
    const flags = ["-I", "lan", "-f", "Living room", "--logfile", "/dev/null", ...sinks];
    await room.inTv("gmediarender", flags).line((line) => line.includes("Ready"));
    const id = await deviceNamed(room, "Living room");
    for (let round = 0; round < ROUNDS; round++) await playsFilm(room, id, room.films[0]!);
    const pattern = { test_pattern: "1", name: "pattern" };
    const { infohash } = await room.call<{ infohash: string }>("broadcast_start", pattern);
    await room.call("open_in_player", { player_id: id, infohash });
    await untilDevice(room, id, ({ status }) => status === "playing");
    await room.call("aircast_stop", { device_id: id });
    await untilDevice(room, id, ({ status }) => status === "idle");
    const sent = await room.ours.run("cat", "/sys/class/net/guests/statistics/tx_packets");
    assert.equal(sent.trim(), "0");
  },
);

async function addToPlaylist(room: LivingRoom): Promise<void> {
  for (const [i, magnet] of room.films.entries())
    await room.call("playlist_add_item", { title: `Film ${i + 1}`, magnet });
}

vlcTest("VLC plays what it finds by DLNA", SLOW, async () => {
  await using room = await livingRoom(PLAYED, FILM_SECONDS);
  await addToPlaylist(room);
  const vlc = await startVlc(room);
  await vlc.type("sd upnp");
  // Playing a folder lists what is in it.
  await vlc.open((name) => name.startsWith("Sluice"));
  await vlc.open((name) => name.startsWith("All "));
  for (let i = 1; i <= PLAYED; i++) {
    for (let left = 100; ; left--) {
      // VLC plays the first film of a folder by itself, and may drop the request that comes meanwhile.
      if (left % 20 === 0) await vlc.open((name) => name === `Film ${i}`);
      const isTitle = (await vlc.type("get_title")).some((line) => line.endsWith(`Film ${i}`));
      const seconds = await vlc.type("get_time");
      if (isTitle && seconds.some((line) => Number(line.replace("> ", "")) >= 1)) break;
      assert.ok(left > 0, `Film ${i} does not play:\n${vlc.output()}`);
      await pause(500);
    }
  }
});

/** Starts VLC with its command line interface. */
async function startVlc(room: LivingRoom) {
  await chmod(room.scratch.path, 0o755);
  // VLC does not run as root.
  const user =
    process.getuid?.() === 0 ? ["runuser", "-u", "nobody", "--", "env", "HOME=/nonexistent"] : ["env"];
  const outputs = ["--vout", "dummy", "--aout", "dummy", "--no-dbus"];
  const vlc = room.inTv(
    user[0]!,
    [...user.slice(1), "cvlc", "-I", "lua", "--lua-intf", "cli", ...outputs],
    {},
    "pipe",
  );
  await vlc.line((line) => line.includes("Command Line Interface initialized"));
  let marks = 0;
  /** Sends a command; resolves to the lines that it prints. */
  const type = async (command: string): Promise<readonly string[]> => {
    const [begin, end] = [`begin-${++marks}`, `end-${marks}`];
    vlc.child.stdin!.write(`${begin}\n${command}\n${end}\n`);
    // VLC refuses the two marks by name.
    await vlc.line((line) => line.includes(end));
    const lines = vlc.output().split("\n");
    const at = lines.findLastIndex((line) => line.includes(begin));
    return lines.slice(
      at + 1,
      lines.findLastIndex((line) => line.includes(end)),
    );
  };
  /** Waits for an entry of the list, and plays it. */
  const open = async (isWanted: (name: string) => boolean): Promise<void> => {
    for (let left = 60; ; left--) {
      const rows = (await type("playlist")).flatMap((line) => {
        const [, id, name = ""] = /(\d+) - (.*?)(?: \(\d[\d:]*\))?(?: \[.*\])?$/.exec(line) ?? [];
        return id === undefined ? [] : [{ id, name }];
      });
      const found = rows.find(({ name }) => isWanted(name));
      if (found) return void (await type(`goto ${found.id}`));
      assert.ok(left > 0, `VLC lists ${rows.map(({ name }) => name)}`);
      await pause(500);
    }
  };
  return { type, open, output: vlc.output };
}
