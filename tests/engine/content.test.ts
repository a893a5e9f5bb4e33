import assert from "node:assert/strict";
import { test } from "node:test";
import { toHex } from "../../src/base/bytes.ts";
import { SluiceError } from "../../src/base/errors.ts";
import { type ContentId, contentIdOf } from "../../src/base/ids.ts";
import { SILENT_LOG } from "../../src/base/log.ts";
import { encodeUtf8 } from "../../src/base/utf8.ts";
import { createContentResolver } from "../../src/engine/content.ts";
import { ed25519Verifier } from "../../src/runtime/crypto.ts";
import { bencodeDict, encodeBencode } from "../../src/wire/bencode-encode.ts";
import { liveInfoDict } from "../../src/wire/live/info.ts";
import { makeLiveTransportFile, parseLiveTransportFile } from "../../src/wire/live/transport-file.ts";
import { parseTransportFile } from "../../src/wire/torrent/metainfo.ts";
import { INFO, KEY, RECIPE, TRANSPORT_FILE } from "../wire/live-vectors.ts";
import { makeTorrent, sha1, sha256 } from "../wire/make-torrent.ts";
import { makeV2Torrent } from "../wire/make-v2-torrent.ts";
import { filmTorrent, SETTINGS } from "./fake-engine.ts";
import { FakeTransfers } from "./fake-transfers.ts";

const film = filmTorrent();
const file = parseTransportFile(film.bytes, sha1);
const OPEN = { allowPrivateUrls: true };

const live = parseLiveTransportFile(TRANSPORT_FILE, sha1, ed25519Verifier);
const HOME = [{ host: "127.0.0.1", port: 8 }];

interface ResolverOptions {
  readonly kept?: boolean;
  readonly names?: Record<string, string[]>;
  /** The responses of URLs. */
  readonly web?: Record<string, Uint8Array>;
  readonly trackers?: readonly string[];
  readonly transfers?: FakeTransfers;
}

function resolver(options: ResolverOptions = {}) {
  const { transfers = new FakeTransfers(), web = {}, trackers = [] } = options;
  if (options.kept) transfers.kept.push(file);
  return createContentResolver({
    runtime: {
      sha1,
      sha256,
      ed25519Verifier,
      randomBytes: (length) => new Uint8Array(length),
      async lookup(name) {
        const found = options.names?.[name];
        if (!found) throw new SluiceError("url_unreachable", `${name} has no address`);
        return found;
      },
    },
    transfers,
    settings: { trackers },
    outbound: {
      async open(url, { allowPrivate }) {
        const bytes = web[url];
        if (!bytes) throw new SluiceError("url_unreachable", "nothing there");
        const body = new Blob([bytes.slice()]).stream();
        const mayBePrivate = allowPrivate && url.includes("192.168.");
        return { status: 200, headers: new Headers(), body, finalUrl: url, allowPrivate: mayBePrivate };
      },
    },
    log: SILENT_LOG,
  });
}

test("infohash: returns the stored transport file; without one, only the infohash", async () => {
  const selector = { kind: "infohash", infohash: film.infohash } as const;
  assert.equal((await resolver({ kept: true })(selector, OPEN)).content.transportFile, file);
  assert.equal((await resolver()(selector, OPEN)).content.transportFile, undefined);
});

test("content_id: is the infohash; the SHA-1 of a stored transport file, the id of earlier versions, works too", async () => {
  const ask = async (contentId: string, kept: boolean) =>
    (await resolver({ kept })({ kind: "content_id", contentId: contentId as never }, OPEN)).content;
  assert.equal((await ask(film.infohash, true)).transportFile, file);
  assert.equal((await ask(film.infohash, false)).infohash, film.infohash);
  assert.equal((await ask(file.fileHash, true)).infohash, film.infohash);
  assert.equal((await ask(file.fileHash, false)).infohash, file.fileHash);
});

