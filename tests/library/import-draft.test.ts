import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { SluiceError } from "../../src/base/errors.ts";
import { encodeUtf8 } from "../../src/base/utf8.ts";
import type { ItemDraft } from "../../src/library/contract.ts";
import { draftOf, identityOf } from "../../src/library/draft.ts";
import { createLanguageReader } from "../../src/library/draft-languages.ts";
import { checkHead, readEntries } from "../../src/library/import-entries.ts";
import { contentName } from "../../src/library/item-figures.ts";
import { MAX_LIST_BYTES, readListBody } from "../../src/library/playlist-body.ts";
import type { M3uEntry } from "../../src/media/m3u.ts";

const CID = "0123456789abcdef0123456789abcdef01234567";
const HASH = "89abcdef0123456789abcdef0123456789abcdef";
const languages = createLanguageReader();
const never = new AbortController().signal;

async function read(text: string | Uint8Array[], category: string | null = null) {
  const blocks = typeof text === "string" ? [encodeUtf8(text)] : text;
  const drafts: ItemDraft[] = [];
  const defaults = { owner: "me", category, externalPlaylistId: 7 };
  const make = (entry: M3uEntry, header: ReadonlyMap<string, string>) => {
    const draft = draftOf(entry, defaults, languages, header);
    // The identity must match the draft.
    const { title = "", tvgId = "", content } = draft ?? {};
    const essence = content && { content: contentName(content), title, tvgId };
    assert.deepEqual(identityOf(entry), essence);
    return draft;
  };
  const reading = { make, yieldIfDue: async () => {}, signal: never };
  const facts = await readEntries(blocks, reading, (some) => void drafts.push(...some));
  return { drafts, facts };
}

async function contentOf(link: string) {
  return (await read(`#EXTM3U\n#EXTINF:-1,a\n${link}\n`)).drafts[0]?.content;
}

const bt = { transport: "bt", contentId: null, infohash: null, magnet: null, url: null };

test("draftOf: converts each kind of link to its content", async () => {
  const magnet = `magnet:?xt=urn:btih:${HASH}&tr=http%3A%2F%2Ft.example%2Fannounce`;
  const byKey = `magnet:?xs=urn:btpk:${"ab".repeat(32)}`;
  const expected: [string, object][] = [
    [`acestream://${CID}`, { ...bt, contentId: CID }],
    [`sluice:?infohash=${HASH}`, { ...bt, infohash: HASH }],
    [`http://127.0.0.1:6878/ace/getstream?id=${CID}`, { ...bt, contentId: CID }],
    [`http://box.lan:12345/ace/manifest.m3u8?infohash=${HASH}&pid=1`, { ...bt, infohash: HASH }],
    [magnet, { ...bt, infohash: HASH, magnet }],
    [byKey, { ...bt, magnet: byKey }],
    ["https://a.example/x.torrent", { ...bt, url: "https://a.example/x.torrent" }],
    ["https://a.example/live.m3u8?t=1", { ...bt, transport: "hls", url: "https://a.example/live.m3u8?t=1" }],
    [
      "http://a.example/get?output=m3u8",
      { ...bt, transport: "hls", url: "http://a.example/get?output=m3u8" },
    ],
    ["https://a.example/x.mpd", { ...bt, transport: "dash", url: "https://a.example/x.mpd" }],
    ["http://a.example/live/1.ts", { ...bt, transport: "http", url: "http://a.example/live/1.ts" }],
  ];
  for (const [link, content] of expected) assert.deepEqual(await contentOf(link), content, link);
});

