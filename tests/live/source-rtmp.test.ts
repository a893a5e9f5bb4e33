import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { runtime } from "#runtime";
import { concatBytes } from "../../src/base/bytes.ts";
import { SILENT_LOG } from "../../src/base/log.ts";
import { RtmpListeners } from "../../src/live/input/rtmp-listeners.ts";
import { noFacts } from "../../src/live/input/source-feed.ts";
import { readLivePlace } from "../../src/live/input/source-place.ts";
import { RtmpFeed } from "../../src/live/input/source-rtmp.ts";
import type { Net, TcpHandlers, TcpSocket } from "../../src/runtime/contract.ts";
import { FakeClock } from "../engine/fake-clock.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { run } from "../parts/process.ts";
import { H264, lavfi, makeMedia, scratchFile } from "../remux/make-media.ts";
import { ffmpegErrors, frameHashes } from "../remux/probe.ts";
import { checkTs } from "../remux/ts-checker.ts";
import { answersIn, message, type Published, patternMessages, publishRequest } from "./rtmp-publisher.ts";

const { test: ffmpegTest } = await testsThatNeed("ffmpeg");

const VIDEO = 0x100;
const AUDIO = 0x101;

/** A port whose connections the test drives. */
class FakePort {
  readonly clock = new FakeClock();
  readonly facts = noFacts();
  accept: (socket: TcpSocket) => TcpHandlers = () => assert.fail("nothing listens");
  isOpen = false;
  readonly feed: RtmpFeed;

  constructor(key = "secret") {
    const net = {
      listen: async (_: unknown, accept: FakePort["accept"]) => {
        this.accept = accept;
        this.isOpen = true;
        return {
          address: { host: "127.0.0.1", port: 1935 },
          close: async () => {
            this.isOpen = false;
          },
        };
      },
    } as unknown as Net;
    const rtmp = new RtmpListeners({ runtime: { ...runtime, net, clock: this.clock }, log: SILENT_LOG });
    const place = readLivePlace("rtmp://127.0.0.1");
    assert.ok(place.kind === "rtmp");
    this.feed = new RtmpFeed(place, key, { rtmp, clock: this.clock }, this.facts);
  }

  connect() {
    const sent: Uint8Array[] = [];
    const state = { isClosed: false, isPaused: false };
    const socket: TcpSocket = {
      remote: { host: "127.0.0.1", port: 40_000 },
      bufferedBytes: 0,
      write: (bytes) => sent.push(bytes) > 0,
      pause() {
        state.isPaused = true;
      },
      resume() {
        state.isPaused = false;
      },
      close: () => {
        if (!state.isClosed) handlers.closed("closed");
        state.isClosed = true;
      },
    };
    const handlers = this.accept(socket);
    return {
      state,
      answers: () => answersIn(sent),
      send: (bytes: Uint8Array) => handlers.received(bytes),
      publish(messages: readonly Published[], key = "secret") {
        handlers.received(publishRequest("live", key));
        for (const { type, timestamp, payload } of messages)
          handlers.received(message(type, timestamp, payload));
      },
      drop: () => socket.close(),
    };
  }

  /** Reads what the feed has. */
  async read(
    bytes: Promise<Uint8Array | undefined>,
  ): Promise<{ ts: Uint8Array; next: Promise<Uint8Array | undefined> }> {
    const parts: Uint8Array[] = [];
    let next = bytes;
    for (;;) {
      const result = await Promise.race([next, settled()]);
      if (result === undefined) return { ts: concatBytes(parts), next };
      parts.push(result);
      next = this.feed.next();
    }
  }
}

/** Resolves after all pending promises. */
async function settled(): Promise<undefined> {
  for (let i = 0; i < 20; i++) await Promise.resolve();
}

async function opened(key?: string) {
  const port = new FakePort(key);
  const next = port.feed.next();
  await settled();
  assert.ok(port.isOpen);
  return { port, next };
}

