import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { Readable } from "node:stream";
import { test } from "node:test";
import { runtime } from "#runtime";
import { concatBytes } from "../../src/base/bytes.ts";
import type { Broadcast } from "../../src/live/broadcast/broadcast-contract.ts";
import { sourceStart } from "../../src/live/broadcast/broadcast-start.ts";
import { StateFile } from "../../src/live/broadcast/identity-state.ts";
import { fixture, patternTs } from "../parts/media-fixtures.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { inRealTime } from "../parts/real-time.ts";
import { H264, lavfi, makeMedia, scratchFile } from "../remux/make-media.ts";
import { countByStream, ffmpegErrors, probePackets } from "../remux/probe.ts";
import { checkTs } from "../remux/ts-checker.ts";
import { checkSent, FakeStudio, someRequest } from "./broadcast-parts.ts";
import { MemoryFiles } from "./memory-files.ts";
import { memoryFile } from "./source-parts.ts";

const { test: ffmpegTest } = await testsThatNeed("ffmpeg");

const WITH = { timeout: 60_000 };

/** The test pattern, 6 s. */
const FILM = patternTs(6);

async function clip(name: string, args: readonly string[]): Promise<Uint8Array> {
  return new Uint8Array(await readFile(await makeMedia(name, args)));
}
const film = () => clip("broadcast.ts", [...lavfi(6), ...H264, "-c:a", "aac"]);
const bytesOf = (sent: FakeStudio["sent"]) => concatBytes(sent.flatMap(({ chunks }) => chunks));
const countsOf = async (bytes: Uint8Array) =>
  countByStream(await probePackets(await scratchFile(bytes, "ts")));

function* chunksOf(bytes: Uint8Array, size = 10_000): Iterable<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.slice(at, at + size);
}

/** Runs a broadcast to its end. */
async function shown(studio: FakeStudio, start: Promise<Broadcast>): Promise<Broadcast> {
  const broadcast = await studio.within(start);
  await studio.within(broadcast.ended);
  return broadcast;
}

ffmpegTest(
  "broadcast of a file: measured bitrate, all bytes, and an end for viewers",
  WITH,
  inRealTime(async () => {
    const bytes = await film();
    const studio = new FakeStudio();
    studio.live = { peers: 1 };
    const openFile = async () => memoryFile(bytes);
    const request = someRequest({ place: { kind: "file", path: "film.ts" } });
    const before = studio.world.clock.now();
    const broadcast = await shown(studio, studio.broadcasts({ openFile }).start(request));
    const { sent, opened } = studio;
    checkSent(sent, opened[0]!);
    const { info } = opened[0]!.live!.file;
    const rate = bytes.length / 6;
    assert.ok(Math.abs(info.bytesPerSecond / rate - 1) < 0.3, `${info.bytesPerSecond} of ${rate}`);
    assert.equal(info.stripeCount, rate < 250_000 ? 8 : 16);
    assert.deepEqual(
      sent.map(({ header }) => header.value.isEnd),
      sent.map((_, i) => i === sent.length - 1),
    );
    assert.equal(sent.at(-1)!.header.value.pieceBytes, 0);
    const got = bytesOf(sent);
    // ffmpeg writes the service name first.
    assert.deepEqual(checkTs(got).faults, ["begins with PID 17, not with the PAT"]);
    assert.equal(await ffmpegErrors(got), "");
    assert.deepEqual(await countsOf(got), await countsOf(bytes));
    // Late viewers can still request the last pieces.
    const passedMs = studio.world.clock.now() - before;
    assert.ok(passedMs >= 5500 + 10_000 && passedMs < 20_000, `${passedMs} ms`);
    assert.equal(broadcast.figures().health, "ended");
  }),
);

test("broadcast of a file: no end for viewers if it is looped, stopped or permanent", async () => {
  const bytes = FILM;
  const openFile = async () => memoryFile(bytes);
  const place = { kind: "file", path: "film.ts" } as const;
  const looping = new FakeStudio();
  const endless = await looping.within(
    looping.broadcasts({ openFile }).start(someRequest({ place, isLooped: true })),
  );
  await looping.world.clock.advance(20_000);
  await endless.stop();
  const permanent = new FakeStudio();
  const request = someRequest({ place, meta: { isPermanent: true } });
  await shown(permanent, permanent.broadcasts({ openFile }).start(request));
  for (const { sent, opened } of [looping, permanent]) {
    assert.ok(sent.length > 10, `${sent.length} pieces`);
    assert.ok(sent.every(({ header }) => !header.value.isEnd));
    checkSent(sent, opened[0]!);
  }
});

