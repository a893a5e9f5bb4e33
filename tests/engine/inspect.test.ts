import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { SluiceError } from "../../src/base/errors.ts";
import type { Infohash } from "../../src/base/ids.ts";
import { parseTransportFile } from "../../src/wire/torrent/metainfo.ts";
import { makeTorrent, sha1 } from "../wire/make-torrent.ts";
import { settled } from "./fake-clock.ts";
import { filmTorrent } from "./fake-engine.ts";
import { createTestInspector } from "./test-inspector.ts";
import { servePages, type WebPages } from "./web-pages.ts";

const film = filmTorrent();
const file = parseTransportFile(film.bytes, sha1);
const OPEN = { allowPrivateUrls: true };
const UNKNOWN = "94c2fd8fb9bc8f2fc71a2cbe9d4b866f227a0209";
/** Five packets of a transport stream. */
const TS = Uint8Array.from({ length: 188 * 8 }, (_, i) => (i % 188 === 0 ? 0x47 : 0xff));
const MP4 = Buffer.from("\0\0\0\x18ftypisom\0\0\0\0isomiso2\0\0\0\x08free", "latin1");
const MEDIA = "#EXTM3U\n#EXT-X-TARGETDURATION:6\n#EXT-X-MEDIA-SEQUENCE:7\n#EXTINF:6,\na.ts\n";
const MASTER = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n";

let web: WebPages;
before(async () => {
  web = await servePages();
});
after(() => web.close());

const analyze = (query: string, title?: string) =>
  createTestInspector().inspector.analyze(query, title, OPEN);

test("analyze: swarm links are described by the link and stored data", async () => {
  const { inspector, transfers } = createTestInspector();
  const swarm = { contentType: "transport_file", transportType: "bt", itemUrl: null, categories: [] };
  const of = (query: string, title?: string) => inspector.analyze(query, title, OPEN);
  const bare = { ...swarm, contentId: film.infohash, infohash: film.infohash, isLive: -1 };
  const magnet = `magnet:?xt=urn:btih:${film.infohash}&dn=A+film`;
  assert.deepEqual(await of(magnet), { ...bare, title: "A film" });
  assert.deepEqual(await of(magnet, " Mine\n"), { ...bare, title: "Mine" });
  // A key is resolved only for playback.
  const key = "ab".repeat(32);
  assert.deepEqual(await of(`magnet:?xs=urn:btpk:${key}`), {
    ...bare,
    contentId: null,
    infohash: null,
    title: key,
  });
  for (const query of [
    "acestream://?infohash=",
    "acestream:?infohash=",
    "sluice:?infohash=",
    "http://h:6878/ace/getstream?infohash=",
  ])
    assert.deepEqual(await of(query + film.infohash), { ...bare, title: film.infohash });
  assert.deepEqual(await of(UNKNOWN), {
    ...swarm,
    contentId: UNKNOWN,
    infohash: UNKNOWN,
    isLive: -1,
    title: UNKNOWN,
  });
  transfers.kept.push(file);
  const known = { ...swarm, contentId: film.infohash, infohash: film.infohash, isLive: 0, title: "films" };
  for (const query of [magnet, file.fileHash, film.infohash, `acestream://${file.fileHash}`])
    assert.deepEqual(await of(query), known, query);
  assert.equal(transfers.opened.length, 0);
});

test("analyze: text that is no link fails with unknown_protocol, and the error contains no password", async () => {
  for (const query of [
    "",
    "hello",
    "rtsp://user:secret@h/",
    "file:///etc/passwd",
    "acestream:?content_id=1",
    "magnet:?dn=a",
  ])
    await assert.rejects(analyze(query), (thrown: unknown) => {
      assert.ok(thrown instanceof SluiceError);
      assert.equal(thrown.code, "unknown_protocol");
      assert.doesNotMatch(thrown.message, /secret/);
      return true;
    });
});

test("analyze url: a transport file", async () => {
  web.pages.set("/a.torrent", { body: film.bytes });
  assert.deepEqual(await analyze(`${web.base}/a.torrent`), {
    contentType: "transport_file",
    transportType: "bt",
    contentId: film.infohash,
    infohash: film.infohash,
    itemUrl: `${web.base}/a.torrent`,
    title: "films",
    isLive: 0,
    categories: [],
  });
  web.pages.set("/broken.torrent", { body: film.bytes.subarray(0, 60) });
  await assert.rejects(analyze(`${web.base}/broken.torrent`), { code: "bad_transport_file" });
});

