import assert from "node:assert/strict";
import { test } from "node:test";
import { parseAacConfig } from "../../../src/media/aac.ts";
import {
  AudioTranscoder,
  converts,
  PREROLL_SECONDS,
  type TranscodePlan,
} from "../../../src/remux/audio/transcoder.ts";
import { TsConverter } from "../../../src/remux/audio/ts-converter.ts";
import { BuiltinCodecs } from "../../../src/remux/codecs/builtin-codecs.ts";
import { RateConverter } from "../../../src/remux/codecs/resampler.ts";
import type { TsMuxPacket } from "../../../src/remux/ts-mux-input.ts";
import { readCodecProgram } from "../../../src/runtime/codec-scripts.ts";
import { ac3Tone } from "./encoded-sound.ts";

const transcoder = new AudioTranscoder(new BuiltinCodecs(readCodecProgram));
const signal = new AbortController().signal;
const AC3 = { codec: "ac3", config: undefined, sampleRate: undefined, channels: undefined };
const tone = await ac3Tone(1.3);

async function plan(packets: readonly TsMuxPacket[], channels: 2 | 6 = 2): Promise<TranscodePlan> {
  const made = await transcoder.plan(AC3, packets[0], channels);
  assert.ok(made);
  return made;
}

/** Transcodes the packets of `[from, to)` as a segment. */
function segment(made: TranscodePlan, packets: readonly TsMuxPacket[], from: number, to: number) {
  const within = (a: number, b: number) =>
    packets.filter(({ ptsSeconds }) => ptsSeconds >= a && ptsSeconds < b);
  const isLast = to === Number.POSITIVE_INFINITY;
  return transcoder.run(
    made,
    { before: within(from - PREROLL_SECONDS, from), own: within(from, to), isLast },
    signal,
  );
}

function blocksOf(frames: readonly TsMuxPacket[], { sampleRate }: TranscodePlan): number[] {
  return frames.map(({ ptsSeconds }) => Math.round((ptsSeconds * sampleRate) / 1024));
}

test("AudioTranscoder.plan: takes rate and channels from the first frame and returns the AAC configuration", async () => {
  const made = await plan(tone);
  assert.deepEqual([made.sampleRate, made.channels], [48000, 2]);
  const { objectType, sampleRate, channelConfig } = parseAacConfig(made.config);
  assert.deepEqual([objectType, sampleRate, channelConfig], [2, 48000, 2]);
  const surround = await plan(await ac3Tone(0.1, 6), 6);
  assert.equal(parseAacConfig(surround.config).channelConfig, 6);
  assert.equal(await transcoder.plan({ ...AC3, codec: "A_TRUEHD" }, tone[0], 2), undefined);
});

test("AudioTranscoder.run: segments have neither gaps nor overlaps, in any order, and are equal each time", async () => {
  const made = await plan(tone);
  const cuts = [0, 0.4, 0.9, Number.POSITIVE_INFINITY];
  const segments: TsMuxPacket[][] = [];
  for (const index of [2, 0, 1]) segments[index] = await segment(made, tone, cuts[index]!, cuts[index + 1]!);
  const blocks = blocksOf(segments.flat(), made);
  assert.deepEqual(
    blocks,
    blocks.map((_, i) => i - 1),
  );
  assert.equal(blocks.at(-1), Math.ceil((tone.length * 1536) / 1024) - 1);
  assert.deepEqual(await segment(made, tone, 0.4, 0.9), segments[1]);
});

test("AudioTranscoder.run: damaged frames become silence of their duration", async () => {
  const made = await plan(tone);
  const damaged = tone.map((packet, i) =>
    i % 5 === 3 ? { ...packet, data: packet.data.map((byte, at) => (at < 2 ? 0 : byte ^ 0x55)) } : packet,
  );
  const whole = await segment(made, damaged, 0, Number.POSITIVE_INFINITY);
  assert.deepEqual(
    blocksOf(whole, made),
    whole.map((_, i) => i - 1),
  );
});

test("AudioTranscoder.run: fills a gap with silence, drops what overlaps and what a jump of the clock brings", async () => {
  const made = await plan(tone);
  const late = tone.map((packet, i) =>
    i > 10 ? { ...packet, ptsSeconds: packet.ptsSeconds + 0.5 } : packet,
  );
  const gap = blocksOf(await segment(made, late, 0, Number.POSITIVE_INFINITY), made);
  assert.deepEqual(
    gap,
    gap.map((_, i) => i - 1),
  );
  assert.equal(gap.at(-1), Math.ceil((tone.length * 1536 + 24_000) / 1024) - 1);
  const twice = [...tone, ...tone].map((packet, i) =>
    i > 5 && i < 9 ? { ...packet, ptsSeconds: 1e9 } : packet,
  );
  const once = blocksOf(await transcoder.run(made, { before: [], own: twice, isLast: true }, signal), made);
  assert.equal(once.length, Math.ceil((tone.length * 1536) / 1024) + 1);
});

