import assert from "node:assert/strict";
import { test } from "node:test";
import { runtime } from "#runtime";
import type { TcpHandlers, TcpSocket } from "../../src/runtime/contract.ts";
import { machineRuntime } from "../../src/runtime/machine.ts";

const { net } = runtime;
const HERE = { host: "127.0.0.1", port: 0 };
const nothing: TcpHandlers = { received() {}, drained() {}, closed() {} };

test("Net: data of many connections arrives in order although read buffers are reused", async () => {
  const size = 3_000_000;
  const listener = await net.listen(HERE, (socket) => {
    let sent = 0;
    const tag = socket.remote.port & 0xff;
    const more = () => {
      while (sent < size) {
        const part = new Uint8Array(50_000).map((_, i) => (sent + i + tag) & 0xff);
        sent += part.length;
        if (!socket.write(part)) return;
      }
    };
    queueMicrotask(more);
    return { ...nothing, drained: more };
  });
  const fetchOne = () =>
    new Promise<boolean>((resolve, reject) => {
      let got = 0;
      let tag: number | undefined;
      let isRight = true;
      const socket: TcpSocket = net.connect(
        listener.address,
        {
          received(bytes) {
            tag ??= bytes[0]!;
            for (let i = 0; i < bytes.length; i += 97) isRight &&= bytes[i] === ((got + i + tag) & 0xff);
            got += bytes.length;
            if (got === size) socket.close();
          },
          drained() {},
          closed: (reason) => (got === size ? resolve(isRight) : reject(new Error(`${reason} at ${got}`))),
        },
        { timeoutMs: 5000 },
      );
    });
  const right = await Promise.all(Array.from({ length: 12 }, fetchOne));
  assert.deepEqual(right, Array<boolean>(12).fill(true));
  await listener.close();
});

test("Net: a paused socket applies backpressure to its writer", async () => {
  let client: TcpSocket | undefined;
  let got = 0;
  const full = later();
  const paused = later();
  const over = later();
  const listener = await net.listen(HERE, (socket) => {
    queueMicrotask(() => {
      let sent = 0;
      // The kernel's buffers take some megabytes; the socket must refuse long before this.
      while (sent < 256 * 1024 * 1024 && socket.write(new Uint8Array(64 * 1024))) sent += 64 * 1024;
      assert.ok(sent < 256 * 1024 * 1024);
      assert.ok(socket.bufferedBytes > 0);
      full.resolve();
    });
    return { ...nothing, drained: () => socket.close() };
  });
  client = net.connect(
    listener.address,
    {
      opened() {
        client!.pause();
        paused.resolve();
      },
      received: (bytes) => {
        got += bytes.length;
      },
      drained() {},
      closed: () => over.resolve(),
    },
    { timeoutMs: 5000 },
  );
  await Promise.all([full.promise, paused.promise]);
  client.resume();
  await over.promise;
  assert.ok(got > 0);
  await listener.close();
});

test("Net.connect: closed is called once with a reason if the port is closed or invalid", async () => {
  const listener = await net.listen(HERE, () => nothing);
  await listener.close();
  for (const port of [listener.address.port, 0, 70_000]) {
    let calls = 0;
    const reason = await new Promise<string>((resolve) => {
      const handlers = {
        ...nothing,
        opened: () => resolve("opened"),
        closed: (text: string) => {
          calls++;
          resolve(text);
        },
      };
      net.connect({ host: "127.0.0.1", port }, handlers, { timeoutMs: 2000 });
    });
    assert.notEqual(reason, "opened");
    await new Promise((resolve) => setTimeout(resolve, 20));
    assert.equal(calls, 1);
  }
});

test("Net.connect: uses the given local address or fails", async (t) => {
  const callers: string[] = [];
  const listener = await net.listen(HERE, (socket) => {
    callers.push(socket.remote.host);
    queueMicrotask(() => socket.close());
    return nothing;
  });
  t.after(() => listener.close());
  const outcome = (localAddress: string) =>
    new Promise<string>((resolve) => {
      let isOpen = false;
      const opened = () => {
        isOpen = true;
      };
      const closed = () => resolve(isOpen ? "open" : "none");
      net.connect(listener.address, { ...nothing, opened, closed }, { timeoutMs: 30_000, localAddress });
    });
  assert.equal(await outcome("127.0.0.1"), "open");
  assert.equal(await outcome("203.0.113.9"), "none");
  assert.deepEqual(callers, ["127.0.0.1"]);
});

