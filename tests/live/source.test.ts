import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { concatBytes } from "../../src/base/bytes.ts";
import { SluiceError } from "../../src/base/errors.ts";
import { openLiveInput } from "../../src/live/input/source.ts";
import { readLivePlace } from "../../src/live/input/source-place.ts";
import { deltaTicks } from "../../src/media/timestamps.ts";
import { pidAt } from "../../src/media/ts-packet.ts";
import { settled } from "../engine/fake-clock.ts";
import { readTsPacket } from "../media/read-ts-packet.ts";
import { patternTs } from "../parts/media-fixtures.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { H264, lavfi, makeMedia, scratchFile } from "../remux/make-media.ts";
import { countByStream, ffmpegErrors, probePackets } from "../remux/probe.ts";
import { checkTs } from "../remux/ts-checker.ts";
import { FakeWorld, memoryFile, streamOf } from "./source-parts.ts";

const { test: ffmpegTest } = await testsThatNeed("ffmpeg");

const WITH = { timeout: 60_000 };
const code = (wanted: string) => (error: unknown) => error instanceof SluiceError && error.code === wanted;

const CLIP = patternTs(6);

/** A clip made by ffmpeg. */
async function clip(): Promise<Uint8Array> {
  return new Uint8Array(await readFile(await makeMedia("source.ts", [...lavfi(6), ...H264, "-c:a", "aac"])));
}

function* chunks(bytes: Uint8Array, size = 10_000): Iterable<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.slice(at, at + size);
}

/** Reads a source to its end; advances the clock whenever it waits. */
async function whole(world: FakeWorld, stream: ReadableStream<Uint8Array>, limitBytes = 1e9) {
  const parts: { readonly bytes: Uint8Array; readonly atMs: number }[] = [];
  const reader = stream.getReader();
  let length = 0;
  let isOver = false;
  const reading = (async () => {
    while (length < limitBytes) {
      const { done, value } = await reader.read();
      if (done) break;
      parts.push({ bytes: value.slice(), atMs: world.clock.now() });
      length += value.length;
    }
    await reader.cancel();
  })().finally(() => {
    isOver = true;
  });
  reading.catch(() => {}); // Told below.
  for (let turn = 0; turn < 100_000 && !isOver; turn++) {
    if (world.clock.waiting > 0) await world.clock.advance(20);
    else await settled();
  }
  await reading;
  return parts;
}

const joined = (parts: readonly { readonly bytes: Uint8Array }[]) =>
  concatBytes(parts.map(({ bytes }) => bytes));

test("readLivePlace: parses what users type", () => {
  assert.deepEqual(readLivePlace("-"), { kind: "pipe" });
  assert.deepEqual(readLivePlace("film.ts"), { kind: "file", path: "film.ts" });
  assert.deepEqual(readLivePlace("http://a/b"), { kind: "http", url: "http://a/b" });
  assert.deepEqual(readLivePlace("https://a/b.m3u8?c=1"), { kind: "hls", url: "https://a/b.m3u8?c=1" });
  const here = { kind: "udp", bind: { host: "0.0.0.0", port: 1234 } };
  for (const text of ["udp://0.0.0.0:1234", "udp://@:1234", "rtp://0.0.0.0:1234/"])
    assert.deepEqual(readLivePlace(text), here);
  assert.deepEqual(readLivePlace("udp://@239.1.1.1:1234?localaddr=10.0.0.2"), {
    ...here,
    group: "239.1.1.1",
    networkAddress: "10.0.0.2",
  });
  assert.deepEqual(readLivePlace("udp://[ff15::1]:5004"), {
    kind: "udp",
    bind: { host: "::", port: 5004 },
    group: "ff15::1",
  });
  for (const text of [
    "udp://1.2.3.4",
    "udp://name:1",
    "udp://1.2.3.4:70000",
    "udp://1.2.3.4:0",
    "rtmp://a/b",
    "udp://@239.1.1.1:1?localaddr=x",
  ])
    assert.throws(() => readLivePlace(text), code("bad_parameter"), text);
});