test("analyze url: classifies by the first bytes and the headers", async () => {
  const html = { "content-type": "text/html; charset=utf-8" };
  const plain = { "content-type": "application/octet-stream" };
  const mpegurl = { "content-type": "application/vnd.apple.mpegurl" };
  const xui = '#EXTM3U\n#EXT-X-SESSION-DATA:DATA-ID="x"\n#EXTINF:-1,A\nhttp://h/\n';
  const cases: Record<
    string,
    [page: Parameters<typeof web.pages.set>[1], type: string, isLive: number, title: string]
  > = {
    "/tv/News%20One/index.m3u8": [{ body: MEDIA, headers: mpegurl }, "hls", 1, "News One"],
    "/vod.m3u8": [{ body: `${MEDIA}#EXT-X-ENDLIST\n`, headers: html }, "hls_vode", 0, "vod"],
    "/type.m3u8": [
      { body: MEDIA.replace("#EXTINF", "#EXT-X-PLAYLIST-TYPE:VOD\n#EXTINF") },
      "hls_vode",
      0,
      "type",
    ],
    "/event.m3u8": [
      { body: MEDIA.replace("#EXTINF", "#EXT-X-PLAYLIST-TYPE:EVENT\n#EXTINF") },
      "hls_vode",
      1,
      "event",
    ],
    "/a/master.m3u8": [{ body: `${MASTER}../vod.m3u8\n`, headers: mpegurl }, "hls_vode", 0, "a"],
    "/list.m3u": [{ body: "#EXTM3U\n#EXTINF:-1,A\nhttp://h/\n" }, "playlist", -1, "list"],
    "/xui": [{ body: xui }, "playlist", -1, "xui"],
    "/links": [
      { body: `${UNKNOWN}\n`, headers: { "content-type": "audio/x-mpegurl" } },
      "playlist",
      -1,
      "links",
    ],
    "/long.m3u": [{ body: `#EXTM3U\n${"#EXTINF:-1,A\nhttp://h/\n".repeat(9000)}` }, "playlist", -1, "long"],
    "/film.ts": [{ body: TS, headers: plain }, "direct_content", 0, "film"],
    "/A%20film.mp4": [{ body: MP4 }, "direct_content", 0, "A film"],
    "/song.mp3": [
      { body: "ID3\x03\0", headers: { "content-type": "audio/mpeg" } },
      "direct_content",
      0,
      "song",
    ],
    "/named.avi": [{ body: "RIFF\x01\0\0\0AVI LIST", headers: plain }, "direct_content", 0, "named"],
    "/live/7": [{ body: TS, isEndless: true, headers: plain }, "direct_stream", 1, "7"],
    "/radio": [
      {
        body: "\xff\xfb\x90\0",
        isEndless: true,
        headers: { "content-type": "audio/mpeg", "icy-name": "Radio  Nine" },
      },
      "direct_stream",
      1,
      "Radio Nine",
    ],
    "/chunked.mp4": [{ body: MP4, isChunked: true }, "direct_stream", -1, "chunked"],
    "/d.mpd": [{ body: '<?xml version="1.0"?>\n<!-- x -->\n<MPD type="static">' }, "direct_content", 0, "d"],
    "/e.mpd": [
      { body: '<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="dynamic">' },
      "direct_stream",
      1,
      "e",
    ],
  };
  for (const [path, [page]] of Object.entries(cases)) web.pages.set(path, page);
  for (const [path, [, contentType, isLive, title]] of Object.entries(cases)) {
    const found = await analyze(web.base + path);
    assert.deepEqual(
      [found.contentType, found.isLive, found.title, found.itemUrl, found.infohash],
      [contentType, isLive, title, web.base + path, null],
      path,
    );
    assert.equal(found.transportType, "hls");
  }
});

