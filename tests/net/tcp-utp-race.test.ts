import assert from "node:assert/strict";
import { test } from "node:test";
import { instant } from "../../src/base/time.ts";
import { tcpAndUtp } from "../../src/net/tcp-utp-race.ts";
import type { Clock, TcpHandlers, TcpSocket } from "../../src/runtime/contract.ts";
import { EventQueue } from "../simulation/event-queue.ts";

const PEER = { host: "9.9.9.9", port: 99 };

/** A connection attempt over one transport that the test completes. */
interface Call {
  readonly way: "tcp" | "utp";
  readonly at: number;
  readonly handlers: TcpHandlers;
  readonly timeoutMs: number;
  isClosed: boolean;
  readonly written: Uint8Array[];
}

function bothWays() {
  const queue = new EventQueue();
  const clock: Clock = {
    now: () => instant(queue.now),
    unixSeconds: () => 0 as never,
    at: (at, run) => queue.at(at, run),
  };
  const calls: Call[] = [];
  const way = (name: Call["way"]) => ({
    connect(remote: typeof PEER, handlers: TcpHandlers, { timeoutMs }: { timeoutMs: number }): TcpSocket {
      const call: Call = { way: name, at: queue.now, handlers, timeoutMs, isClosed: false, written: [] };
      calls.push(call);
      return {
        remote,
        bufferedBytes: 0,
        write: (bytes) => call.written.push(bytes) > 0,
        pause() {},
        resume() {},
        close() {
          if (call.isClosed) return;
          call.isClosed = true;
          queue.after(0, () => handlers.closed("closed by us"));
        },
      };
    },
  });
  let accepting = 0;
  const listener = { address: PEER, close: async () => {} };
  const listenOverTcp = async () => {
    accepting++;
    return listener;
  };
  const tcp = { ...way("tcp"), listen: listenOverTcp };
  const utp = { ...way("utp"), listen: () => void accepting++, close() {} };
  const net = tcpAndUtp(tcp, utp, clock);
  const events: string[] = [];
  const call = (isPunch = false) =>
    net.connect(
      PEER,
      {
        opened: () => void events.push("opened"),
        received: (bytes) => void events.push(`received ${bytes.length}`),
        drained: () => {},
        closed: (reason) => void events.push(`closed: ${reason}`),
      },
      { timeoutMs: 7_000, isPunch },
    );
  return { queue, calls, net, events, call, accepting: () => accepting };
}

test("tcpAndUtp: if TCP connects immediately, uTP is not tried", () => {
  const { queue, calls, events, call } = bothWays();
  const socket = call();
  queue.run(100);
  calls[0]!.handlers.opened?.();
  queue.run(10_000);
  assert.deepEqual(
    calls.map((each) => each.way),
    ["tcp"],
  );
  socket.write(new Uint8Array(1));
  calls[0]!.handlers.received(new Uint8Array(3));
  assert.deepEqual([calls[0]!.written.length, events], [1, ["opened", "received 3"]]);
});

test("tcpAndUtp: tries uTP after 250 ms; uses the first that opens and closes the other silently", () => {
  const { queue, calls, events, call } = bothWays();
  call();
  queue.run(1_000);
  assert.deepEqual(
    calls.map(({ way, at }) => [way, at]),
    [
      ["tcp", 0],
      ["utp", 250],
    ],
  );
  calls[1]!.handlers.opened?.();
  queue.run(2_000);
  assert.deepEqual([calls[0]!.isClosed, calls[1]!.isClosed, events], [true, false, ["opened"]]);
  calls[1]!.handlers.closed("gone");
  assert.deepEqual(events, ["opened", "closed: gone"]);
});

test("tcpAndUtp: tries uTP as soon as TCP fails; if both fail, reports the first error once", () => {
  const { queue, calls, events, call } = bothWays();
  call();
  queue.run(10);
  calls[0]!.handlers.closed("refused");
  assert.deepEqual(
    calls.map(({ way, at }) => [way, at]),
    [
      ["tcp", 0],
      ["utp", 10],
    ],
  );
  assert.ok(calls[1]!.timeoutMs < 7_000);
  calls[1]!.handlers.closed("no answer");
  queue.run(10_000);
  assert.deepEqual([calls.length, events], [2, ["closed: refused"]]);
});

test("tcpAndUtp: an address that responded only over uTP is tried over uTP first for half an hour", () => {
  const { queue, calls, call } = bothWays();
  call();
  queue.run(1_000);
  calls[1]!.handlers.opened?.();
  call();
  assert.deepEqual(
    calls.map(({ way }) => way),
    ["tcp", "utp", "utp"],
  );
  queue.run(3_600_000);
  calls.length = 0;
  call();
  assert.deepEqual(
    calls.map(({ way }) => way),
    ["tcp"],
  );
});

test("tcpAndUtp: a peer that accepts over TCP and closes without a byte is tried over uTP next time", () => {
  const { calls, call } = bothWays();
  call();
  calls[0]!.handlers.opened?.();
  calls[0]!.handlers.closed("closed by the peer");
  call();
  assert.deepEqual(
    calls.map(({ way }) => way),
    ["tcp", "utp"],
  );
});

test("tcpAndUtp: a connection closed before it opened reports closed once", () => {
  const { queue, calls, events, call } = bothWays();
  const socket = call();
  queue.run(1_000);
  socket.close();
  calls[1]!.handlers.opened?.();
  queue.run(10_000);
  assert.deepEqual([calls.map(({ isClosed }) => isClosed), events], [[true, true], ["closed: closed by us"]]);
});

test("tcpAndUtp: hole punching uses uTP only; incoming connections are accepted over both", async () => {
  const { queue, calls, net, call, accepting } = bothWays();
  call(true);
  queue.run(5_000);
  assert.deepEqual(
    calls.map(({ way }) => way),
    ["utp"],
  );
  await net.listen(PEER, () => ({ received() {}, drained() {}, closed() {} }));
  assert.equal(accepting(), 2);
});
