import assert from "node:assert/strict";
import { runtime } from "#runtime";
import { after } from "../../src/base/time.ts";
import type { Net, TcpHandlers, TcpSocket } from "../../src/runtime/contract.ts";
import type { AnnounceRequest } from "../../src/wire/tracker/announce.ts";
import { someBytes } from "../engine/parts.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { inRealTime } from "../parts/real-time.ts";
import { type LoopbackPeer, loopbackPeer, PieceMaker, type SomeStream, someStream } from "./driver-parts.ts";

const { test } = await testsThatNeed("time");

/** Makes a piece every `pieceMs` until it is stopped, and records its bytes. */
function broadcast(
  source: LoopbackPeer,
  stream: SomeStream,
  maker = new PieceMaker(stream),
  pieceBytes = 20_000,
) {
  const made = new Map<number, Uint8Array>();
  let cancel = () => {};
  const next = () => {
    const bytes = someBytes(pieceBytes, made.size + 1);
    const { header, chunks } = maker.make(bytes);
    made.set(header.value.seq, bytes);
    source.driver.produce(header, chunks);
    const { clock } = runtime;
    cancel = clock.at(after(clock.now(), stream.file.info.pieceMs), next);
  };
  next();
  return { made, stop: () => cancel() };
}

/** Checks that the received pieces are those that were made, in order. */
function checkPieces(peer: LoopbackPeer, made: ReadonlyMap<number, Uint8Array>): void {
  const { pieces } = peer.sink;
  for (const [i, piece] of pieces.entries()) {
    assert.equal(piece.seq, pieces[0]!.seq + i);
    assert.deepEqual(Buffer.compare(piece.bytes, made.get(piece.seq)!), 0, `bytes of piece ${piece.seq}`);
  }
}

test(
  "LiveDriver: two viewers receive all pieces over real sockets, verified and in order",
  inRealTime(async (t) => {
    const stream = someStream();
    const source = await loopbackPeer(stream, "source");
    const first = await loopbackPeer(stream, "viewer");
    const second = await loopbackPeer(stream, "viewer");
    t.after(() => Promise.all([source.close(), first.close(), second.close()]));
    const { made, stop } = broadcast(source, stream);
    t.after(stop);
    first.driver.found([source.address]);
    second.driver.found([source.address]);
    for (const viewer of [first, second]) await viewer.sink.until(({ pieces }) => pieces.length >= 40);
    for (const viewer of [first, second]) {
      checkPieces(viewer, made);
      assert.deepEqual(viewer.sink.skipped, []);
    }
  }),
);

test(
  "LiveDriver: three viewers, two of them connected only by PEX, receive all pieces",
  inRealTime(async (t) => {
    const stream = someStream();
    const source = await loopbackPeer(stream, "source");
    const viewers = await Promise.all(
      [1, 2, 3].map((i) => loopbackPeer(stream, "viewer", { host: `127.0.${i}.1` })),
    );
    t.after(() => Promise.all([source, ...viewers].map((peer) => peer.close())));
    const { made, stop } = broadcast(source, stream);
    t.after(stop);
    viewers[0]!.driver.found([source.address]);
    // The others learn of each other by PEX (BEP 11).
    for (const viewer of viewers.slice(1)) viewer.driver.found([viewers[0]!.address]);
    for (const viewer of viewers) await viewer.sink.until(({ pieces }) => pieces.length >= 40);
    for (const viewer of viewers) {
      checkPieces(viewer, made);
      assert.equal(viewer.sink.skipped.length, 0);
      assert.ok(viewer.driver.figures().parents > 0);
    }
    const flags = viewers[0]!.driver.swarmFigures().peers.map((peer) => peer.flags);
    assert.ok(
      flags.some((text) => text.includes("p") && text.includes("s")),
      flags.join(" "),
    );
  }),
);

