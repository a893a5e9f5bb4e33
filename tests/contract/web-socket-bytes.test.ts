import assert from "node:assert/strict";
import { connect } from "node:net";
import { test } from "node:test";
import { runtime } from "#runtime";
import { deferred } from "../../src/async/deferred.ts";
import type { TcpHandlers, TcpSocket } from "../../src/runtime/contract.ts";
import { FrameReader } from "../../src/runtime/web-socket-frames.ts";
import { masked } from "../runtime/masked-frame.ts";

const ASK =
  "GET /swarm HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
const BINARY = 0x82;
const NOTHING: TcpHandlers = { received() {}, drained() {}, closed() {} };

test("serve: a WebSocket as byte streams carries megabytes both ways, in order", async () => {
  const size = 3_000_000;
  const byteAt = (at: number) => (at * 7 + (at >> 8)) & 0xff;
  let received = 0;
  let isRight = true;
  const all = deferred<void>();
  await serving(
    (socket) => {
      let sent = 0;
      const more = () => {
        while (sent < size) {
          const start = sent;
          const part = new Uint8Array(Math.min(100_000, size - sent)).map((_, i) => byteAt(start + i));
          sent += part.length;
          if (!socket.write(part)) return;
        }
      };
      queueMicrotask(more);
      return {
        received(bytes) {
          for (const byte of bytes) isRight &&= byte === byteAt(received++);
          if (received === size) all.resolve();
        },
        drained: more,
        closed() {},
      };
    },
    async (port) => {
      const client = dial(port);
      for (let at = 0; at < size; at += 50_000)
        client.send(new Uint8Array(50_000).map((_, i) => byteAt(at + i)));
      await all.promise;
      assert.ok(isRight);
      await client.until(size);
      assert.ok(client.bytes().every((byte, at) => byte === byteAt(at)));
      client.end();
    },
  );
});

test("serve: a byte stream whose client does not read tells its writer to wait, and reports when it has drained", async () => {
  const drained = deferred<void>();
  const full = deferred<number>();
  await serving(
    (socket) => {
      queueMicrotask(() => {
        let sent = 0;
        // The kernel's buffers take some megabytes.
        while (sent < 64 * 1024 * 1024) {
          sent += 64 * 1024;
          if (!socket.write(new Uint8Array(64 * 1024)) && socket.bufferedBytes > 256 * 1024) break;
        }
        full.resolve(sent);
      });
      return { ...NOTHING, drained: () => drained.resolve() };
    },
    async (port) => {
      const client = dial(port, { reads: false });
      const sent = await full.promise;
      assert.ok(sent < 64 * 1024 * 1024, "the writer was never told to wait");
      client.resume();
      await client.until(sent);
      await drained.promise;
      client.end();
    },
  );
});

test("serve: a paused byte stream receives nothing until it resumes; a text message ends it", async () => {
  const opened = deferred<TcpSocket>();
  const closed = deferred<string>();
  const got: number[] = [];
  const three = deferred<void>();
  await serving(
    (socket) => {
      opened.resolve(socket);
      return {
        ...NOTHING,
        received(bytes) {
          got.push(...bytes);
          if (got.length === 1) socket.pause();
          if (got.length === 3) three.resolve();
        },
        closed: (reason) => closed.resolve(reason),
      };
    },
    async (port) => {
      const client = dial(port);
      const socket = await opened.promise;
      assert.equal(socket.remote.port, 4321);
      client.send(Uint8Array.of(1));
      while (got.length < 1) await new Promise((resolve) => setImmediate(resolve));
      client.send(Uint8Array.of(2, 3));
      await new Promise((resolve) => setTimeout(resolve, 100));
      assert.deepEqual(got, [1]);
      socket.resume();
      await three.promise;
      client.write(masked(0x81, "text"));
      await closed.promise;
      assert.deepEqual(got, [1, 2, 3]);
    },
  );
});

async function serving(open: (socket: TcpSocket) => TcpHandlers, use: (port: number) => Promise<void>) {
  const remote = { host: "192.0.2.1", port: 4321 };
  const listener = await runtime.serve((_request, _origin, accept) => accept!({ remote, open }), {
    ...{ host: "127.0.0.1", port: 0, maxConnections: 8 },
  });
  try {
    await use(listener.address.port);
  } finally {
    await listener.close();
  }
}

/** A client that has asked for a WebSocket; `bytes` are those of all binary messages so far. */
function dial(port: number, { reads = true } = {}) {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  const frames = new FrameReader("server", "binary");
  const parts: Uint8Array[] = [];
  let length = 0;
  let hasHead = false;
  let look = () => {};
  const read = (bytes: Uint8Array) => {
    let rest = bytes;
    if (!hasHead) {
      const end = Buffer.from(bytes).indexOf("\r\n\r\n");
      if (end < 0) return;
      hasHead = true;
      rest = bytes.subarray(end + 4);
    }
    for (const event of frames.read(rest)) {
      if (event.kind !== "binary") continue;
      parts.push(event.bytes);
      length += event.bytes.length;
    }
    look();
  };
  socket.write(ASK);
  if (reads) socket.on("data", read);
  return {
    send: (bytes: Uint8Array) => void socket.write(masked(BINARY, bytes)),
    write: (bytes: Uint8Array) => void socket.write(bytes),
    resume: () => void socket.on("data", read),
    bytes: () => new Uint8Array(Buffer.concat(parts)),
    until: (wanted: number) =>
      new Promise<void>((resolve, reject) => {
        socket.once("close", () => reject(new Error(`closed after ${length} bytes`)));
        look = () => {
          if (length >= wanted) resolve();
        };
        look();
      }),
    end: () => void socket.destroy(),
  };
}
