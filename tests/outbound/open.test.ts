import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { latin1Bytes, latin1Text } from "../../src/base/bytes.ts";
import { SluiceError } from "../../src/base/errors.ts";
import { SILENT_LOG } from "../../src/base/log.ts";
import { createOutbound } from "../../src/outbound/outbound.ts";
import type { OpenOptions } from "../../src/outbound/request.ts";
import type { OutboundRequest } from "../../src/runtime/contract.ts";
import { FakeClock, settled } from "../engine/fake-clock.ts";

/** A server with one body; counts its pulls and records whether it was cancelled. */
class OneBody {
  readonly clock = new FakeClock();
  readonly requests: OutboundRequest[] = [];
  status = 200;
  readonly headers = new Headers();
  pulls = 0;
  isCancelled = false;
  /** The next chunk; undefined if the body is silent. */
  next: () => Uint8Array | undefined | "end" = () => undefined;
  readonly outbound = createOutbound(
    {
      clock: this.clock,
      lookup: async () => ["93.184.216.34"],
      http: {
        request: async (request) => {
          this.requests.push(request);
          const { status, headers } = this;
          return { status, headers, body: this.#body() };
        },
      },
    },
    SILENT_LOG,
  );

  open(options: Partial<OpenOptions> = {}) {
    const defaults = { limitBytes: 1e9, headTimeoutMs: 5000, idleTimeoutMs: 3000, allowPrivate: false };
    return this.outbound.open("http://a.example/x", { ...defaults, purpose: "thing", ...options });
  }

  #body(): ReadableStream<Uint8Array> {
    return new ReadableStream(
      {
        pull: (controller) => {
          this.pulls++;
          const next = this.next();
          if (next === "end") controller.close();
          else if (next) controller.enqueue(next);
        },
        cancel: () => {
          this.isCancelled = true;
        },
      },
      { highWaterMark: 0 },
    );
  }
}

function isError(code: string, message: RegExp) {
  return (error: unknown) => {
    assert.ok(error instanceof SluiceError, String(error));
    assert.equal(error.code, code, error.message);
    assert.match(error.message, message);
    return true;
  };
}

test("Outbound.open: resolves with the head, and pulls the body only when its reader does", async () => {
  const server = new OneBody();
  server.next = () => new Uint8Array(1000);
  const { status, body, finalUrl } = await server.open();
  await settled();
  assert.deepEqual([status, finalUrl, server.pulls], [200, "http://a.example/x", 0]);
  const reader = body.getReader();
  await reader.read();
  await reader.read();
  await settled();
  assert.equal(server.pulls, 2);
  await server.clock.advance(3_600_000);
  await reader.read();
  await reader.cancel();
  assert.equal(server.isCancelled, true);
  assert.equal(server.clock.waiting, 0);
});

test("Outbound.open: errors a body whose source is silent and closes the connection", async () => {
  const server = new OneBody();
  const { body } = await server.open();
  const outcome = assert.rejects(
    body.getReader().read(),
    isError("url_unreachable", /^the thing could not be fetched: no bytes in 3 s$/),
  );
  await server.clock.advance(3001);
  await outcome;
  await settled();
  assert.equal(server.isCancelled, true);
  assert.equal(server.clock.waiting, 0);
});

test("Outbound.open: errors a body that exceeds the timeout, even if it is not read", async () => {
  const server = new OneBody();
  server.next = () => new Uint8Array(10);
  const { body } = await server.open({ timeoutMs: 60_000 });
  const reader = body.getReader();
  await reader.read();
  await server.clock.advance(60_001);
  await assert.rejects(reader.read(), isError("url_unreachable", /no complete response within 60 s/));
  assert.equal(server.isCancelled, true);
  assert.equal(server.clock.waiting, 0);
});

