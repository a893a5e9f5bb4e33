import assert from "node:assert/strict";
import { test } from "node:test";
import { toHex } from "../../src/base/bytes.ts";
import { SluiceError } from "../../src/base/errors.ts";
import { encodeUtf8 } from "../../src/base/utf8.ts";
import { createContentResolver } from "../../src/engine/content.ts";
import { ed25519Verifier } from "../../src/runtime/crypto.ts";
import { parseTransportFile } from "../../src/wire/metainfo.ts";
import { sha1 } from "../wire/make-torrent.ts";
import { filmTorrent, SETTINGS, SILENT } from "./fake-house.ts";
import { FakeTransfers } from "./fake-transfers.ts";

const film = filmTorrent();
const file = parseTransportFile(film.bytes, sha1);
const OPEN = { allowPrivateUrls: true };

function resolver(options: { kept?: boolean; names?: Record<string, string[]> } = {}) {
  const transfers = new FakeTransfers();
  if (options.kept) transfers.kept.push(file);
  return createContentResolver({
    runtime: {
      sha1,
      ed25519Verifier,
      randomBytes: (length) => new Uint8Array(length),
      async lookup(name) {
        const found = options.names?.[name];
        if (!found) throw new SluiceError("url_unreachable", `${name} has no address`);
        return found;
      },
    },
    transfers,
    settings: SETTINGS,
    outbound: { open: () => Promise.reject(new SluiceError("url_unreachable", "nothing there")) },
    log: SILENT,
  });
}

test("infohash: a kept transport file comes with it; without one the peers are asked", async () => {
  const selector = { kind: "infohash", infohash: film.infohash } as const;
  assert.equal((await resolver({ kept: true })(selector, OPEN)).content.transportFile, file);
  assert.equal((await resolver()(selector, OPEN)).content.transportFile, undefined);
});

test("content_id: the id of a kept transport file, or an infohash that is known; else an error at once", async () => {
  const ask = (contentId: string, kept: boolean) =>
    resolver({ kept })({ kind: "content_id", contentId: contentId as never }, OPEN);
  assert.equal((await ask(file.contentId, true)).content.infohash, film.infohash);
  assert.equal((await ask(film.infohash, true)).content.infohash, film.infohash);
  await assert.rejects(ask(film.infohash, false), { code: "content_id_unknown" });
});

test("magnet: its trackers, name, files and peers, names looked up", async () => {
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

test("magnet: a name that leads home is left out where private addresses may not be reached", async () => {
  const magnet = `magnet:?xt=urn:btih:${film.infohash}&x.pe=h.example:7&x.pe=127.0.0.1:8`;
  const resolve = resolver({ names: { "h.example": ["192.168.0.1", "8.8.8.8"] } });
  const { content } = await resolve({ kind: "magnet", magnet }, { allowPrivateUrls: false });
  assert.deepEqual(content.peers, [{ host: "8.8.8.8", port: 7 }]);
});

test("transport_file: hostile bytes are a bad transport file, never another error", async () => {
  for (const bytes of [
    new Uint8Array(0),
    new Uint8Array([0x64, 0x65]),
    film.bytes.subarray(0, 50),
    new Uint8Array(10_000_001),
  ])
    await assert.rejects(resolver()({ kind: "transport_file", bytes }, OPEN), { code: "bad_transport_file" });
});

test("url: media of a web server goes by the SHA-1 of its URL, at home by one that nobody can compute", async () => {
  const body = () => new Blob(["#EXTM3U\n#EXT-X-TARGETDURATION:2\n"]).stream();
  const resolve = createContentResolver({
    runtime: {
      sha1,
      ed25519Verifier,
      randomBytes: (length) => new Uint8Array(length).fill(7),
      lookup: async () => ["93.184.216.34"],
    },
    transfers: new FakeTransfers(),
    settings: SETTINGS,
    outbound: {
      open: async (url) => ({ status: 200, headers: new Headers(), body: body(), finalUrl: url }),
    },
    log: SILENT,
  });
  const selector = { kind: "url", url: "http://a.example/x.m3u8" } as const;
  const { content } = await resolve(selector, { allowPrivateUrls: false });
  assert.equal(content.infohash, toHex(sha1(encodeUtf8(selector.url))));
  assert.equal(content.web?.kind, "hls");
  const atHome = await resolve(selector, OPEN);
  assert.notEqual(atHome.content.infohash, content.infohash);
  // Its session's URLs lead back to it.
  const again = await resolve({ kind: "infohash", infohash: content.infohash }, { allowPrivateUrls: false });
  assert.equal(again.content, content);
});
