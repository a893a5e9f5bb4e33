import assert from "node:assert/strict";
import { test } from "node:test";
import { runtime } from "#runtime";
import { SluiceError } from "../../../src/base/errors.ts";
import type { Infohash } from "../../../src/base/ids.ts";
import { createContentResolver } from "../../../src/engine/content.ts";
import type { ActiveTransfer, ContentSelector, Transfers } from "../../../src/engine/contract.ts";
import { createTransfers } from "../../../src/engine/transfers.ts";
import { createOutbound } from "../../../src/outbound/outbound.ts";
import { encodeHandshake } from "../../../src/wire/handshake.ts";
import {
  type LiveTransportFile,
  makeLiveTransportFile,
  parseLiveTransportFile,
} from "../../../src/wire/live-transport.ts";
import { inFolder } from "../../contract/folder.ts";
import { KEY, RECIPE } from "../../wire/live-vectors.ts";
import { sha1 } from "../../wire/make-torrent.ts";
import { type LoopbackTracker, startLoopbackTracker } from "../loopback-tracker.ts";
import { keepingLog, someSettings } from "../parts.ts";

interface Network {
  readonly tracker: LoopbackTracker;
  readonly file: LiveTransportFile;
  readonly source: Transfers;
  /** Another engine, and how it opens what a player names. */
  engine(
    trackers?: readonly string[],
  ): Promise<{ transfers: Transfers; open(selector: ContentSelector): Promise<ActiveTransfer> }>;
}

/** A source that is on air, with a tracker that knows it, and engines of viewers. */
function network(work: (network: Network) => Promise<void>) {
  return inFolder(async (folder) => {
    const tracker = await startLoopbackTracker();
    const engines: Transfers[] = [];
    const start = async (trackers: readonly string[] = []) => {
      const settings = someSettings(`${folder}/${engines.length}`, { trackers });
      const none = () => Promise.reject(new SluiceError("unsupported_container", "none here"));
      const transfers = await createTransfers(runtime, settings, keepingLog(), none);
      engines.push(transfers);
      return { transfers, settings };
    };
    const recipe = { ...RECIPE, trackers: [[tracker.httpUrl]], relays: [] };
    const file = parseLiveTransportFile(
      makeLiveTransportFile(recipe, KEY.sign),
      sha1,
      runtime.ed25519Verifier,
    );
    try {
      const { transfers: source } = await start();
      const homeTrackers = [tracker.httpUrl];
      source.open({
        infohash: file.infohash,
        live: { file, role: "source" },
        trackers: [],
        peers: [],
        homeTrackers,
      });
      // Of the stream, and of its content id.
      while (heard(tracker, "started", source.p2pPort).length < 2) await pause();
      await work({
        tracker,
        file,
        source,
        async engine(trackers) {
          const { transfers, settings } = await start(trackers);
          const log = keepingLog();
          const outbound = createOutbound(runtime, log);
          const resolve = createContentResolver({ runtime, transfers, outbound, settings, log });
          const open = async (selector: ContentSelector) =>
            transfers.open((await resolve(selector, { allowPrivateUrls: true })).content);
          return { transfers, open };
        },
      });
    } finally {
      await Promise.all(engines.map((engine) => engine.close()));
      await tracker.close();
    }
  });
}

/** The infohashes of announces with `event` from `port`. */
function heard(tracker: LoopbackTracker, event: string, port: number): string[] {
  return tracker.announces.flatMap((each) =>
    each.event === event && each.port === port ? [each.infohash] : [],
  );
}

function pause() {
  return new Promise<void>((resolve) => setTimeout(resolve, 5));
}

async function connected(transfer: ActiveTransfer): Promise<void> {
  while ((transfer.live?.figures().peers ?? 0) === 0) await pause();
}

/** How many bytes a stranger gets for its handshake, who then waits a moment or until it is cut off. */
function bytesFor(infohash: Infohash, port: number): Promise<number> {
  return new Promise((resolve) => {
    let count = 0;
    const socket = runtime.net.connect(
      { host: "127.0.0.1", port },
      {
        opened() {
          const peerId = new Uint8Array(20).fill(0x43);
          socket.write(encodeHandshake({ infohash, peerId, extensions: true, fast: false, dht: false }));
        },
        received(bytes) {
          count += bytes.length;
          socket.close();
        },
        drained() {},
        closed: () => resolve(count),
      },
      { timeoutMs: 5_000 },
    );
  });
}