test("analyze url: reads only the first bytes of an endless stream", async () => {
  web.pages.set("/endless", {
    body: new Uint8Array(188 * 350).map((_, i) => (i % 188 === 0 ? 0x47 : 0)),
    isEndless: true,
  });
  const before = web.sentBytes();
  await analyze(`${web.base}/endless`);
  // The socket buffers of both ends fill without a read.
  assert.ok(web.sentBytes() - before < 32 * 1024 * 1024, `${web.sentBytes() - before} bytes were sent`);
});

test("analyze url: unplayable content is refused with a reason", async () => {
  const cases: Record<string, [page: Parameters<typeof web.pages.set>[1], code: string, message: RegExp]> = {
    "/page": [
      { body: "<!doctype html><title>x", headers: { "content-type": "text/html" } },
      "unsupported_content",
      /got a web page/,
    ],
    "/page.mp4": [
      { body: "<html>", headers: { "content-type": "video/mp4" } },
      "unsupported_content",
      /got a web page/,
    ],
    "/page.m3u8": [
      { body: "<html>", headers: { "content-type": "audio/mpegurl" } },
      "not_a_playlist",
      /a web page/,
    ],
    "/json": [
      { body: "{}", headers: { "content-type": "application/json" } },
      "unsupported_content",
      /got application\/json/,
    ],
    "/empty": [
      { body: "", headers: { "content-type": "video/mp4" } },
      "unsupported_content",
      /got an empty response/,
    ],
    "/gone": [{ status: 410 }, "url_unreachable", /status 410/],
    "/loop.m3u8": [{ body: `${MASTER}loop.m3u8\n` }, "unsupported_content", /refers to another/],
    "/away.m3u8": [{ body: `${MASTER}file:///etc/passwd\n` }, "url_refused", /http or https/],
    "/broken.m3u8": [
      { body: "#EXTM3U\n#EXT-X-TARGETDURATION:6\na.ts\n" },
      "unsupported_content",
      /has no #EXTINF/,
    ],
  };
  for (const [path, [page]] of Object.entries(cases)) web.pages.set(path, page);
  for (const [path, [, code, message]] of Object.entries(cases))
    await assert.rejects(analyze(web.base + path), { code, message }, path);
});

test("analyze url: private addresses are not requested unless they are allowed", async () => {
  const asked = web.asked.length;
  await assert.rejects(
    createTestInspector().inspector.analyze(`${web.base}/a`, undefined, { allowPrivateUrls: false }),
    {
      code: "url_refused",
    },
  );
  assert.equal(web.asked.length, asked);
});

test("describe: a known transport file returns files, ids and bytes at once", async () => {
  const { inspector, transfers } = createTestInspector();
  transfers.kept.push(file);
  const found = await inspector.describe({ kind: "infohash", infohash: film.infohash }, OPEN);
  assert.deepEqual(
    [found.name, found.infohash, found.contentId, found.type, found.transportType, found.transportFile],
    ["films", film.infohash, film.infohash, "vod", "bt", film.bytes],
  );
  assert.deepEqual(
    found.files.map(({ name, size, isPlayable, mime }) => [name, size, isPlayable, mime]),
    [
      ["short.mp4", 5000, true, "video/mp4"],
      ["long.mkv", 20_000, true, "video/x-matroska"],
      ["readme.txt", 30_000, false, "text/plain"],
    ],
  );
  assert.equal(transfers.opened.length, 0);
});

test("describe: waits for peers like playback, and releases the transfer on success and failure", async () => {
  const { inspector, transfers, clock } = createTestInspector();
  const found = inspector.describe({ kind: "infohash", infohash: film.infohash }, OPEN);
  await settled();
  transfers.opened[0]!.bringFiles([{ name: "a.mp4", size: 5 }]);
  assert.deepEqual(
    (await found).files.map(({ name }) => name),
    ["a.mp4"],
  );
  await clock.advance(1000);
  assert.equal(transfers.opened[0]!.stopped, true);
  const lost = assert.rejects(inspector.describe({ kind: "infohash", infohash: UNKNOWN as never }, OPEN), {
    code: "no_peers",
  });
  await clock.advance(31_000);
  await lost;
  await clock.advance(1000);
  assert.equal(transfers.opened[1]!.stopped, true);
  assert.equal(clock.waiting, 0);
});