test("Outbound.open: errors the body when the signal fires", async () => {
  const server = new OneBody();
  const caller = new AbortController();
  const { body } = await server.open({ signal: caller.signal });
  const outcome = assert.rejects(
    body.getReader().read(),
    isError("cancelled", /request for the thing was cancelled/),
  );
  caller.abort();
  await outcome;
  assert.equal(server.isCancelled, true);
  assert.equal(server.clock.waiting, 0);
});

test("Outbound.open: errors a body above the limit, and refuses one whose announced length is above it", async () => {
  const server = new OneBody();
  server.next = () => new Uint8Array(1000);
  const { body } = await server.open({ limitBytes: 1500 });
  const reader = body.getReader();
  await reader.read();
  await assert.rejects(reader.read(), isError("url_refused", /larger than 1500 bytes/));
  assert.equal(server.isCancelled, true);
  server.headers.set("content-length", "1501");
  await assert.rejects(server.open({ limitBytes: 1500 }), isError("url_refused", /larger than 1500 bytes/));
  assert.equal(server.clock.waiting, 0);
});

test("Outbound.open: decompresses as the body is read, and stops at a decompression bomb", async () => {
  const server = new OneBody();
  const chunks = (bytes: Uint8Array, size: number) => {
    let at = 0;
    server.next = () => {
      const chunk = bytes.slice(at, at + size);
      at += size;
      return chunk.length === 0 ? "end" : chunk;
    };
  };
  server.headers.set("content-encoding", "gzip");
  const text = Array.from({ length: 3000 }, (_, i) => `#EXTINF:-1,${Math.sin(i)}\n`).join("");
  chunks(new Uint8Array(gzipSync(latin1Bytes(text))), 1);
  const answer = await server.open();
  assert.equal(latin1Text(new Uint8Array(await new Response(answer.body).arrayBuffer())), text);
  chunks(new Uint8Array(gzipSync(new Uint8Array(40_000_000))), 8000);
  const bomb = await server.open();
  await assert.rejects(
    new Response(bomb.body).arrayBuffer(),
    isError("url_refused", /decompresses to more than 100 times/),
  );
  assert.equal(server.clock.waiting, 0);
});

test("Outbound.open: requests ranges without compression", async () => {
  const server = new OneBody();
  server.next = () => "end";
  await server.open({ range: { start: 5, end: 15 }, headers: { "If-Range": '"tag"' } });
  await server.open({ range: { start: 5 } });
  await server.open({ decode: false });
  await server.open();
  const sent = server.requests.map(({ headers }) => [headers.range, headers["accept-encoding"]]);
  assert.deepEqual(sent, [
    ["bytes=5-14", "identity"],
    ["bytes=5-", "identity"],
    [undefined, "identity"],
    [undefined, "gzip, deflate"],
  ]);
  assert.equal(server.requests[0]!.headers["if-range"], '"tag"');
  server.headers.set("content-encoding", "gzip");
  await assert.rejects(
    server.open({ range: { start: 0 } }),
    isError("url_unreachable", /content encoding gzip/),
  );
});

test("Outbound.open: sends login and password verbatim in UTF-8", async () => {
  const server = new OneBody();
  await server.open({ basic: { login: "ann", password: "pässword:" } });
  const expected = `Basic ${Buffer.from("ann:pässword:", "utf8").toString("base64")}`;
  assert.equal(server.requests[0]!.headers.authorization, expected);
});

test("Outbound.open: times out if the head does not arrive", async () => {
  const clock = new FakeClock();
  const outbound = createOutbound(
    { clock, lookup: async () => ["93.184.216.34"], http: { request: () => new Promise(() => {}) } },
    SILENT_LOG,
  );
  const options = { limitBytes: 1, headTimeoutMs: 5000, idleTimeoutMs: 1, allowPrivate: false, purpose: "x" };
  const outcome = assert.rejects(
    outbound.open("http://a.example/", options),
    isError("url_unreachable", /no response within 5000 ms/),
  );
  await clock.advance(5001);
  await outcome;
  assert.equal(clock.waiting, 0);
});
