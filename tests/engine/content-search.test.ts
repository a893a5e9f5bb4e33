import assert from "node:assert/strict";
import { test } from "node:test";
import { runtime } from "#runtime";
import { toHex } from "../../src/base/bytes.ts";
import type { ContentId, Infohash } from "../../src/base/ids.ts";
import { createAnnouncer } from "../../src/engine/announcer.ts";
import { ContentSearch } from "../../src/engine/content-search.ts";
import { HomeTrackers } from "../../src/engine/home-trackers.ts";
import { ContentIdSwarms } from "../../src/engine/live/content-id-swarms.ts";
import { listenForPeers } from "../../src/engine/peer-listener.ts";
import type { Dht } from "../../src/engine/reach/contract.ts";
import { createOutbound } from "../../src/outbound/outbound.ts";
import { makeLiveTransportFile, parseLiveTransportFile } from "../../src/wire/live-transport.ts";
import { inFolder } from "../contract/folder.ts";
import { announceRequest } from "../parts/announce-request.ts";
import { NO_FINDER } from "../parts/no-reach.ts";
import { KEY, RECIPE, TRANSPORT_FILE } from "../wire/live-vectors.ts";
import { sha1 } from "../wire/make-torrent.ts";
import { FakeClock } from "./fake-clock.ts";
import { filmTorrent } from "./fake-house.ts";
import { type LoopbackTracker, startLoopbackTracker } from "./loopback-tracker.ts";
import { keepingLog } from "./parts.ts";
import { serveMetadata, someHouse } from "./transfer-house.ts";

/** A tracker, who serves by content id, and who searches; closed behind `work`. */
function network(
  work: (parts: {
    tracker: LoopbackTracker;
    swarms: ContentIdSwarms;
    home: HomeTrackers;
    port: number;
    search: (trackers?: readonly string[]) => ContentSearch;
    house: Awaited<ReturnType<typeof someHouse>>;
  }) => Promise<void>,
) {
  return inFolder(async (folder) => {
    const { net, clock, randomBytes } = runtime;
    const log = keepingLog();
    const tracker = await startLoopbackTracker();
    const announcer = createAnnouncer(runtime, createOutbound(runtime, log), log);
    const home = new HomeTrackers(announcer);
    home.add([tracker.httpUrl]);
    let swarms: ContentIdSwarms | undefined;
    const listener = await listenForPeers(
      { net, clock, log, adopt: (infohash, socket, first) => swarms?.accept(infohash, socket, first) },
      { host: "127.0.0.1", port: 0 },
    );
    const { port } = listener.address;
    swarms = new ContentIdSwarms({
      clock,
      log,
      random: Math.random,
      randomBytes,
      listenPort: port,
      finder: NO_FINDER,
    });
    const house = await someHouse(folder, { announcer, p2pPort: 1 });
    const searches: ContentSearch[] = [];
    const search = (trackers: readonly string[] = [tracker.httpUrl]) => {
      const made = new ContentSearch({ hasFinder: false, ...house, trackers });
      searches.push(made);
      return made;
    };
    try {
      await work({ tracker, swarms, home, port, search, house });
    } finally {
      await Promise.all(searches.map((each) => each.close()));
      await swarms.close();
      await listener.close();
      announcer.close();
      await house.kept.close();
      await tracker.close();
    }
  });
}

const parse = (bytes: Uint8Array) => parseLiveTransportFile(bytes, sha1, runtime.ed25519Verifier);

/** Waits until the tracker has heard of so many announces. */
async function announced(tracker: LoopbackTracker, count: number) {
  while (tracker.announces.length < count) await new Promise((resolve) => setTimeout(resolve, 2));
}

test("ContentSearch.find: a content id leads to the signed transport file, and to who has it", () =>
  network(async ({ tracker, swarms, home, port, search }) => {
    const file = parse(makeLiveTransportFile({ ...RECIPE, trackers: [[tracker.httpUrl]] }, KEY.sign));
    const stop = swarms.serve(file, home);
    await announced(tracker, 1);
    const finder = search();
    const [found, again] = await Promise.all([finder.find(file.contentId), finder.find(file.contentId)]);
    assert.equal(found, again);
    assert.equal(found?.known.kind, "live");
    assert.deepEqual(found?.known.file.bytes, file.bytes);
    assert.equal(found?.known.kind === "live" && found.known.file.isSigned, true);
    assert.deepEqual(found?.peers, [{ host: "127.0.0.1", port }]);
    // Who has found it is about to serve it, and leaves the tracker when all of it ends.
    const left = () =>
      tracker.announces.filter(({ event, port: its }) => event === "stopped" && its === 1).length;
    assert.equal(left(), 0);
    await finder.close();
    assert.equal(left(), 1);
    await stop();
    const ours = tracker.announces.filter((announce) => announce.port === port);
    assert.deepEqual(
      ours.map(({ infohash, event }) => [infohash, event]),
      [
        [file.contentId, "started"],
        [file.contentId, "stopped"],
      ],
    );
  }));

