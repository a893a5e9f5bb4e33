import assert from "node:assert/strict";
import { test } from "node:test";
import { runtime } from "#runtime";
import { instant } from "../../../src/base/time.ts";
import { LiveConnection } from "../../../src/engine/live/live-connection.ts";
import { PeerLink } from "../../../src/engine/live/peer-link.ts";
import { framed, MAX_CONTROL_BYTES, SendQueue } from "../../../src/engine/live/send-queue.ts";
import type { TcpSocket } from "../../../src/runtime/contract.ts";
import { PRIORITY } from "../../../src/swarm/live/contract.ts";
import type { WholeChunk } from "../../../src/swarm/live/messages.ts";
import { encodeHandshake } from "../../../src/wire/handshake.ts";
import { someBytes } from "../parts.ts";
import { someStream } from "./driver-parts.ts";

const NEVER = instant(Number.POSITIVE_INFINITY);
const REMOTE = { host: "127.0.0.1", port: 5 };

/** A socket whose other end takes what the test says. */
class SlowSocket implements TcpSocket {
  readonly remote = REMOTE;
  bufferedBytes = 0;
  written = 0;
  isClosed = false;

  write(bytes: Uint8Array): boolean {
    this.bufferedBytes += bytes.length;
    this.written += bytes.length;
    return true;
  }

  takes(bytes: number): void {
    this.bufferedBytes -= Math.min(bytes, this.bufferedBytes);
  }

  pause(): void {}
  resume(): void {}
  close(): void {
    this.isClosed = true;
  }
}

/** A connection whose peer has said its handshake. */
function someConnection() {
  const { file } = someStream();
  const { infohash, info, infoBytes } = file;
  const about = { role: "viewer", uploadBytesPerSecond: 0, homeStripe: 0, clockMs: 0 } as const;
  const queue = new SendQueue({ controlBytes: MAX_CONTROL_BYTES, dataBytes: 10_000_000 });
  const nothing = () => {};
  const link = new PeerLink(
    {
      ...{ infohash, info, infoBytes, about, listenPort: 1, sharesPeers: true },
      peerId: someBytes(20, 1),
      sha256: runtime.sha256,
    },
    {
      greeted: () => undefined,
      ready: nothing,
      heard: nothing,
      told: nothing,
      punched: nothing,
      unfit: nothing,
    },
    queue,
    { isIncoming: true, remote: REMOTE },
    instant(0),
  );
  const peerId = someBytes(20, 2);
  link.received(encodeHandshake({ infohash, peerId, extensions: true, fast: false, dht: false }), instant(0));
  queue.clear();
  const connection = new LiveConnection(1, link, { origin: "incoming", isExempt: false }, instant(0));
  const socket = new SlowSocket();
  connection.attach(socket);
  return { connection, socket, queue };
}

function someChunk(seq: number, length: number): WholeChunk {
  return { kind: "chunk", epoch: 1, seq, stripe: 0, isLate: false, bytes: someBytes(length, seq) };
}

/** Sends what the socket has room for. */
function sendAll(connection: LiveConnection, now: number): void {
  while (connection.top(instant(now)) !== undefined) connection.send(1_000_000, 3, instant(now));
}

test("LiveConnection.send: a socket has little at once, so that what is urgent overtakes the rest", () => {
  const { connection, socket, queue } = someConnection();
  for (let seq = 1; seq <= 20; seq++) {
    queue.chunk(someChunk(seq, 16_000), 3, PRIORITY.backfill, NEVER, instant(0));
  }
  sendAll(connection, 0);
  assert.ok(socket.bufferedBytes >= 60_000 && socket.bufferedBytes < 90_000, `${socket.bufferedBytes} bytes`);
  queue.chunk(someChunk(99, 100), 3, PRIORITY.live, NEVER, instant(1));
  socket.takes(40_000);
  assert.equal(connection.top(instant(2)), PRIORITY.live);
});

test("LiveConnection.waitMs: since when live bytes wait, in the queue or in the socket", () => {
  const { connection, socket, queue } = someConnection();
  assert.equal(connection.waitMs(instant(10)), 0);
  queue.chunk(someChunk(1, 100_000), 3, PRIORITY.live, NEVER, instant(10));
  assert.equal(connection.waitMs(instant(60)), 50);
  sendAll(connection, 60);
  queue.chunk(someChunk(2, 100), 3, PRIORITY.live, NEVER, instant(70));
  assert.equal(connection.waitMs(instant(110)), 100);
  socket.takes(1_000_000);
  connection.drained(instant(120));
  sendAll(connection, 120);
  socket.takes(1_000_000);
  connection.drained(instant(130));
  assert.equal(connection.waitMs(instant(1_000)), 0);
});

test("LiveConnection.isStalled: takes nothing for ten seconds, though there is something", () => {
  const { connection, socket, queue } = someConnection();
  assert.equal(connection.isStalled(instant(60_000)), false);
  queue.chunk(someChunk(1, 200_000), 3, PRIORITY.live, NEVER, instant(60_000));
  sendAll(connection, 60_000);
  assert.equal(connection.isStalled(instant(69_000)), false);
  // A little is enough, though the socket is filled again at once.
  socket.takes(20_000);
  sendAll(connection, 69_500);
  assert.equal(connection.isStalled(instant(70_000)), false);
  assert.equal(connection.isStalled(instant(79_000)), false);
  assert.equal(connection.isStalled(instant(80_100)), true);
});

test("LiveConnection.close: a goodbye goes out first, data does not", () => {
  const { connection, socket, queue } = someConnection();
  queue.chunk(someChunk(1, 50_000), 3, PRIORITY.live, NEVER, instant(0));
  const goodbye = framed(3, new Uint8Array(26));
  queue.message(goodbye, PRIORITY.control, NEVER, instant(0));
  connection.close(instant(1));
  assert.equal(socket.written, goodbye.length);
  assert.equal(socket.isClosed, false);
  connection.destroy();
  assert.equal(socket.isClosed, true);
});

test("LiveConnection.close: at once where nothing is on its way", () => {
  const { connection, socket } = someConnection();
  connection.close(instant(1));
  assert.equal(socket.isClosed, true);
});