test("readEntries: skips and counts links that cannot be played", async () => {
  const list = [
    "rtmp://a/b",
    "udp://@239.0.0.1:1",
    "file:///etc/passwd",
    "javascript:alert(1)",
    "http://a.example/b",
  ];
  const { drafts, facts } = await read(`#EXTM3U\n${list.map((link) => `#EXTINF:-1,x\n${link}\n`).join("")}`);
  assert.equal(drafts.length, 1);
  assert.deepEqual(facts, { count: 1, leftOut: 4, guides: [] });
});

test("draftOf: converts the attributes of real lists", async () => {
  const { drafts, facts } = await read(
    '#EXTM3U url-tvg="http://guide.example/a.xml.gz,http://guide.example/b.xml"\n' +
      '#EXTINF:-1 tvg-id="one.uk" tvg-name="One" tvg-logo="https://l.example/1.png" group-title="UK;News;Sports" ' +
      'tvg-language="English;rus" tvg-country="UK;United States" acestream-autosearch="1" radio="true",One, the first\n' +
      `acestream://${CID}\n`,
  );
  assert.deepEqual(facts.guides, ["http://guide.example/a.xml.gz", "http://guide.example/b.xml"]);
  assert.deepEqual(drafts[0], {
    owner: "me",
    title: "One, the first",
    content: { ...bt, contentId: CID },
    category: null,
    subcategory: "informational",
    tags: ["UK", "News", "Sports", "radio"],
    isLive: 1,
    autoSearch: true,
    externalPlaylistId: 7,
    tvgId: "one.uk",
    tvgName: "One",
    tvgLogo: "https://l.example/1.png",
    tvgExtra: [],
    httpHeaders: [],
    languages: ["eng", "rus"],
    countries: ["gb", "us"],
  });
});

test("draftOf: a given category overrides the list's; groups with the name of a category set it", async () => {
  const list = `#EXTM3U\n#EXTINF:-1 group-title="Movies",a\nhttp://a.example/a\n#EXTGRP:constructor\nhttp://a.example/b\n`;
  assert.deepEqual(
    (await read(list)).drafts.map(({ category }) => category),
    ["movies", null],
  );
  assert.deepEqual(
    (await read(list, "tv")).drafts.map(({ category }) => category),
    ["tv", "tv"],
  );
});

test("draftOf: an entry without a duration is live unless it is a file; for magnets it is unknown", async () => {
  const live = async (info: string, link: string) =>
    (await read(`#EXTM3U\n#EXTINF:${info},a\n${link}\n`)).drafts[0]?.isLive;
  assert.equal(await live("-1", "http://a.example/1"), 1);
  assert.equal(await live("-1", "http://a.example/live/1.ts"), 1);
  assert.equal(await live("-1", "http://a.example/film.mkv?x=1"), 0);
  assert.equal(await live("5400", "http://a.example/1"), 0);
  assert.equal(await live("-1", `acestream://${CID}`), 1);
  assert.equal(await live("-1", `magnet:?xt=urn:btih:${HASH}`), -1);
});

test("draftOf: removes invisible characters from titles; without a title uses the file name", async () => {
  const { drafts } = await read(
    `#EXTM3U\n#EXTINF:-1,  a\u202eb\tc\u0001\n${"http://a.example/x"}\nhttp://a.example/My%20film.mp4\nhttp://a.example/\nacestream://${CID}\n`,
  );
  assert.deepEqual(
    drafts.map(({ title }) => title),
    ["a b c", "My film.mp4", "a.example", CID],
  );
});

test("draftOf: keeps catch-up, time shift and channel number; those of the list are defaults", async () => {
  const { drafts } = await read(
    `#EXTM3U tvg-shift="+1" catchup="shift" x="1"\n#EXTINF:-1 tvg-chno="7" tvg-shift="-2" catchup-source="?utc={utc}&lutc={lutc}" catchup-days=5,a\nacestream://${CID}\n#EXTINF:-1,b\nhttp://a.example/b\n`,
  );
  assert.deepEqual(
    drafts.map(({ tvgExtra }) => [...tvgExtra!].sort()),
    [
      [
        "catchup-days=5",
        "catchup-source=?utc={utc}&lutc={lutc}",
        "catchup=shift",
        "tvg-chno=7",
        "tvg-shift=-2",
      ],
      ["catchup=shift", "tvg-shift=+1"],
    ],
  );
});

test("draftOf: keeps permitted request headers of a URL, in the notations of VLC, Kodi and #EXTHTTP", async () => {
  const headers = async (lines: string, link = "http://a.example/x") =>
    (await read(`#EXTM3U\n#EXTINF:-1,a\n${lines}\n${link}\n`)).drafts[0]?.httpHeaders;
  assert.deepEqual(
    await headers('#EXTHTTP:{"User-Agent":"A/1 (x: y)","Cookie":"k=v","Host":"h","Range":"x"}'),
    ["user-agent: A/1 (x: y)", "cookie: k=v"],
  );
  const vlc =
    "#EXTVLCOPT:http-user-agent=A\n#EXTVLCOPT:http-referrer=http://r/\n#EXTVLCOPT:network-caching=9";
  assert.deepEqual(await headers(vlc), ["user-agent: A", "referer: http://r/"]);
  assert.deepEqual(await headers("", "http://a.example/x|User-Agent=A%20B&Origin=http%3A//o"), [
    "user-agent: A B",
    "origin: http://o",
  ]);
  assert.deepEqual(await headers('#EXTHTTP:{"Cookie":"a\\r\\nHost: b","Referer":""}'), []);
  assert.deepEqual(await headers("#EXTVLCOPT:http-user-agent=A", `acestream://${CID}`), []);
});

test("draftOf: drops logos that are not web links", async () => {
  const { drafts } = await read('#EXTM3U\n#EXTINF:-1 tvg-logo="javascript:alert(1)",a\nhttp://a.example/x\n');
  assert.equal(drafts[0]?.tvgLogo, "");
});

const notAPlaylist = (message: RegExp) => (error: unknown) =>
  error instanceof SluiceError && error.code === "not_a_playlist" && message.test(error.message);

test("readEntries: refuses web pages and manifests", async () => {
  await assert.rejects(read("<!doctype html><html><body>404</body></html>"), notAPlaylist(/page/i));
  const manifest = "#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\nseg1.ts\n";
  await assert.rejects(read(manifest), notAPlaylist(/single stream/));
  assert.throws(() => checkHead(encodeUtf8(manifest), true), notAPlaylist(/single stream/));
  assert.throws(() => checkHead(encodeUtf8("<html>"), true), notAPlaylist(/page/i));
  assert.throws(() => checkHead(new Uint8Array(), true), notAPlaylist(/./));
});

test("readEntries: block boundaries do not matter", async () => {
  const list = Array.from(
    { length: 50 },
    (_, i) => `#EXTINF:-1 tvg-id="é${i}",Kanal ${i} ü\nhttp://a.example/${i}\n`,
  );
  const bytes = encodeUtf8(`#EXTM3U\n${list.join("")}`);
  const whole = (await read([bytes])).drafts;
  assert.equal(whole.length, 50);
  const blocks = Array.from({ length: Math.ceil(bytes.length / 7) }, (_, i) =>
    bytes.subarray(i * 7, i * 7 + 7),
  );
  assert.deepEqual((await read(blocks)).drafts, whole);
});

test("readEntries: more than 200,000 entries fail; earlier ones have been passed on", async () => {
  const lines = Array.from({ length: 50_000 }, (_, i) => `http://t.example/${i}\n`).join("");
  const blocks = [...Array.from({ length: 4 }, () => encodeUtf8(lines)), encodeUtf8("http://t.example/x\n")];
  let count = 0;
  const reading = { make: (entry: M3uEntry) => entry, yieldIfDue: async () => {}, signal: never };
  const failed = readEntries(blocks, reading, (some) => {
    count += some.length;
  });
  await assert.rejects(failed, notAPlaylist(/200000 entries/));
  assert.equal(count, 200_000);
});

// ---- bodies ------------------------------------------------------------------------------------------------------

function streamOf(...chunks: Uint8Array[]): ReadableStream<Uint8Array> {
  const rest = [...chunks];
  return new ReadableStream({
    pull(controller) {
      const next = rest.shift();
      if (next) controller.enqueue(next);
      else controller.close();
    },
  });
}

async function bodyText(body: ReadableStream<Uint8Array>): Promise<string> {
  return Buffer.concat(await readListBody(body, never)).toString();
}

test("readListBody: plain and gzip bodies in chunks of any size", async () => {
  const text = "#EXTM3U\n".repeat(30_000);
  const bytes = encodeUtf8(text);
  assert.equal(await bodyText(streamOf(bytes)), text);
  const packed = new Uint8Array(gzipSync(bytes));
  assert.equal(await bodyText(streamOf(packed)), text);
  assert.equal(await bodyText(streamOf(...Array.from(packed, (byte) => Uint8Array.of(byte)))), text);
  assert.equal(await bodyText(streamOf()), "");
});

/** 30,000 lines of `#EXTM3U`, as `xz` compresses them. */
const XZ = Buffer.from(
  "/Td6WFoAAATm1rRGAgAhARYAAAB0L+Wj46l/AHFdABGRRwVX3izfo6wW44zJgwW74Za2j0/+pnPysS5PK4C9sxnshFA+ePEt9ulH" +
    "a1aBmcpxfGOl7IQAZegs/p/a8RQQqYof0kvMtSdgTee0jokC5bByHIEN2PtZtnAKTWMXTk7G3Z391iV4WfgLygzMhgAAAAAAAObc" +
    "cUH1qCOmAAGNAYDTDgC36g6gscRn+wIAAAAABFla",
  "base64",
);

test("readListBody: XZ bodies, also one after another; damaged ones are refused", async () => {
  const text = "#EXTM3U\n".repeat(30_000);
  const packed = new Uint8Array(XZ);
  for (let round = 0; round < 2; round++) assert.equal(await bodyText(streamOf(packed)), text);
  assert.equal(await bodyText(streamOf(...Array.from(packed, (byte) => Uint8Array.of(byte)))), text);
  const damaged = packed.map((byte, i) => (i === packed.length >> 1 ? byte ^ 1 : byte));
  for (const broken of [packed.subarray(0, packed.length - 20), damaged, packed.subarray(0, 3)])
    await assert.rejects(readListBody(streamOf(broken), never), notAPlaylist(/decompressed/));
  // The next one is not affected.
  assert.equal(await bodyText(streamOf(packed)), text);
});

test("readListBody: blocks have at most 64 KiB", async () => {
  const blocks = await readListBody(streamOf(new Uint8Array(1_000_000)), never);
  assert.ok(blocks.every(({ length }) => length <= 65_536));
  assert.equal(
    blocks.reduce((sum, { length }) => sum + length, 0),
    1_000_000,
  );
});

test("readListBody: refuses a body that is too large and cancels the source", async () => {
  let cancelled: unknown;
  const endless = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(new Uint8Array(1 << 20)),
    cancel(reason) {
      cancelled = reason;
    },
  });
  await assert.rejects(
    readListBody(endless, never),
    (error) => error instanceof SluiceError && error.code === "too_large" && /64 MiB/.test(error.message),
  );
  assert.ok(cancelled instanceof SluiceError);
});

test("readListBody: refuses bombs and invalid compressed data", async () => {
  const bomb = new Uint8Array(gzipSync(new Uint8Array(MAX_LIST_BYTES * 2)));
  await assert.rejects(readListBody(streamOf(bomb), never), notAPlaylist(/decompressed/));
  const broken = new Uint8Array(gzipSync(encodeUtf8("#EXTM3U\n".repeat(1000)))).subarray(0, 40);
  await assert.rejects(readListBody(streamOf(broken), never), notAPlaylist(/decompressed/));
});

test("readListBody: errors of the body keep their code", async () => {
  const error = new SluiceError("url_unreachable", "the connection broke");
  for (const head of [encodeUtf8("#EXTM3U"), Uint8Array.of(0x1f, 0x8b, 8, 0)]) {
    let pulls = 0;
    const broken = new ReadableStream<Uint8Array>({
      pull(controller) {
        if (pulls++ === 0) controller.enqueue(head);
        else controller.error(error);
      },
    });
    await assert.rejects(readListBody(broken, never), (thrown) => thrown === error);
  }
});