test("Net: drained follows a complete write; close by either side ends both", async () => {
  const ended = later();
  const listener = await net.listen(HERE, (socket) => ({
    received: () => socket.close(),
    drained() {},
    closed: () => ended.resolve(),
  }));
  const events: string[] = [];
  await new Promise<void>((resolve) => {
    const socket = net.connect(
      listener.address,
      {
        opened: () => void socket.write(new Uint8Array(10)),
        received() {},
        drained: () => events.push("drained"),
        closed: () => resolve(void events.push("closed")),
      },
      { timeoutMs: 2000 },
    );
  });
  await ended.promise;
  assert.deepEqual(events, ["drained", "closed"]);
  await listener.close();
});

test("Net.listen: rejects with port_busy if the port is in use", async () => {
  const first = await net.listen(HERE, () => nothing);
  await assert.rejects(
    net.listen(first.address, () => nothing),
    { code: "port_busy" },
  );
  await first.close();
  const again = await net.listen(first.address, () => nothing);
  await again.close();
});

test("Net.listen: IPv4 peers of a dual-stack socket have IPv4 addresses", async () => {
  const remote = later<string>();
  const listener = await net.listen({ host: "::", port: 0 }, (socket) => {
    remote.resolve(socket.remote.host);
    return nothing;
  });
  const at = { host: "127.0.0.1", port: listener.address.port };
  const socket = net.connect(at, nothing, { timeoutMs: 2000 });
  assert.equal(await remote.promise, "127.0.0.1");
  socket.close();
  await listener.close();
});

const UNUSED_MEMORY = { read: () => {}, sent: () => {}, accepted: () => {} };

test("machineRuntime: an accepted connection is reported before its first byte", async () => {
  let accepted = 0;
  const counting = machineRuntime(runtime.name, runtime.version, {
    ...UNUSED_MEMORY,
    accepted: () => accepted++,
  });
  const acceptedAtEnd = later<number>();
  const listener = await counting.net.listen(HERE, (socket) => {
    queueMicrotask(() => socket.close());
    return { ...nothing, closed: () => acceptedAtEnd.resolve(accepted) };
  });
  net.connect(listener.address, nothing, { timeoutMs: 5000 });
  // Otherwise silent connections would never cause a collection.
  assert.equal(await acceptedAtEnd.promise, 1);
  await listener.close();
});

test("Net.connect, Net.listen: a kept copy survives the release of its read", async () => {
  const READ_BYTES = 256 * 1024;
  const released = (bytes: Uint8Array) => void bytes.fill(0);
  const wiping = machineRuntime(runtime.name, runtime.version, { ...UNUSED_MEMORY, read: released });
  /** Collects what arrives; resolves when all of it is there. */
  const collector = () => {
    const whole = later<Uint8Array>();
    const parts: Uint8Array[] = [];
    const received = (bytes: Uint8Array) => {
      parts.push(bytes.slice());
      if (parts.reduce((sum, part) => sum + part.length, 0) === READ_BYTES)
        whole.resolve(Buffer.concat(parts));
    };
    return { whole: whole.promise, received };
  };
  const sent = Uint8Array.from({ length: READ_BYTES }, (_, index) => 1 + (index % 255));
  const [server, client] = [collector(), collector()];
  const listener = await wiping.net.listen(HERE, (socket) => {
    socket.write(sent.slice());
    return { ...nothing, received: server.received };
  });
  const socket = wiping.net.connect(
    listener.address,
    { ...nothing, opened: () => void socket.write(sent.slice()), received: client.received },
    { timeoutMs: 5000 },
  );
  assert.ok(Buffer.from(sent).equals(await server.whole));
  assert.ok(Buffer.from(sent).equals(await client.whole));
  socket.close();
  await listener.close();
});