test("openLiveInput: delivers a file unchanged, paced by its clock, and ends", async () => {
  const world = new FakeWorld();
  const bytes = CLIP;
  const input = openLiveInput(
    { kind: "file", path: "a.ts" },
    world.parts({ openFile: async () => memoryFile(bytes) }),
  );
  const parts = await whole(world, input.packets());
  assert.deepEqual(joined(parts), bytes);
  const seconds = (parts.at(-1)!.atMs - parts[0]!.atMs) / 1000;
  assert.ok(seconds > 5.5 && seconds < 6.5, `${seconds} s`);
  const half = joined(parts.filter(({ atMs }) => atMs <= parts[0]!.atMs + 3000)).length;
  assert.ok(Math.abs(half / bytes.length - 0.5) < 0.15, `${half} of ${bytes.length} after half the time`);
  assert.equal(input.facts.bytes, bytes.length);
  assert.equal(world.clock.waiting, 0);
});

ffmpegTest("openLiveInput: a looped file is one continuous stream", WITH, async () => {
  const world = new FakeWorld();
  const bytes = await clip();
  const input = openLiveInput(
    { kind: "file", path: "a.ts" },
    world.parts({ openFile: async () => memoryFile(bytes) }),
    { isLooped: true },
  );
  const wanted = 3 * bytes.length;
  const got = joined(await whole(world, input.packets(), wanted)).subarray(0, wanted);
  assert.deepEqual(got.subarray(0, bytes.length), bytes, "the first round is untouched");
  assert.deepEqual(
    checkTs(got, { isPassThrough: true }).faults.filter((fault) => !fault.includes("not with the PAT")),
    [],
  );
  assert.equal(await ffmpegErrors(got), "");
  const before = countByStream(await probePackets(await scratchFile(bytes, "ts")));
  const packets = await probePackets(await scratchFile(got, "ts"));
  assert.deepEqual(
    countByStream(packets),
    before.map((count) => 3 * count),
  );
  const video = packets.filter(({ stream }) => stream === 0).map(({ dts }) => dts);
  // The longest track determines the loop: the last audio may end 0.1 s after the last picture.
  for (let i = 1; i < video.length; i++) {
    const step = video[i]! - video[i - 1]!;
    assert.ok(step > 0.03 && step < (i % 150 === 0 ? 0.15 : 0.05), `${i}: ${step}`);
  }
  let clock: number | undefined;
  for (let at = 0; at < got.length; at += 188) {
    const { pcr } = readTsPacket(got, at);
    if (pcr !== undefined && clock !== undefined)
      assert.ok(deltaTicks(pcr, clock) >= 0 && deltaTicks(pcr, clock) < 20_000);
    clock = pcr ?? clock;
  }
  assert.equal(input.facts.starts, 3);
});

test("openLiveInput: paces a piped file, and does not delay a real-time pipe", async () => {
  const world = new FakeWorld();
  const bytes = CLIP;
  const input = openLiveInput({ kind: "pipe" }, world.parts({ pipe: () => streamOf(chunks(bytes, 777)) }));
  const parts = await whole(world, input.packets());
  assert.deepEqual(joined(parts), bytes);
  const atOnce = joined(parts.filter(({ atMs }) => atMs === parts[0]!.atMs)).length / bytes.length;
  assert.ok(atOnce > 0.25 && atOnce < 0.5, `two seconds of six come at once, not ${atOnce}`);
  const seconds = (parts.at(-1)!.atMs - parts[0]!.atMs) / 1000;
  assert.ok(seconds > 3.5 && seconds < 4.5, `${seconds} s`);
});

