import assert from "node:assert/strict";
import { test } from "node:test";
import { runtime } from "#runtime";
import type { TcpHandlers } from "../../src/runtime/contract.ts";
import { machineRuntime } from "../../src/runtime/machine.ts";

const HERE = { host: "127.0.0.1", port: 0 };
const nothing: TcpHandlers = { received() {}, drained() {}, closed() {} };

// Only Bun needs and has it, and only on Linux.
if (runtime.name === "bun" && process.platform === "linux") {
  const { receiveNow } = await import("../../src/runtime/bun-recv.ts");

  test("Net.connect: a long stream is read into one buffer", async () => {
    const SIZE = 32 * 1024 * 1024;
    let arrays = 0;
    const counting = machineRuntime(runtime.name, runtime.version, {
      sent: () => {},
      accepted: () => {},
      receiveNow,
      read: () => void arrays++,
    });
    const listener = await counting.net.listen(HERE, (socket) => {
      queueMicrotask(() => socket.write(new Uint8Array(SIZE)));
      return nothing;
    });
    let isDone: () => void = () => {};
    const done = new Promise<void>((resolve) => {
      isDone = resolve;
    });
    const buffers = new Set<ArrayBufferLike>();
    let got = 0;
    let reads = 0;
    const received = (bytes: Uint8Array) => {
      reads++;
      buffers.add(bytes.buffer);
      got += bytes.length;
      if (got === SIZE) isDone();
    };
    const socket = counting.net.connect(listener.address, { ...nothing, received }, { timeoutMs: 5000 });
    await done;
    // Each array of the runtime's own is another one; the rest came in the shared buffer.
    assert.equal(buffers.size, arrays + 1);
    assert.ok(reads > arrays, `${reads} reads, ${arrays} of them arrays`);
    socket.close();
    await listener.close();
  });
}