test("Net.connect, Net.listen: a connection that is paused in the middle of its reads gets every byte in order, then the end", async () => {
  const SIZE = 24 * 1024 * 1024;
  const PAUSED_AFTER_BYTES = 3 * 1024 * 1024;
  const whole = new Uint8Array(SIZE);
  for (let at = 0; at < SIZE; at++) whole[at] = (at * 31 + (at >>> 8) * 17 + (at >>> 16)) & 0xff;
  /** Checks each byte; pauses repeatedly, and closes nothing: the end must arrive after the last byte. */
  const checker = (socket: () => TcpSocket) => {
    const done = later<string>();
    let got = 0;
    let sincePause = 0;
    let wrongAt: number | undefined;
    const received = (bytes: Uint8Array) => {
      if (
        !Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).equals(
          whole.subarray(got, got + bytes.length),
        )
      )
        wrongAt ??= got;
      got += bytes.length;
      sincePause += bytes.length;
      if (sincePause < PAUSED_AFTER_BYTES) return;
      sincePause = 0;
      socket().pause();
      setTimeout(() => socket().resume(), 1);
    };
    const closed = (reason: string) => done.resolve(`${got} bytes, first error at ${wrongAt}, ${reason}`);
    return { done: done.promise, handlers: { ...nothing, received, closed } };
  };
  const expected = `${SIZE} bytes, first error at undefined, closed by the peer`;
  const closeWhenSent = (socket: TcpSocket) => () => {
    if (socket.bufferedBytes === 0) socket.close();
  };
  const server = later<ReturnType<typeof checker>>();
  let isFirst = true;
  const listener = await net.listen(HERE, (socket) => {
    if (isFirst) {
      isFirst = false;
      queueMicrotask(() => socket.write(whole));
      return { ...nothing, drained: () => closeWhenSent(socket)() };
    }
    const check = checker(() => socket);
    server.resolve(check);
    return check.handlers;
  });
  const client = checker(() => reader);
  const reader: TcpSocket = net.connect(listener.address, client.handlers, { timeoutMs: 5000 });
  assert.equal(await client.done, expected);
  const writer: TcpSocket = net.connect(
    listener.address,
    { ...nothing, opened: () => void writer.write(whole), drained: () => closeWhenSent(writer)() },
    { timeoutMs: 5000 },
  );
  assert.equal(await (await server.promise).done, expected);
  await listener.close();
});

test("Net.bindUdp: datagrams in both directions over IPv4 and IPv6", async () => {
  for (const host of ["127.0.0.1", "::1"]) {
    const answer = later<string>();
    const a = await net.bindUdp({ host, port: 0 }, (bytes, from) => a.send(bytes.slice().reverse(), from));
    const b = await net.bindUdp({ host, port: 0 }, (bytes, from) =>
      answer.resolve(`${[...bytes]} ${from.host} ${from.port === a.address.port}`),
    );
    b.send(new Uint8Array([1, 2, 3]), a.address);
    assert.equal(await answer.promise, `3,2,1 ${host} true`);
    a.close();
    b.close();
    b.send(new Uint8Array(1), a.address);
  }
});

test("Net.bindUdp: refuses an address that this machine does not have", async () => {
  // RFC 5737: documentation addresses, which no machine has.
  const bound = net.bindUdp({ host: "203.0.113.7", port: 0 }, () => {});
  await assert.rejects(bound, { code: "bad_parameter", message: /203\.0\.113\.7/ });
});

function later<T = void>() {
  let resolve: (value: T) => void = () => {};
  const promise = new Promise<T>((yes) => {
    resolve = yes;
  });
  return { promise, resolve };
}

if (runtime.name === "node")
  test("Net.listen on Node: thousands of connections cause a collection of what they leave behind", async () => {
    const { PerformanceObserver, constants } = await import("node:perf_hooks");
    const collected = later<void>();
    const observer = new PerformanceObserver((list) => {
      for (const { detail } of list.getEntries() as unknown as { detail: { flags: number } }[])
        if ((detail.flags & constants.NODE_PERFORMANCE_GC_FLAGS_FORCED) !== 0) collected.resolve();
    });
    observer.observe({ entryTypes: ["gc"] });
    const listener = await net.listen(HERE, (socket) => {
      socket.close();
      return nothing;
    });
    const connectOne = () =>
      new Promise<void>((resolve) => {
        net.connect(listener.address, { ...nothing, closed: () => resolve() }, { timeoutMs: 5_000 });
      });
    for (let i = 0; i < 2_048; i += 64) await Promise.all(Array.from({ length: 64 }, connectOne));
    await collected.promise;
    observer.disconnect();
    await listener.close();
  });
