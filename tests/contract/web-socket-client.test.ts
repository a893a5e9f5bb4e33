import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { createServer, type Socket } from "node:net";
import { test } from "node:test";
import { runtime } from "#runtime";
import { deferred } from "../../src/async/deferred.ts";
import type { TextSocketHandlers, WebSocketRequest } from "../../src/runtime/contract.ts";
import { closeFrame, textFrame } from "../../src/runtime/web-socket-frames.ts";

const GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const SILENT: TextSocketHandlers = { received() {}, closed() {} };

const requestTo = (port: number, more: Partial<WebSocketRequest> = {}): WebSocketRequest => ({
  url: new URL(`ws://tracker.test:${port}/announce?a=b`),
  headers: { "user-agent": "Sluice" },
  connectTo: "127.0.0.1",
  timeoutMs: 30_000,
  ...more,
});

test("openWebSocket: sends the URL's host to the given address, exchanges text, reports the close", async () => {
  const asked = deferred<string>();
  const listener = await runtime.serve(
    (request, _origin, accept) => {
      asked.resolve(`${request.headers.get("host")} ${new URL(request.url).search}`);
      return accept!((socket) => ({
        received: (text) => (text === "bye" ? socket.close() : socket.send(`you said ${text}`)),
        closed() {},
      }));
    },
    { host: "127.0.0.1", port: 0, maxConnections: 8 },
  );
  try {
    const said = deferred<string>();
    const closed = deferred<void>();
    const socket = await runtime.http.openWebSocket(requestTo(listener.address.port), {
      received: (text) => said.resolve(text),
      closed: () => closed.resolve(),
    });
    assert.equal(await asked.promise, `tracker.test:${listener.address.port} ?a=b`);
    socket.send("ü".repeat(5000));
    assert.equal(await said.promise, `you said ${"ü".repeat(5000)}`);
    socket.send("bye");
    await closed.promise;
  } finally {
    await listener.close();
  }
});

test("openWebSocket: reads frames that arrive with the response head", async () => {
  await answering(
    (socket, accept) => {
      const frames = Buffer.concat([textFrame("one"), textFrame("two"), closeFrame(1000)]);
      socket.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: Upgrade\r\n`);
      socket.write(Buffer.concat([Buffer.from(`Sec-WebSocket-Accept: ${accept}\r\n\r\n`), frames]));
    },
    async (port) => {
      const closed = deferred<void>();
      const got: string[] = [];
      await runtime.http.openWebSocket(requestTo(port), {
        received: (text) => got.push(text),
        closed: () => closed.resolve(),
      });
      await closed.promise;
      assert.deepEqual(got, ["one", "two"]);
    },
  );
});

const REFUSALS: readonly (readonly [what: string, answer: (accept: string) => string, problem: RegExp])[] = [
  ["another status", () => "HTTP/1.1 403 no\r\nContent-Length: 0\r\n\r\n", /status 403/],
  ["no HTTP at all", () => "hello\r\n\r\n", /status unknown/],
  ["another key's answer", () => head("AAAA"), /wrong accept key/],
  ["another protocol", (accept) => head(accept).replace("websocket", "h2c"), /wrong protocol/],
  [
    "an extension",
    (accept) => head(accept).replace("\r\n\r\n", "\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n"),
    /extension/,
  ],
  ["an endless head", () => "HTTP/1.1 101 x\r\nA: ".padEnd(40_000, "x"), /head is too long/],
  ["a hang-up", () => "", /closed during/],
];

for (const [what, answer, problem] of REFUSALS) {
  test(`openWebSocket: refuses ${what}`, () =>
    answering(
      (socket, accept) => void socket.end(answer(accept)),
      (port) => assert.rejects(runtime.http.openWebSocket(requestTo(port), SILENT), problem),
    ));
}

test("openWebSocket: rejects by signal, by timeout, and if the port is closed", async () => {
  await answering(
    () => {},
    async (port) => {
      const abort = new AbortController();
      const opening = runtime.http.openWebSocket(requestTo(port, { signal: abort.signal }), SILENT);
      abort.abort(new Error("not wanted"));
      await assert.rejects(opening, /not wanted/);
      await assert.rejects(
        runtime.http.openWebSocket(requestTo(port, { timeoutMs: 50 }), SILENT),
        /no WebSocket within 50 ms/,
      );
    },
  );
  await assert.rejects(runtime.http.openWebSocket(requestTo(1), SILENT));
});

function head(accept: string): string {
  return `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`;
}

/** Runs `use` with a server that responds by `answer`, which gets the right `accept` key. */
async function answering(
  answer: (socket: Socket, accept: string) => void,
  use: (port: number) => Promise<void>,
): Promise<void> {
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    open.add(socket);
    socket.on("error", () => {});
    socket.once("data", (bytes) => {
      const key = /sec-websocket-key: (\S+)/i.exec(String(bytes))?.[1] ?? "";
      answer(socket, createHash("sha1").update(`${key}${GUID}`).digest("base64"));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await use((server.address() as { port: number }).port);
  } finally {
    for (const socket of open) socket.destroy();
    await new Promise<void>((resolve) => server.close(() => resolve()));
  }
}
