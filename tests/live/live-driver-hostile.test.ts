import assert from "node:assert/strict";
import { test } from "node:test";
import { runtime } from "#runtime";
import type { PeerAddress } from "../../src/base/address.ts";
import { after } from "../../src/base/time.ts";
import type { DrivenLiveSwarm } from "../../src/live/live-setup.ts";
import type { LiveFigures, LiveOutput } from "../../src/protocol/live/contract.ts";
import type { LateMedia } from "../../src/protocol/live/fetched.ts";
import { framed } from "../../src/protocol/live/send-queue.ts";
import type { TcpSocket } from "../../src/runtime/contract.ts";
import { ConnectionCount } from "../../src/transfer/connection-count.ts";
import { encodeLiveMessage } from "../../src/wire/live/message.ts";
import { encodeExtensionHandshake } from "../../src/wire/peer/extension-handshake.ts";
import { encodeHandshake } from "../../src/wire/peer/handshake.ts";
import { someBytes } from "../engine/parts.ts";
import { openRaw, type RawSocket } from "../parts/raw-socket.ts";
import { loopbackPeer, PieceMaker, type SomeStream, someStream } from "./driver-parts.ts";

const WAIT_MS = 10_000;
const LIVE_ID = 3;

/** A stream with its source and one viewer that is playing. */
async function playing(t: { after(run: () => unknown): void }) {
  const stream = someStream();
  const source = await loopbackPeer(stream, "source");
  const viewer = await loopbackPeer(stream, "viewer");
  const maker = new PieceMaker(stream);
  const { clock } = runtime;
  let cancel = () => {};
  const next = () => {
    const { header, chunks } = maker.make(someBytes(9_400));
    source.driver.produce(header, chunks);
    cancel = clock.at(after(clock.now(), stream.file.info.pieceMs), next);
  };
  next();
  t.after(() => {
    cancel();
    return Promise.all([source.close(), viewer.close()]);
  });
  viewer.driver.found([source.address]);
  await viewer.sink.until(({ pieces }) => pieces.length >= 5);
  /** Checks that nothing was lost and the stream continues. */
  const checkPlaying = async () => {
    const { length } = viewer.sink.pieces;
    await viewer.sink.until(({ pieces }) => pieces.length >= length + 10);
    assert.deepEqual(viewer.sink.skipped, []);
  };
  return { stream, source, viewer, checkPlaying };
}

/** Connects, and sends both handshakes and HELLO as a live peer does. */
async function stranger(stream: SomeStream, port: number, seed: number): Promise<RawSocket> {
  const raw = await openRaw(port);
  const { infohash } = stream.file;
  const about = { role: "relay", uploadBytesPerSecond: 1e9 } as const;
  const peerId = someBytes(20, seed);
  raw.send(encodeHandshake({ infohash, peerId, extensions: true, fast: false, dht: false }));
  const hello = { messages: new Map([["sl_live", 9]]), live: about, listenPort: 50_000 + seed };
  raw.send(framed(0, encodeExtensionHandshake(hello)));
  raw.send(framed(LIVE_ID, encodeLiveMessage({ kind: "hello", header: undefined })));
  return raw;
}

test("LiveDriver: bans a peer at its first header without the source's signature", async (t) => {
  const { stream, viewer, checkPlaying } = await playing(t);
  const raw = await stranger(stream, viewer.address.port, 1);
  const forged = new PieceMaker({ ...someStream({}, 9), file: stream.file }, 200).make(
    someBytes(1_000),
  ).header;
  raw.send(framed(LIVE_ID, encodeLiveMessage({ kind: "header", isAnswer: false, header: forged.bytes })));
  assert.equal(await raw.closes(WAIT_MS), true);
  assert.equal(viewer.driver.swarmFigures().bannedPeers, 1);
  const again = await stranger(stream, viewer.address.port, 1);
  assert.equal(await again.closes(WAIT_MS), true);
  await checkPlaying();
});

test("LiveDriver: bans a peer that sends a chunk with a wrong hash", async (t) => {
  const { stream, viewer, checkPlaying } = await playing(t);
  const raw = await stranger(stream, viewer.address.port, 2);
  const { epoch, seq } = viewer.sink.pieces.at(-1)!;
  // For future pieces, so that the viewer does not have the chunk yet.
  for (let ahead = 1; ahead <= 10; ahead++) {
    const about = { epoch, seq: seq + ahead, stripe: 0, fragment: 0, isLast: true, isLate: false };
    raw.send(framed(LIVE_ID, encodeLiveMessage({ kind: "chunk", ...about, bytes: new Uint8Array(2_444) })));
  }
  assert.equal(await raw.closes(WAIT_MS), true);
  assert.equal(viewer.driver.swarmFigures().bannedPeers, 1);
  await checkPlaying();
});

