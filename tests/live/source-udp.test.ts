import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createSocket } from "node:dgram";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { runtime } from "#runtime";
import { openLiveInput } from "../../src/live/input/source.ts";
import type { UdpPlace } from "../../src/live/input/source-place.ts";
import { PieceCutter } from "../../src/media/live-cut.ts";
import type { UdpSocket } from "../../src/runtime/contract.ts";
import { settled } from "../engine/fake-clock.ts";
import { patternTs } from "../parts/media-fixtures.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { inRealTime } from "../parts/real-time.ts";
import { H264, lavfi, makeMedia } from "../remux/make-media.ts";
import { ffmpegErrors } from "../remux/probe.ts";
import { checkTs } from "../remux/ts-checker.ts";
import { FakeWorld, readBytes, realParts } from "./source-parts.ts";

const { test: ffmpegTest } = await testsThatNeed("ffmpeg");
const { test: multicastTest } = await testsThatNeed("multicast");

const WITH = { timeout: 60_000 };
const GROUP = "239.255.42.42";

async function clipPath(): Promise<string> {
  return makeMedia("source.ts", [...lavfi(6), ...H264, "-c:a", "aac"]);
}

/** Returns a free port. */
async function freePort(): Promise<number> {
  const socket = createSocket("udp4");
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  const { port } = socket.address();
  await new Promise<void>((resolve) => socket.close(() => resolve()));
  return port;
}

/** Sends a clip while the test reads. */
function sending(path: string, ...output: readonly string[]) {
  const args = ["-v", "error", "-re", "-stream_loop", "-1", "-i", path, "-c", "copy", ...output];
  return spawn("ffmpeg", args, { stdio: "ignore" });
}

/** Sends the test pattern from a socket until the returned function is called, 7 packets every 2 ms. */
async function sendDatagrams(
  host: string,
  port: number,
  wrap: (packets: Uint8Array, index: number) => Uint8Array,
): Promise<() => void> {
  const socket = createSocket("udp4");
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  socket.setMulticastInterface("127.0.0.1");
  const bytes = patternTs(10);
  let index = 0;
  const timer = setInterval(() => {
    const packets = bytes.subarray(index * 7 * 188, (index + 1) * 7 * 188);
    if (packets.length > 0) socket.send(wrap(packets, index++), port, host);
  }, 2);
  return () => {
    clearInterval(timer);
    socket.close();
  };
}

/** Adds an RTP header to packets (RFC 2250). */
function asRtp(packets: Uint8Array, index: number): Uint8Array {
  return Buffer.concat([Buffer.from([0x80, 33, index >> 8, index & 255, ...Array(8).fill(0)]), packets]);
}

for (const [name, wrap] of [
  ["plain", (packets: Uint8Array) => packets],
  ["RTP", asRtp],
] as const) {
  test(`UdpFeed: datagrams of a real socket, ${name}, arrive whole and in order`, async () => {
    const port = await freePort();
    const input = openLiveInput({ kind: "udp", bind: { host: "127.0.0.1", port } }, realParts());
    const reading = readBytes(input.packets(), 150_000);
    const stop = await sendDatagrams("127.0.0.1", port, wrap);
    try {
      const got = await reading;
      const { faults } = checkTs(got, { isPassThrough: true });
      assert.deepEqual(
        faults.filter((fault) => !fault.includes("not with the PAT")),
        [],
      );
      assert.deepEqual([input.facts.skippedBytes, input.facts.lostDatagrams], [0, 0]);
    } finally {
      stop();
    }
  });
}

const SENT: readonly (readonly [string, (port: number) => readonly string[]])[] = [
  ["plain", (port) => ["-f", "mpegts", `udp://127.0.0.1:${port}?pkt_size=1316`]],
  ["RTP", (port) => ["-f", "rtp_mpegts", `rtp://127.0.0.1:${port}`]],
];

for (const [name, output] of SENT) {
  ffmpegTest(
    `UdpFeed: what ffmpeg sends, ${name}, comes whole`,
    WITH,
    inRealTime(async () => {
      const port = await freePort();
      const input = openLiveInput({ kind: "udp", bind: { host: "127.0.0.1", port } }, realParts());
      const reading = readBytes(input.packets(), 150_000);
      const ffmpeg = sending(await clipPath(), ...output(port));
      try {
        const got = await reading;
        const faults = checkTs(got, { isPassThrough: true }).faults;
        assert.deepEqual(
          faults.filter((fault) => !fault.includes("not with the PAT")),
          [],
        );
        assert.equal(input.facts.skippedBytes, 0);
        assert.equal(input.facts.lostDatagrams, 0);
        const cutter = new PieceCutter({ pieceMs: 125, maxPieceBytes: 1 << 20, segmentMs: 2000 });
        const pieces = [...cutter.push(got, 1), ...cutter.finish(2)];
        const start = pieces[0]!.randomAccessOffset!;
        const errors = await ffmpegErrors(
          pieces[0]!.bytes.subarray(start, start + 100_000 - (100_000 % 188)),
        );
        assert.doesNotMatch(errors, /non-existing|continuity|corrupt input/i);
      } finally {
        ffmpeg.kill("SIGKILL");
      }
    }),
  );
}

multicastTest("UdpFeed: a multicast group is joined, and left", async () => {
  const port = await freePort();
  const place: UdpPlace = {
    kind: "udp",
    bind: { host: "0.0.0.0", port },
    group: GROUP,
    networkAddress: "127.0.0.1",
  };
  const inputs = [openLiveInput(place, realParts()), openLiveInput(place, realParts())];
  const reading = inputs.map((input) => readBytes(input.packets(), 100_000));
  const stop = await sendDatagrams(GROUP, port, (packets) => packets);
  try {
    for (const got of await Promise.all(reading))
      assert.ok(checkTs(got, { isPassThrough: true }).faults.length <= 1);
  } finally {
    stop();
  }
});

