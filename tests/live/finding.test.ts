import assert from "node:assert/strict";
import { test } from "node:test";
import { runtime } from "#runtime";
import { SluiceError } from "../../src/base/errors.ts";
import type { Infohash } from "../../src/base/ids.ts";
import { contentIdOf } from "../../src/base/ids.ts";
import { createContentResolver } from "../../src/engine/content.ts";
import { createTransfers } from "../../src/engine/transfers.ts";
import { createOutbound } from "../../src/outbound/outbound.ts";
import type { ActiveTransfer, ContentSelector, Transfers } from "../../src/transfer/contract.ts";
import {
  type LiveTransportFile,
  makeLiveTransportFile,
  parseLiveTransportFile,
} from "../../src/wire/live/transport-file.ts";
import { encodeHandshake } from "../../src/wire/peer/handshake.ts";
import { inFolder } from "../contract/folder.ts";
import { keepingLog, someSettings } from "../engine/parts.ts";
import { type LoopbackTracker, startLoopbackTracker } from "../net/loopback-tracker.ts";
import { KEY, RECIPE } from "../wire/live-vectors.ts";
import { sha1 } from "../wire/make-torrent.ts";

interface Network {
  readonly tracker: LoopbackTracker;
  readonly file: LiveTransportFile;
  readonly source: Transfers;
  /** Another engine, and its search for content. */
  engine(
    trackers?: readonly string[],
  ): Promise<{ transfers: Transfers; open(selector: ContentSelector): Promise<ActiveTransfer> }>;
}

/** A source on air, its tracker, and engines of viewers. */
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
      const localTrackers = [tracker.httpUrl];
      source.open({
        infohash: file.infohash,
        live: { file, role: "source" },
        trackers: [],
        peers: [],
        localTrackers,
      });
      while (infohashesOf(tracker, "started", source.p2pPort).length < 1) await pause();
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

/** Infohashes of announces with `event` from `port`. */
function infohashesOf(tracker: LoopbackTracker, event: string, port: number): string[] {
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

/** How many bytes an unknown peer gets after its handshake, until a moment has passed or it is disconnected. */
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

test("a magnet link with only a peer becomes a live transfer that is connected to it", () =>
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

test("a magnet link with a tracker: the viewer is found there after the metadata swarm has stopped", () =>
  network(async ({ tracker, file, engine }) => {
    const first = await engine();
    const magnet = `magnet:?xt=urn:btih:${file.infohash}&tr=${encodeURIComponent(tracker.httpUrl)}`;
    const transfer = await first.open({ kind: "magnet", magnet });
    await connected(transfer);
    const port = first.transfers.p2pPort;
    while (infohashesOf(tracker, "started", port).length < 1) await pause();
    assert.deepEqual(infohashesOf(tracker, "stopped", port), []);
    await transfer.stop();
    assert.deepEqual([...new Set(infohashesOf(tracker, "stopped", port))], [file.infohash]);
  }));

test("the SHA-1 of a stored transport file, the content id of earlier versions, leads to the stream as well", () =>
  network(async ({ tracker, file, engine }) => {
    const { transfers, open } = await engine([tracker.httpUrl]);
    await transfers.keep({ kind: "live", file });
    const transfer = await open({ kind: "content_id", contentId: file.fileHash as never });
    assert.equal(transfer.infohash, file.infohash);
    assert.equal(transfer.live?.content.file.isSigned, true);
    await connected(transfer);
  }));

test("a printed content id leads a fresh engine to the stream, by the configured trackers", () =>
  network(async ({ tracker, file, engine }) => {
    const { open } = await engine([tracker.httpUrl]);
    const transfer = await open({ kind: "content_id", contentId: contentIdOf(file.infohash) });
    assert.equal(transfer.infohash, file.infohash);
    await connected(transfer);
  }));

test("a private source is not announced, and does not serve its file", () =>
  network(async ({ tracker, file, source, engine }) => {
    const { publicKey, sign } = runtime.ed25519Key(new Uint8Array(32).fill(9));
    const bytes = makeLiveTransportFile({ ...file, info: { ...file.info, publicKey } }, sign);
    const hidden = parseLiveTransportFile(bytes, sha1, runtime.ed25519Verifier);
    const { transfers } = await engine();
    const only = [{ host: "192.0.2.1", port: 1 }];
    const live = { file: hidden, role: "source", only } as const;
    const localTrackers = [tracker.httpUrl];
    const transfer = transfers.open({
      infohash: hidden.infohash,
      live,
      trackers: [],
      peers: [],
      localTrackers,
    });
    await transfer.ready();
    assert.equal(await bytesFor(hidden.infohash, transfers.p2pPort), 0);
    await transfer.stop();
    const announced: string[] = tracker.announces.map(({ infohash }) => infohash);
    assert.ok(!announced.includes(hidden.infohash));
    assert.ok((await bytesFor(file.infohash, source.p2pPort)) > 0);
  }));

test("content that waits for metadata becomes a live stream when its transport file is provided", () =>
  network(async ({ file, source, engine }) => {
    const { open } = await engine();
    const waiting = await open({ kind: "infohash", infohash: file.infohash });
    const ready = waiting.ready();
    const same = await open({ kind: "transport_file", bytes: file.bytes });
    assert.equal(same, waiting);
    await ready;
    assert.equal(waiting.live?.content.file.fileHash, file.fileHash);
    waiting.addPeers([{ host: "127.0.0.1", port: source.p2pPort }], "magnet");
    await connected(waiting);
  }));