test(
  "LiveDriver: a source that lost its state continues, and the sink is notified",
  inRealTime(async (t) => {
    const stream = someStream();
    const source = await loopbackPeer(stream, "source");
    const viewer = await loopbackPeer(stream, "viewer");
    t.after(() => Promise.all([source.close(), viewer.close()]));
    const first = broadcast(source, stream);
    viewer.driver.found([source.address]);
    await viewer.sink.until(({ pieces }) => pieces.length >= 10);
    first.stop();
    const second = broadcast(source, stream, new PieceMaker(stream, 5, 2_000));
    t.after(second.stop);
    await viewer.sink.until(({ pieces }) => pieces.filter(({ epoch }) => epoch === 2_000).length >= 10);
    assert.equal(viewer.sink.restarts, 1);
  }),
);

test(
  "LiveDriver: a source that restarts at the same address is found again",
  inRealTime(async (t) => {
    const stream = someStream();
    const maker = new PieceMaker(stream);
    const source = await loopbackPeer(stream, "source");
    const viewer = await loopbackPeer(stream, "viewer");
    const first = broadcast(source, stream, maker);
    viewer.driver.found([source.address]);
    await viewer.sink.until(({ pieces }) => pieces.length >= 10);
    first.stop();
    await source.close();
    const { host, port } = source.address;
    const again = await loopbackPeer(stream, "source", { host, port });
    t.after(() => Promise.all([again.close(), viewer.close()]));
    const known = viewer.sink.pieces.length;
    const second = broadcast(again, stream, maker);
    t.after(second.stop);
    // It knows its earlier peers.
    again.driver.found([viewer.address]);
    await viewer.sink.until(({ pieces }) => pieces.length >= known + 20);
    assert.equal(viewer.sink.restarts, 0);
  }),
);

/** A network whose outgoing connections stop reading after so many bytes. */
function deafAfter(bytes: number): Net {
  return {
    ...runtime.net,
    connect: (address, handlers, options) => {
      let got = 0;
      let socket: TcpSocket | undefined;
      const counting: TcpHandlers = {
        ...handlers,
        opened: () => handlers.opened?.(),
        received: (part) => {
          got += part.length;
          if (got > bytes) socket?.pause();
          handlers.received(part);
        },
      };
      socket = runtime.net.connect(address, counting, options);
      return socket;
    },
  };
}

test(
  "LiveDriver: a viewer that stops reading costs other viewers no piece, and little memory",
  inRealTime(async (t) => {
    const stream = someStream({ bytesPerSecond: 4_000_000 });
    const source = await loopbackPeer(stream, "source");
    const deaf = await loopbackPeer(stream, "viewer", { runtime: { ...runtime, net: deafAfter(500_000) } });
    const viewer = await loopbackPeer(stream, "viewer");
    t.after(() => Promise.all([source.close(), deaf.close(), viewer.close()]));
    const { made, stop } = broadcast(source, stream, new PieceMaker(stream), 200_000);
    t.after(stop);
    deaf.driver.found([source.address]);
    await deaf.sink.until(({ pieces }) => pieces.length >= 1);
    viewer.driver.found([source.address]);
    await viewer.sink.until(({ pieces }) => pieces.length >= 80);
    checkPieces(viewer, made);
    assert.equal(viewer.sink.skipped.length, 0);
  }),
);

test("LiveDriver: keeps one of two crossed connections, the same one at both ends", async (t) => {
  const stream = someStream();
  const peers = await Promise.all([loopbackPeer(stream, "source"), loopbackPeer(stream, "viewer")]);
  const [source, viewer] = peers;
  t.after(() => Promise.all(peers.map((peer) => peer.close())));
  const { stop } = broadcast(source, stream);
  t.after(stop);
  source.driver.found([viewer.address]);
  viewer.driver.found([source.address]);
  await viewer.sink.until(({ pieces }) => pieces.length >= 10);
  for (const peer of peers) assert.equal(peer.driver.swarmFigures().connectedPeers, 1);
  for (const peer of peers) assert.equal(peer.connections.open, 1);
});