test("Net.bindUdp: rejects joining an address that is not a multicast group", async () => {
  await assert.rejects(
    runtime.net.bindUdp({ host: "0.0.0.0", port: 0 }, () => {}, { multicast: { group: "10.0.0.1" } }),
    /cannot join the multicast group 10\.0\.0\.1/,
  );
});

/** A feed with a fake socket. */
function byHand(group?: string) {
  const world = new FakeWorld();
  let send: (bytes: Uint8Array, port?: number) => void = () => {};
  let open = 0;
  let binds = 0;
  let failure: Error | undefined;
  const net = {
    bindUdp: async (
      address: { host: string; port: number },
      received: (bytes: Uint8Array, from: { host: string; port: number }) => void,
    ): Promise<UdpSocket> => {
      binds++;
      if (failure) throw failure;
      open++;
      send = (bytes, port = 9) => received(bytes, { host: "10.0.0.1", port });
      return {
        address,
        send() {},
        close() {
          open--;
        },
      };
    },
  };
  const place: UdpPlace = { kind: "udp", bind: { host: "127.0.0.1", port: 1 }, ...(group && { group }) };
  const input = openLiveInput(place, world.parts({ net }));
  const reader = input.packets().getReader();
  return {
    world,
    input,
    reader,
    send: (bytes: Uint8Array, port?: number) => send(bytes, port),
    isOpen: () => open > 0,
    open: () => open,
    binds: () => binds,
    failWith(error: Error | undefined) {
      failure = error;
    },
  };
}

function datagram(tag: number): Uint8Array {
  const bytes = new Uint8Array(7 * 188).fill(tag);
  for (let at = 0; at < bytes.length; at += 188) bytes[at] = 0x47;
  return bytes;
}

function rtp(sequence: number): Uint8Array {
  return new Uint8Array([0x80, 33, sequence >> 8, sequence, ...Array(8).fill(0), ...datagram(sequence & 63)]);
}

test("UdpFeed: drops and counts the oldest datagrams that are not read", async () => {
  const { input, reader, send, world } = byHand();
  const first = reader.read();
  await settled();
  send(datagram(1));
  await first;
  for (let i = 0; i < 10_000; i++) send(datagram(i & 63));
  assert.ok(input.facts.droppedBytes > 8_000_000 && input.facts.droppedBytes < 10_000 * 1316);
  let got = 0;
  while (got < 10_000 * 1316 - input.facts.droppedBytes) got += (await reader.read()).value!.length;
  assert.equal(got + input.facts.droppedBytes, 10_000 * 1316);
  const waiting = reader.read();
  await reader.cancel();
  assert.equal((await waiting).done, true);
  assert.equal(world.clock.waiting, 0);
});

test("UdpFeed: accepts one sender at a time, until it is silent", async () => {
  const { input, reader, send, world, isOpen } = byHand();
  const first = reader.read();
  await settled();
  send(datagram(1));
  send(datagram(2), 10);
  assert.equal((await first).value![5], 1);
  assert.equal(input.facts.foreignDatagrams, 1);
  await world.clock.advance(3100);
  const second = reader.read();
  send(datagram(3), 10);
  assert.equal((await second).value![5], 3);
  assert.equal(input.facts.starts, 2);
  await reader.cancel();
  assert.equal(isOpen(), false);
});

test("UdpFeed: joins a silent group again, until data arrives", async () => {
  const { input, reader, send, world, open, binds, failWith } = byHand(GROUP);
  const first = reader.read();
  await settled();
  send(datagram(1));
  await first;
  const second = reader.read();
  failWith(new Error("no such network"));
  await world.clock.advance(31_000);
  assert.deepEqual([binds(), open(), input.facts.problem], [2, 1, "no such network"]);
  failWith(undefined);
  await world.clock.advance(30_000);
  assert.deepEqual([binds(), open()], [3, 1]);
  send(datagram(2));
  assert.equal((await second).value![5], 2);
  await reader.cancel();
  assert.deepEqual([open(), world.clock.waiting], [0, 0]);
});

test("UdpFeed: skips duplicate and late RTP datagrams, and counts lost ones", async () => {
  const { input, reader, send } = byHand();
  const first = reader.read();
  await settled();
  for (const sequence of [65534, 65535, 0, 0, 65535, 1, 4, 5]) send(rtp(sequence));
  const { value } = await first;
  const tags: number[] = [];
  for (let at = 5; at < value!.length; at += 1316) tags.push(value![at]!);
  assert.deepEqual(tags, [62, 63, 0, 1, 4, 5]);
  assert.equal(input.facts.lostDatagrams, 2);
  await reader.cancel();
});

test("HttpFeed: reads a real server's response across several connections", async () => {
  const bytes = patternTs(6);
  const half = 188 * Math.floor(bytes.length / 376);
  let asked = 0;
  const server = createServer((_request, response: ServerResponse) => {
    asked++;
    response.writeHead(200, { "content-type": "video/mp2t" });
    if (asked === 1) response.end(bytes.subarray(0, half));
    else response.write(bytes.subarray(half));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const input = openLiveInput({ kind: "http", url }, realParts());
    const got = await readBytes(input.packets(), bytes.length);
    assert.equal(asked, 2);
    assert.ok(Buffer.compare(got, bytes) === 0, "other bytes than were sent");
    assert.equal(input.facts.skippedBytes, 0);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});