test("ContentSearch.find: a file of 64 KiB comes too, in pieces", () =>
  network(async ({ tracker, swarms, home, search }) => {
    const description = "long ".repeat(12_000);
    const recipe = { ...RECIPE, meta: { description }, trackers: [[tracker.httpUrl]] };
    const file = parse(makeLiveTransportFile(recipe, KEY.sign));
    assert.ok(file.bytes.length > 60_000);
    swarms.serve(file, home);
    await announced(tracker, 1);
    assert.deepEqual((await search().find(file.contentId))?.known.file.bytes, file.bytes);
  }));

test("ContentSearch.find: an id that is an infohash leads to that content", () =>
  network(async ({ tracker, home, search }) => {
    const film = filmTorrent();
    const live = parse(TRANSPORT_FILE);
    for (const [kind, bytes] of [
      ["vod", film.infoBytes],
      ["vod", film.bytes],
      ["live", live.infoBytes],
    ] as const) {
      const peer = await serveMetadata(bytes);
      await home.announce(announceOf(tracker.httpUrl, peer.infohash, peer.address.port));
      const found = await search().find(peer.infohash as string as ContentId);
      assert.equal(found?.known.kind, kind);
      assert.equal(found.known.file.infohash, kind === "vod" ? film.infohash : live.infohash);
      await peer.close();
    }
  }));

test("ContentSearch.find: what nobody can read is not found; nor is anything where nobody is to be asked", () =>
  network(async ({ tracker, home, search }) => {
    const forged = TRANSPORT_FILE.slice();
    forged[forged.length - 2]! ^= 1;
    const peer = await serveMetadata(forged);
    await home.announce(announceOf(tracker.httpUrl, peer.infohash, peer.address.port));
    assert.equal(await search().find(peer.infohash as string as ContentId), undefined);
    const before = tracker.announces.length;
    assert.equal(await search([]).find(peer.infohash as string as ContentId), undefined);
    assert.equal(tracker.announces.length, before);
    await peer.close();
  }));

test("ContentSearch.find: gives up after 8 s, with the asker's signal, and beyond four at once", () =>
  inFolder(async (folder) => {
    const clock = new FakeClock();
    const base = await someHouse(folder);
    const house = { ...base, runtime: { ...runtime, clock } };
    const search = new ContentSearch({
      hasFinder: false,
      ...house,
      trackers: ["http://tracker.example/announce"],
    });
    const id = (i: number) => String(i).repeat(40) as ContentId;
    const abort = new AbortController();
    const left = assert.rejects(search.find(id(1), abort.signal), /gone/);
    abort.abort(new Error("gone"));
    await left;
    const found = [1, 2, 3, 4].map((i) => search.find(id(i)));
    await assert.rejects(search.find(id(5)), { code: "too_many" });
    await clock.advance(8_000);
    assert.deepEqual(await Promise.all(found), [undefined, undefined, undefined, undefined]);
    const fifth = search.find(id(5));
    await search.close();
    assert.equal(await fifth, undefined);
    assert.equal(await search.find(id(6)), undefined);
    await base.kept.close();
  }));

function announceOf(url: string, infohash: Infohash, port: number) {
  const peerId = new Uint8Array(20).fill(0x43);
  return announceRequest(url, { infohash, peerId, port, left: 0 });
}

test("ContentSearch.find: a short file is had from the DHT without anybody being called (BEP 44)", () =>
  network(async ({ house }) => {
    const { bytes, contentId } = parse(TRANSPORT_FILE);
    const asked: string[] = [];
    const dht = {
      async get(target: Uint8Array) {
        asked.push(toHex(target));
        return bytes;
      },
    } as unknown as Dht;
    const search = new ContentSearch({ ...house, dht, hasFinder: true, trackers: [] });
    const found = await search.find(contentId);
    assert.deepEqual(asked, [contentId]);
    assert.equal(found?.known.kind, "live");
    await search.close();
  }));