test("AudioTranscoder.run: gaps of a segment add at most a minute of silence", async () => {
  const made = await plan(tone);
  const hostile = tone.map((packet, i) => ({ ...packet, ptsSeconds: 10 * i }));
  const frames = await transcoder.run(made, { before: [], own: hostile, isLast: true }, signal);
  const seconds = (frames.length * 1024) / made.sampleRate;
  assert.ok(tone.length > 20 && seconds > 50 && seconds < 63, String(seconds));
});

for (const [rate, channels] of [
  [44100, 2],
  [32000, 6],
] as const)
  test(`AudioTranscoder.run: sound goes on when the stream changes to ${rate} Hz and ${channels} channels`, async () => {
    const made = await plan(tone);
    const other = (await ac3Tone(2, channels, 0.4, rate)).map((packet) => ({
      ...packet,
      ptsSeconds: packet.ptsSeconds + tone.length * 0.032,
    }));
    const packets = [...tone, ...other];
    const cuts = [0, 1.5, 2.4, Number.POSITIVE_INFINITY];
    const frames: TsMuxPacket[] = [];
    for (const index of [0, 1, 2])
      frames.push(...(await segment(made, packets, cuts[index]!, cuts[index + 1]!)));
    const blocks = blocksOf(frames, made);
    assert.deepEqual(
      blocks,
      blocks.map((_, i) => i - 1),
    );
    // Silence would take a few bytes.
    const small = frames.slice(2, -4).filter(({ data }) => data.length < 100);
    assert.ok(frames.length > 140 && small.length < 4, `${small.length} of ${frames.length}`);
  });

test("RateConverter: a tone keeps its pitch and level; a single frame with another rate is dropped", () => {
  const converter = new RateConverter(48000);
  const tones = (from: number) =>
    new Float32Array(1536).map((_, i) => 0.5 * Math.sin((2 * Math.PI * 1000 * (from + i)) / 44100));
  const frame = (index: number) => ({
    ...{ sampleRate: 44100, channels: [tones(1536 * index)], layout: ["C" as const] },
  });
  assert.equal(converter.convert(frame(0)), undefined);
  const out = [1, 2, 3].flatMap((index) => [...converter.convert(frame(index))!.channels[0]!]);
  assert.ok(Math.abs(out.length - (3 * 1536 * 48000) / 44100) < 40, String(out.length));
  // The first sample is that of the second frame.
  for (let i = 100; i < out.length; i++) {
    const wanted = 0.5 * Math.sin(2 * Math.PI * 1000 * (1536 / 44100 + i / 48000));
    assert.ok(Math.abs(out[i]! - wanted) < 0.002, `${i}: ${out[i]} ${wanted}`);
  }
  const own = { ...frame(4), sampleRate: 48000 };
  assert.equal(converter.convert(own), own);
});

test("RateConverter: frames with a rate that no codec has are damaged; one of 1 Hz would need gigabytes", () => {
  const converter = new RateConverter(48000);
  for (const sampleRate of [1, 1, 7999, 7999, 655_350, 655_350])
    assert.equal(
      converter.convert({ sampleRate, channels: [new Float32Array(65_535)], layout: ["C"] }),
      undefined,
    );
});

test("AudioTranscoder.run: stops when its signal fires", async () => {
  const made = await plan(tone);
  const controller = new AbortController();
  const running = transcoder.run(made, { before: [], own: tone, isLast: true }, controller.signal);
  controller.abort(new Error("the player has left"));
  await assert.rejects(running, /the player has left/);
});

test("converts: all audio includes MP3 in HLS only, because browsers refuse it in fragmented MP4", () => {
  const all = { all: true, mp3: false, ac3: false, isHls: true, channels: 2 } as const;
  assert.equal(converts(all, "mp3"), true);
  assert.equal(converts({ ...all, isHls: false }, "mp3"), false);
  assert.equal(converts({ ...all, all: false, ac3: true }, "mp3"), false);
  const inTs = new TsConverter(transcoder, all);
  assert.deepEqual(
    ["mp3", "opus", "ac3", "aac"].map((codec) => inTs.needs(codec)),
    [true, true, true, false],
  );
});
