import assert from "node:assert/strict";
import { test } from "node:test";
import type { Infohash } from "../../src/base/ids.ts";
import { base64, filmTorrent } from "../engine/fake-engine.ts";
import { segmentTimes, track, tsBytes } from "../engine/fake-media.ts";
import { type Call, fakeApp } from "./client.ts";

const film = filmTorrent();
const other = filmTorrent("other");
const magnet = (infohash: string) => encodeURIComponent(`magnet:?xt=urn:btih:${infohash}`);

/** Starts playback of a posted transport file. */
const post = (bytes: Uint8Array, init: Call = {}): Call => ({
  ...init,
  method: "POST",
  body: JSON.stringify({ transport_file_data: base64(bytes) }),
});

/** An app that has the film, so that infohash and content id resolve. */
async function appWithFilm(options: Parameters<typeof fakeApp>[0] = {}) {
  const app = fakeApp(options);
  await app.call("/ace/getstream", post(film.bytes));
  return app;
}

test("getstream: redirects to /ace/r, whose body is the whole transport stream", async () => {
  const { call } = await appWithFilm({ dependencies: { allowedHosts: ["tv.local"] } });
  const start = await call(`/ace/getstream?infohash=${film.infohash}`, { host: "tv.local:8080" });
  assert.equal(start.status, 302);
  const location = start.headers.get("location")!;
  assert.match(location, new RegExp(`^http://tv\\.local:8080/ace/r/${film.infohash}/[0-9a-f]{32}$`));
  const stream = await call(new URL(location).pathname);
  assert.equal(stream.status, 200);
  assert.equal(stream.headers.get("content-type"), "video/mp2t");
  assert.equal((await stream.arrayBuffer()).byteLength, 5 * 400 * 188);
});

for (const path of [
  "/ace/getstream?infohash=HASH",
  "/ace/manifest.m3u8?content_id=HASH",
  "/play/infohash/HASH?",
])
  test(`${path}: uses the peers, trackers and name of the item's link`, async () => {
    const app = fakeApp();
    const infohash = "5".repeat(40) as Infohash;
    const link = `magnet:?xt=urn:btih:${infohash}&dn=Show&tr=http%3A%2F%2Ftracker.example%2Fa&x.pe=127.0.0.1%3A4000`;
    const content = { transport: "bt", contentId: null, url: null, infohash, magnet: link } as const;
    await app.library.items.add({ title: "No link", content: { ...content, magnet: null } });
    await app.library.items.add({ title: "With a link", content });
    await app.call(path.replace("HASH", infohash));
    const [transfer] = app.transfers.opened;
    assert.deepEqual(transfer!.content.peers, [{ host: "127.0.0.1", port: 4000 }]);
    assert.deepEqual(transfer!.content.trackers, [["http://tracker.example/a"]]);
    assert.equal(transfer!.name, "Show");
  });

test("play links: devices of the network reach private peers of the user's own items, and not those of a subscribed list", async () => {
  const away = {
    origin: { remote: { host: "192.168.1.9", port: 1 }, local: { host: "192.168.1.5", port: 6878 } },
    host: "192.168.1.5:6878",
  };
  for (const [externalPlaylistId, expected] of [
    [-1, [{ host: "192.168.1.7", port: 4000 }]],
    [3, []],
  ] as const)
    for (const path of ["/play/0/1?", "/ace/getstream?infohash=HASH"]) {
      const app = fakeApp();
      const infohash = "5".repeat(40) as Infohash;
      const magnet = `magnet:?xt=urn:btih:${infohash}&x.pe=192.168.1.7%3A4000`;
      const content = { transport: "bt", contentId: null, url: null, infohash, magnet } as const;
      await app.library.items.add({ title: "Show", content, externalPlaylistId });
      await app.call(path.replace("HASH", infohash), away);
      assert.deepEqual(app.transfers.opened[0]!.content.peers, expected, path);
      const asked = await app.call(
        `/ace/getstream?magnet=${encodeURIComponent(magnet.replaceAll("5", "6"))}`,
        away,
      );
      assert.ok(asked.status < 400);
      assert.deepEqual(app.transfers.opened[1]!.content.peers, []);
    }
});

