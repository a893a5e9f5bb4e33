import assert from "node:assert/strict";
import { test } from "node:test";
import type { Infohash } from "../../src/base/ids.ts";
import { listenForPeers } from "../../src/net/peer-listener.ts";
import type { Net, TcpHandlers, TcpSocket } from "../../src/runtime/contract.ts";
import { encodeHandshake } from "../../src/wire/peer/handshake.ts";
import { FakeClock } from "../engine/fake-clock.ts";
import { keepingLog } from "../engine/parts.ts";

const INFOHASH = "ab".repeat(20) as Infohash;
const HELLO = encodeHandshake({
  infohash: INFOHASH,
  peerId: new Uint8Array(20),
  extensions: true,
  fast: true,
  dht: false,
});

/** A listener on a fake network; its transfer records what it receives. */
async function bench() {
  const clock = new FakeClock();
  const adopted: number[] = [];
  let accept: (socket: TcpSocket) => TcpHandlers = () => assert.fail("not listening yet");
  const net = {
    listen: async (address: unknown, taker: typeof accept) => {
      accept = taker;
      return { address, close: async () => {} };
    },
  } as unknown as Net;
  let receivedBytes = 0;
  const adopt = (infohash: Infohash, socket: TcpSocket): TcpHandlers | undefined => {
    if (infohash !== INFOHASH) return undefined;
    adopted.push(socket.remote.port);
    return {
      received(bytes) {
        receivedBytes += bytes.length;
      },
      drained() {},
      closed() {},
    };
  };
  await listenForPeers({ net, clock, log: keepingLog(), adopt }, { host: "127.0.0.1", port: 1 });
  const connect = (port: number, host = "127.0.0.1") => {
    const state = { isClosed: false };
    const socket = {
      remote: { host, port },
      close() {
        if (state.isClosed) return;
        state.isClosed = true;
        // As sockets do: later, not within the call.
        setImmediate(() => handlers.closed("closed by us"));
      },
    } as unknown as TcpSocket;
    const handlers = accept(socket);
    return { state, handlers };
  };
  return { clock, adopted, connect, receivedBytes: () => receivedBytes };
}

test("listenForPeers: passes on a handshake received in any pieces, and the bytes after it", async () => {
  const { adopted, connect, clock, receivedBytes } = await bench();
  const { handlers } = connect(1);
  for (const byte of HELLO.subarray(0, 67)) handlers.received(Uint8Array.of(byte));
  assert.deepEqual(adopted, []);
  handlers.received(Uint8Array.of(HELLO[67]!, 0, 0, 0, 0));
  assert.deepEqual(adopted, [1]);
  assert.equal(receivedBytes(), 4);
  assert.equal(clock.waiting, 0, "a timer is left behind");
});

test("listenForPeers: closes at the first wrong byte, on an unknown infohash, and after 10 s", async () => {
  const { connect, clock } = await bench();
  const [wrong, other, slow] = [connect(1), connect(2), connect(3)];
  wrong.handlers.received(Uint8Array.of(0x13, 0x62));
  assert.ok(wrong.state.isClosed);
  const stranger = HELLO.slice();
  stranger[30]! ^= 1;
  other.handlers.received(stranger);
  assert.ok(other.state.isClosed);
  await clock.advance(9_999);
  assert.equal(slow.state.isClosed, false);
  await clock.advance(1);
  assert.ok(slow.state.isClosed);
});

test("listenForPeers: above the limit closes the oldest connection without a handshake", async () => {
  const { connect, adopted } = await bench();
  const good = connect(1);
  good.handlers.received(HELLO);
  const silent = Array.from({ length: 60 }, (_, i) => connect(2 + i));
  assert.deepEqual(
    silent.flatMap(({ state }, i) => (state.isClosed ? [i] : [])),
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
  );
  assert.equal(good.state.isClosed, false);
  silent[0]!.handlers.received(HELLO);
  silent[59]!.handlers.received(HELLO);
  assert.deepEqual(adopted, [1, 61]);
});

test("listenForPeers: a flood of silent connections from one address displaces none of another", async () => {
  const { connect, adopted } = await bench();
  const slow = connect(1, "198.51.100.7");
  const flood = Array.from({ length: 200 }, (_, i) => connect(2 + i, "203.0.113.9"));
  assert.equal(flood.filter(({ state }) => !state.isClosed).length, 49);
  slow.handlers.received(HELLO);
  assert.deepEqual(adopted, [1]);
});