test("openLiveInput: finds packets after other bytes, and rejects input without packets", async () => {
  const world = new FakeWorld();
  const bytes = CLIP;
  const garbage = new Uint8Array(1000).fill(1);
  const mixed = concatBytes([garbage, bytes.subarray(0, 188 * 400), garbage, bytes.subarray(188 * 400)]);
  const input = openLiveInput({ kind: "pipe" }, world.parts({ pipe: () => streamOf(chunks(mixed, 5000)) }));
  assert.deepEqual(joined(await whole(world, input.packets())), bytes);
  assert.equal(input.facts.skippedBytes, 2000);
  for (const pipe of [() => streamOf([garbage]), () => streamOf(Array(2000).fill(garbage))]) {
    const none = openLiveInput({ kind: "pipe" }, world.parts({ pipe }));
    await assert.rejects(whole(world, none.packets()), code("unsupported_container"));
  }
  const openFile = async () => memoryFile(new Uint8Array(9_000_000));
  const zeros = openLiveInput({ kind: "file", path: "z" }, world.parts({ openFile }), { isLooped: true });
  await assert.rejects(whole(world, zeros.packets()), code("unsupported_container"));
});

test("openLiveInput: reconnects to an interrupted web stream with growing delays, and continues with whole packets", async () => {
  const world = new FakeWorld();
  const bytes = CLIP;
  const cuts = [0, 188 * 300 + 77, 188 * 600, bytes.length];
  world.answer = (_, count) => {
    if (count >= 3 && count <= 8)
      return { failure: new SluiceError("url_unreachable", "connection refused") };
    const part = count === 1 ? 0 : count === 2 ? 1 : 2;
    const body = bytes.slice(cuts[part], cuts[part + 1]);
    return {
      body: part === 2 ? [body, undefined] : [...chunks(body), new SluiceError("url_unreachable", "reset")],
    };
  };
  const input = openLiveInput({ kind: "http", url: "http://a/" }, world.parts());
  const whole0 = cuts[1]! - 77;
  // The second connection starts inside a packet, which is lost.
  const wanted = concatBytes([bytes.subarray(0, whole0), bytes.subarray(whole0 + 188)]);
  assert.deepEqual(joined(await whole(world, input.packets(), wanted.length)), wanted);
  const waits = world.asked.map(({ atMs }, i) => atMs - (world.asked[i - 1]?.atMs ?? atMs)).slice(1);
  assert.deepEqual(waits, [500, 500, 1000, 2000, 4000, 8000, 10_000, 10_000]);
  assert.equal(input.facts.starts, 3);
  assert.equal(world.clock.waiting, 0);
  const { options } = world.asked[0]!;
  assert.equal(options.allowPrivate, true);
  assert.equal(options.limitBytes, Number.POSITIVE_INFINITY);
});

test("openLiveInput: fails at once on a permanent error, and waits for a source that has worked", async () => {
  const world = new FakeWorld();
  world.answer = () => ({ status: 404 });
  const never = openLiveInput({ kind: "http", url: "http://a/" }, world.parts());
  await assert.rejects(whole(world, never.packets()), code("url_unreachable"));
  assert.equal(world.asked.length, 1);
  const again = new FakeWorld();
  const bytes = CLIP;
  again.answer = (_, count) => (count === 2 ? { status: 404 } : { body: [bytes] });
  const input = openLiveInput({ kind: "http", url: "http://a/" }, again.parts());
  assert.equal(joined(await whole(again, input.packets(), 2 * bytes.length)).length, 2 * bytes.length);
  assert.match(input.facts.problem ?? "", /404|ended/);
});

test("openLiveInput: paces a file of a web server, and ends", async () => {
  const world = new FakeWorld();
  const bytes = CLIP;
  world.answer = () => ({ headers: { "content-length": String(bytes.length) }, body: chunks(bytes) });
  const input = openLiveInput({ kind: "http", url: "http://a/film.ts" }, world.parts());
  const parts = await whole(world, input.packets());
  assert.deepEqual(joined(parts), bytes);
  assert.ok(parts.at(-1)!.atMs - parts[0]!.atMs > 5500);
  assert.equal(world.asked.length, 1);
});