test("describe url: manifests have type hls, media has type wrapper, live or not", async () => {
  web.pages.set("/live.m3u8", { body: MEDIA });
  web.pages.set("/vod.m3u8", { body: `${MEDIA}#EXT-X-ENDLIST\n` });
  web.pages.set("/A%20film.mp4", { body: MP4 });
  const cases = {
    "/live.m3u8": ["hls", "live"],
    "/vod.m3u8": ["hls", "vod"],
    "/A%20film.mp4": ["wrapper", "vod"],
  };
  for (const [path, expected] of Object.entries(cases)) {
    const found = await createTestInspector().inspector.describe({ kind: "url", url: web.base + path }, OPEN);
    assert.deepEqual([found.transportType, found.type], expected, path);
    assert.deepEqual([found.files.length, found.contentId, found.transportFile], [1, undefined, undefined]);
  }
  const once = () => web.asked.filter((path) => path === "/live.m3u8").length;
  const before = once();
  await createTestInspector().inspector.describe({ kind: "url", url: `${web.base}/live.m3u8` }, OPEN);
  assert.equal(once() - before, 1);
});

test("keep: checks, stores and describes a transport file; invalid bytes are refused", async () => {
  const { inspector, transfers } = createTestInspector();
  const kept = await inspector.keep(film.bytes);
  assert.deepEqual([kept.name, kept.contentId], ["films", film.infohash]);
  assert.deepEqual(
    transfers.kept.map(({ infohash }) => infohash),
    [film.infohash],
  );
  for (const bytes of [new Uint8Array(0), new Uint8Array(10_000_001), film.bytes.subarray(1)])
    await assert.rejects(inspector.keep(bytes), { code: "bad_transport_file" });
  assert.equal(transfers.kept.length, 1);
});

test("contentIdOf: is the infohash, without asking peers; content of a web server has none", async () => {
  const { inspector, transfers } = createTestInspector();
  const id = (infohash: string) =>
    inspector.contentIdOf({ kind: "infohash", infohash: infohash as Infohash }, OPEN);
  assert.equal(await id(film.infohash), film.infohash);
  assert.equal(
    await inspector.contentIdOf({ kind: "transport_file", bytes: film.bytes }, OPEN),
    film.infohash,
  );
  assert.equal(transfers.opened.length, 0);
  web.pages.set("/vod.m3u8", { body: `${MASTER}a.m3u8\n` });
  const url = `${web.base}/vod.m3u8`;
  await assert.rejects(inspector.contentIdOf({ kind: "url", url }, OPEN), { code: "content_id_unknown" });
});

test("search: matches all words without case and accents, newest first, up to the limit", async () => {
  const { inspector, transfers } = createTestInspector();
  const names = ["Amélie 2001", "amelie making of", "Straße", "Other"];
  for (const name of names) {
    const { bytes } = makeTorrent({
      name,
      pieceLength: 16384,
      files: [{ path: name, bytes: new Uint8Array(1) }],
    });
    transfers.kept.push(parseTransportFile(bytes, sha1));
  }
  const of = async (text: string, limit = 10) =>
    (await inspector.search(text, limit)).map(({ name }) => name);
  assert.deepEqual(await of("AMELIE"), ["amelie making of", "Amélie 2001"]);
  assert.deepEqual(await of("2001 amélie"), ["Amélie 2001"]);
  assert.deepEqual(await of("amelie", 1), ["amelie making of"]);
  assert.deepEqual(await of("nothing"), []);
  assert.equal((await of("", 3)).length, 3);
  transfers.kept.pop();
  assert.deepEqual(await of("other"), []);
  transfers.kept.push(file);
  assert.deepEqual(await of("films"), ["films"]);
});

test("search: waits at most two seconds for names; later searches find the rest", async () => {
  const { inspector, transfers, clock } = createTestInspector();
  transfers.kept.push(file);
  const known = transfers.knownTransportFile.bind(transfers);
  let deliver = () => {};
  transfers.knownTransportFile = async (infohash) => {
    await new Promise<void>((resolve) => {
      deliver = resolve;
    });
    return known(infohash);
  };
  const first = inspector.search("films", 10);
  await clock.advance(2000);
  assert.deepEqual(await first, []);
  deliver();
  await settled();
  assert.equal((await inspector.search("films", 10)).length, 1);
  assert.equal(clock.waiting, 0);
});
