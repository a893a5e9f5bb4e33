import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { test } from "node:test";
import { runtime } from "#runtime";
import { deferred } from "../../src/async/deferred.ts";
import type { SluiceError } from "../../src/base/errors.ts";
import type { HttpHandler, HttpListener } from "../../src/runtime/contract.ts";
import { serve } from "../../src/runtime/http-server.ts";
import { InheritedListener } from "../../src/runtime/inherited-listener.ts";
import { machineRuntime } from "../../src/runtime/machine.ts";

const CHUNK = new Uint8Array(64 * 1024);

async function serving(
  handler: HttpHandler,
  work: (at: HttpListener) => Promise<void>,
  maxConnections = 100,
) {
  const listener = await runtime.serve(handler, { host: "127.0.0.1", port: 0, maxConnections });
  try {
    await work(listener);
  } finally {
    await listener.close();
  }
}

/** Sends raw text; resolves to everything received until the server closes. */
function exchange(port: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => socket.write(text));
    let got = "";
    socket.on("data", (bytes) => {
      got += bytes.toString("latin1");
    });
    socket.on("close", () => resolve(got));
    socket.on("error", reject);
  });
}

test("serve: passes method, URL, headers, body and the socket's addresses", () =>
  serving(
    async (request, origin) =>
      Response.json([
        request.method,
        new URL(request.url).pathname,
        request.headers.get("x-a"),
        await request.text(),
        origin.remote.host,
        origin.local.port === Number(new URL(request.url).port),
      ]),
    async ({ address }) => {
      const url = `http://127.0.0.1:${address.port}/a%20b?c`;
      const answer = await fetch(url, { method: "POST", headers: { "x-a": "1" }, body: "hello" });
      assert.deepEqual(await answer.json(), ["POST", "/a%20b", "1", "hello", "127.0.0.1", true]);
    },
  ));

test("serve: a player that hangs up cancels the body", async () => {
  let cancelled = () => {};
  const cancel = new Promise<void>((resolve) => {
    cancelled = resolve;
  });
  const body = () =>
    new ReadableStream({ pull: (c) => c.enqueue(CHUNK), cancel: cancelled }, { highWaterMark: 0 });
  await serving(
    () => new Response(body()),
    async ({ address }) => {
      const socket = connect(address.port, "127.0.0.1", () =>
        socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
      );
      socket.once("data", () => socket.destroy());
      await cancel;
    },
  );
});

test("serve: a player that hangs up during a pending pull cancels the body", async () => {
  let cancelled = () => {};
  const cancel = new Promise<void>((resolve) => {
    cancelled = resolve;
  });
  let pulls = 0;
  const body = () =>
    new ReadableStream(
      {
        pull: (c) => (pulls++ === 0 ? c.enqueue(CHUNK) : new Promise<void>(() => {})),
        cancel: cancelled,
      },
      { highWaterMark: 0 },
    );
  await serving(
    () => new Response(body()),
    async ({ address }) => {
      const socket = connect(address.port, "127.0.0.1", () =>
        socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
      );
      socket.once("data", () => socket.destroy());
      await cancel;
    },
  );
});

test("serve: disconnect closes the connections that may not stay, and cancels their bodies", async () => {
  const cancelled = deferred<void>();
  const body = () =>
    new ReadableStream(
      { pull: (c) => c.enqueue(CHUNK), cancel: () => cancelled.resolve() },
      { highWaterMark: 0 },
    );
  await serving(
    () => new Response(body()),
    async ({ address, disconnect }) => {
      const closed = deferred<void>();
      const socket = connect(address.port, "127.0.0.1", () =>
        socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
      );
      socket.on("error", () => {}).once("close", () => closed.resolve());
      await new Promise((resolve) => socket.once("data", resolve));
      const asked: string[] = [];
      disconnect(({ remote }) => asked.push(remote.host) > 0);
      assert.equal(
        await Promise.race([closed.promise, new Promise((next) => socket.once("data", () => next("open")))]),
        "open",
      );
      disconnect(() => false);
      socket.resume();
      await Promise.all([closed.promise, cancelled.promise]);
      assert.deepEqual(asked, ["127.0.0.1"]);
    },
  );
});

