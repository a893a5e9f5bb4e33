import assert from "node:assert/strict";
import { test } from "node:test";
import { runtime } from "#runtime";
import type { PeerAddress } from "../../src/base/address.ts";
import { latin1Text } from "../../src/base/bytes.ts";
import type { SluiceError } from "../../src/base/errors.ts";
import { type Infohash, infohashOf } from "../../src/base/ids.ts";
import { EitherTransfer } from "../../src/engine/either-transfer.ts";
import { type LiveTransferContent, watchedContent } from "../../src/live/live-content.ts";
import { createAnnouncer } from "../../src/net/announcer.ts";
import { createOutbound } from "../../src/outbound/outbound.ts";
import type {
  CandidateOrigin,
  SwarmFigures,
  SwarmOutput,
  SwarmSetup,
} from "../../src/protocol/swarm/contract.ts";
import type { TransferContent, TransferDependencies } from "../../src/transfer/contract.ts";
import type { DrivenSwarm } from "../../src/transfer/driver.ts";
import { encodeBencode } from "../../src/wire/bencode-encode.ts";
import { liveInfoDict } from "../../src/wire/live/info.ts";
import { parseLiveTransportFile } from "../../src/wire/live/transport-file.ts";
import { inFolder } from "../contract/folder.ts";
import { startLoopbackTracker } from "../net/loopback-tracker.ts";
import { announceRequest } from "../parts/announce-request.ts";
import { serveMetadata, transferDependencies } from "../transfer/transfer-dependencies.ts";
import { INFO, TRANSPORT_FILE } from "../wire/live-vectors.ts";
import { sha1 } from "../wire/make-torrent.ts";
import { filmTorrent } from "./fake-engine.ts";
import { FakeLiveTransfer } from "./fake-live-transfer.ts";
import { keepingLog } from "./parts.ts";

const LIVE = parseLiveTransportFile(TRANSPORT_FILE, sha1, runtime.ed25519Verifier);
const SETTLED = Promise.resolve();

/** Returns a transfer and the live transfers that it opened. */
function either(
  deps: TransferDependencies,
  content: Partial<TransferContent> & { infohash: Infohash },
  live = FakeLiveTransfer,
) {
  const opened: FakeLiveTransfer[] = [];
  const openLive = (found: LiveTransferContent) => {
    const transfer = new live(found);
    opened.push(transfer);
    return transfer;
  };
  const whole = { trackers: [], peers: [], ...content };
  return { opened, transfer: new EitherTransfer(deps, whole, SETTLED, openLive, () => {}) };
}

/** Makes a swarm that has received metadata from a peer and knows `peers`. */
function swarmWith(
  infoBytes: Uint8Array,
  peers: readonly { address: PeerAddress; origin: CandidateOrigin }[],
) {
  return (setup: SwarmSetup): DrivenSwarm => {
    const outputs: SwarmOutput[] = [];
    try {
      setup.readInfo(infoBytes);
    } catch (thrown) {
      outputs.push({ kind: "failed", reason: (thrown as Error).message, peers });
    }
    return {
      handle() {},
      wake() {},
      poll: () => outputs.shift(),
      nextWake: () => undefined,
      figures: () => ({}) as SwarmFigures,
    };
  };
}

test("EitherTransfer: a magnet with metadata of a live stream continues as a live transfer with its peers and trackers", () =>
  inFolder(async (folder) => {
    const peer = await serveMetadata(LIVE.infoBytes);
    const deps = await transferDependencies(folder);
    const trackers = [["http://tracker.example/announce"]];
    const roleKey = { role: "relay", sign: () => new Uint8Array(64) } as const;
    const { transfer, opened } = either(deps, {
      infohash: LIVE.infohash,
      trackers,
      peers: [peer.address],
      displayName: "shown before",
      liveRole: "relay",
      roleKey,
    });
    assert.deepEqual([transfer.name, transfer.live], ["shown before", undefined]);
    await transfer.ready();
    assert.equal(opened.length, 1);
    const { live, ...content } = opened[0]!.content;
    assert.deepEqual(live.file.info, LIVE.info);
    assert.deepEqual(live.file.infoBytes, LIVE.infoBytes);
    assert.equal(live.file.isSigned, false);
    assert.deepEqual(live.file.trackers, trackers);
    assert.equal(live.role, "relay");
    assert.equal(live.roleKey, roleKey);
    assert.deepEqual(live.knownPeers, [peer.address]);
    assert.deepEqual(content.trackers, trackers);
    assert.equal(transfer.live?.content, live);
    assert.equal(transfer.segmentSource, opened[0]!.segmentSource);
    assert.equal(transfer.files.length, 1);
    transfer.addTrackers([["udp://b:1"]]);
    transfer.addPeers([{ host: "192.0.2.1", port: 7 }], "tracker");
    assert.deepEqual(opened[0]!.calls, ["udp://b:1", "7"]);
    const kept = async () => {
      const known = await deps.kept.read(LIVE.infohash);
      return known?.kind === "live" && known.file.isSigned;
    };
    assert.equal(await kept(), false);
    transfer.learn(watchedContent(LIVE, { allowPrivateUrls: true }));
    assert.equal(await kept(), true);
    await transfer.stop();
    assert.equal(opened[0]!.calls.at(-1), "stop");
    await deps.kept.close();
    await peer.close();
  }));

