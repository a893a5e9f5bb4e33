import assert from "node:assert/strict";
import { createServer } from "node:http";
import { createServer as createTcpServer, type Server } from "node:net";
import { type TestContext, test } from "node:test";
import { runtime } from "#runtime";
import type { PeerAddress } from "../../src/base/address.ts";
import type { Dial } from "../../src/runtime/contract.ts";

/** An unreachable address: requests must use the dialled connection. */
const NOWHERE = "203.0.113.1";

async function listening(
  t: TestContext,
  server: Pick<Server, "address" | "close"> & {
    listen(port: number, host: string, done: () => void): unknown;
  },
) {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => void server.close());
  return { host: "127.0.0.1", port: (server.address() as { port: number }).port };
}

function dialTo(address: PeerAddress): Dial {
  return (handlers) => runtime.net.connect(address, handlers, { timeoutMs: 30_000 });
}

const asked = { method: "GET", headers: {}, connectTo: NOWHERE, timeoutMs: 60_000 } as const;

test("HTTP over a dialled connection: whole bodies, in both directions", { timeout: 60_000 }, async (t) => {
  const body = new Uint8Array(3_000_000).map((_, i) => i % 251);
  const server = createServer((question, answer) => {
    const parts: Uint8Array[] = [];
    question.on("data", (part: Uint8Array) => parts.push(part));
    question.on("end", () => {
      answer.setHeader("x-host", question.headers.host ?? "");
      answer.end(Buffer.concat(parts));
    });
  });
  const dial = dialTo(await listening(t, server));
  const url = new URL("http://tracker.example:81/announce?a=b");
  const answer = await runtime.http.request({ ...asked, url, dial, method: "POST", body });
  assert.equal(answer.status, 200);
  assert.equal(answer.headers.get("x-host"), "tracker.example:81");
  assert.deepEqual(new Uint8Array(await new Response(answer.body).arrayBuffer()), body);
});

test("HTTP over a dialled connection: a failed connection reports its reason", async () => {
  const dial: Dial = (handlers) => {
    queueMicrotask(() => handlers.closed("the proxy failed"));
    const nothing = () => {};
    const remote = { host: NOWHERE, port: 1 };
    return { remote, bufferedBytes: 0, write: () => true, pause: nothing, resume: nothing, close: nothing };
  };
  await assert.rejects(runtime.http.request({ ...asked, url: new URL("http://a.example/"), dial }), {
    message: "the proxy failed",
  });
});

test("HTTP over a dialled connection: TLS uses it", {
  timeout: 60_000,
}, async (t) => {
  const heard = new Promise<number>((resolve) => {
    const server = createTcpServer((socket) => {
      socket.on("error", () => {});
      socket.once("data", (bytes) => {
        resolve(Number(bytes[0]));
        socket.destroy();
      });
    });
    void listening(t, server).then((address) => {
      const request = { ...asked, url: new URL("https://a.example/"), dial: dialTo(address) };
      runtime.http.request(request).catch(() => {});
    });
  });
  // A handshake record (RFC 8446 5.1).
  assert.equal(await heard, 0x16);
});

test("HTTP over a dialled connection: cancelling the body closes it", { timeout: 60_000 }, async (t) => {
  const gone = new Promise<void>((resolve) => {
    const server = createServer((_question, answer) => {
      answer.on("close", resolve);
      answer.write(new Uint8Array(100_000));
    });
    void listening(t, server).then(async (address) => {
      const url = new URL("http://a.example/");
      const { body } = await runtime.http.request({ ...asked, url, dial: dialTo(address) });
      const reader = body.getReader();
      await reader.read();
      await reader.cancel();
    });
  });
  await gone;
});

test("WebSocket over a dialled connection: text in both directions, and close", {
  timeout: 60_000,
}, async (t) => {
  const listener = await runtime.serve(
    (_request, _origin, accept) =>
      accept!((socket) => ({
        received: (text) => (text === "bye" ? socket.close() : socket.send(`you said ${text}`)),
        closed() {},
      })),
    { host: "127.0.0.1", port: 0, maxConnections: 8 },
  );
  t.after(() => listener.close());
  const url = new URL("ws://tracker.example/announce");
  const request = { url, headers: {}, connectTo: NOWHERE, dial: dialTo(listener.address), timeoutMs: 30_000 };
  const heard: string[] = [];
  await new Promise<void>((resolve, reject) => {
    const opening = runtime.http.openWebSocket(request, {
      async received(text) {
        heard.push(text);
        (await opening).send("bye");
      },
      closed: resolve,
    });
    opening.then((socket) => socket.send("hello"), reject);
  });
  assert.deepEqual(heard, ["you said hello"]);
});
