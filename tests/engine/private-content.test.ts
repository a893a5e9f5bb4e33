import assert from "node:assert/strict";
import { test } from "node:test";
import { runtime } from "#runtime";
import { type Infohash, infohashOf } from "../../src/base/ids.ts";
import type { TransferContent } from "../../src/engine/contract.ts";
import { EitherTransfer } from "../../src/engine/either-transfer.ts";
import { ContentIdSwarms } from "../../src/engine/live/content-id-swarms.ts";
import { LiveTransfer } from "../../src/engine/live/live-transfer.ts";
import type { PeerFinder } from "../../src/engine/reach/contract.ts";
import { SwarmTransfer } from "../../src/engine/transfer.ts";
import {
  type LiveTransportFile,
  makeLiveTransportFile,
  parseLiveTransportFile,
} from "../../src/wire/live-transport.ts";
import { parseTransportFile } from "../../src/wire/metainfo.ts";
import { inFolder } from "../contract/folder.ts";
import { KEY, RECIPE } from "../wire/live-vectors.ts";
import { makeTorrent, sha1 } from "../wire/make-torrent.ts";
import { makeV2Torrent } from "../wire/make-v2-torrent.ts";
import { FakeLiveTransfer } from "./fake-live-transfer.ts";
import { keepingLog } from "./parts.ts";
import { serveMetadata, someHouse } from "./transfer-house.ts";
import { until } from "./web-seeds/seeded-transfer.ts";

/** Finds nobody, and remembers which swarms it was asked to find: `+` for joined, `-` for left. */
class NotingFinder implements PeerFinder {
  readonly notes: string[] = [];

  join({ infohash }: { readonly infohash: Infohash }): () => void {
    this.notes.push(`+${infohash}`);
    return () => void this.notes.push(`-${infohash}`);
  }
}

const film = (isPrivate: boolean) => {
  const files = [{ path: "film.mp4", bytes: new Uint8Array(40_000) }];
  return makeTorrent({ name: "film.mp4", files, pieceLength: 16_384, private: isPrivate });
};

/** Opens content until it is ready, and gives what finders heard till then, and in all. */
async function heardOf(content: Partial<TransferContent> & { infohash: Infohash }, isShared: boolean) {
  const finder = new NotingFinder();
  let ready: string[] = [];
  await inFolder(async (folder) => {
    const house = await someHouse(folder, { finder });
    const transfer = new EitherTransfer(
      house,
      { trackers: [], peers: [], ...content },
      Promise.resolve(),
      (live) => new FakeLiveTransfer(live),
      () => {},
    );
    await transfer.ready();
    ready = [...finder.notes];
    assert.equal(transfer.isShared, isShared);
    await transfer.stop();
    await house.kept.close();
  });
  return { ready, all: finder.notes };
}

test("SwarmTransfer: finders hear of content until it is closed, and never of private content (BEP 27)", async () => {
  for (const isPrivate of [false, true]) {
    const { bytes, infohash } = film(isPrivate);
    const transportFile = parseTransportFile(bytes, sha1);
    const heard = await heardOf({ infohash, transportFile }, !isPrivate);
    assert.deepEqual(heard.all, isPrivate ? [] : [`+${infohash}`, `-${infohash}`]);
  }
});

test("SwarmTransfer: of a magnet they hear until its metadata says that it is private", async () => {
  for (const isPrivate of [false, true]) {
    const { infoBytes, infohash } = film(isPrivate);
    const peer = await serveMetadata(infoBytes);
    const { ready } = await heardOf({ infohash, peers: [peer.address] }, !isPrivate);
    assert.deepEqual(ready, isPrivate ? [`+${infohash}`, `-${infohash}`] : [`+${infohash}`]);
    await peer.close();
  }
});

test("SwarmTransfer: nor of a magnet whose transport file is given before it has begun", async () => {
  for (const isPrivate of [false, true]) {
    const { bytes, infohash } = film(isPrivate);
    const finder = new NotingFinder();
    await inFolder(async (folder) => {
      const house = await someHouse(folder, { finder });
      const content = { infohash, trackers: [], peers: [] };
      const transfer = new SwarmTransfer(house, content, Promise.resolve(), () => {});
      transfer.learn(parseTransportFile(bytes, sha1));
      await transfer.ready();
      assert.deepEqual(finder.notes, isPrivate ? [] : [`+${infohash}`]);
      await transfer.stop();
      await house.kept.close();
    });
  }
});

test("SwarmTransfer: nor while the rest of what a magnet of version 2 leaves out is asked for", async () => {
  const finder = new NotingFinder();
  const { infoBytes } = makeV2Torrent({
    ...{ name: "film.mp4", files: { "film.mp4": new Uint8Array(40_000) }, pieceLength: 16_384 },
    info: { private: 1 },
  });
  // It has the metadata and nothing else, so that the content is never ready.
  const peer = await serveMetadata(infoBytes);
  await inFolder(async (folder) => {
    const house = await someHouse(folder, { finder });
    const { infohash } = peer;
    const content = { infohash, trackers: [], peers: [peer.address] };
    const transfer = new SwarmTransfer(house, content, Promise.resolve(), () => {});
    await until(() => finder.notes.length === 2);
    assert.deepEqual(finder.notes, [`+${infohash}`, `-${infohash}`]);
    assert.equal(transfer.figures.lacksLayers, true);
    await transfer.stop();
  });
  await peer.close();
});

function liveFile(isPrivate: boolean): LiveTransportFile {
  const recipe = { ...RECIPE, info: { ...RECIPE.info, isPrivate }, trackers: [], relays: [] };
  return parseLiveTransportFile(makeLiveTransportFile(recipe, KEY.sign), sha1, runtime.ed25519Verifier);
}

test("LiveTransfer: finders hear of a stream and of its content id, and never of a private one's (BEP 27)", async () => {
  for (const isPrivate of [false, true]) {
    const file = liveFile(isPrivate);
    const finder = new NotingFinder();
    let kept = 0;
    await inFolder(async (folder) => {
      const house = await someHouse(folder, { finder });
      const { clock, randomBytes } = runtime;
      const contentIds = new ContentIdSwarms({
        clock,
        log: keepingLog(),
        random: Math.random,
        randomBytes,
        listenPort: 0,
        finder,
        dht: {
          keep: () => {
            kept++;
            return () => {};
          },
        },
      });
      const transfer = new LiveTransfer(
        { ...house, contentIds, windowLimitBytes: () => 1 << 20, liveFolder: undefined },
        { infohash: file.infohash, live: { file, role: "viewer" }, trackers: [], peers: [] },
        Promise.resolve(),
      );
      await transfer.ready();
      await new Promise((resolve) => setImmediate(resolve));
      assert.equal(kept === 0, isPrivate);
      assert.equal(contentIds.isShared(file.contentId as string as Infohash), !isPrivate);
      await transfer.stop();
      await contentIds.close();
      await house.kept.close();
    });
    const both = [file.infohash, infohashOf(sha1(file.bytes))];
    const heard = (sign: string) => finder.notes.filter((note) => note.startsWith(sign)).sort();
    const expected = (sign: string) => (isPrivate ? [] : both.map((each) => `${sign}${each}`).sort());
    assert.deepEqual([heard("+"), heard("-")], [expected("+"), expected("-")]);
  }
});