test("LiveDriver: closes a connection with invalid bytes after the handshake", async (t) => {
  const { stream, source, viewer, checkPlaying } = await playing(t);
  for (const peer of [source, viewer]) {
    const raw = await stranger(stream, peer.address.port, 3);
    raw.send(framed(LIVE_ID, new Uint8Array([4, 0, 0, 0])));
    assert.equal(await raw.closes(WAIT_MS), true);
    assert.equal(peer.driver.swarmFigures().bannedPeers, 1);
  }
  await checkPlaying();
});

test("LiveDriver: many silent connections do not exclude other peers", async (t) => {
  const { stream, source, checkPlaying } = await playing(t);
  const silent: RawSocket[] = [];
  const { infohash } = stream.file;
  for (let i = 1; i <= 90; i++) {
    const raw = await openRaw(source.address.port);
    raw.send(
      encodeHandshake({ infohash, peerId: someBytes(20, i), extensions: true, fast: false, dht: false }),
    );
    silent.push(raw);
  }
  t.after(() => {
    for (const raw of silent) raw.end();
  });
  assert.equal(await silent[0]!.closes(WAIT_MS), true);
  const late = await loopbackPeer(stream, "viewer");
  t.after(() => late.close());
  late.driver.found([source.address]);
  await late.sink.until(({ pieces }) => pieces.length >= 5);
  assert.ok(source.connections.open <= 70, `${source.connections.open} connections`);
  await checkPlaying();
});

test("LiveDriver: respects the connection limit of all transfers", async (t) => {
  const stream = someStream();
  const connections = new ConnectionCount(100);
  connections.open = 99;
  const source = await loopbackPeer(stream, "source", { connections });
  t.after(() => source.close());
  const first = await stranger(stream, source.address.port, 4);
  assert.ok(await first.hears((bytes) => bytes.length > 68, WAIT_MS));
  const second = await stranger(stream, source.address.port, 5);
  assert.equal(await second.closes(WAIT_MS), true);
  assert.equal(second.received.length, 0);
  first.end();
});

test("LiveDriver: a remote source cannot list local addresses as relays, a local source can", async () => {
  const here = { host: "192.168.1.1", port: 80 };
  const away = { host: "203.0.113.9", port: 8_621 };
  const report = { epoch: 1, number: 1, timestampMs: 1, isEnd: false, relays: [here, away], trackers: [] };
  const stat = { kind: "stat", ...report } as const;
  const foundOf = async (host: string) => {
    const stream = someStream();
    const found: PeerAddress[] = [];
    const outputs: LiveOutput[] = [];
    const makeSwarm = (): DrivenLiveSwarm => ({
      handle(input) {
        if (input.kind === "accepted") outputs.push({ kind: "stat", stat });
        if (input.kind === "found") found.push(...input.addresses);
      },
      poll: () => outputs.shift(),
      wake() {},
      nextWake: () => undefined,
      figures: () => ({}) as LiveFigures,
      late: () => ({}) as LateMedia,
      mayAdmit: () => true,
    });
    const viewer = await loopbackPeer(stream, "viewer", { makeSwarm });
    const socket: TcpSocket = {
      remote: { host, port: 50_000 },
      bufferedBytes: 0,
      ...{ write: () => true, pause() {}, resume() {}, close() {} },
    };
    const first = encodeHandshake({
      infohash: stream.file.infohash,
      peerId: someBytes(20, 5),
      ...{ extensions: true, fast: false, dht: false },
    });
    const about = { role: "viewer", uploadBytesPerSecond: 0 } as const;
    const hello = encodeExtensionHandshake({ messages: new Map([["sl_live", 9]]), live: about });
    const handlers = viewer.driver.accept(socket, first);
    handlers.received(framed(0, hello));
    handlers.closed("over");
    await viewer.close();
    return found;
  };
  assert.deepEqual(await foundOf("198.51.100.4"), [away]);
  assert.deepEqual(await foundOf("192.168.1.7"), [here, away]);
});
