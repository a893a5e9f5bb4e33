import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import type { SluiceError } from "../../../src/base/errors.ts";
import type { Infohash } from "../../../src/base/ids.ts";
import { TsSource } from "../../../src/engine/http/ts-source.ts";
import { hasFfmpeg, lavfi, makeMedia } from "../../remux/make-media.ts";
import { settled } from "../fake-clock.ts";
import { FakeWebServer, someContent, type WebAnswer } from "./web-server.ts";

const INFOHASH = "ab".repeat(20) as Infohash;
const place = { base: "http://h:1", session: { infohash: INFOHASH, key: "k", ordinal: 0 } };
const never = new AbortController().signal;
const skip = (await hasFfmpeg()) ? false : "ffmpeg is not installed";
const CODECS =
  "-c:v libx264 -preset ultrafast -g 25 -keyint_min 25 -pix_fmt yuv420p -shortest -c:a aac".split(" ");

/** A minute of a small picture, keyframes every second. */
async function film(): Promise<Uint8Array> {
  return new Uint8Array(await readFile(await makeMedia("minute.ts", [...lavfi(60), ...CODECS])));
}

function* cut(bytes: Uint8Array, from = 0, to = bytes.length): Iterable<Uint8Array> {
  for (let at = from; at < to; at += 16384) yield bytes.slice(at, Math.min(to, at + 16384));
}

function playing(answer: (connection: number) => WebAnswer) {
  const content = { kind: "stream", size: 0, validator: undefined } as const;
  const server = new FakeWebServer(content);
  server.answer = () => answer(server.asked.length);
  return { server, source: new TsSource(server.client, someContent(content), INFOHASH) };
}

test("TsSource: is read no further than its players are, and left alone when they have gone", {
  skip,
}, async () => {
  const bytes = await film();
  const { server, source } = playing(() => ({ body: cut(bytes) }));
  const first = await source.first(never);
  await source.reach(first, never);
  await settled();
  const atStart = server.pulled;
  await server.clock.advance(10_000);
  assert.ok(server.pulled <= atStart + 1, "nobody waits, so nothing is read");
  assert.ok(atStart * 16384 < bytes.length / 4);
  await server.clock.advance(60_000);
  assert.equal(server.open, 0);
  assert.equal(server.clock.waiting, 0);
});

test("TsSource: segments are whole packets in order, and the end is the end", { skip }, async () => {
  const bytes = await film();
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

test("TsSource: keeps ten segments; a player that is further behind goes on at the oldest", {
  skip,
}, async () => {
  const bytes = await film();
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

test("TsSource: an origin that drops us is asked again, and the break is told", { skip }, async () => {
  const bytes = await film();
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

test("TsSource: an origin that is gone is an error, after some attempts or at once", { skip }, async () => {
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

test("TsSource: who sends the same from its beginning has a file, which ends", { skip }, async () => {
  const bytes = await film();
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