test("openLiveInput: delivers HLS of a web server segment by segment", async () => {
  const world = new FakeWorld();
  const bytes = CLIP;
  const third = 188 * Math.ceil(bytes.length / 188 / 3);
  const parts = [0, 1, 2].map((i) => bytes.slice(i * third, (i + 1) * third));
  let reads = 0;
  world.answer = (url) => {
    if (/\.ts$/.test(url)) return { body: [parts[Number(/(\d)\.ts/.exec(url)![1])]!] };
    reads++;
    const head = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:0\n";
    const names = reads === 1 ? [0, 1] : [0, 1, 2];
    const list = names.map((i) => `#EXTINF:2,\n${i}.ts\n`).join("");
    return {
      headers: { "content-type": "application/vnd.apple.mpegurl" },
      body: [new TextEncoder().encode(`${head}${list}${reads === 1 ? "" : "#EXT-X-ENDLIST\n"}`)],
    };
  };
  // By its file name, and by its content type.
  for (const url of ["http://a/live.m3u8", "http://a/live"]) {
    reads = 0;
    const input = openLiveInput(readLivePlace(url), world.parts());
    assert.deepEqual(joined(await whole(world, input.packets())), bytes);
  }
  assert.equal(world.clock.waiting, 0);
});

test("openLiveInput: continues HLS with the next segment after server errors", async () => {
  const world = new FakeWorld();
  const bytes = CLIP;
  const third = 188 * Math.ceil(bytes.length / 188 / 3);
  let failures = 0;
  world.answer = (url) => {
    const index = /(\d)\.ts/.exec(url)?.[1];
    if (index === "1") {
      failures++;
      return { failure: new SluiceError("url_unreachable", "connection refused") };
    }
    if (index) return { body: [bytes.slice(Number(index) * third, (Number(index) + 1) * third)] };
    const head = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:0\n";
    const list = [0, 1, 2].map((i) => `#EXTINF:2,\n${i}.ts\n`).join("");
    return { body: [new TextEncoder().encode(`${head}${list}#EXT-X-ENDLIST\n`)] };
  };
  const input = openLiveInput({ kind: "hls", url: "http://a/live.m3u8" }, world.parts());
  const got = joined(await whole(world, input.packets()));
  assert.deepEqual(got, concatBytes([bytes.slice(0, third), bytes.slice(2 * third)]));
  assert.equal(failures, 2, "a part that breaks is asked for once more");
  assert.match(input.facts.problem!, /refused/);
});

test("openLiveInput: delivers the test pattern in time, also after a sleep and if the clock is set back", async () => {
  const world = new FakeWorld();
  world.epochMs += 400;
  const input = openLiveInput({ kind: "test-pattern" }, world.parts());
  const reader = input.packets().getReader();
  const got: Uint8Array[] = [];
  let pending = reader.read();
  const take = async (ms: number) => {
    const end = world.clock.now() + ms;
    let count = 0;
    for (;;) {
      const next = await Promise.race([pending, settled().then(() => undefined)]);
      if (next?.value) {
        got.push(next.value.slice());
        count++;
        pending = reader.read();
      } else if (world.clock.now() >= end) return count;
      else await world.clock.advance(10);
    }
  };
  const first = await take(0);
  assert.ok(first >= 10 && first <= 16, `${first} runs at once: those of the 0.4 s that have gone by`);
  await take(3000);
  const ts = concatBytes(got);
  assert.equal(pidAt(ts, 0), 0);
  const faults = checkTs(ts).faults;
  assert.deepEqual(faults, []);
  assert.ok(checkTs(ts).keyframes >= 4);
  world.epochMs += 100_000;
  await take(1500);
  assert.equal(input.facts.starts, 2);
  world.epochMs -= 3_600_000;
  const afterBack = await take(3000);
  assert.ok(afterBack >= 60, `${afterBack} runs in 3 s after the clock was set back`);
  await reader.cancel();
  await world.clock.advance(3000);
  assert.equal(world.clock.waiting, 0);
});