test("getstream: pages of other sites cannot replace the user's content", async () => {
  const { call, engine } = await appWithFilm();
  const own = (await call(`/ace/getstream?infohash=${film.infohash}`)).headers.get("location")!;
  const page = { headers: { "sec-fetch-site": "cross-site" } };
  for (let i = 0; i < 30; i++) {
    const infohash = i.toString(16).padStart(40, "0");
    await call(`/ace/getstream?infohash=${infohash}`, page);
    await call(`/ace/manifest.m3u8?infohash=${infohash.replace(/^0/, "1")}`, page);
    await call(`/play/infohash/${infohash.replace(/^0/, "2")}`, page);
  }
  assert.equal(engine.figures().transfers.length, 5);
  assert.equal((await call(new URL(own).pathname)).status, 200);
});

test("getstream: /content/<infohash>/<key> is the same stream; a Range request gets the whole stream", async () => {
  const { call } = await appWithFilm();
  const location = (await call(`/ace/getstream?infohash=${film.infohash}`)).headers.get("location")!;
  const path = new URL(location).pathname.replace("/ace/r/", "/content/");
  const stream = await call(path, { headers: { range: "bytes=0-" } });
  assert.equal(stream.status, 200);
  await stream.body?.cancel();
});

test("manifest: redirects to /ace/m/….m3u8, a media playlist whose segments are served", async () => {
  const { call } = await appWithFilm();
  const start = await call(`/ace/manifest.m3u8?infohash=${film.infohash}`);
  assert.equal(start.status, 302);
  const manifest = await call(new URL(start.headers.get("location")!).pathname);
  assert.equal(manifest.headers.get("content-type"), "application/vnd.apple.mpegurl");
  const text = await manifest.text();
  assert.match(text, /^#EXTM3U\n/);
  for (const tag of [
    "#EXT-X-VERSION:",
    "#EXT-X-TARGETDURATION:12",
    "#EXT-X-MEDIA-SEQUENCE:0",
    "#EXT-X-ENDLIST",
  ])
    assert.ok(text.includes(tag), tag);
  const urls = text.split("\n").filter((line) => line.startsWith("http"));
  assert.equal(urls.length, 5);
  assert.match(urls[3]!, new RegExp(`^http://127\\.0\\.0\\.1:6878/ace/c/${film.infohash}/\\d+\\.ts$`));
  const segment = await call(`${urls[3]}?`);
  assert.equal(segment.headers.get("content-type"), "video/mp2t");
  assert.deepEqual(new Uint8Array(await segment.arrayBuffer()), tsBytes(3));
});

test("manifest: container=fmp4 lists an initialization segment and .m4s", async () => {
  const { json, call } = await appWithFilm();
  const { response } = await json(`/ace/manifest.m3u8?infohash=${film.infohash}&container=fmp4&format=json`);
  const text = await (await call(response.playback_url)).text();
  const map = /#EXT-X-MAP:URI="([^"]+\.mp4)"/.exec(text);
  assert.equal(await (await call(map![1]!)).text(), "ftyp");
  const m4s = text.split("\n").filter((line) => line.endsWith(".m4s"));
  const segment = await call(m4s[1]!);
  assert.equal(await segment.text(), "moof1");
});

test("manifest: with text subtitles it is a master playlist with WebVTT renditions", async () => {
  const app = fakeApp();
  app.transfers.prepare = (transfer) => {
    transfer.bringData();
    transfer.media_.tracks = [track("video", "h264"), track("subtitle", "subrip", "fra")];
  };
  const { response } = await app.json("/ace/manifest.m3u8?format=json", post(film.bytes));
  const master = await (await app.call(response.playback_url)).text();
  const rendition = /URI="([^"]+)"/.exec(master)![1]!;
  assert.match(master, /LANGUAGE="fr"/);
  const playlist = await (await app.call(rendition)).text();
  const vtt = await app.call(playlist.split("\n").find((line) => line.endsWith(".vtt"))!);
  assert.equal(vtt.headers.get("content-type"), "text/vtt");
  assert.match(await vtt.text(), /track 1 segment 0/);
  const media = master.split("\n").find((line) => line.startsWith("http"))!;
  assert.match(await (await app.call(media)).text(), /#EXTINF/);
});

