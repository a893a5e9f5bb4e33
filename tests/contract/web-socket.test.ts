import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import { runtime } from "#runtime";
import { deferred } from "../../src/async/deferred.ts";
import type { HttpHandler, HttpListener, TextSocket } from "../../src/runtime/contract.ts";
import { masked } from "../runtime/masked-frame.ts";

/** The example key of RFC 6455 1.3 and its accept key. */
const ASK =
  "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
const ACCEPT = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

test("serve: opens a WebSocket if the handler accepts; answers pings", async () => {
  const closed = deferred<void>();
  const echo: HttpHandler = (_request, _origin, accept) =>
    accept!((socket) => ({
      received: (text) => socket.send(`you said ${text}`),
      closed: () => closed.resolve(),
    }));
  await serving(echo, async ({ address }) => {
    const client = await dial(address.port);
    client.socket.write(ASK);
    assert.match(
      await client.until("\r\n\r\n"),
      new RegExp(`^HTTP/1.1 101 [^]*${ACCEPT.replace("+", "\\+")}`),
    );
    client.socket.write(masked(0x81, "hello"));
    await client.until("you said hello");
    client.socket.write(masked(0x89, "still there?"));
    await client.until("\x8a\x0cstill there?");
    client.socket.write(masked(0x88, ""));
    await client.until("\x88\x02\x03\xe8");
    await closed.promise;
  });
});

test("serve: a client that hangs up closes its WebSocket; closing the listener closes all", async () => {
  const opened: TextSocket[] = [];
  let closings = 0;
  const first = deferred<void>();
  const both = deferred<void>();
  const listen: HttpHandler = (_request, _origin, accept) =>
    accept!((socket) => {
      opened.push(socket);
      return {
        received() {},
        closed: () => {
          closings++;
          first.resolve();
          if (closings === 2) both.resolve();
        },
      };
    });
  await serving(listen, async ({ address }) => {
    const clients = [await dial(address.port), await dial(address.port)];
    for (const { socket, until } of clients) {
      socket.write(ASK);
      await until("\r\n\r\n");
    }
    clients[0]!.socket.destroy();
    await first.promise;
    assert.equal(opened.length, 2);
  });
  await both.promise;
});

test("serve: no WebSocket if the handler refuses or the request is invalid", async () => {
  const seen: boolean[] = [];
  const refuse: HttpHandler = (_request, _origin, accept) => {
    seen.push(accept !== undefined);
    return new Response("no", { status: 403 });
  };
  await serving(refuse, async ({ address }) => {
    for (const [ask, status] of [
      [ASK, 403],
      [ASK.replace("13", "12"), 400],
      [ASK.replace("websocket", "h2c"), 400],
      [ASK.replace("Host: a\r\n", ""), 400],
    ] as const) {
      const client = await dial(address.port);
      client.socket.write(ask);
      assert.match(await client.until("\r\n\r\n"), new RegExp(`^HTTP/1.1 ${status} `), ask);
    }
    assert.deepEqual(seen, [true]);
    const plain = await fetch(`http://127.0.0.1:${address.port}/chat`);
    await plain.text();
    assert.deepEqual(seen, [true, false]);
  });
});

test("serve: closes an ended WebSocket even if the page continues to send", async () => {
  let texts = 0;
  const end: HttpHandler = (_request, _origin, accept) =>
    accept!((socket) => ({
      received: () => {
        texts++;
        socket.close();
      },
      closed() {},
    }));
  await serving(end, async ({ address }) => {
    const socket = connect({ port: address.port, host: "127.0.0.1", allowHalfOpen: true });
    socket.on("error", () => {});
    socket.resume();
    const over = new Promise<void>((resolve) => socket.once("close", () => resolve()));
    socket.write(ASK);
    const sending = setInterval(() => socket.write(masked(0x81, "more")), 20);
    await over;
    clearInterval(sending);
    assert.equal(texts, 1);
  });
});

async function serving(handler: HttpHandler, use: (listener: HttpListener) => Promise<void>): Promise<void> {
  const listener = await runtime.serve(handler, { host: "127.0.0.1", port: 0, maxConnections: 8 });
  try {
    await use(listener);
  } finally {
    await listener.close();
  }
}

/** A connection; `until` resolves to the received bytes (Latin-1) when they contain `part`. */
async function dial(port: number): Promise<{ socket: Socket; until(part: string): Promise<string> }> {
  const socket = connect(port, "127.0.0.1");
  let got = "";
  let look = () => {};
  socket.on("data", (bytes) => {
    got += bytes.toString("latin1");
    look();
  });
  socket.on("error", () => {});
  await new Promise<void>((resolve) => socket.once("connect", () => resolve()));
  return {
    socket,
    until: (part) =>
      new Promise((resolve, reject) => {
        socket.once("close", () => reject(new Error(`closed; it said ${JSON.stringify(got)}`)));
        look = () => {
          if (got.includes(part)) resolve(got);
        };
        look();
      }),
  };
}
