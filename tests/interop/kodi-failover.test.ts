import assert from "node:assert/strict";
import { freePort } from "../parts/engine.ts";
import { startChannel } from "../parts/failing-channel.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { inRealTime } from "../parts/real-time.ts";
import { tempFolder } from "../parts/torrent-files.ts";
import { pause, startKodi } from "./kodi-client.ts";

const { test } = await testsThatNeed("kodi", "ffmpeg");

const KILLS = Number(process.env.FAILOVER_KILLS ?? 2);

test(
  "Kodi: sources killed one after another are switches of one unbroken stream on one connection",
  { timeout: 120_000 + 30_000 * KILLS },
  inRealTime(async (attempt) => {
    const channel = await startChannel(attempt, KILLS);
    const home = await tempFolder("kodi");
    attempt.after(() => home.remove());
    const kodi = await startKodi(home.path, channel.engine.url, await freePort());
    attempt.after(() => kodi.stop());
    await kodi.call("Player.Open", { item: { file: channel.url } });
    for (let left = 60; !(await isPlaying(kodi)); left--) {
      assert.ok(left > 0, "Kodi does not play");
      await pause(500);
    }
    // Kodi sends HEAD requests first, and opens the stream twice.
    const before = channel.requests.length;
    const stallsMs = await channel.killSources();
    assert.ok(await isPlaying(kodi));
    assert.deepEqual(channel.requests.slice(before), []);
    await channel.check();
    if (process.env.FAILOVER_KILLS) console.log({ stallsMs, requests: channel.requests });
  }),
);

/** Returns true if Kodi plays a picture. */
async function isPlaying(kodi: Awaited<ReturnType<typeof startKodi>>): Promise<boolean> {
  const [player] = await kodi.call<{ type: string }[]>("Player.GetActivePlayers");
  return player?.type === "video";
}
