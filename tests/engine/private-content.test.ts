import assert from "node:assert/strict";
import { test } from "node:test";
import { runtime } from "#runtime";
import type { Infohash } from "../../src/base/ids.ts";
import { EitherTransfer } from "../../src/engine/either-transfer.ts";
import { LiveTransfer } from "../../src/live/live-transfer.ts";
import type { PeerFinder } from "../../src/net/contract.ts";
import type { TransferContent } from "../../src/transfer/contract.ts";
import { SwarmTransfer } from "../../src/transfer/transfer.ts";
import {
  type LiveTransportFile,
  makeLiveTransportFile,
  parseLiveTransportFile,
} from "../../src/wire/live/transport-file.ts";
import { parseTransportFile } from "../../src/wire/torrent/metainfo.ts";
import { inFolder } from "../contract/folder.ts";
import { serveMetadata, transferDependencies } from "../transfer/transfer-dependencies.ts";
import { until } from "../transfer/web-seeds/seeded-transfer.ts";
import { KEY, RECIPE } from "../wire/live-vectors.ts";
import { makeTorrent, sha1 } from "../wire/make-torrent.ts";
import { makeV2Torrent } from "../wire/make-v2-torrent.ts";
import { FakeLiveTransfer } from "./fake-live-transfer.ts";

/** A finder without results that records joined (`+`) and left (`-`) swarms. */
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

/** Opens content until it is ready. Returns what the finder recorded until then and in total. */
async function heardOf(content: Partial<TransferContent> & { infohash: Infohash }, isShared: boolean) {
  const finder = new NotingFinder();
  let ready: string[] = [];
  await inFolder(async (folder) => {
    const deps = await transferDependencies(folder, { finder });
    const transfer = new EitherTransfer(
      deps,
      { trackers: [], peers: [], ...content },
      Promise.resolve(),
      (live) => new FakeLiveTransfer(live),
      () => {},
    );
    await transfer.ready();
    ready = [...finder.notes];
    assert.equal(transfer.isShared, isShared);
    await transfer.stop();
    await deps.kept.close();
  });
  return { ready, all: finder.notes };
}

test("SwarmTransfer: is announced to finders until it closes, and never if it is private (BEP 27)", async () => {
  for (const isPrivate of [false, true]) {
    const { bytes, infohash } = film(isPrivate);
    const transportFile = parseTransportFile(bytes, sha1);
    const heard = await heardOf({ infohash, transportFile }, !isPrivate);
    assert.deepEqual(heard.all, isPrivate ? [] : [`+${infohash}`, `-${infohash}`]);
  }
});

test("SwarmTransfer: a magnet is announced until its metadata marks it as private", async () => {
  for (const isPrivate of [false, true]) {
    const { infoBytes, infohash } = film(isPrivate);
    const peer = await serveMetadata(infoBytes);
    const { ready } = await heardOf({ infohash, peers: [peer.address] }, !isPrivate);
    assert.deepEqual(ready, isPrivate ? [`+${infohash}`, `-${infohash}`] : [`+${infohash}`]);
    await peer.close();
  }
});

test("SwarmTransfer: a magnet with a private transport file given before the start is not announced", async () => {
  for (const isPrivate of [false, true]) {
    const { bytes, infohash } = film(isPrivate);
    const finder = new NotingFinder();
    await inFolder(async (folder) => {
      const deps = await transferDependencies(folder, { finder });
      const content = { infohash, trackers: [], peers: [] };
      const transfer = new SwarmTransfer(deps, content, Promise.resolve(), () => {});
      transfer.learn(parseTransportFile(bytes, sha1));
      await transfer.ready();
      assert.deepEqual(finder.notes, isPrivate ? [] : [`+${infohash}`]);
      await transfer.stop();
      await deps.kept.close();
    });
  }
});

test("SwarmTransfer: a private magnet of version 2 is not announced while its piece layers are fetched", async () => {
  const finder = new NotingFinder();
  const { infoBytes } = makeV2Torrent({
    ...{ name: "film.mp4", files: { "film.mp4": new Uint8Array(40_000) }, pieceLength: 16_384 },
    info: { private: 1 },
  });
  // The peer has the metadata only, so the content never becomes ready.
  const peer = await serveMetadata(infoBytes);
  await inFolder(async (folder) => {
    const deps = await transferDependencies(folder, { finder });
    const { infohash } = peer;
    const content = { infohash, trackers: [], peers: [peer.address] };
    const transfer = new SwarmTransfer(deps, content, Promise.resolve(), () => {});
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

test("LiveTransfer: a stream is announced, and never a private one (BEP 27)", async () => {
  for (const isPrivate of [false, true]) {
    const file = liveFile(isPrivate);
    const finder = new NotingFinder();
    await inFolder(async (folder) => {
      const deps = await transferDependencies(folder, { finder });
      const transfer = new LiveTransfer(
        { ...deps, windowLimitBytes: () => 1 << 20, liveFolder: undefined },
        { infohash: file.infohash, live: { file, role: "viewer" }, trackers: [], peers: [] },
        Promise.resolve(),
      );
      await transfer.ready();
      await new Promise((resolve) => setImmediate(resolve));
      await transfer.stop();
      await deps.kept.close();
    });
    assert.deepEqual(finder.notes, isPrivate ? [] : [`+${file.infohash}`, `-${file.infohash}`]);
  }
});
