import assert from "node:assert/strict";
import { test } from "node:test";
import { instant } from "../../../src/base/time.ts";
import { eitherWay } from "../../../src/engine/reach/either-way.ts";
import type { Clock, TcpHandlers, TcpSocket } from "../../../src/runtime/contract.ts";
import { EventQueue } from "../../simulation/event-queue.ts";

const PEER = { host: "9.9.9.9", port: 99 };

/** One call over one of the two, which the test lets succeed or fail. */
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
  const net = eitherWay(tcp, utp, clock);
  const heard: string[] = [];
  const call = (isPunch = false) =>
    net.connect(
      PEER,
      {
        opened: () => void heard.push("opened"),
        received: (bytes) => void heard.push(`received ${bytes.length}`),
        drained: () => {},
        closed: (reason) => void heard.push(`closed: ${reason}`),
      },
      { timeoutMs: 7_000, isPunch },
    );
  return { queue, calls, net, heard, call, accepting: () => accepting };
}

test("eitherWay: TCP that answers at once is the only one tried", () => {
  const { queue, calls, heard, call } = bothWays();
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
  assert.deepEqual([calls[0]!.written.length, heard], [1, ["opened", "received 3"]]);
});

test("eitherWay: uTP is tried after 250 ms; whichever opens first is used, and the other closed without a word", () => {
  const { queue, calls, heard, call } = bothWays();
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
  assert.deepEqual([calls[0]!.isClosed, calls[1]!.isClosed, heard], [true, false, ["opened"]]);
  calls[1]!.handlers.closed("gone");
  assert.deepEqual(heard, ["opened", "closed: gone"]);
});

test("eitherWay: uTP is tried as soon as TCP fails; where both do, the first reason is told, once", () => {
  const { queue, calls, heard, call } = bothWays();
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
  assert.deepEqual([calls.length, heard], [2, ["closed: refused"]]);
});

test("eitherWay: who answered over uTP alone is called so first for half an hour", () => {
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

test("eitherWay: who takes the call over TCP and hangs up without a byte is called over uTP the next time", () => {
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

test("eitherWay: a call that is closed before it was answered ends once, whatever comes later", () => {
  const { queue, calls, heard, call } = bothWays();
  const socket = call();
  queue.run(1_000);
  socket.close();
  calls[1]!.handlers.opened?.();
  queue.run(10_000);
  assert.deepEqual([calls.map(({ isClosed }) => isClosed), heard], [[true, true], ["closed: closed by us"]]);
});

test("eitherWay: a hole is punched over uTP alone; others are let in over both", async () => {
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
