import assert from "node:assert/strict";
import { test } from "node:test";
import type { SluiceError } from "../../src/base/errors.ts";
import type { Infohash } from "../../src/base/ids.ts";
import { sessionManifestUrls } from "../../src/transfer/segment-source.ts";
import { TsSource } from "../../src/web-content/ts-source.ts";
import { settled } from "../engine/fake-clock.ts";
import { patternTs } from "../parts/media-fixtures.ts";
import { FakeWebServer, someContent, type WebAnswer } from "./web-server.ts";

const INFOHASH = "ab".repeat(20) as Infohash;
const place = { urls: sessionManifestUrls("http://h:1", { infohash: INFOHASH, key: "k", ordinal: 0 }) };
const never = new AbortController().signal;

const FILM = patternTs(60);

function* cut(bytes: Uint8Array, from = 0, to = bytes.length): Iterable<Uint8Array> {
  for (let at = from; at < to; at += 16384) yield bytes.slice(at, Math.min(to, at + 16384));
}

function playing(answer: (connection: number) => WebAnswer) {
  const content = { kind: "stream", size: 0, validator: undefined } as const;
  const server = new FakeWebServer(content);
  server.answer = () => answer(server.asked.length);
  return { server, source: new TsSource(server.client, someContent(content), INFOHASH) };
}

test("TsSource: reads only as far as its players need, and disconnects after they leave", async () => {
  const bytes = FILM;
  const { server, source } = playing(() => ({ body: cut(bytes) }));
  const first = await source.first(never);
  await source.reach(first, never);
  await settled();
  const atStart = server.pulled;
  await server.clock.advance(10_000);
  assert.ok(server.pulled <= atStart + 1, "without a waiting player nothing is read");
  assert.ok(atStart * 16384 < bytes.length / 4);
  await server.clock.advance(60_000);
  assert.equal(server.open, 0);
  assert.equal(server.clock.waiting, 0);
});

test("TsSource: segments contain whole packets in order, and the stream ends with its source", async () => {
  const bytes = FILM;
  const { source } = playing(() => ({
    headers: { "content-length": String(bytes.length) },
    body: cut(bytes),
  }));
  let index: number | undefined = await source.first(never);
  const sizes: number[] = [];
  for (;;) {
    index = await source.reach(index, never);
    if (index === undefined) break;
    const segment = await source.make("ts", index);
    assert.equal(segment.length % 188, 0);
    assert.equal(segment[0], 0x47);
    sizes.push(segment.length);
    index++;
  }
  assert.ok(sizes.length >= 28, String(sizes.length));
});

test("TsSource: keeps ten segments; a player further behind continues at the oldest", async () => {
  const bytes = FILM;
  const { source } = playing(() => ({ body: cut(bytes) }));
  await source.reach(20, never);
  assert.equal(await source.reach(0, never), 11);
  await assert.rejects(source.make("ts", 3), (error: SluiceError) => error.code === "no_such_segment");
  await assert.rejects(source.find("ts", 3), (error: SluiceError) => error.code === "no_such_segment");
  const manifest = await source.manifest(place, "main", never);
  assert.match(manifest, /#EXT-X-MEDIA-SEQUENCE:11\n/);
  assert.equal(manifest.match(/#EXTINF/g)!.length, 10);
  assert.match(manifest, new RegExp(`http://h:1/ace/c/${INFOHASH}/11\\.ts`));
});

test("TsSource: reconnects after a lost connection and marks a discontinuity", async () => {
  const bytes = FILM;
  const half = Math.floor(bytes.length / 2);
  const { server, source } = playing((connection) =>
    connection === 1
      ? { body: [...cut(bytes, 0, half / 2), new Error("connection reset")] }
      : connection === 2
        ? { status: 503 }
        : { body: cut(bytes, half) },
  );
  const reaching = source.reach(9, never);
  await server.clock.advance(5_000);
  assert.equal(await reaching, 9);
  assert.equal(server.asked.length, 3);
  assert.match(await source.manifest(place, "main", never), /#EXT-X-DISCONTINUITY\n/);
});

test("TsSource: an unreachable server fails after some attempts, a missing resource at once", async () => {
  const gone = playing(() => ({ status: 410 }));
  await assert.rejects(gone.source.first(never), /status 410/);
  assert.equal(gone.server.asked.length, 1);
  const silent = playing(() => ({ status: 502 }));
  const outcome = assert.rejects(silent.source.first(never), /status 502/);
  await silent.server.clock.advance(100_000);
  await outcome;
  assert.equal(silent.server.asked.length, 8);
  assert.equal(silent.server.clock.waiting, 0);
});

test("TsSource: a server that restarts from the same bytes has a file, and the stream ends", async () => {
  const bytes = FILM;
  const { server, source } = playing(() => ({ body: cut(bytes) }));
  let index = 0;
  const all = (async () => {
    for (;;) {
      const next = await source.reach(index, never);
      if (next === undefined) return;
      index = next + 1;
    }
  })();
  await server.clock.advance(5_000);
  await all;
  assert.equal(server.asked.length, 2);
  assert.ok(index >= 28);
});

test("TsSource: without players it closes its connection at once, and later starts with new media", async () => {
  const { server, source } = playing(() => ({ body: cut(FILM) }));
  const first = await source.first(never);
  await settled();
  source.rest();
  await settled();
  assert.equal(server.open, 0);
  const next = await source.first(never);
  assert.ok(next > first, "the numbers continue");
  assert.equal(server.asked.length, 2);
});