test("format=json: returns every member of the interface", async () => {
  const { json } = await appWithFilm({ dependencies: { allowedHosts: ["::1"] } });
  const { response, error, status, type } = await json(
    `/ace/getstream?infohash=${film.infohash}&format=json&pid=tv&client_session_id=7&use_api_events=1`,
    { host: "[::1]:6878" },
  );
  assert.equal(status, 200);
  assert.equal(type, "application/json");
  assert.equal(error, null);
  const key = /\/([0-9a-f]{32})$/.exec(response.stat_url)![1];
  const base = "http://[::1]:6878/ace";
  const { playback_session_id: id, ...rest } = response;
  assert.match(id, /^[0-9a-f]{40}$/);
  assert.deepEqual(rest, {
    playback_url: `${base}/r/${film.infohash}/${key}`,
    stat_url: `${base}/stat/${film.infohash}/${key}`,
    command_url: `${base}/cmd/${film.infohash}/${key}`,
    event_url: `${base}/event/${film.infohash}/${key}`,
    infohash: film.infohash,
    is_live: 0,
    is_encrypted: 0,
    client_session_id: 7,
  });
});

test("format=json: client_session_id is -1 and event_url absent by default; HLS plays from /ace/m", async () => {
  const { json } = await appWithFilm();
  const { response } = await json(`/ace/manifest.m3u8?infohash=${film.infohash}&format=json`);
  assert.equal(response.client_session_id, -1);
  assert.equal("event_url" in response, false);
  assert.match(response.playback_url, /\/ace\/m\/[0-9a-f]{40}\/[0-9a-f]{32}\.m3u8$/);
});

