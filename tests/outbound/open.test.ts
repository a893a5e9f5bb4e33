import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { latin1Bytes, latin1Text } from "../../src/base/bytes.ts";
import { SluiceError } from "../../src/base/errors.ts";
import type { Log } from "../../src/base/log.ts";
import { createOutbound, type OpenOptions } from "../../src/outbound/outbound.ts";
import type { OutboundRequest } from "../../src/runtime/contract.ts";
import { FakeClock, settled } from "../engine/fake-clock.ts";

const silent: Log = { error() {}, warn() {}, info() {}, debug() {}, named: () => silent };

/** A server of one body that counts how often it was pulled, and knows whether it was cancelled. */
class OneBody {
  readonly clock = new FakeClock();
  readonly asked: OutboundRequest[] = [];
  status = 200;
  readonly headers = new Headers();
  pulls = 0;
  isCancelled = false;
  /** Undefined: the body is silent. */
  next: () => Uint8Array | undefined | "end" = () => undefined;
  readonly outbound = createOutbound(
    {
      clock: this.clock,
      lookup: async () => ["93.184.216.34"],
      http: {
        request: async (request) => {
          this.asked.push(request);
          const { status, headers } = this;
          return { status, headers, body: this.#body() };
        },
      },
    },
    silent,
  );

  open(options: Partial<OpenOptions> = {}) {
    const usual = { limitBytes: 1e9, headTimeoutMs: 5000, idleTimeoutMs: 3000, allowPrivate: false };
    return this.outbound.open("http://a.example/x", { ...usual, purpose: "thing", ...options });
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

function is(code: string, message: RegExp) {
  return (error: unknown) => {
    assert.ok(error instanceof SluiceError, String(error));
    assert.equal(error.code, code, error.message);
    assert.match(error.message, message);
    return true;
  };
}

test("open gives the head at once, and pulls the body only as its reader does", async () => {
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

test("open ends a body whose source is silent, in words, and closes its connection", async () => {
  const server = new OneBody();
  const { body } = await server.open();
  const outcome = assert.rejects(
    body.getReader().read(),
    is("url_unreachable", /^the thing could not be fetched: no bytes in 3 s$/),
  );
  await server.clock.advance(3001);
  await outcome;
  await settled();
  assert.equal(server.isCancelled, true);
  assert.equal(server.clock.waiting, 0);
});

test("open ends a body that goes on for longer than was allowed, whether it is read or not", async () => {
  const server = new OneBody();
  server.next = () => new Uint8Array(10);
  const { body } = await server.open({ timeoutMs: 60_000 });
  const reader = body.getReader();
  await reader.read();
  await server.clock.advance(60_001);
  await assert.rejects(reader.read(), is("url_unreachable", /no whole answer in 60 s/));
  assert.equal(server.isCancelled, true);
  assert.equal(server.clock.waiting, 0);
});

test("open ends a body with the signal", async () => {
  const server = new OneBody();
  const asker = new AbortController();
  const { body } = await server.open({ signal: asker.signal });
  const outcome = assert.rejects(body.getReader().read(), is("cancelled", /nobody waits for the thing/));
  asker.abort();
  await outcome;
  assert.equal(server.isCancelled, true);
  assert.equal(server.clock.waiting, 0);
});

test("open errors the body above the limit, and refuses one that is announced to be", async () => {
  const server = new OneBody();
  server.next = () => new Uint8Array(1000);
  const { body } = await server.open({ limitBytes: 1500 });
  const reader = body.getReader();
  await reader.read();
  await assert.rejects(reader.read(), is("url_refused", /larger than 1500 bytes/));
  assert.equal(server.isCancelled, true);
  server.headers.set("content-length", "1501");
  await assert.rejects(server.open({ limitBytes: 1500 }), is("url_refused", /larger than 1500 bytes/));
  assert.equal(server.clock.waiting, 0);
});

test("open decompresses as it is read, and stops at a bomb", async () => {
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
    is("url_refused", /swells more than 100 times/),
  );
  assert.equal(server.clock.waiting, 0);
});

test("open asks for a range as it is, never compressed", async () => {
  const server = new OneBody();
  server.next = () => "end";
  await server.open({ range: { start: 5, end: 15 }, headers: { "If-Range": '"tag"' } });
  await server.open({ range: { start: 5 } });
  await server.open({ decode: false });
  await server.open();
  const told = server.asked.map(({ headers }) => [headers.range, headers["accept-encoding"]]);
  assert.deepEqual(told, [
    ["bytes=5-14", "identity"],
    ["bytes=5-", "identity"],
    [undefined, "identity"],
    [undefined, "gzip, deflate"],
  ]);
  assert.equal(server.asked[0]!.headers["if-range"], '"tag"');
  server.headers.set("content-encoding", "gzip");
  await assert.rejects(server.open({ range: { start: 0 } }), is("url_unreachable", /encodes with gzip/));
});

test("open sends login and password as they are written, in UTF-8", async () => {
  const server = new OneBody();
  await server.open({ basic: { login: "ann", password: "pässword:" } });
  const expected = `Basic ${Buffer.from("ann:pässword:", "utf8").toString("base64")}`;
  assert.equal(server.asked[0]!.headers.authorization, expected);
});

test("open gives up a head that does not come, but not a body that takes long", async () => {
  const clock = new FakeClock();
  const outbound = createOutbound(
    { clock, lookup: async () => ["93.184.216.34"], http: { request: () => new Promise(() => {}) } },
    silent,
  );
  const options = { limitBytes: 1, headTimeoutMs: 5000, idleTimeoutMs: 1, allowPrivate: false, purpose: "x" };
  const outcome = assert.rejects(
    outbound.open("http://a.example/", options),
    is("url_unreachable", /no answer in 5000 ms/),
  );
  await clock.advance(5001);
  await outcome;
  assert.equal(clock.waiting, 0);
});