test("serve: a player that hangs up before the response fires the request's signal", async () => {
  const asked = deferred<Request>();
  const fired = deferred<unknown>();
  await serving(
    (request) => {
      request.signal.addEventListener("abort", () => fired.resolve(request.signal.reason));
      asked.resolve(request);
      return new Promise<Response>((_, reject) => fired.promise.then(reject));
    },
    async ({ address }) => {
      const socket = connect(address.port, "127.0.0.1", () =>
        socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
      );
      assert.equal((await asked.promise).signal.aborted, false);
      socket.destroy();
      assert.equal(((await fired.promise) as SluiceError).code, "cancelled");
    },
  );
});

test("serve: the request's signal does not fire after the response has begun", async () => {
  const signals: AbortSignal[] = [];
  const cancelled = deferred<void>();
  await serving(
    (request) => {
      signals.push(request.signal);
      if (request.url.endsWith("/short")) return new Response("ok");
      const cancel = () => cancelled.resolve();
      return new Response(
        new ReadableStream({ pull: (c) => c.enqueue(CHUNK), cancel }, { highWaterMark: 0 }),
      );
    },
    async ({ address }) => {
      await exchange(address.port, "GET /short HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
      const socket = connect(address.port, "127.0.0.1", () =>
        socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
      );
      socket.once("data", () => socket.destroy());
      await cancelled.promise;
      assert.deepEqual(
        signals.map(({ aborted }) => aborted),
        [false, false],
      );
    },
  );
});

test("serve: stalled readers pull no more than the kernel's buffers take", async () => {
  let pulled = 0;
  const body = () =>
    new ReadableStream(
      {
        pull(c) {
          pulled += CHUNK.length;
          c.enqueue(CHUNK);
        },
      },
      { highWaterMark: 0 },
    );
  await serving(
    () => new Response(body()),
    async ({ address }) => {
      const sockets: Socket[] = [];
      for (let i = 0; i < 10; i++) {
        const socket = connect(address.port, "127.0.0.1", () =>
          socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
        );
        socket.pause();
        sockets.push(socket);
      }
      // Waits until nothing is pulled any more.
      for (let before = -1; before !== pulled || pulled === 0; ) {
        before = pulled;
        await new Promise((resolve) => setTimeout(resolve, 150));
      }
      assert.ok(pulled / sockets.length < 16 * 1024 * 1024, `${pulled / sockets.length} bytes each`);
      for (const socket of sockets) socket.destroy();
    },
  );
});

test("serve: a device that reads none of its responses does not lock out others", async () => {
  const body = () => new ReadableStream({ pull: (c) => c.enqueue(CHUNK) }, { highWaterMark: 0 });
  await serving(
    (request) => new Response(new URL(request.url).pathname === "/" ? body() : "ok"),
    async ({ address: { port } }) => {
      const hostile = await Promise.all(
        Array.from({ length: 40 }, async () => {
          const socket = connect({ port, host: "127.0.0.1", localAddress: "127.0.1.1" });
          socket.on("error", () => {});
          await new Promise((resolve) => socket.once("connect", resolve));
          socket.pause();
          socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
          return socket;
        }),
      );
      for (const localAddress of ["127.0.0.1", "127.0.1.2"]) {
        const socket = connect({ port, host: "127.0.0.1", localAddress });
        socket.write("GET /ok HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        let got = "";
        for await (const bytes of socket) got += bytes;
        assert.match(got, /^HTTP\/1.1 200 [\s\S]*ok/, localAddress);
      }
      for (const socket of hostile) socket.destroy();
    },
    16,
  );
});

test("serve: HEAD sends the headers and cancels the body", async () => {
  let isCancelled = false;
  const body = new ReadableStream({
    cancel() {
      isCancelled = true;
    },
  });
  await serving(
    () => new Response(body, { headers: { "content-length": "123", "x-a": "b" } }),
    async ({ address }) => {
      const text = await exchange(address.port, "HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
      assert.match(text, /^HTTP\/1.1 200 /);
      assert.match(text, /content-length: 123\r\n/i);
      assert.match(text, /\r\n\r\n$/);
      assert.equal(isCancelled, true);
    },
  );
});

test("serve: Range passes through both ways", () =>
  serving(
    (request) =>
      new Response("345", {
        status: 206,
        headers: { "content-range": "bytes 3-5/10", "x-asked": request.headers.get("range") ?? "" },
      }),
    async ({ address }) => {
      const answer = await fetch(`http://127.0.0.1:${address.port}/`, { headers: { range: "bytes=3-5" } });
      assert.equal(answer.status, 206);
      assert.equal(answer.headers.get("content-range"), "bytes 3-5/10");
      assert.equal(answer.headers.get("x-asked"), "bytes=3-5");
      assert.equal(await answer.text(), "345");
    },
  ));

test("serve: a failing body aborts the connection", () =>
  serving(
    () => {
      let pulls = 0;
      const pull = (c: ReadableStreamDefaultController<Uint8Array>) => {
        if (pulls++ > 0) throw new Error("gone");
        c.enqueue(CHUNK);
      };
      return new Response(new ReadableStream({ pull }, { highWaterMark: 0 }));
    },
    async ({ address }) => {
      await assert.rejects(async () => (await fetch(`http://127.0.0.1:${address.port}/`)).arrayBuffer());
    },
  ));

test("serve: refuses overlong heads and invalid Host headers", () =>
  serving(
    () => new Response("ok"),
    async ({ address }) => {
      const long = `GET / HTTP/1.1\r\nHost: a\r\nX: ${"y".repeat(20_000)}\r\n\r\n`;
      assert.match(await exchange(address.port, long), /^HTTP\/1.1 431 /);
      const bad = "GET / HTTP/1.1\r\nHost: a/b?c\r\nConnection: close\r\n\r\n";
      assert.match(await exchange(address.port, bad), /^HTTP\/1.1 400 /);
    },
  ));

test("serve: rejects with port_busy if the port is in use", () =>
  serving(
    () => new Response("ok"),
    async ({ address }) => {
      const again = runtime.serve(() => new Response(), { ...address, maxConnections: 1 });
      await assert.rejects(again, { code: "port_busy" });
    },
  ));

test("HttpClient: connects to the given address, sends the URL's host, and can be aborted", () =>
  serving(
    (request) =>
      new URL(request.url).pathname === "/slow"
        ? new Promise<Response>(() => {})
        : new Response(request.headers.get("host")),
    async ({ address }) => {
      const asked = { method: "GET", headers: {}, connectTo: "127.0.0.1", timeoutMs: 5000 } as const;
      const base = `http://nowhere.example:${address.port}`;
      const answer = await runtime.http.request({ ...asked, url: new URL(`${base}/`) });
      assert.equal(await new Response(answer.body).text(), `nowhere.example:${address.port}`);
      const url = new URL(`${base}/slow`);
      await assert.rejects(runtime.http.request({ ...asked, url, timeoutMs: 50 }), /50 ms/);
      const abort = new AbortController();
      const ended = runtime.http.request({ ...asked, url, signal: abort.signal });
      abort.abort(new Error("enough"));
      await assert.rejects(ended, /enough/);
    },
  ));

/** A byte stream of `length` bytes that count up; says in which memory it was asked to put them. */
function countingBody(length: number, memory: Set<number>): ReadableStream<Uint8Array> {
  let at = 0;
  return new ReadableStream({
    type: "bytes",
    pull(controller) {
      const request = controller.byobRequest;
      const view = request?.view;
      const part = Math.min(view?.byteLength ?? 1000, length - at, 100_003);
      const into = view
        ? new Uint8Array(view.buffer, view.byteOffset, view.byteLength)
        : new Uint8Array(part);
      memory.add(view?.byteLength ?? 0);
      for (let i = 0; i < part; i++) into[i] = (at + i) % 251;
      at += part;
      if (request) request.respond(part);
      else controller.enqueue(into);
      if (at === length) controller.close();
    },
  });
}

test("serve: reads a long byte stream into one buffer and sends it complete and in order", async () => {
  const length = 3_000_000;
  const asked = new Set<number>();
  await serving(
    () => new Response(countingBody(length, asked), { headers: { "content-length": String(length) } }),
    async ({ address }) => {
      const answer = await fetch(`http://127.0.0.1:${address.port}/`);
      const bytes = new Uint8Array(await answer.arrayBuffer());
      assert.equal(bytes.length, length);
      assert.ok(bytes.every((byte, i) => byte === i % 251));
      assert.deepEqual([...asked], [256 * 1024]);
    },
  );
});

test("serve: HEAD of a long byte stream cancels it and sends only its length", async () => {
  const asked = new Set<number>();
  await serving(
    () => new Response(countingBody(100_000, asked), { headers: { "content-length": "100000" } }),
    async ({ address }) => {
      const answer = await fetch(`http://127.0.0.1:${address.port}/`, { method: "HEAD" });
      assert.equal(answer.headers.get("content-length"), "100000");
      assert.equal((await answer.arrayBuffer()).byteLength, 0);
    },
  );
});

test("serve: a failing long byte stream aborts the connection", async () => {
  const body = () => {
    let pulls = 0;
    return new ReadableStream({
      type: "bytes",
      pull(controller) {
        if (pulls++ > 3) throw new Error("no more");
        controller.enqueue(new Uint8Array(1000));
      },
    });
  };
  await serving(
    () => new Response(body(), { headers: { "content-length": "1000000" } }),
    async ({ address }) => {
      await assert.rejects(async () => {
        await (await fetch(`http://127.0.0.1:${address.port}/`)).arrayBuffer();
      });
    },
  );
});

test("machineRuntime: reports all bytes of a body by its end", async () => {
  let moved = 0;
  const counting = machineRuntime(runtime.name, runtime.version, {
    read: () => {},
    accepted: () => {},
    sent: (bytes) => {
      moved += bytes;
    },
  });
  // Without a length the end has bytes of its own, sent after the last ones are counted.
  const body = () => {
    let pulls = 0;
    return new ReadableStream<Uint8Array>({
      pull(controller) {
        controller.enqueue(new Uint8Array(CHUNK));
        if (++pulls === 3) controller.close();
      },
    });
  };
  const options = { host: "127.0.0.1", port: 0, maxConnections: 10 };
  const listener = await counting.serve(() => new Response(body()), options);
  try {
    const answer = await fetch(`http://127.0.0.1:${listener.address.port}/`);
    assert.equal((await answer.arrayBuffer()).byteLength, 3 * CHUNK.length);
    assert.equal(moved, 3 * CHUNK.length);
  } finally {
    await listener.close();
  }
});

test("serve: accepts an absolute target only if it equals the Host header", () =>
  serving(
    (request) => Response.json(request.url),
    async ({ address }) => {
      const host = `127.0.0.1:${address.port}`;
      const ask = (target: string) =>
        exchange(address.port, `GET ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
      assert.match(
        await ask(`http://${host}/a?b`),
        /^HTTP\/1\.1 200 [\s\S]*"http:\/\/127\.0\.0\.1:\d+\/a\?b"/,
      );
      // Some runtimes show only the path; then the Host header counts.
      for (const other of ["http://evil.example/a", "http://127.0.0.1:1/a", "https://evil.example/a"])
        assert.doesNotMatch(await ask(other), /evil\.example|127\.0\.0\.1:1\//, other);
    },
  ));

test("serve: passes the networks of this machine", () =>
  serving(
    (_request, { networks }) => Response.json(networks),
    async ({ address }) => {
      const networks = (await (await fetch(`http://127.0.0.1:${address.port}/`)).json()) as {
        host: string;
      }[];
      assert.ok(networks.some(({ host }) => host === "127.0.0.1"));
    },
  ));

test("serve: one server after another takes the connections of an inherited socket; those between them wait", async () => {
  const socket = createServer().listen(0, "127.0.0.1");
  await once(socket, "listening");
  const inherited = { open: async () => shared } as never;
  const shared = new InheritedListener(socket);
  const options = { host: "192.0.2.1", port: 1, descriptor: 3, maxConnections: 100 };
  const answering = (text: string) =>
    serve(
      async ({ url }, { remote }) => new Response(`${text} ${new URL(url).pathname} ${remote.host}`),
      options,
      undefined,
      inherited,
    );
  try {
    const url = `http://127.0.0.1:${shared.address.port}`;
    const first = await answering("first");
    assert.equal(first.address.port, shared.address.port);
    assert.equal(await (await fetch(`${url}/a`)).text(), "first /a 127.0.0.1");
    assert.match(
      await exchange(shared.address.port, "GET / HTTP/1.1\r\nbad header\r\n\r\n"),
      /^HTTP\/1.1 400/,
    );
    const idle = connect(shared.address.port, "127.0.0.1");
    await once(idle, "connect");
    const closed = once(idle.resume(), "close");
    await first.close();
    await closed;
    const waiting = exchange(shared.address.port, "GET /b HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    await once(socket, "connection");
    const second = await answering("second");
    assert.match(await waiting, /second \/b 127\.0\.0\.1/);
    await second.close();
  } finally {
    socket.close();
  }
});
