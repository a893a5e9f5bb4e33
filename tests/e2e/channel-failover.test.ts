import assert from "node:assert/strict";
import { startChannel } from "../parts/failing-channel.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { startProcess } from "../parts/process.ts";
import { inRealTime } from "../parts/real-time.ts";

const { test } = await testsThatNeed("ffmpeg", "mpv", "vlc");

const KILLS = Number(process.env.FAILOVER_KILLS ?? 2);
const AS_NOBODY =
  process.getuid?.() === 0 ? ["runuser", "-u", "nobody", "--", "env", "HOME=/nonexistent"] : [];

/** The commands of players without a screen, which play until they are stopped. */
const PLAYERS: Readonly<Record<string, (url: string) => string[]>> = {
  ffmpeg: (url) => ["ffmpeg", "-v", "error", "-i", url, "-f", "null", "-"],
  mpv: (url) => ["mpv", "--no-config", "--vo=null", "--ao=null", "--no-terminal", url],
  VLC: (url) => [
    ...AS_NOBODY,
    "cvlc",
    "--no-dbus",
    "--no-media-library",
    "--vout=vdummy",
    "--aout=adummy",
    url,
  ],
};

for (const [name, commandOf] of Object.entries(PLAYERS))
  test(
    `${name}: sources killed one after another are switches of one unbroken stream on one connection`,
    { timeout: 120_000 + 30_000 * KILLS },
    inRealTime(async (attempt) => {
      const channel = await startChannel(attempt, KILLS);
      const player = startProcess("timeout", ["900", ...commandOf(channel.url)]);
      attempt.after(() => player.stop());
      const stallsMs = await channel.killSources();
      assert.equal(player.child.exitCode, null, player.output());
      await player.stop();
      assert.equal(channel.requests.length, 1);
      await channel.check();
      if (process.env.FAILOVER_KILLS) console.log(name, { stallsMs });
    }),
  );
