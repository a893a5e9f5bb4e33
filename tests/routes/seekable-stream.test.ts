import assert from "node:assert/strict";
import { test } from "node:test";
import { equalBytes } from "../../src/base/bytes.ts";
import type { Media } from "../../src/remux/contract.ts";
import { openMedia } from "../../src/remux/open-media.ts";
import { base64, filmTorrent } from "../engine/fake-engine.ts";
import { fixture } from "../parts/media-fixtures.ts";
import { memoryAccess, wholeTs } from "../remux/media-checks.ts";
import { fakeApp } from "./client.ts";

const film = filmTorrent();

/** A session of a film that is this fixture, and its MPEG-TS. */
async function appWithMedia(name: string, query = "") {
  const app = fakeApp();
  const media: Media = await openMedia(memoryAccess(await fixture(name)), { targetSeconds: 2 });
  app.transfers.prepare = (transfer) => {
    transfer.bringData();
    transfer.media = async () => media;
  };
  const { response } = await app.json(`/ace/getstream?format=json${query}`, {
    method: "POST",
    body: JSON.stringify({ transport_file_data: base64(film.bytes) }),
  });
  const get = (range?: string, headers: Record<string, string> = {}) =>
    app.call(response.playback_url, { headers: { ...headers, ...(range && { range }) } });
  return { ...app, session: response, get, whole: await wholeTs(media) };
}

test("getstream of an MP4 film: MPEG-TS of exact length, of which players get ranges", async () => {
  const { get, whole, call, session } = await appWithMedia("end.mp4");
  const size = whole.length;
  const first = await get();
  assert.deepEqual(
    ["content-type", "content-length", "accept-ranges"].map((name) => first.headers.get(name)),
    ["video/mp2t", String(size), "bytes"],
  );
  assert.ok(equalBytes(new Uint8Array(await first.arrayBuffer()), whole));
  const parts = [
    ["bytes=0-0", 0, 1],
    ["bytes=1000-100999", 1000, Math.min(size, 101_000)],
    [`bytes=${size - 376}-`, size - 376, size],
    ["bytes=-188", size - 188, size],
  ] as const;
  for (const [range, start, end] of parts) {
    const part = await get(range);
    assert.deepEqual(
      [part.status, part.headers.get("content-range"), part.headers.get("content-length")],
      [206, `bytes ${start}-${end - 1}/${size}`, String(end - start)],
    );
    assert.ok(equalBytes(new Uint8Array(await part.arrayBuffer()), whole.subarray(start, end)), range);
  }
  const beyond = await get(`bytes=${size}-`);
  assert.deepEqual([beyond.status, beyond.headers.get("content-range")], [416, `bytes */${size}`]);
  const head = await call(session.playback_url, { method: "HEAD" });
  assert.deepEqual([head.headers.get("content-length"), head.body], [String(size), null]);
});

test("getstream of an MP4 film: If-Range with its entity tag gets the range, with another one the whole", async () => {
  const { get, whole } = await appWithMedia("front.mp4");
  const tag = (await get("bytes=0-0")).headers.get("etag")!;
  const same = await get("bytes=188-375", { "if-range": tag });
  assert.equal(same.status, 206);
  assert.ok(equalBytes(new Uint8Array(await same.arrayBuffer()), whole.subarray(188, 376)));
  const other = await get("bytes=188-375", { "if-range": '"other"' });
  assert.deepEqual([other.status, (await other.arrayBuffer()).byteLength], [200, whole.length]);
});

test("getstream of an MP4 film: several players read different places at once", async () => {
  const { get, whole } = await appWithMedia("front.mp4");
  const starts = Array.from({ length: 8 }, (_, i) => Math.floor((i * whole.length) / 8) + i);
  const bodies = await Promise.all(
    starts.map(async (start) => new Uint8Array(await (await get(`bytes=${start}-`)).arrayBuffer())),
  );
  for (const [i, bytes] of bodies.entries()) assert.ok(equalBytes(bytes, whole.subarray(starts[i]!)));
});

test("a stream of exact length fails when its session ends, because it is incomplete", async () => {
  const { get, call, session } = await appWithMedia("front.mp4");
  const reader = (await get()).body!.getReader();
  await call(`${session.command_url}?method=stop`);
  await assert.rejects(reader.read(), { code: "session_stopped" });
});

test("getstream without an exact length: a Range request gets the whole stream", async () => {
  for (const name of ["ac3.mkv", "fragments.mp4"]) {
    const { get, whole } = await appWithMedia(name);
    const stream = await get("bytes=1000-");
    assert.deepEqual(
      [stream.status, stream.headers.get("content-length"), stream.headers.get("accept-ranges")],
      [200, null, "none"],
    );
    assert.ok(equalBytes(new Uint8Array(await stream.arrayBuffer()), whole), name);
  }
});
