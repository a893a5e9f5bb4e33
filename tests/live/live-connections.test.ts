import assert from "node:assert/strict";
import { test } from "node:test";
import { runtime } from "#runtime";
import { instant } from "../../src/base/time.ts";
import { LiveConnection } from "../../src/live/live-connection.ts";
import { LiveConnections } from "../../src/live/live-connections.ts";
import { PeerLink } from "../../src/live/peer-link.ts";
import { SendQueue } from "../../src/protocol/live/send-queue.ts";
import type { TcpSocket } from "../../src/runtime/contract.ts";
import { ConnectionCount } from "../../src/transfer/connection-count.ts";
import { FakeClock } from "../engine/fake-clock.ts";
import { keepingLog, someBytes } from "../engine/parts.ts";
import { someRoles, someStream } from "./driver-parts.ts";

/** Connections whose sockets close when the test says so. */
function bench() {
  const clock = new FakeClock();
  const count = new ConnectionCount(100);
  const connections = new LiveConnections(count, clock, keepingLog());
  const { infohash, info, infoBytes } = someStream().file;
  const about = { role: "viewer", uploadBytesPerSecond: 0 } as const;
  const nothing = () => {};
  let id = 1;
  const add = (host: string) => {
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
      new SendQueue({ controlBytes: 1_000, dataBytes: 1_000 }),
      { isIncoming: true, remote: { host, port: id } },
      instant(0),
    );
    const connection = new LiveConnection(id++, link, { origin: "incoming", isExempt: false }, clock.now());
    const socket = {
      ...{ remote: link.remote, bufferedBytes: 0, isClosed: false },
      ...{ write: () => true, pause: nothing, resume: nothing },
      close() {
        this.isClosed = true;
      },
    };
    connections.add(connection);
    connections.attach(connection, socket as TcpSocket);
    return { connection, socket };
  };
  return { clock, count, connections, add };
}

test("LiveConnections.excess: of too many without an introduction, the oldest of the host with the most", () => {
  const { connections, add } = bench();
  const honest = add("1.1.1.1");
  const first = add("6.6.6.6");
  for (let i = 0; i < 61; i++) add("6.6.6.6");
  assert.equal(connections.excess(), undefined);
  add("2.2.2.2");
  assert.equal(connections.excess(), first.connection);
  assert.equal(connections.has(honest.connection), true);
});

test("LiveConnections.drop: counts a connection until its socket has closed, and keeps its traffic", () => {
  const { count, connections, add } = bench();
  const { connection, socket } = add("1.1.1.1");
  connection.down.add(700, instant(1_000));
  assert.equal(connections.drop(connection, "enough"), true);
  assert.equal(connections.drop(connection, "enough"), false);
  assert.equal(socket.isClosed, true);
  assert.equal(count.open, 1);
  connections.ended(socket as TcpSocket);
  assert.equal(count.open, 0);
  assert.deepEqual(connections.traffic(), { downloaded: 700, uploaded: 0, peers: 0 });
});

test("LiveConnections.close: waits for sockets to close, at most a second", async () => {
  const { clock, connections, add } = bench();
  const { socket } = add("1.1.1.1");
  let isClosed = false;
  const closed = connections.close().then(() => {
    isClosed = true;
  });
  await clock.advance(900);
  assert.equal(isClosed, false);
  connections.ended(socket as TcpSocket);
  await closed;
  const stuck = bench();
  stuck.add("1.1.1.1");
  const given = stuck.connections.close();
  await stuck.clock.advance(1_000);
  await given;
});