test("EitherTransfer: the stopped announce of the metadata swarm is sent when the live transfer has ended, not before", () =>
  inFolder(async (folder) => {
    const tracker = await startLoopbackTracker();
    const peer = await serveMetadata(LIVE.infoBytes);
    const log = keepingLog();
    const announcer = createAnnouncer(runtime, createOutbound(runtime, log), log);
    const p2pPort = 4321;
    const deps = await transferDependencies(folder, { announcer, p2pPort });
    const announce = (event: "started" | "stopped", peerId = new Uint8Array(20).fill(0x42)) =>
      announcer.announce(
        announceRequest(tracker.httpUrl, { infohash: LIVE.infohash, peerId, port: p2pPort, event }),
        { allowPrivate: true },
      );
    class Announced extends FakeLiveTransfer {
      constructor(content: LiveTransferContent) {
        super(content, async () => void (await announce("stopped")));
      }
    }
    const { transfer } = either(
      deps,
      { infohash: LIVE.infohash, trackers: [[tracker.httpUrl]], localTrackers: [tracker.httpUrl] },
      Announced,
    );
    // The tracker has replied before the metadata arrives, so it must get a `stopped` announce later. The scrape shows that.
    while (tracker.announces.length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
    transfer.addPeers([peer.address], "magnet");
    await transfer.ready();
    await announce("started");
    // Scrapes reach the same server and have no port.
    const events = () => tracker.announces.filter(({ port }) => port === p2pPort).map(({ event }) => event);
    assert.deepEqual(events(), ["started", "started"]);
    await transfer.stop();
    assert.deepEqual(events(), ["started", "started", "stopped", "stopped"]);
    announcer.close();
    await deps.kept.close();
    await peer.close();
    await tracker.close();
  }));

test("EitherTransfer.learn: the transport file of a live stream ends the metadata exchange", () =>
  inFolder(async (folder) => {
    const deps = await transferDependencies(folder);
    const { transfer, opened } = either(deps, { infohash: LIVE.infohash });
    const ready = transfer.ready();
    const known = { host: "192.0.2.9", port: 9 };
    transfer.addPeers([known], "pex");
    transfer.learn({ ...watchedContent(LIVE, { allowPrivateUrls: true }), localTrackers: ["http://h/"] });
    await ready;
    assert.equal(opened[0]!.content.live.file, LIVE);
    assert.deepEqual(opened[0]!.content.live.knownPeers, [known]);
    // The live transfer gets the trackers and relays of the file.
    assert.deepEqual(opened[0]!.calls, [...LIVE.trackers.flat(), "8621", "8621"]);
    transfer.learn(watchedContent(LIVE, { allowPrivateUrls: true }));
    assert.equal(opened.length, 1);
    await transfer.stop();
    await deps.kept.close();
  }));

test("EitherTransfer: a stored transport file of a live stream is used if only the infohash is given", () =>
  inFolder(async (folder) => {
    const deps = await transferDependencies(folder);
    await deps.kept.keep({ kind: "live", file: LIVE });
    const { transfer, opened } = either(deps, { infohash: LIVE.infohash });
    transfer.addPeers([{ host: "192.0.2.9", port: 9 }], "magnet");
    await transfer.ready();
    assert.equal(opened[0]!.content.live.file.fileHash, LIVE.fileHash);
    assert.equal(opened[0]!.content.live.file.isSigned, true);
    assert.equal(opened[0]!.content.live.knownPeers?.length, 1);
    await transfer.stop();
    await deps.kept.close();
  }));

test("EitherTransfer: peers of a private stream that did not come from a tracker or link are not used (BEP 27)", () =>
  inFolder(async (folder) => {
    const infoBytes = encodeBencode(liveInfoDict({ ...INFO, isPrivate: true }));
    const origins = ["tracker", "pex", "magnet", "incoming", "dht", "lsd"] as const;
    const peers = origins.map((origin, i) => ({ address: { host: "192.0.2.1", port: i + 1 }, origin }));
    const deps = await transferDependencies(folder, { makeSwarm: swarmWith(infoBytes, peers) });
    const { transfer, opened } = either(deps, { infohash: infohashOf(sha1(infoBytes)) });
    await transfer.ready();
    assert.deepEqual(
      opened[0]!.content.live.knownPeers?.map(({ port }) => port),
      [1, 3],
    );
    await transfer.stop();
    await deps.kept.close();
  }));

test("EitherTransfer: invalid metadata of a live stream fails with bad_transport_file and a reason", () =>
  inFolder(async (folder) => {
    const text = latin1Text(LIVE.infoBytes);
    const hostile: Record<string, RegExp> = {
      [text.replace("1:vi1e", "1:vi2e")]: /version 2/,
      [text.replace("1:Ki4e", "1:Ki5e")]: /stripes, not 5/,
      [text.replace("7:ed25519", "7:ed25518")]: /alg to be ed25519/,
    };
    for (const [changed, reason] of Object.entries(hostile)) {
      assert.notEqual(changed, text);
      const infoBytes = Uint8Array.from(changed, (c) => c.charCodeAt(0));
      const deps = await transferDependencies(folder, { makeSwarm: swarmWith(infoBytes, []) });
      const { transfer, opened } = either(deps, { infohash: infohashOf(sha1(infoBytes)) });
      await assert.rejects(transfer.ready(), (error: SluiceError) => {
        assert.equal(error.code, "bad_transport_file");
        assert.match(error.message, reason);
        return true;
      });
      assert.equal(opened.length, 0);
      await transfer.stop();
      await deps.kept.close();
    }
  }));

test("EitherTransfer: metadata with files continues as files, even if it has a live key", () =>
  inFolder(async (folder) => {
    const film = filmTorrent();
    const { infoBytes } = film;
    for (const bytes of [infoBytes, withLive(infoBytes)]) {
      const peer = await serveMetadata(bytes);
      const deps = await transferDependencies(folder);
      const { transfer, opened } = either(deps, { infohash: peer.infohash, peers: [peer.address] });
      await transfer.ready();
      assert.equal(opened.length, 0);
      assert.equal(transfer.files.length, 3);
      assert.equal(transfer.live, undefined);
      await transfer.stop();
      await deps.kept.close();
      await peer.close();
    }
  }));

test("EitherTransfer.ready: rejects when its signal is aborted and when the transfer stops, before and after the switch to live", () =>
  inFolder(async (folder) => {
    const deps = await transferDependencies(folder);
    const { transfer, opened } = either(deps, { infohash: LIVE.infohash });
    const abort = new AbortController();
    const ready = transfer.ready(abort.signal);
    abort.abort(new Error("enough"));
    await assert.rejects(ready, /enough/);
    const stopped = assert.rejects(transfer.ready(), { code: "session_stopped" });
    await transfer.stop();
    await stopped;
    transfer.learn(watchedContent(LIVE, { allowPrivateUrls: true }));
    assert.equal(opened.length, 0);
    await deps.kept.close();
  }));

/** Adds the `live` key of a live stream to an info dictionary. Keys stay sorted: `files` < `live` < `name`. */
function withLive(infoBytes: Uint8Array): Uint8Array {
  const text = latin1Text(infoBytes);
  const live = /^d4:live(d.*e)4:name/s.exec(latin1Text(LIVE.infoBytes))![1]!;
  const changed = text.replace("4:name5:films", `4:live${live}4:name5:films`);
  assert.notEqual(changed, text);
  return Uint8Array.from(changed, (c) => c.charCodeAt(0));
}