test("broadcast of audio only: four stripes, pieces of half a second", async () => {
  const bytes = await fixture("sound.mpegts");
  const studio = new FakeStudio();
  const openFile = async () => memoryFile(bytes);
  await shown(
    studio,
    studio.broadcasts({ openFile }).start(someRequest({ place: { kind: "file", path: "a.ts" } })),
  );
  const { stripeCount, pieceMs } = studio.opened[0]!.live!.file.info;
  assert.deepEqual([stripeCount, pieceMs], [4, 500]);
  checkSent(studio.sent, studio.opened[0]!);
});

ffmpegTest("broadcast of a server: a burst is sent at once, a silence as empty pieces", async () => {
  const bytes = await film();
  const studio = new FakeStudio();
  // A burst, then a long silence.
  studio.world.answer = () => ({ body: [...chunksOf(bytes), undefined] });
  // A power cut may follow each piece.
  const cuts: { readonly seq: number; readonly atMs: number; readonly disk: MemoryFiles }[] = [];
  studio.taking = ({ header, atMs }) => {
    const disk = new MemoryFiles(studio.files);
    disk.cutPower();
    cuts.push({ seq: header.value.seq, atMs, disk });
  };
  const request = someRequest({ place: { kind: "http", url: "http://a.example/b" }, bytesPerSecond: 2000 });
  const broadcast = await studio.within(studio.broadcasts().start(request));
  await studio.world.clock.advance(4000);
  assert.equal(broadcast.figures().health, "silent");
  assert.match(broadcast.figures().remark, /no data from the source for \d+ s/);
  await studio.world.clock.advance(3000);
  const { sent, opened } = studio;
  checkSent(sent, opened[0]!);
  const [first, second] = [sent[0]!, sent[1]!];
  assert.ok(
    second.header.value.pieceBytes > 100_000 && second.atMs === first.atMs,
    "a burst, closed by size",
  );
  assert.equal(sent.at(-1)!.header.value.seq, first.header.value.seq + sent.length - 1);
  assert.ok(
    cuts.some(({ seq, atMs }) => seq > Math.floor(atMs / 250)),
    "ahead of the clock",
  );
  for (const { seq, atMs, disk } of cuts) {
    const { found } = await StateFile.open("/data/broadcasts/One/state", disk, runtime.sha256);
    const start = sourceStart(found.state, atMs + 250, 250);
    assert.ok(Math.max(start.leastSeq, Math.floor((atMs + 250) / 250)) > seq, `${seq} would come again`);
  }
  const empty = sent.filter(({ header }) => header.value.pieceBytes === 0);
  assert.ok(empty.length >= 3, `${empty.length} empty pieces`);
  await broadcast.stop();
  assert.equal(studio.world.clock.waiting, 0);
});

ffmpegTest(
  "broadcast of a pipe from ffmpeg: all bytes are sent, and its end does not end the stream",
  WITH,
  inRealTime(async () => {
    const studio = new FakeStudio();
    const args = ["-v", "error", ...lavfi(5), ...H264, ..."-c:a aac -f mpegts -".split(" ")];
    const ffmpeg = spawn("ffmpeg", args, { stdio: ["ignore", "pipe", "inherit"] });
    const pipe = () => Readable.toWeb(ffmpeg.stdout!) as unknown as ReadableStream<Uint8Array>;
    // ffmpeg takes real time.
    const real = {
      pipe,
      unixMs: () => Date.now(),
      runtime: { ...studio.parts().runtime, clock: runtime.clock },
    };
    const broadcast = await studio.broadcasts(real).start(someRequest({ place: { kind: "pipe" } }));
    await broadcast.ended;
    const { sent, opened } = studio;
    checkSent(sent, opened[0]!);
    assert.ok(sent.every(({ header }) => !header.value.isEnd));
    assert.equal(await ffmpegErrors(bytesOf(sent)), "");
    const counts = await countsOf(bytesOf(sent));
    assert.ok(counts.includes(125), `${counts} frames`);
  }),
);