test("RTMP: what is published becomes a valid transport stream with each frame", async () => {
  const { port, next } = await opened();
  const messages = patternMessages(3, 5000);
  const publisher = port.connect();
  publisher.publish(messages);
  assert.deepEqual(publisher.answers(), [
    "_result NetConnection.Connect.Success",
    "_result",
    "_result",
    "onStatus NetStream.Publish.Start",
  ]);
  const { ts } = await port.read(next);
  const report = checkTs(ts);
  assert.deepEqual(report.faults, []);
  assert.equal(report.keyframes, 3);
  assert.equal(report.units.get(VIDEO), messages.filter(({ type }) => type === 9).length - 1);
  assert.ok((report.units.get(AUDIO) ?? 0) > 10);
  assert.ok(report.clockGapTicks <= 9000);
});

test("RTMP: bytes may be split anywhere", async () => {
  const { port, next } = await opened();
  const whole = concatBytes([
    publishRequest("live", "secret"),
    ...patternMessages(1, 0).map(({ type, timestamp, payload }) => message(type, timestamp, payload)),
  ]);
  const publisher = port.connect();
  for (let at = 0; at < whole.length; at += 7) publisher.send(whole.subarray(at, at + 7));
  const { ts } = await port.read(next);
  assert.deepEqual(checkTs(ts).faults, []);
  assert.equal(checkTs(ts).keyframes, 1);
});

test("RTMP: a publisher that comes back continues the stream; its times and counters do not go back", async () => {
  const { port, next } = await opened();
  const first = port.connect();
  first.publish(patternMessages(2, 4_294_966_296)); // The timestamp wraps within the first second.
  first.drop();
  assert.equal(port.facts.problem, "the publishing program has disconnected");
  await port.clock.advance(4000);
  const second = port.connect();
  second.publish(patternMessages(2, 0));
  const { ts } = await port.read(next);
  const report = checkTs(ts, { isPassThrough: true });
  assert.deepEqual(report.faults, []);
  assert.equal(report.keyframes, 4);
  assert.equal(port.facts.starts, 2);
  assert.equal(port.facts.problem, undefined);
});

test("RTMP: a second publisher with the key replaces one whose connection may be dead", async () => {
  const { port, next } = await opened();
  const first = port.connect();
  first.publish(patternMessages(1, 0));
  const second = port.connect();
  second.publish(patternMessages(1, 0));
  assert.equal(
    first.answers().at(-1),
    "onStatus NetStream.Publish.BadName another program publishes with this key",
  );
  await port.clock.advance(1000);
  assert.ok(first.state.isClosed && !second.state.isClosed);
  assert.equal(port.facts.problem, undefined);
  assert.equal(checkTs((await port.read(next)).ts, { isPassThrough: true }).keyframes, 2);
});

test("RTMP: a wrong key, a wrong name, media without a key and other protocols are refused", async () => {
  const { port } = await opened();
  const refused = "onStatus NetStream.Publish.BadName unknown address or wrong stream key";
  const stranger = port.connect();
  stranger.publish([], "secreT");
  assert.equal(stranger.answers().at(-1), refused);
  const elsewhere = port.connect();
  elsewhere.send(publishRequest("other", "secret"));
  assert.equal(elsewhere.answers().at(-1), refused);
  const early = port.connect();
  early.send(new Uint8Array(1 + 2 * 1536).fill(3, 0, 1));
  early.send(message(9, 0, new Uint8Array(100)));
  const web = port.connect();
  web.send(new TextEncoder().encode("GET / HTTP/1.1\r\n\r\n"));
  const idle = port.connect();
  await port.clock.advance(11_000);
  for (const each of [stranger, elsewhere, early, web, idle]) assert.ok(each.state.isClosed);
  assert.equal(port.facts.starts, 0);
});