test("LiveDriver: detects a connection to itself, and does not repeat it", async (t) => {
  const stream = someStream();
  const viewer = await loopbackPeer(stream, "viewer");
  t.after(() => viewer.close());
  let calls = 0;
  const net: Net = {
    ...runtime.net,
    connect: (...given) => {
      calls++;
      return runtime.net.connect(...given);
    },
  };
  const caller = await loopbackPeer(stream, "viewer", { runtime: { ...runtime, net } });
  t.after(() => caller.close());
  caller.driver.found([caller.address]);
  const { clock } = runtime;
  while (calls === 0 || caller.connections.open > 0) {
    await new Promise<void>((resolve) => void clock.at(after(clock.now(), 10), resolve));
  }
  caller.driver.found([caller.address]);
  caller.driver.found([viewer.address]);
  while (caller.driver.swarmFigures().connectedPeers === 0) {
    await new Promise<void>((resolve) => void clock.at(after(clock.now(), 10), resolve));
  }
  assert.equal(calls, 2);
});

test(
  "LiveDriver: a private source connects to its relays only",
  inRealTime(async (t) => {
    const stream = someStream();
    const relay = await loopbackPeer(stream, "relay");
    const source = await loopbackPeer(stream, "source", { host: "127.0.2.1", only: [relay.address] });
    const stranger = await loopbackPeer(stream, "viewer", { host: "127.0.3.1" });
    t.after(() => Promise.all([relay, source, stranger].map((peer) => peer.close())));
    const { made, stop } = broadcast(source, stream);
    t.after(stop);
    let receivedBytes = 0;
    const closed = new Promise<void>((resolve) => {
      const handlers: TcpHandlers = {
        opened: () => void socket.write(new Uint8Array(68)),
        received: (bytes) => {
          receivedBytes += bytes.length;
        },
        drained() {},
        closed: () => resolve(),
      };
      const socket = runtime.net.connect(source.address, handlers, { timeoutMs: 5_000 });
    });
    stranger.driver.found([relay.address, source.address]);
    await closed;
    assert.equal(receivedBytes, 0);
    await stranger.sink.until(({ pieces }) => pieces.length >= 10);
    checkPieces(stranger, made);
    assert.equal(source.driver.swarmFigures().connectedPeers, 1);
  }),
);

test("LiveDriver.stop: notifies trackers, unless another swarm follows at this address", async () => {
  for (const isSucceeded of [false, true]) {
    const events: (string | undefined)[] = [];
    let begin = () => {};
    const started = new Promise<void>((resolve) => {
      begin = resolve;
    });
    const announce = async ({ event }: AnnounceRequest) => {
      events.push(event);
      begin();
      return { ok: true as const, peers: [], intervalSeconds: 1800 };
    };
    const peer = await loopbackPeer(someStream(), "viewer", {
      trackers: [["udp://tracker.example:1/announce"]],
      announcer: { announce, scrape: async () => undefined },
    });
    await started;
    await peer.driver.stop(isSucceeded);
    assert.deepEqual(events, isSucceeded ? ["started"] : ["started", "stopped"]);
    await peer.close();
  }
});

test("LiveDriver.stop: notifies peers, and leaves nothing open", async () => {
  const stream = someStream();
  const source = await loopbackPeer(stream, "source");
  const viewer = await loopbackPeer(stream, "viewer");
  const { stop } = broadcast(source, stream);
  viewer.driver.found([source.address]);
  await viewer.sink.until(({ pieces }) => pieces.length >= 5);
  assert.deepEqual(viewer.driver.reachablePeers(), [source.address]);
  stop();
  await source.close();
  const { clock } = runtime;
  while (viewer.connections.open > 0) {
    await new Promise<void>((resolve) => void clock.at(after(clock.now(), 10), resolve));
  }
  assert.equal(source.connections.open, 0);
  await viewer.close();
});
