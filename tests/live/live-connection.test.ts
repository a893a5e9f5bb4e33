import assert from "node:assert/strict";
import { test } from "node:test";
import { runtime } from "#runtime";
import { instant } from "../../src/base/time.ts";
import { LiveConnection } from "../../src/live/live-connection.ts";
import { PeerLink } from "../../src/live/peer-link.ts";
import { PRIORITY } from "../../src/protocol/live/contract.ts";
import type { WholeChunk } from "../../src/protocol/live/messages.ts";
import { framed, MAX_CONTROL_BYTES, SendQueue } from "../../src/protocol/live/send-queue.ts";
import type { TcpSocket } from "../../src/runtime/contract.ts";
import { encodeHandshake } from "../../src/wire/peer/handshake.ts";
import { someBytes } from "../engine/parts.ts";
import { someRoles, someStream } from "./driver-parts.ts";

const NEVER = instant(Number.POSITIVE_INFINITY);
const REMOTE = { host: "127.0.0.1", port: 5 };

/** A socket whose other end accepts as many bytes as the test sets. */
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

/** A connection whose peer has sent its handshake. */
function someConnection() {
  const { file } = someStream();
  const { infohash, info, infoBytes } = file;
  const about = { role: "viewer", uploadBytesPerSecond: 0 } as const;
  const queue = new SendQueue({ controlBytes: MAX_CONTROL_BYTES, dataBytes: 10_000_000 });
  const nothing = () => {};
  const link = new PeerLink(
    {
      ...{ infohash, info, infoBytes, about, listenPort: 1, sharesPeers: true },
      peerId: someBytes(20, 1),
      sha256: runtime.sha256,
      roles: someRoles(),
    },
    {
      handshake: () => undefined,
      ready: nothing,
      proved: nothing,
      message: nothing,
      peers: nothing,
      holePunch: nothing,
      rejected: nothing,
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

/** Sends as much as the socket buffer takes. */
function sendAll(connection: LiveConnection, now: number): void {
  while (connection.top(instant(now)) !== undefined) connection.send(1_000_000, 3, instant(now));
}

test("LiveConnection.send: keeps the socket buffer short, so that urgent messages overtake others", () => {
  const { connection, socket, queue } = someConnection();
  for (let seq = 1; seq <= 20; seq++) {
    queue.chunk(someChunk(seq, 16_000), 3, PRIORITY.backfill, NEVER, instant(0));
  }
  sendAll(connection, 0);
  assert.ok(socket.bufferedBytes >= 16_000 && socket.bufferedBytes < 34_000, `${socket.bufferedBytes} bytes`);
  queue.chunk(someChunk(99, 100), 3, PRIORITY.live, NEVER, instant(1));
  socket.takes(20_000);
  assert.equal(connection.top(instant(2)), PRIORITY.live);
});

test("LiveConnection.waitMs: how long live bytes wait, in the queue or in the socket buffer", () => {
  const { connection, socket, queue } = someConnection();
  assert.equal(connection.waitMs(instant(10)), 0);
  queue.chunk(someChunk(1, 25_000), 3, PRIORITY.live, NEVER, instant(10));
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

test("LiveConnection.isStalled: true after ten seconds without progress while bytes wait", () => {
  const { connection, socket, queue } = someConnection();
  assert.equal(connection.isStalled(instant(60_000)), false);
  queue.chunk(someChunk(1, 200_000), 3, PRIORITY.live, NEVER, instant(60_000));
  sendAll(connection, 60_000);
  assert.equal(connection.isStalled(instant(69_000)), false);
  // A little progress is enough, even if the buffer is filled again at once.
  socket.takes(20_000);
  sendAll(connection, 69_500);
  assert.equal(connection.isStalled(instant(70_000)), false);
  assert.equal(connection.isStalled(instant(79_000)), false);
  assert.equal(connection.isStalled(instant(80_100)), true);
});

test("LiveConnection.close: sends control messages first, but no data", () => {
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

test("LiveConnection.close: closes at once if nothing waits", () => {
  const { connection, socket } = someConnection();
  connection.close(instant(1));
  assert.equal(socket.isClosed, true);
});
