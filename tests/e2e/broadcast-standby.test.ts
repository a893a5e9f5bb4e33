import assert from "node:assert/strict";
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort, startEngine } from "../parts/engine.ts";
import { type BroadcastProcess, startBroadcast, watchUrl } from "../parts/live-broadcast.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { PatternPlayer } from "../parts/pattern-player.ts";
import { inRealTime } from "../parts/real-time.ts";
import { hasFfmpeg } from "../remux/make-media.ts";
import { ffmpegErrors } from "../remux/probe.ts";

const { test } = await testsThatNeed("ffmpeg");

const WITH = { skip: (await hasFfmpeg()) ? false : "ffmpeg is not installed", timeout: 240_000 };
/** Some two seconds of the test pattern. */
const SOME_BYTES = 60_000;
const FOLLOWS = /standby: another source is on air/;
const ON_AIR = /on air: no other source is/;

/** Two machines with the key of one stream, each known to the other and to viewers as a relay of it. */
class Machines {
  readonly folders: string[] = [];
  readonly #ports: number[] = [];
  readonly #started: BroadcastProcess[] = [];

  async make(): Promise<void> {
    for (let i = 0; i < 2; i++) {
      this.folders.push(await mkdtemp(join(tmpdir(), "sluice-standby-")));
      this.#ports.push(await freePort());
    }
  }

  async start(machine: number, isStandby: boolean): Promise<BroadcastProcess> {
    const relays = this.#ports.flatMap((port) => ["--relay", `127.0.0.1:${port}`]);
    const started = await startBroadcast("test-pattern", {
      dataDir: this.folders[machine]!,
      p2pPort: this.#ports[machine]!,
      flags: [...relays, "--log", "info", ...(isStandby ? ["--standby"] : [])],
    });
    this.#started.push(started);
    return started;
  }

  magnet({ infohash }: BroadcastProcess): string {
    return `magnet:?xt=urn:btih:${infohash}${this.#ports.map((port) => `&x.pe=127.0.0.1:${port}`).join("")}`;
  }

  async close(): Promise<void> {
    await Promise.all(this.#started.map((each) => each.stop()));
    await Promise.all(this.folders.map((folder) => rm(folder, { recursive: true, force: true })));
  }
}

/** Kills all of its processes at once, as in a power failure. */
function kill({ pid }: BroadcastProcess): void {
  process.kill(-pid, "SIGKILL");
}

/** The numbers of the segments that a manifest lists. */
function segmentsOf(manifest: string): readonly [first: number, end: number] {
  const first = Number(/#EXT-X-MEDIA-SEQUENCE:(\d+)/.exec(manifest)![1]);
  return [first, first + manifest.split("#EXTINF").length - 1];
}

test(
  "sluice broadcast --standby: takes over from a killed source, in both directions; playback continues",
  WITH,
  inRealTime(async () => {
    const machines = new Machines();
    await machines.make();
    const viewer = await startEngine();
    try {
      const first = await machines.start(0, false);
      await cp(join(machines.folders[0]!, "broadcasts"), join(machines.folders[1]!, "broadcasts"), {
        recursive: true,
      });
      const second = await machines.start(1, true);
      await second.line((line) => FOLLOWS.test(line));
      const magnet = machines.magnet(first);
      const player = await PatternPlayer.open(viewer, watchUrl(viewer, magnet));
      await player.take(SOME_BYTES);
      const manifest = async () => (await fetch(watchUrl(viewer, magnet, "manifest.m3u8"))).text();
      const before = segmentsOf(await manifest());
      kill(first);
      await second.line((line) => ON_AIR.test(line));
      await player.take(SOME_BYTES);
      const third = await machines.start(0, true);
      await third.line((line) => FOLLOWS.test(line));
      await player.take(SOME_BYTES);
      const between = await manifest();
      kill(second);
      await third.line((line) => ON_AIR.test(line));
      await player.take(2 * SOME_BYTES);
      const { bytes, seconds } = await player.leave();
      // Segment numbers continue by one; a discontinuity tag marks the change of timestamps.
      assert.ok(segmentsOf(between)[0] <= before[1], `${before} and then ${segmentsOf(between)}`);
      assert.match(between, /#EXT-X-DISCONTINUITY\n/);
      const steps = seconds.slice(1).map((at, i) => at - seconds[i]!);
      const gaps = steps.filter((step) => step > 0.5);
      assert.ok(gaps.length >= 2, `gaps of ${gaps} s`);
      // The pattern restarts at the second in which it is started.
      assert.ok(Math.min(...steps) > -1, `${Math.min(...steps)} s back`);
      assert.equal(await ffmpegErrors(bytes), "");
    } finally {
      await Promise.all([machines.close(), viewer.stop()]);
    }
  }),
);
