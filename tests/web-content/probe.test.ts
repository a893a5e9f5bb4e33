import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { latin1Bytes } from "../../src/base/bytes.ts";
import type { SluiceError } from "../../src/base/errors.ts";
import { SILENT_LOG } from "../../src/base/log.ts";
import { encodeUtf8 } from "../../src/base/utf8.ts";
import { createOutbound } from "../../src/outbound/outbound.ts";
import { probeUrl } from "../../src/web-content/probe.ts";
import { FakeClock } from "../engine/fake-clock.ts";

const TS = new Uint8Array(188 * 40);
for (let at = 0; at < TS.length; at += 188) TS.set([0x47, 0x1f, 0xff, 0x10], at);
const MP4 = latin1Bytes(`\0\0\0\x18ftypisom\0\0\0\0isomavc1${"\0".repeat(5000)}`);

async function probe(
  body: Uint8Array | string,
  headers: Record<string, string> = {},
  status = 200,
  url = "http://u:p@a.example/dir/a%20film.mp4?token=1",
) {
  const bytes = typeof body === "string" ? encodeUtf8(body) : body;
  const outbound = createOutbound(
    {
      clock: new FakeClock(),
      lookup: async () => ["93.184.216.34"],
      http: {
        request: async () => ({
          status,
          headers: new Headers(headers),
          body: new Blob([new Uint8Array(bytes)]).stream(),
        }),
      },
    },
    SILENT_LOG,
  );
  return probeUrl(outbound, url, { allowPrivate: false, limitBytes: 100_000, timeoutMs: 9000 });
}

const ranged = {
  "content-range": `bytes 0-${MP4.length - 1}/${MP4.length}`,
  "content-length": String(MP4.length),
};

test("probeUrl: media with a length and ranges is a file, named after its URL", async () => {
  const answer = await probe(MP4, { ...ranged, etag: '"abc"', "last-modified": "then" }, 206);
  assert.deepEqual(answer, {
    kind: "web",
    content: {
      url: "http://u:p@a.example/dir/a%20film.mp4?token=1",
      allowPrivate: false,
      kind: "file",
      name: "a film.mp4",
      mime: "video/mp4",
      size: MP4.length,
      validator: '"abc"',
    },
  });
  const dated = await probe(MP4, { ...ranged, etag: 'W/"abc"', "last-modified": "then" }, 206);
  assert.equal(dated.kind === "web" && dated.content.validator, "then");
});

test("probeUrl: MPEG-TS without a length or without ranges is a stream; other media needs a length", async () => {
  const cases: readonly (readonly [Record<string, string>, string])[] = [
    [{}, "stream"],
    [{ "content-length": "7520" }, "stream"],
    [{ "content-length": "7520", "accept-ranges": "none" }, "stream"],
    [{ "content-length": "7520", "accept-ranges": "bytes" }, "file"],
  ];
  for (const [headers, kind] of cases) {
    const answer = await probe(TS, headers);
    assert.equal(answer.kind === "web" && answer.content.kind, kind, JSON.stringify(headers));
  }
  const inOrder = await probe(MP4, { "content-length": "5024" });
  assert.equal(inOrder.kind === "web" && inOrder.content.kind, "file");
  await assert.rejects(
    probe(MP4, { "accept-ranges": "bytes" }),
    (error: SluiceError) => error.code === "unsupported_content" && /size of this file/.test(error.message),
  );
});

test("probeUrl: HLS is recognized by its tags, not its MIME type; a channel list is not HLS", async () => {
  const hls = await probe("\ufeff#EXTM3U\r\n#EXT-X-TARGETDURATION:4\r\n", { "content-type": "text/plain" });
  assert.equal(hls.kind === "web" && hls.content.kind, "hls");
  const list = await probe("#EXTM3U\n#EXTINF:-1,News\nhttp://x/\n", { "content-type": "audio/x-mpegurl" });
  assert.equal(list.kind, "bytes");
});

test("probeUrl: DASH, an error status and a large response are refused with a reason", async () => {
  await assert.rejects(probe('<?xml version="1.0"?><!-- x --><MPD>'), /DASH/);
  await assert.rejects(probe("x", { "content-type": "application/dash+xml" }), /DASH/);
  await assert.rejects(probe("x", {}, 404), /the server answered 404/);
  await assert.rejects(probe(new Uint8Array(100_001)), (error: SluiceError) => error.code === "url_refused");
});

test("probeUrl: anything else is returned as bytes, also if it was compressed", async () => {
  const bytes = new Uint8Array(50_000).fill(100);
  for (const answer of [await probe(bytes), await probe(gzipSync(bytes), { "content-encoding": "gzip" })])
    assert.deepEqual(answer, { kind: "bytes", bytes, allowPrivate: false });
});
