import assert from "node:assert/strict";
import { test } from "node:test";
import { SluiceError } from "../../src/base/errors.ts";
import type { OutboundRequest } from "../../src/runtime/contract.ts";
import { RangeFile } from "../../src/web-content/range-file.ts";
import { settled } from "../engine/fake-clock.ts";
import { someBytes } from "../engine/parts.ts";
import { FakeWebServer, someContent, type WebAnswer } from "./web-server.ts";

const BYTES = someBytes(3_000_000);

/** Serves a range in chunks of 16 KiB and breaks the connection after `breakAfter` bytes. */
function ranged(request: OutboundRequest, breakAfter = Number.POSITIVE_INFINITY): WebAnswer {
  const start = Number(/^bytes=(\d+)-/.exec(request.headers.range ?? "")?.[1] ?? 0);
  return {
    status: 206,
    headers: { "content-range": `bytes ${start}-${BYTES.length - 1}/${BYTES.length}`, etag: '"1"' },
    body: chunks(start, breakAfter),
  };
}

function* chunks(start: number, breakAfter: number): Iterable<Uint8Array | Error> {
  for (let at = start; at < BYTES.length; at += 16384) {
    if (at - start >= breakAfter) return void (yield new Error("connection reset"));
    yield BYTES.slice(at, at + 16384);
  }
}

function served(answer: (request: OutboundRequest) => WebAnswer = (request) => ranged(request)) {
  const server = new FakeWebServer();
  server.answer = answer;
  const file = new RangeFile(server.client, someContent());
  return { server, file, source: file.source() };
}

const isError = (code: string, message: RegExp) => (error: unknown) => {
  assert.ok(error instanceof SluiceError, String(error));
  assert.equal(error.code, code, error.message);
  assert.match(error.message, message);
  return true;
};

test("RangeFile: returns exactly the bytes of any range, including the edges", async () => {
  const { source } = served();
  for (const [start, end] of [
    [0, 1],
    [262_143, 262_145],
    [2_999_990, 3_000_000],
    [100_000, 2_000_000],
    [5, 5],
  ] as const)
    assert.deepEqual(await source.read({ start, end }), BYTES.slice(start, end), `${start}-${end}`);
  await assert.rejects(source.read({ start: 0, end: 3_000_001 }), RangeError);
});

test("RangeFile: sequential reads use a single connection", async () => {
  const { server, source } = served();
  for (let at = 0; at < 3_000_000; at += 100_000)
    assert.deepEqual(await source.read({ start: at, end: at + 100_000 }), BYTES.slice(at, at + 100_000));
  assert.equal(server.asked.length, 1);
  assert.equal(server.asked[0]!.headers["if-range"], '"1"');
  assert.equal(server.asked[0]!.headers["accept-encoding"], "identity");
});

test("RangeFile: a paused reader holds only its read-ahead, and its connection closes after a while", async () => {
  const { server, source } = served();
  const reader = source.open({ start: 0, end: 3_000_000 }).getReader();
  await reader.read();
  await settled();
  assert.ok(server.pulled * 16384 <= 3 * 262_144 + 16384, `${server.pulled} chunks`);
  assert.equal(server.open, 1);
  await server.clock.advance(21_000);
  assert.equal(server.open, 0);
  const rest: Uint8Array[] = [];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    rest.push(value);
  }
  assert.deepEqual(
    Buffer.concat(rest.map((part) => Buffer.from(part))).subarray(-1000),
    Buffer.from(BYTES.slice(-1000)),
  );
});

test("RangeFile: opens at most four connections for any number of parallel reads", async () => {
  const { server, source } = served();
  let most = 0;
  const answer = server.answer;
  server.answer = (request) => {
    most = Math.max(most, server.open + 1);
    return answer(request);
  };
  const places = Array.from({ length: 11 }, (_, i) => i * 270_000);
  const got = await Promise.all(places.map((start) => source.read({ start, end: start + 1000 })));
  for (const [i, start] of places.entries()) assert.deepEqual(got[i], BYTES.slice(start, start + 1000));
  assert.ok(most <= 4, String(most));
});

test("RangeFile: a broken connection is reopened at the same position", async () => {
  const { server, source } = served((request) => ranged(request, 400_000));
  const reading = source.read({ start: 0, end: 3_000_000 });
  await server.clock.advance(1);
  assert.deepEqual(await reading, BYTES);
  assert.ok(server.asked.length >= 7);
  const starts = server.asked.map(({ headers }) => Number(/\d+/.exec(headers.range!)![0]));
  assert.deepEqual(
    starts,
    [...starts].sort((a, b) => a - b),
  );
});

test("RangeFile: a server that never sends a byte fails after a few attempts", async () => {
  const { server, source } = served((request) => ranged(request, 0));
  const outcome = assert.rejects(
    source.read({ start: 0, end: 10 }),
    isError("url_unreachable", /connection reset/),
  );
  await server.clock.advance(10_000);
  await outcome;
  assert.equal(server.asked.length, 5);
  assert.equal(server.clock.waiting <= 1, true);
});

test("RangeFile: a file that changed on the server fails with a reason", async () => {
  const changedAnswers: readonly WebAnswer[] = [
    { status: 200, headers: { "content-length": "2999999" } },
    { status: 206, headers: { "content-range": "bytes 1048576-2999998/2999999" } },
    { status: 416 },
  ];
  for (const answer of changedAnswers) {
    const { source } = served(() => answer);
    await assert.rejects(
      source.read({ start: 1_048_576, end: 1_048_580 }),
      isError("broken_media", /has changed/),
      JSON.stringify(answer),
    );
  }
});

test("RangeFile: a server without ranges and an error status fail with a reason", async () => {
  const whole = served(() => ({
    status: 200,
    headers: { "content-length": "3000000" },
    body: chunks(0, 1e9),
  }));
  assert.deepEqual(await whole.source.read({ start: 0, end: 100 }), BYTES.slice(0, 100));
  await assert.rejects(
    whole.source.read({ start: 2_500_000, end: 2_500_001 }),
    isError("unsupported_content", /ranges/),
  );
  const refusing = served(() => ({ status: 403 }));
  await assert.rejects(refusing.source.read({ start: 0, end: 1 }), isError("url_unreachable", /status 403/));
  assert.equal(refusing.server.asked.length, 1);
});

test("RangeFile: close rejects pending reads and closes every connection", async () => {
  const { server, file, source } = served((request) => ({ ...ranged(request), body: silent() }));
  const reading = assert.rejects(source.read({ start: 0, end: 10 }), isError("session_stopped", /stopped/));
  await settled();
  file.close(new SluiceError("session_stopped", "the transfer was stopped"));
  await reading;
  await settled();
  assert.equal(server.open, 0);
  assert.equal(server.clock.waiting, 0);
});

test("RangeFile: an aborted read rejects and does not affect other reads", async () => {
  const { source } = served();
  const gone = new AbortController();
  const given = assert.rejects(source.read({ start: 0, end: 10 }, { signal: gone.signal }), /gone/);
  const kept = source.read({ start: 0, end: 10 });
  gone.abort(new Error("gone"));
  await given;
  assert.deepEqual(await kept, BYTES.slice(0, 10));
});

/** A body that sends a byte and then stalls. */
function* silent(): Iterable<Uint8Array | undefined> {
  yield new Uint8Array(1);
  yield undefined;
}