test("content_id: an id that this engine reported for a URL plays without the URL", async () => {
  const resolve = resolver({ kept: true });
  const { content } = await resolve({ kind: "transport_file", bytes: film.bytes }, OPEN);
  const again = await resolve({ kind: "content_id", contentId: contentIdOf(content.infohash) }, OPEN);
  assert.equal(again.content.infohash, content.infohash);
});

test("magnet: returns its trackers, name, file selection, and peers with resolved host names", async () => {
  const magnet = `magnet:?xt=urn:btih:${film.infohash}&dn=Film&tr=http://a/announce&tr=udp://b:1&so=1&x.pe=h.example:7&x.pe=[2001:db8::1]:8&x.pe=none.example:9`;
  const resolve = resolver({ names: { "h.example": ["198.51.100.1", "2001:db8::2"] } });
  const { content, selectedFiles } = await resolve({ kind: "magnet", magnet }, OPEN);
  assert.equal(content.displayName, "Film");
  assert.deepEqual(content.trackers, [["http://a/announce"], ["udp://b:1"]]);
  assert.deepEqual(selectedFiles, [1]);
  assert.deepEqual(content.peers, [
    { host: "198.51.100.1", port: 7 },
    { host: "2001:db8::2", port: 7 },
    { host: "2001:db8::1", port: 8 },
  ]);
});

test("magnet: a peer at a private address is dropped unless private addresses are allowed", async () => {
  const magnet = `magnet:?xt=urn:btih:${film.infohash}&x.pe=h.example:7&x.pe=127.0.0.1:8`;
  const resolve = resolver({ names: { "h.example": ["192.168.0.1", "8.8.8.8"] } });
  const { content } = await resolve({ kind: "magnet", magnet }, { allowPrivateUrls: false });
  assert.deepEqual(content.peers, [{ host: "8.8.8.8", port: 7 }]);
});

test("magnet, transport_file: web seeds at private addresses are used only if private addresses are allowed", async () => {
  const magnet = `magnet:?xt=urn:btih:${film.infohash}&ws=http://w.example/f`;
  const seeded = makeTorrent({
    name: "film",
    files: [{ path: "film", bytes: new Uint8Array(9) }],
    pieceLength: 16_384,
    extra: { "url-list": "http://u.example/" },
  });
  const resolve = resolver();
  for (const allowPrivateUrls of [true, false]) {
    const home = (url: string) => (allowPrivateUrls ? [url] : []);
    const named = (await resolve({ kind: "magnet", magnet }, { allowPrivateUrls })).content;
    assert.deepEqual(named.webSeeds, [{ url: "http://w.example/f", kind: "files" }]);
    assert.deepEqual(named.localWebSeeds, home("http://w.example/f"));
    const selector = { kind: "transport_file", bytes: seeded.bytes } as const;
    const given = (await resolve(selector, { allowPrivateUrls })).content;
    assert.deepEqual(given.transportFile?.webSeeds, [{ url: "http://u.example/", kind: "files" }]);
    assert.deepEqual(given.localWebSeeds, home("http://u.example/"));
  }
});

test("transport_file of version 2: has the truncated infohash, as its magnet does", async () => {
  const made = makeV2Torrent({ name: "film", files: { film: new Uint8Array(50_000) }, pieceLength: 16_384 });
  const resolve = resolver({ web: { "http://x.example/t": made.bytes } });
  const { content } = await resolve({ kind: "transport_file", bytes: made.bytes }, OPEN);
  assert.equal(content.infohash, made.infohash);
  const hash = toHex(sha256(made.infoBytes));
  const magnet = `magnet:?xt=urn:btmh:1220${hash}&xs=http://x.example/t`;
  const found = await resolve({ kind: "magnet", magnet }, OPEN);
  assert.equal(found.content.infohash, made.infohash);
  assert.equal(found.content.transportFile?.info.pieceCount, 4);
});

test("transport_file: invalid bytes fail with bad_transport_file and no other error", async () => {
  for (const bytes of [
    new Uint8Array(0),
    new Uint8Array([0x64, 0x65]),
    film.bytes.subarray(0, 50),
    new Uint8Array(10_000_001),
  ])
    await assert.rejects(resolver()({ kind: "transport_file", bytes }, OPEN), { code: "bad_transport_file" });
});