test('format=json: has spaces, so that probes find `"error": null`; an empty callback changes nothing', async () => {
  const { call } = await appWithFilm();
  const text = await (await call(`/ace/getstream?infohash=${film.infohash}&format=json&callback=`)).text();
  assert.match(text, /^\{"response": \{"playback_url": "http/);
  assert.match(text, /, "error": null\}$/);
});

test("format=json: answers at once without data, and reports `dl` if data arrives soon", async () => {
  const app = fakeApp({ hasData: false });
  const start = app.json("/ace/getstream?format=json", post(film.bytes));
  await app.clock.advance(450);
  const { response } = await start;
  assert.equal((await app.json(response.stat_url)).response.status, "prefuf");
  const other_ = app.json("/ace/getstream?format=json", post(other.bytes));
  await app.clock.advance(300);
  app.transfers.opened[1]!.bringData();
  const quick = (await other_).response;
  assert.equal((await app.json(quick.stat_url)).response.status, "dl");
});

const SELECTORS: readonly (readonly [name: string, query: string])[] = [
  ["content_id", "content_id=CONTENT"],
  ["id, its alias", "id=CONTENT"],
  ["content_id before infohash", "infohash=OTHER&content_id=CONTENT"],
  ["an infohash passed as id", "id=INFOHASH"],
  ["infohash", "infohash=INFOHASH"],
  ["infohash in upper case", "infohash=UPPER"],
  ["infohash before url and magnet", "magnet=MAGNET_OTHER&url=http://nowhere/&infohash=INFOHASH"],
  ["an empty content_id counts as absent", "content_id=&infohash=INFOHASH"],
  ["url", "url=http://files.example/film.torrent"],
  ["url before magnet", "magnet=MAGNET_OTHER&url=http://files.example/film.torrent"],
  ["a magnet passed as url", "url=MAGNET"],
  ["magnet", "magnet=MAGNET"],
  [
    "magnet that is not encoded",
    "magnet=magnet:?xt=urn:btih:INFOHASH&dn=films&tr=http://tracker.example/announce",
  ],
  ["an unencoded magnet of a key", "magnet=magnet:?xs=urn:btpk:KEY&s=6c697665"],
  [
    "stray parameters",
    "infohash=INFOHASH&.mp4&hlc=1&transcode_ac3=0&foo=bar&transcode_audio=0&stream_id=-1&_idx=",
  ],
  ["a repeated parameter", "infohash=INFOHASH&infohash=OTHER"],
];

for (const [name, query] of SELECTORS) {
  test(`selector: ${name}`, async () => {
    const app = await appWithFilm();
    app.web.set("http://files.example/film.torrent", {
      status: 200,
      bytes: film.bytes as Uint8Array<ArrayBuffer>,
    });
    const contentId = app.transfers.kept[0]!.infohash;
    app.transfers.keys.set(`${"ab".repeat(32)} 6c697665`, film.infohash);
    const filled = query
      .replaceAll("KEY", "ab".repeat(32))
      .replaceAll("MAGNET_OTHER", magnet(other.infohash))
      .replaceAll("MAGNET", magnet(film.infohash))
      .replaceAll("CONTENT", contentId)
      .replaceAll("OTHER", other.infohash)
      .replaceAll("UPPER", film.infohash.toUpperCase())
      .replaceAll("INFOHASH", film.infohash);
    const { response, error } = await app.json(`/ace/getstream?format=json&${filled}`);
    assert.equal(error, null);
    assert.equal(response.infohash, film.infohash);
  });
}

const ERRORS: readonly (readonly [name: string, path: string, status: number, text: RegExp])[] = [
  ["no selector", "/ace/getstream", 400, /^missing content id: /],
  ["no selector for HLS", "/ace/manifest.m3u8?pid=1", 400, /^missing content id: /],
  [
    "a malformed content id",
    "/ace/getstream?content_id=xyz",
    400,
    /^failed to load content: content_id: expected 40/,
  ],
  [
    "a malformed infohash",
    "/ace/getstream?infohash=12",
    400,
    /^failed to load content: infohash: expected 40/,
  ],
  ["a malformed magnet", "/ace/getstream?magnet=magnet:%3Fdn%3Dx", 400, /^failed to load content: magnet: /],
  [
    "a URL that does not answer",
    "/ace/getstream?url=http://gone.example/",
    502,
    /^failed to load content: nothing answers/,
  ],
  ["a URL with status 404", "/ace/getstream?url=http://files.example/404", 502, /the server answered 404/],
  ["a URL with a web page", "/ace/getstream?url=http://files.example/page", 415, /got a web page/],
  [
    "a URL with a broken file",
    "/ace/getstream?url=http://files.example/broken",
    415,
    /^failed to load content: /,
  ],
  [
    "a file index that is none",
    `/ace/getstream?infohash=${film.infohash}&_idx=x`,
    400,
    /^bad parameter: _idx/,
  ],
  [
    "a file index outside",
    `/ace/getstream?infohash=${film.infohash}&_idx=99`,
    404,
    /^failed to start: expected a file index below 3/,
  ],
  ["an unreachable HLS manifest", "/hls/manifest.m3u8?manifest_url=http://x/", 502, /nothing answers/],
];

for (const [name, path, status, text] of ERRORS) {
  test(`error: ${name}`, async () => {
    const app = await appWithFilm();
    const bytes = (of: string) => new TextEncoder().encode(of);
    app.web.set("http://files.example/404", { status: 404, bytes: bytes("no") });
    app.web.set("http://files.example/page", {
      status: 200,
      bytes: bytes("\n<!DOCTYPE html><title>x</title>"),
    });
    app.web.set("http://files.example/broken", { status: 200, bytes: bytes("d4:infod6:lengthi5ee") });
    const plain = await app.call(path);
    assert.equal(plain.status, status);
    assert.match(plain.headers.get("content-type")!, /^text\/plain/);
    assert.match(await plain.text(), text);
    const asJson = await app.json(`${path}${path.includes("?") ? "&" : "?"}format=json`);
    assert.equal(asJson.status, 200);
    assert.equal(asJson.response, null);
    assert.match(asJson.error, text);
  });
}

test("error: an invalid, non-JSON or too long body", async () => {
  const { call } = fakeApp();
  for (const body of [
    "{",
    '{"transport_file_data": "????"}',
    '{"x": 1}',
    '{"transport_file_data": "aGVsbG8="}',
  ]) {
    const response = await call("/ace/getstream", { method: "POST", body });
    assert.equal(response.status, 415, body);
    assert.match(await response.text(), /^failed to load content/);
  }
  const long = await call("/ace/getstream", { method: "POST", body: "x".repeat(14_000_001) });
  assert.equal(long.status, 415);
  assert.match(await long.text(), /larger than/);
  assert.equal((await call("/ace/getstream", { method: "POST", body: "" })).status, 400);
});

test("error: names a codec that TS cannot carry; HLS then uses fMP4", async () => {
  const app = fakeApp();
  const { SluiceError } = await import("../../src/base/errors.ts");
  app.transfers.prepare = (transfer) => {
    transfer.bringData();
    transfer.media_.tsProblem = new SluiceError(
      "unsupported_codec",
      "VP9 video cannot be carried in MPEG-TS",
    );
  };
  const ts = await app.json("/ace/getstream?format=json", post(film.bytes));
  assert.equal(ts.error, "failed to start: VP9 video cannot be carried in MPEG-TS");
  assert.equal(app.engine.figures().sessions, 0, "a session that cannot play is not left behind");
  const start = await app.call(`/ace/getstream?infohash=${film.infohash}`);
  const body = await app.call(start.headers.get("location")!);
  assert.equal(body.status, 415);
  assert.match(await body.text(), /VP9/);
  const hls = await app.json(`/ace/manifest.m3u8?infohash=${film.infohash}&format=json`);
  assert.match(await (await app.call(hls.response.playback_url)).text(), /\.m4s/);
});

test("HLS uses fMP4 if only fMP4 can carry the audio; MPEG-TS then plays the picture", async () => {
  const app = fakeApp();
  app.transfers.prepare = (transfer) => {
    transfer.bringData();
    transfer.media_.silentIn = ["ts"];
  };
  const hls = await app.json(`/ace/manifest.m3u8?infohash=${film.infohash}&format=json`, post(film.bytes));
  assert.match(await (await app.call(hls.response.playback_url)).text(), /\.m4s/);
  const start = await app.call(`/ace/getstream?infohash=${film.infohash}`);
  assert.equal((await app.call(start.headers.get("location")!)).status, 200);
});

test("HLS uses fMP4 if it carries more of the audio tracks", async () => {
  const app = fakeApp();
  app.transfers.prepare = (transfer) => {
    transfer.bringData();
    transfer.media_.separateAudio = { ts: [], fmp4: [1] };
  };
  const hls = await app.json(`/ace/manifest.m3u8?infohash=${film.infohash}&format=json`, post(film.bytes));
  assert.match(await (await app.call(hls.response.playback_url)).text(), /\.m4s/);
});

test("error: a start timeout answers 500 on the session URL", async () => {
  const app = fakeApp({ hasData: false, settings: { peersTimeoutMs: 5_000 } });
  const start = await app.call(`/ace/getstream?magnet=${magnet(film.infohash)}`);
  assert.equal(start.status, 302);
  const body = app.call(start.headers.get("location")!);
  await app.clock.advance(5_000);
  assert.equal((await body).status, 500);
  assert.match(await (await body).text(), /^download not found: no peer was found within 5 s/);
});

test("HEAD: starts, streams, manifests and segments answer without a body or data", async () => {
  const app = await appWithFilm();
  const start = await app.call(`/ace/manifest.m3u8?infohash=${film.infohash}`, { method: "HEAD" });
  assert.equal(start.status, 302);
  const manifest = await app.call(start.headers.get("location")!, { method: "HEAD" });
  assert.deepEqual([manifest.status, await manifest.text()], [200, ""]);
  const ts = await app.call(`/ace/getstream?infohash=${film.infohash}`, { method: "HEAD" });
  const stream = await app.call(ts.headers.get("location")!, { method: "HEAD" });
  assert.deepEqual(
    [stream.status, stream.headers.get("content-type"), await stream.text()],
    [200, "video/mp2t", ""],
  );
  const session = await app.json(`/ace/manifest.m3u8?infohash=${film.infohash}&format=json`);
  const text = await (await app.call(session.response.playback_url)).text();
  const url = text.split("\n").find((line) => line.startsWith("http"))!;
  const segment = await app.call(url, { method: "HEAD" });
  assert.deepEqual([segment.status, segment.headers.get("content-length")], [200, String(400 * 188)]);
});

test("segments: a Range answers 206 with its bytes, or 416 outside", async () => {
  const app = await appWithFilm();
  const { response } = await app.json(`/ace/manifest.m3u8?infohash=${film.infohash}&format=json`);
  const url = (await (await app.call(response.playback_url)).text())
    .split("\n")
    .find((l) => l.startsWith("http"))!;
  const part = await app.call(url, { headers: { range: "bytes=188-375" } });
  assert.deepEqual([part.status, part.headers.get("content-range")], [206, `bytes 188-375/${400 * 188}`]);
  assert.deepEqual(new Uint8Array(await part.arrayBuffer()), tsBytes(0).subarray(188, 376));
  assert.equal((await app.call(url, { headers: { range: "bytes=99999999-" } })).status, 416);
});

test("segments: invalid names and ended sessions are refused", async () => {
  const app = await appWithFilm();
  for (const name of ["x.ts", "1.avi", "-1.ts", "1.ts.ts"])
    assert.equal((await app.call(`/ace/c/${film.infohash}/${name}`)).status, 404, name);
  assert.equal((await app.call(`/ace/c/${film.infohash}/999999.ts`)).status, 403);
});

test("many segments: numbers increase by one", async () => {
  const app = fakeApp();
  app.transfers.prepare = (transfer) => {
    transfer.bringData();
    transfer.media_.segments = segmentTimes(1200);
  };
  const { response } = await app.json("/ace/manifest.m3u8?format=json", post(film.bytes));
  const text = await (await app.call(response.playback_url)).text();
  const numbers = [...text.matchAll(/\/(\d+)\.ts/g)].map((match) => Number(match[1]));
  assert.deepEqual(
    numbers,
    Array.from({ length: 1200 }, (_, i) => i),
  );
});

test("/hls/manifest.m3u8: plays content, or the manifest of manifest_url", async () => {
  const app = await appWithFilm();
  const { response } = await app.json(`/hls/manifest.m3u8?id=${film.infohash}&format=json`);
  assert.match(response.playback_url, /\/ace\/m\/.*\.m3u8$/);
  const other = await app.json("/hls/manifest.m3u8?manifest_url=http://a/b.m3u8&format=json");
  assert.match(other.error, /^failed to load content: nothing answers at http:\/\/a\/b.m3u8/);
});

test("URLs in responses: https if a trusted proxy reports it", async () => {
  const trustedProxies = [{ host: "127.0.0.1", bits: 32 }];
  const app = await appWithFilm({ dependencies: { allowedHosts: ["tv.local"], access: { trustedProxies } } });
  const asked = async (proto: string) => {
    const headers = { "x-forwarded-proto": proto };
    const path = `/ace/getstream?infohash=${film.infohash}&format=json`;
    return (await app.json(path, { headers, host: "tv.local" })).response.stat_url.split("/ace/")[0];
  };
  assert.equal(await asked("https"), "https://tv.local");
  assert.equal(await asked("https, http"), "https://tv.local");
  for (const other of ["http", "javascript", ""]) assert.equal(await asked(other), "http://tv.local");
});