test("a magnet that names a peer and nothing else becomes a live transfer that is connected to it", () =>
  network(async ({ file, source, engine }) => {
    const { transfers, open } = await engine();
    const magnet = `magnet:?xt=urn:btih:${file.infohash}&dn=Seen&x.pe=127.0.0.1:${source.p2pPort}`;
    const transfer = await open({ kind: "magnet", magnet });
    assert.deepEqual([transfer.name, transfer.live], ["Seen", undefined]);
    await transfer.ready();
    assert.deepEqual(transfer.live?.content.file.info, file.info);
    assert.equal(transfer.live?.content.file.isSigned, false);
    await connected(transfer);
    assert.equal(transfers.get(file.infohash), transfer);
    assert.equal((await transfers.knownTransportFile(file.infohash))?.kind, "live");
  }));

test("a magnet that names a tracker: the viewer is found there after the metadata swarm has gone", () =>
  network(async ({ tracker, file, engine }) => {
    const first = await engine();
    const magnet = `magnet:?xt=urn:btih:${file.infohash}&tr=${encodeURIComponent(tracker.httpUrl)}`;
    const transfer = await first.open({ kind: "magnet", magnet });
    await connected(transfer);
    const port = first.transfers.p2pPort;
    while (heard(tracker, "started", port).length < 2) await pause();
    assert.deepEqual(heard(tracker, "stopped", port), []);
    await transfer.stop();
    assert.deepEqual([...new Set(heard(tracker, "stopped", port))], [file.infohash]);
  }));

test("a content id that nobody knows here leads to the signed file, and the stream, by the trackers of the settings", () =>
  network(async ({ tracker, file, source, engine }) => {
    const { transfers, open } = await engine([tracker.httpUrl]);
    const transfer = await open({ kind: "content_id", contentId: file.contentId });
    assert.equal(transfer.contentId, file.contentId);
    assert.equal(transfer.live?.content.file.isSigned, true);
    await connected(transfer);
    assert.equal(await transfers.knownContentId(file.contentId), file.infohash);
    // From now on this viewer gives it, too: also when the source has gone.
    while (!heard(tracker, "started", transfers.p2pPort).includes(file.contentId)) await pause();
    await source.close();
    const another = await engine([tracker.httpUrl]);
    const again = await another.open({ kind: "content_id", contentId: file.contentId });
    assert.deepEqual(again.live?.content.file.bytes, file.bytes);
    await connected(again);
  }));

test("the infohash in place of a content id leads to the stream as well", () =>
  network(async ({ tracker, file, engine }) => {
    const { open } = await engine([tracker.httpUrl]);
    const transfer = await open({ kind: "content_id", contentId: file.infohash as never });
    assert.equal(transfer.infohash, file.infohash);
    await connected(transfer);
  }));

test("a private source is announced nowhere, and gives its file to nobody", () =>
  network(async ({ tracker, file, source, engine }) => {
    const { publicKey, sign } = runtime.ed25519Key(new Uint8Array(32).fill(9));
    const bytes = makeLiveTransportFile({ ...file, info: { ...file.info, publicKey } }, sign);
    const hidden = parseLiveTransportFile(bytes, sha1, runtime.ed25519Verifier);
    const { transfers } = await engine();
    const only = [{ host: "192.0.2.1", port: 1 }];
    const live = { file: hidden, role: "source", only } as const;
    const homeTrackers = [tracker.httpUrl];
    const transfer = transfers.open({
      infohash: hidden.infohash,
      live,
      trackers: [],
      peers: [],
      homeTrackers,
    });
    await transfer.ready();
    for (const id of [hidden.contentId, hidden.infohash])
      assert.equal(await bytesFor(id as Infohash, transfers.p2pPort), 0);
    await transfer.stop();
    const told: string[] = tracker.announces.map(({ infohash }) => infohash);
    assert.ok(!told.includes(hidden.infohash) && !told.includes(hidden.contentId));
    assert.ok((await bytesFor(file.contentId as string as Infohash, source.p2pPort)) > 0);
  }));

test("content that waits for metadata goes on as a live stream when somebody brings its transport file", () =>
  network(async ({ file, source, engine }) => {
    const { open } = await engine();
    const waiting = await open({ kind: "infohash", infohash: file.infohash });
    const ready = waiting.ready();
    const same = await open({ kind: "transport_file", bytes: file.bytes });
    assert.equal(same, waiting);
    await ready;
    assert.equal(waiting.contentId, file.contentId);
    waiting.addPeers([{ host: "127.0.0.1", port: source.p2pPort }], "magnet");
    await connected(waiting);
  }));
