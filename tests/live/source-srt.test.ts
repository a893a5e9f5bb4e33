import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { test } from "node:test";
import { concatBytes } from "../../src/base/bytes.ts";
import { SluiceError } from "../../src/base/errors.ts";
import { openEncoder } from "../../src/cli/ffmpeg.ts";
import { openLiveInput } from "../../src/live/input/source.ts";
import { isPublished, readLivePlace } from "../../src/live/input/source-place.ts";
import { until } from "../library/until.ts";
import { patternTs } from "../parts/media-fixtures.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { run } from "../parts/process.ts";
import { makeMedia } from "../remux/make-media.ts";
import { FakeWorld, readBytes, realParts, streamOf } from "./source-parts.ts";

const { test: ffmpegTest } = await testsThatNeed("ffmpeg");

const KEY = "0123456789abcdef01234567";
const code = (wanted: string) => (error: unknown) => error instanceof SluiceError && error.code === wanted;

test("readLivePlace: SRT receives at an unspecified address, and connects to any other", () => {
  const here = { kind: "srt", address: { host: "0.0.0.0", port: 9000 }, isListener: true };
  for (const text of ["srt://0.0.0.0:9000", "srt://@:9000/", "srt://:9000"])
    assert.deepEqual(readLivePlace(text), here);
  const there = { kind: "srt", address: { host: "camera.example", port: 9000 }, isListener: false };
  assert.deepEqual(readLivePlace("srt://camera.example:9000?passphrase=ten%20letters&streamid=a,b"), {
    ...there,
    passphrase: "ten letters",
    streamId: "a,b",
  });
  const own = readLivePlace("srt://[::1]:9000?mode=listener");
  assert.deepEqual(own, { kind: "srt", address: { host: "::1", port: 9000 }, isListener: true });
  assert.deepEqual(
    [here, there].map((place) => isPublished(place as never)),
    [true, false],
  );
  for (const text of [
    "srt://0.0.0.0",
    "srt://a:0",
    "srt://a:70000",
    "srt://a b:1",
    "srt://[::g]:1",
    "srt://a:1?passphrase=short",
    "srt://a:1?passphrase=tenletters%0A",
    "srt://a:1?mode=rendezvous",
    "srt://camera:1?mode=listener",
  ])
    assert.throws(() => readLivePlace(text), code("bad_parameter"), text);
  // Errors are logged.
  assert.throws(
    () => readLivePlace("srt://a:1?mode=rendezvous&passphrase=tenletters"),
    (error: Error) => !error.message.includes("tenletters"),
  );
});

/** A world whose ffmpeg returns one of `results` for each run. */
function fakeFfmpeg(results: readonly (readonly (Uint8Array | Error)[])[]) {
  const world = new FakeWorld();
  const runs: (readonly string[])[] = [];
  const parts = world.parts({
    openEncoder: async () => (args) => {
      runs.push(args);
      return streamOf(results[runs.length - 1] ?? []);
    },
  });
  return { world, runs, parts };
}

const failed = (why: string) => new SluiceError("unsupported_codec", `ffmpeg failed: ${why}`);
const BYTES = patternTs(1);

test("SrtFeed: listens again after each publication, with the stream key as passphrase", async () => {
  const { world, runs, parts } = fakeFfmpeg([[BYTES], [BYTES]]);
  const input = openLiveInput(readLivePlace("srt://0.0.0.0:9000"), parts, { streamKey: KEY });
  const read = readBytes(input.packets(), 2 * BYTES.length);
  for (let turn = 0; turn < 10; turn++) await world.clock.advance(100);
  assert.deepEqual(await read, Buffer.from(concatBytes([BYTES, BYTES])));
  assert.equal(input.facts.starts, 2);
  const [first = []] = runs;
  assert.equal(first[first.indexOf("-passphrase") + 1], KEY);
  assert.equal(first[first.indexOf("-mode") + 1], "listener");
});

test("SrtFeed: a port in use fails at once, a server that is not on air is called again", async () => {
  const busy = fakeFfmpeg([[failed("Address already in use")]]);
  const input = openLiveInput(readLivePlace("srt://0.0.0.0:9000"), busy.parts, { streamKey: KEY });
  await assert.rejects(readBytes(input.packets(), 1), code("bad_parameter"));
  const absent = fakeFfmpeg([[failed("Connection failed")], [failed("Connection failed")], [BYTES]]);
  const caller = openLiveInput(readLivePlace("srt://camera:9000"), absent.parts, { streamKey: KEY });
  const read = readBytes(caller.packets(), BYTES.length);
  await absent.world.clock.advance(100);
  assert.match(caller.facts.problem ?? "", /Connection failed/);
  for (let turn = 0; turn < 30; turn++) await absent.world.clock.advance(100);
  assert.deepEqual(await read, Buffer.from(BYTES));
  assert.equal(caller.facts.problem, undefined);
  assert.ok(
    absent.runs.every((args) => !args.includes("-passphrase")),
    "the stream key stays here",
  );
});

test("SrtFeed: an ffmpeg without SRT is an error of the configuration", async () => {
  const { parts } = fakeFfmpeg([[failed("srt://camera:9000: Protocol not found")]]);
  const input = openLiveInput(readLivePlace("srt://camera:9000"), parts);
  await assert.rejects(readBytes(input.packets(), 1), code("bad_configuration"));
});

ffmpegTest(
  "SrtFeed: ffmpeg publishes with the key, a wrong key is refused, and a second publication continues",
  { timeout: 60_000 },
  async () => {
    const film = await makeMedia("srt.ts", [
      "-f",
      "lavfi",
      "-i",
      "testsrc=size=320x180:rate=25:duration=2",
      "-c:v",
      "mpeg2video",
    ]);
    const port = await freeUdpPort();
    const input = openLiveInput(
      readLivePlace(`srt://127.0.0.1:${port}?mode=listener`),
      realParts({ openEncoder: () => openEncoder(process.env) }),
      { streamKey: KEY },
    );
    const stream = input.packets().getReader();
    let received = 0;
    const reading = (async () => {
      for (let read = await stream.read(); !read.done; read = await stream.read())
        received += read.value.length;
    })();
    const publish = (key: string) =>
      run("ffmpeg", [
        ...["-loglevel", "error", "-re", "-i", film, "-c", "copy", "-f", "mpegts"],
        `srt://127.0.0.1:${port}?passphrase=${key}`,
      ]);
    await assert.rejects(publish("not this key"));
    assert.equal(received, 0);
    await publish(KEY);
    await until(() => input.facts.problem?.includes("disconnected") === true);
    assert.ok(received > 50_000, String(received));
    assert.equal(received % 188, 0);
    const first = received;
    await publish(KEY);
    await until(() => input.facts.starts === 2 && received > 1.5 * first);
    await stream.cancel();
    await reading;
  },
);

async function freeUdpPort(): Promise<number> {
  const socket = createSocket("udp4");
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  const { port } = socket.address();
  await new Promise<void>((resolve) => socket.close(resolve));
  return port;
}
