import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { engineCommand, freePort, startEngine } from "../parts/engine.ts";
import { watchUrl } from "../parts/live-broadcast.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { PatternPlayer } from "../parts/pattern-player.ts";
import { startProcess } from "../parts/process.ts";
import { inRealTime } from "../parts/real-time.ts";
import { hasFfmpeg } from "../remux/make-media.ts";
import { ffmpegErrors } from "../remux/probe.ts";

const { test } = await testsThatNeed("ffmpeg");

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const WITH = { skip: (await hasFfmpeg()) ? false : "ffmpeg is not installed", timeout: 120_000 };
/** Some four and a half seconds of the test pattern. */
const SOME_BYTES = 125_000;

test(
  "sluice broadcast: after a kill and a restart, viewers miss less than 3 s and the link stays the same",
  WITH,
  inRealTime(async () => {
    const dataDir = await mkdtemp(join(tmpdir(), "sluice-broadcast-"));
    const port = await freePort();
    const [command, ...args] = engineCommand();
    const broadcast = () => {
      const words = `broadcast --test-pattern --name Pattern --address 127.0.0.1:${port}`.split(" ");
      return startProcess(command, [...args, ...words], {
        cwd: ROOT,
        env: {
          PATH: `${join(ROOT, "node_modules", ".bin")}:${process.env.PATH}`,
          SLUICE_DATA_DIR: dataDir,
          SLUICE_P2P_PORT: String(port),
          XDG_CONFIG_HOME: dataDir,
        },
      });
    };
    const first = broadcast();
    const viewer = await startEngine();
    let second: typeof first | undefined;
    try {
      const magnet = await magnetOf(first);
      const player = await PatternPlayer.open(viewer, watchUrl(viewer, magnet));
      await player.take(SOME_BYTES);
      first.child.kill("SIGKILL");
      await first.stop();
      const startedAt = performance.now();
      second = broadcast();
      assert.equal(await magnetOf(second), magnet);
      const startSeconds = (performance.now() - startedAt) / 1000;
      await player.take(SOME_BYTES);
      const { bytes, seconds } = await player.leave();
      const gaps = seconds.slice(1).map((at, i) => at - seconds[i]!);
      const longest = Math.max(...gaps);
      // Subtract the program's start time if it is more than a second: the limit does not cover it.
      const promisedSeconds = 3 + Math.max(0, startSeconds - 1);
      assert.ok(longest < promisedSeconds, `a gap of ${longest} s, of them ${startSeconds} s to start`);
      // The pattern restarts at the second in which it is started.
      assert.ok(Math.min(...gaps) > -1, `${Math.min(...gaps)} s back`);
      assert.ok(seconds.at(-1)! - seconds[0]! > 7, "it goes on after the restart");
      assert.equal(await ffmpegErrors(bytes), "");
    } finally {
      await Promise.all([first.stop(), second?.stop(), viewer.stop()]);
      await rm(dataDir, { recursive: true, force: true });
    }
  }),
);

async function magnetOf(broadcast: ReturnType<typeof startProcess>): Promise<string> {
  const line = await broadcast.line((text) => /magnet:\?/.test(text) && /^\s*Magnet/.test(text));
  return /magnet:\?\S+/.exec(line)![0];
}