test("transport_file, url: the file of a live stream brings its trackers and relays", async () => {
  const resolve = resolver({ web: { "http://192.168.0.9/live": TRANSPORT_FILE } });
  for (const selector of [
    { kind: "transport_file", bytes: TRANSPORT_FILE },
    { kind: "url", url: "http://192.168.0.9/live" },
  ] as const) {
    const { content } = await resolve(selector, OPEN);
    assert.equal(content.infohash, live.infohash);
    assert.equal(content.live?.role, "viewer");
    assert.deepEqual(content.live.file, live);
    assert.equal(content.transportFile, undefined);
    assert.deepEqual(content.localTrackers, live.trackers.flat());
    assert.deepEqual(content.peers, live.relays);
  }
});

test("url, magnet: a transport file from a public server names no private addresses, for any client", async () => {
  const bytes = makeLiveTransportFile({ ...RECIPE, relays: HOME }, KEY.sign);
  const seeded = makeTorrent({
    name: "film",
    files: [{ path: "film", bytes: new Uint8Array(9) }],
    pieceLength: 16_384,
    trackers: [["udp://192.168.0.1:80"]],
    extra: { "url-list": "http://192.168.0.1/x" },
  });
  for (const host of ["public.example", "192.168.0.9"]) {
    const web = { [`http://${host}/live`]: bytes, [`http://${host}/film`]: seeded.bytes };
    const resolve = resolver({ web });
    const here = <T>(value: T): T[] => (host === "public.example" ? [] : [value]);
    const film = (await resolve({ kind: "url", url: `http://${host}/film` }, OPEN)).content;
    assert.deepEqual(film.localTrackers, here("udp://192.168.0.1:80"));
    assert.deepEqual(film.localWebSeeds, here("http://192.168.0.1/x"));
    const stream = (await resolve({ kind: "url", url: `http://${host}/live` }, OPEN)).content;
    assert.deepEqual(stream.peers, here(HOME[0]));
    assert.equal(stream.live?.allowPrivate ?? false, host !== "public.example");
    const magnet = `magnet:?xt=urn:btih:${stream.infohash}&xs=http://${host}/live`;
    assert.deepEqual((await resolve({ kind: "magnet", magnet }, OPEN)).content.peers, here(HOME[0]));
  }
});

test("transport_file: relays and trackers at private addresses are used only if private addresses are allowed", async () => {
  const relays = [...HOME, { host: "8.8.8.8", port: 9 }, { host: "fd00::1", port: 10 }];
  const bytes = makeLiveTransportFile({ ...RECIPE, relays }, KEY.sign);
  const resolve = resolver();
  const { content } = await resolve({ kind: "transport_file", bytes }, { allowPrivateUrls: false });
  assert.deepEqual(content.peers, [{ host: "8.8.8.8", port: 9 }]);
  assert.deepEqual(content.localTrackers, []);
  const atHome = await resolve({ kind: "transport_file", bytes }, OPEN);
  assert.deepEqual(atHome.content.peers, relays);
});

test("transport_file: an invalid file of a live stream fails with bad_transport_file and a reason", async () => {
  const forged = TRANSPORT_FILE.slice();
  forged[forged.length - 2]! ^= 1;
  const info = liveInfoDict(INFO);
  const members = (more: Record<string, string | number>) => encodeBencode(bencodeDict({ ...more, info }));
  const large = members({ comment: "x".repeat(64 * 1024) });
  const wrong = new Map(info);
  wrong.set("live", new Map([...(info.get("live") as Map<string, never>), ["K", 5]]));
  const cases: [Uint8Array, RegExp][] = [
    [forged, /signature/],
    [large, /larger than 65536/],
    [encodeBencode(bencodeDict({ info: wrong })), /4, 8 or 16 stripes/],
    [encodeBencode(bencodeDict({ info, rly: 7 })), /relays as bytes/],
    [encodeBencode(bencodeDict({ info, sig: "short" })), /signature of 64/],
    [encodeBencode(bencodeDict({ info: new Map([...info, ["live", 1]]) })), /no piece hashes/],
    [
      encodeBencode(bencodeDict({ info: new Map([...info, ["pieces", "x".repeat(21)]]) })),
      /length|piece|files/,
    ],
  ];
  for (const [bytes, message] of cases)
    await assert.rejects(resolver()({ kind: "transport_file", bytes }, OPEN), (error: SluiceError) => {
      assert.equal(error.code, "bad_transport_file");
      assert.match(error.message, message);
      return true;
    });
});