test("RTMP: another codec is refused with its name, another configuration continues with new tables", async () => {
  const { port, next } = await opened();
  const publisher = port.connect();
  const messages = patternMessages(1, 0);
  publisher.publish(messages);
  const config = messages[1]!.payload.slice();
  config[3] = 0x90; // Stereo instead of mono.
  publisher.send(message(8, 1000, config));
  for (const { type, timestamp, payload } of patternMessages(1, 1000).slice(2))
    publisher.send(message(type, timestamp, payload));
  const { ts } = await port.read(next);
  assert.deepEqual(checkTs(ts, { isPassThrough: true }).faults, []);
  const versions = new Set<number>();
  for (let at = 0; at < ts.length; at += 188)
    if ((((ts[at + 1]! & 0x1f) << 8) | ts[at + 2]!) === 0x1000) versions.add((ts[at + 10]! >> 1) & 31);
  assert.deepEqual([...versions], [0, 1]);
  publisher.send(message(9, 2000, Uint8Array.of(0x12, 0, 0, 0, 0, 0)));
  assert.match(publisher.answers().at(-1)!, /unsupported video codec: Sorenson H.263/);
});

test("RTMP: a publisher is not read while the broadcast does not take its packets", async () => {
  const { port, next } = await opened();
  const publisher = port.connect();
  publisher.publish(patternMessages(1, 0));
  const large = new Uint8Array(2_000_000).fill(0x55);
  large.set([0x27, 1, 0, 0, 0, 0, 0x1e, 0x84, 0x77, 0x41]);
  for (let i = 0; i < 3; i++) publisher.send(message(9, 1000 + i, large));
  assert.ok(publisher.state.isPaused);
  const { ts } = await port.read(next);
  assert.ok(ts.length > 6_000_000);
  assert.ok(!publisher.state.isPaused);
});

test("RTMP: closing the source frees the port and tells the publisher", async () => {
  const { port, next } = await opened();
  const publisher = port.connect();
  publisher.publish(patternMessages(1, 0));
  await port.read(next);
  port.feed.close();
  await settled();
  assert.equal(port.isOpen, false);
  assert.equal(publisher.answers().at(-1), "onStatus NetStream.Publish.BadName the broadcast has ended");
});

test("RTMP: places", () => {
  assert.deepEqual(readLivePlace("rtmp://0.0.0.0"), {
    kind: "rtmp",
    bind: { host: "0.0.0.0", port: 1935 },
    app: "live",
  });
  assert.deepEqual(readLivePlace("rtmp://[::1]:2000/show/"), {
    kind: "rtmp",
    bind: { host: "::1", port: 2000 },
    app: "show",
  });
  for (const wrong of ["rtmp://server.example/live", "rtmp://1.2.3.4:0/live", "rtmp://1.2.3.4/live/key"])
    assert.throws(() => readLivePlace(wrong), /address of this machine/);
});

ffmpegTest(
  "RTMP: ffmpeg publishes a film; each frame of it decodes to the same picture",
  { timeout: 60_000 },
  async () => {
    const film = await makeMedia("published.mp4", [...lavfi(8), ...H264, "-bf", "2", "-c:a", "aac"]);
    const probe = await runtime.net.listen({ host: "127.0.0.1", port: 0 }, () => ({
      received() {},
      drained() {},
      closed() {},
    }));
    const { port } = probe.address;
    await probe.close();
    const place = readLivePlace(`rtmp://127.0.0.1:${port}/live`);
    assert.ok(place.kind === "rtmp");
    const rtmp = new RtmpListeners({ runtime, log: SILENT_LOG });
    const facts = noFacts();
    const feed = new RtmpFeed(place, "secret", { rtmp, clock: runtime.clock }, facts);
    const parts: Uint8Array[] = [];
    const reading = (async () => {
      for (let packets = await feed.next(); packets; packets = await feed.next()) parts.push(packets);
    })();
    const target = `rtmp://127.0.0.1:${port}/live/secret`;
    await run("ffmpeg", ["-v", "error", "-i", film, "-c", "copy", "-f", "flv", target]);
    while (facts.problem !== "the publishing program has disconnected") await pause(20);
    await pause(0); // The reader takes the last packets.
    feed.close();
    await reading;
    const ts = concatBytes(parts);
    assert.deepEqual(checkTs(ts).faults, []);
    const received = await scratchFile(ts, "ts");
    assert.deepEqual(await frameHashes(received, "v"), await frameHashes(film, "v"));
    assert.deepEqual(await ffmpegErrors(ts), "");
  },
);
