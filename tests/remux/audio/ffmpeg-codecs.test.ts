import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openFfmpeg } from "../../../src/cli/ffmpeg.ts";
import { AudioTranscoder, PREROLL_SECONDS } from "../../../src/remux/audio/transcoder.ts";
import { BuiltinCodecs } from "../../../src/remux/codecs/builtin-codecs.ts";
import { FfmpegCodecs, type RunFfmpeg } from "../../../src/remux/codecs/ffmpeg-codecs.ts";
import type { Samples } from "../../../src/remux/codecs/samples.ts";
import { readCodecProgram } from "../../../src/runtime/codec-scripts.ts";
import { testsThatNeed } from "../../parts/needs.ts";
import { ac3Tone } from "./encoded-sound.ts";

const { test } = await testsThatNeed("ffmpeg");
const signal = new AbortController().signal;
const AC3 = { codec: "ac3", config: undefined, sampleRate: undefined, channels: undefined };
const WITH = { timeout: 120_000 };

async function open(runs: (readonly string[])[] = []) {
  const run = await openFfmpeg(process.env);
  const counted: RunFfmpeg = (args, input, stop) => {
    runs.push(args);
    return run(args, input, stop);
  };
  return new FfmpegCodecs(counted);
}

test(
  "FfmpegCodecs: decodes the same samples as the codecs of the engine; damaged frames stay in place",
  WITH,
  async () => {
    const packets = await ac3Tone(0.5, 6);
    const frames = packets.map(({ data }, i) => (i === 6 ? new Uint8Array(data.length) : data));
    const all = async (codecs: Pick<FfmpegCodecs, "decode">) => {
      const samples: (Samples | undefined)[] = [];
      // They are valid until the next ones.
      for await (const one of codecs.decode(AC3, frames, signal))
        samples.push(one && { ...one, channels: one.channels.map((plane) => plane.slice()) });
      return samples;
    };
    const [own, other] = [await all(new BuiltinCodecs(readCodecProgram)), await all(await open())];
    assert.equal(other.length, frames.length);
    assert.equal(other[6], undefined);
    for (const i of [1, 2, 4, 9, 12]) {
      assert.deepEqual(other[i]!.layout, own[i]!.layout);
      for (const [channel, plane] of other[i]!.channels.entries())
        for (let at = 0; at < plane.length; at += 97)
          assert.ok(Math.abs(plane[at]! - own[i]!.channels[channel]![at]!) < 1e-4, `${i} ${channel} ${at}`);
    }
  },
);

test(
  "AudioTranscoder with ffmpeg: segments have neither gaps nor overlaps, and are equal each time",
  WITH,
  async () => {
    const runs: (readonly string[])[] = [];
    const transcoder = new AudioTranscoder(await open(runs));
    const tone = await ac3Tone(1.3);
    const plan = (await transcoder.plan(AC3, tone[0], 2))!;
    assert.deepEqual([...plan.config], [0x11, 0x90]);
    const within = (from: number, to: number) =>
      tone.filter(({ ptsSeconds }) => ptsSeconds >= from && ptsSeconds < to);
    const segment = (from: number, to: number) =>
      transcoder.run(
        plan,
        {
          before: within(from - PREROLL_SECONDS, from),
          own: within(from, to),
          isLast: to === Number.POSITIVE_INFINITY,
        },
        signal,
      );
    const cuts = [0, 0.4, 0.9, Number.POSITIVE_INFINITY];
    const segments = [];
    for (const index of [2, 0, 1]) segments[index] = await segment(cuts[index]!, cuts[index + 1]!);
    const blocks = segments.flat().map(({ ptsSeconds }) => Math.round((ptsSeconds * 48000) / 1024));
    assert.deepEqual(
      blocks,
      blocks.map((_, i) => i - 1),
    );
    assert.equal(blocks.at(-1), Math.ceil((tone.length * 1536) / 1024) - 1);
    assert.deepEqual(await segment(0.4, 0.9), segments[1]);
    for (const args of runs) assert.ok(args.includes("pipe:0") && !args.some((arg) => arg.includes("/")));
  },
);

test(
  "openFfmpeg: a process ends when its request does; what it cannot do is an error with its reason",
  WITH,
  async () => {
    const run = await openFfmpeg(process.env);
    const stopped = new AbortController();
    // Reads as long as its input is open.
    const endless = ["-v", "quiet", "-f", "lavfi", "-i", "anullsrc", "-f", "null", "pipe:1"];
    const running = run(endless, new Uint8Array(0), stopped.signal);
    stopped.abort(new Error("the player has left"));
    await assert.rejects(running, /the player has left/);
    await assert.rejects(
      run(["-v", "error", "-f", "wav", "-i", "pipe:0", "-f", "null", "-"], new Uint8Array(9), signal),
      {
        code: "unsupported_codec",
        message: /^ffmpeg failed: /,
      },
    );
  },
);

test("openFfmpeg: a machine without ffmpeg is a clear error", async () => {
  const empty = await mkdtemp(join(tmpdir(), "sluice-no-ffmpeg-"));
  await assert.rejects(openFfmpeg({ PATH: empty }), {
    code: "bad_configuration",
    message: /cannot find the program ffmpeg\. Install it, or use --transcoder builtin/,
  });
  await rm(empty, { recursive: true });
});