test("infohash, content_id, magnet: return the stored transport file of a live stream", async () => {
  const transfers = new FakeTransfers();
  transfers.kept.push(live);
  const resolve = resolver({ transfers, trackers: ["http://mine/announce"] });
  const magnet = `magnet:?xt=urn:btih:${live.infohash}&dn=Mine&tr=http://a/announce&x.pe=192.0.2.3:4`;
  const { content: byMagnet } = await resolve({ kind: "magnet", magnet }, OPEN);
  assert.equal(byMagnet.live?.file, live);
  assert.deepEqual(byMagnet.trackers, [["http://a/announce"]]);
  assert.deepEqual(byMagnet.peers, [{ host: "192.0.2.3", port: 4 }, ...live.relays]);
  for (const selector of [
    { kind: "infohash", infohash: live.infohash },
    { kind: "content_id", contentId: contentIdOf(live.infohash) },
    { kind: "content_id", contentId: live.fileHash as string as ContentId },
  ] as const) {
    const { content } = await resolve(selector, OPEN);
    assert.equal(content.live?.file, live);
    // Its own trackers are enough.
    assert.deepEqual(content.trackers, []);
  }
});

test("magnet: the transport file comes from its xs URL if the infohash matches", async () => {
  const web = {
    "http://a/right": TRANSPORT_FILE,
    "http://a/wrong": film.bytes,
    "http://a/page": new TextEncoder().encode("<html>"),
    "http://a/film": film.bytes,
  };
  const resolve = resolver({ web });
  const ask = async (infohash: string, ...sources: string[]) => {
    const xs = sources.map((url) => `&xs=${encodeURIComponent(url)}`).join("");
    const magnet = `magnet:?xt=urn:btih:${infohash}${xs}`;
    return (await resolve({ kind: "magnet", magnet }, OPEN)).content;
  };
  assert.deepEqual((await ask(live.infohash, "http://a/gone", "http://a/right")).live?.file, live);
  assert.deepEqual((await ask(film.infohash, "http://a/film")).transportFile?.bytes, film.bytes);
  for (const url of ["http://a/gone", "http://a/wrong", "http://a/page", "ftp://a/right"]) {
    const content = await ask(live.infohash, url);
    assert.deepEqual(
      [content.infohash, content.live, content.transportFile],
      [live.infohash, undefined, undefined],
    );
  }
  // Only two of a hundred URLs are requested.
  assert.equal(
    (await ask(live.infohash, "http://a/gone", "http://a/page", "http://a/right")).live,
    undefined,
  );
});

test("magnet: a silent xs server does not delay the result, and an aborted signal ends the wait at once", async () => {
  const abort = new AbortController();
  const opened: AbortSignal[] = [];
  const resolve = createContentResolver({
    runtime: {
      sha1,
      sha256,
      ed25519Verifier,
      randomBytes: (length) => new Uint8Array(length),
      lookup: async () => [],
    },
    transfers: new FakeTransfers(),
    settings: SETTINGS,
    outbound: {
      open: (_url, { signal, timeoutMs }) => {
        assert.equal(timeoutMs, 2_000);
        opened.push(signal!);
        return new Promise((_, reject) => signal!.addEventListener("abort", () => reject(signal!.reason)));
      },
    },
    log: SILENT_LOG,
  });
  const magnet = `magnet:?xt=urn:btih:${live.infohash}&xs=http%3A%2F%2Fa%2F`;
  const asked = resolve({ kind: "magnet", magnet }, { allowPrivateUrls: true, signal: abort.signal });
  const gone = assert.rejects(asked, /gone/);
  await new Promise<void>((done) => setImmediate(done));
  abort.abort(new Error("gone"));
  await gone;
  assert.equal(opened[0]!.aborted, true);
});

test("infohash, magnet: trackers of the settings are used if the link names none", async () => {
  const trackers = ["http://mine/announce", "udp://mine:1"];
  const resolve = resolver({ trackers });
  const tiers = trackers.map((url) => [url]);
  const bare = await resolve({ kind: "infohash", infohash: film.infohash }, { allowPrivateUrls: false });
  assert.deepEqual([bare.content.trackers, bare.content.localTrackers], [tiers, trackers]);
  const magnet = `magnet:?xt=urn:btih:${film.infohash}`;
  assert.deepEqual((await resolve({ kind: "magnet", magnet }, OPEN)).content.trackers, tiers);
  const named = await resolve({ kind: "magnet", magnet: `${magnet}&tr=http://a/announce` }, OPEN);
  assert.deepEqual(named.content.trackers, [["http://a/announce"]]);
  // These may be at private addresses, even if the link names them.
  assert.deepEqual(named.content.localTrackers, ["http://a/announce", ...trackers]);
  const kept = await resolver({ trackers, kept: true })({ kind: "infohash", infohash: film.infohash }, OPEN);
  assert.deepEqual(kept.content.trackers, []);
});

test("url: the id of web content is the SHA-1 of its URL; for a private address it cannot be guessed", async () => {
  const body = () => new Blob(["#EXTM3U\n#EXT-X-TARGETDURATION:2\n"]).stream();
  const resolve = createContentResolver({
    runtime: {
      sha1,
      sha256,
      ed25519Verifier,
      randomBytes: (length) => new Uint8Array(length).fill(7),
      lookup: async () => ["93.184.216.34"],
    },
    transfers: new FakeTransfers(),
    settings: SETTINGS,
    outbound: {
      open: async (url) => ({ status: 200, headers: new Headers(), body: body(), finalUrl: url }),
    },
    log: SILENT_LOG,
  });
  const selector = { kind: "url", url: "http://a.example/x.m3u8" } as const;
  const { content } = await resolve(selector, { allowPrivateUrls: false });
  assert.equal(content.infohash, toHex(sha1(encodeUtf8(selector.url))));
  assert.equal(content.web?.kind, "hls");
  const atHome = await resolve(selector, OPEN);
  assert.notEqual(atHome.content.infohash, content.infohash);
  // The URLs of its session contain only its id.
  const again = await resolve({ kind: "infohash", infohash: content.infohash }, { allowPrivateUrls: false });
  assert.equal(again.content, content);
});

test("magnet: a key resolves to the infohash in the DHT, and the other fields of the link apply (BEP 46)", async () => {
  const transfers = new FakeTransfers();
  const key = "ab".repeat(32);
  transfers.keys.set(`${key} 6c697665`, film.infohash);
  const resolve = resolver({ transfers, kept: true });
  const magnet = `magnet:?xs=urn:btpk:${key}&s=6c697665&tr=http://a/announce&x.pe=127.0.0.1:8&so=1`;
  const { content, selectedFiles } = await resolve({ kind: "magnet", magnet }, OPEN);
  assert.equal(content.infohash, film.infohash);
  assert.equal(content.transportFile, file);
  assert.deepEqual(content.trackers, [["http://a/announce"]]);
  assert.deepEqual(content.peers, HOME);
  assert.deepEqual(selectedFiles, [1]);
  const other = { kind: "magnet", magnet: `magnet:?xs=urn:btpk:${key}` } as const;
  await assert.rejects(resolve(other, OPEN), { code: "content_id_unknown" });
});
