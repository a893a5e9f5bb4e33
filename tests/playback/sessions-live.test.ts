import assert from "node:assert/strict";
import { test } from "node:test";
import { SluiceError, type SluiceErrorCode } from "../../src/base/errors.ts";
import type { UnixSeconds } from "../../src/base/time.ts";
import type { PlaybackRequest, RemuxForPlayer } from "../../src/playback/contract.ts";
import { settled } from "../engine/fake-clock.ts";
import { fakeEngine, filmTorrent, playbackRequest } from "../engine/fake-engine.ts";
import { FakeLive, FIRST_AT, fakeControl } from "../engine/fake-live.ts";

const piped: RemuxForPlayer = ({ pieces, remuxer }) => pieces.pipeThrough(remuxer);

const stream = filmTorrent("stream");
const film = filmTorrent("film");

const request = (changes: Partial<PlaybackRequest> = {}) => playbackRequest(stream.bytes, changes);

/** An engine in which the content `stream` is live and has `pieces` pieces. */
function liveEngine(pieces: number, options: { isKnown?: boolean; role?: "viewer" | "source" } = {}) {
  const fake = fakeEngine();
  const live = new FakeLive();
  live.bring(pieces);
  fake.transfers.prepare = (transfer) => {
    transfer.bringData();
    if (transfer.infohash !== stream.infohash) return;
    transfer.segmentSource = async () => live;
    if (options.isKnown ?? true) transfer.live = fakeControl(options.role);
  };
  return { ...fake, live };
}

const codeOf = (code: SluiceErrorCode, text: RegExp) => (thrown: unknown) => {
  assert.ok(thrown instanceof SluiceError, String(thrown));
  assert.equal(thrown.code, code);
  assert.match(thrown.message, text);
  return true;
};

const at = (second: number) => (FIRST_AT + second) as UnixSeconds;

/** Reads one chunk and returns the number of its piece. */
async function pieceOf(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<number | undefined> {
  return (await reader.read()).value?.[4];
}

test("transportStream live: starts at the newest random access point, before any complete segment", async () => {
  const { engine, live } = liveEngine(7);
  const session = await engine.start(request());
  assert.equal(await session.settle(1000), true);
  assert.equal((await session.info()).status, "playing");
  const reader = (await session.transportStream(piped)).getReader();
  assert.deepEqual([await pieceOf(reader), live.made], [6, []]);
  const next = pieceOf(reader);
  live.bring(1);
  assert.equal(await next, 7);
});

test("transportStream live: sends null packets only before the first piece", async () => {
  const { engine, live, clock } = liveEngine(0);
  const session = await engine.start(request());
  const opening = session.transportStream(piped);
  await clock.advance(8_000);
  const reader = (await opening).getReader();
  const nothing = reader.read();
  await clock.advance(500);
  assert.deepEqual((await nothing).value?.subarray(0, 4), new Uint8Array([0x47, 0x1f, 0xff, 0x10]));
  const first = pieceOf(reader);
  live.bring(1);
  assert.equal(await first, 0);
  const next = pieceOf(reader);
  await clock.advance(20_000);
  live.bring(1);
  assert.equal(await next, 1);
});

test("transportStream live: each connection of a session has its own position", async () => {
  const { engine, live, clock } = liveEngine(1);
  const session = await engine.start(request());
  const slow = (await session.transportStream(piped)).getReader();
  const quick = (await session.transportStream(piped)).getReader();
  assert.equal(await pieceOf(slow), 0);
  for (let piece = 0; piece < 50; piece++) {
    assert.equal(await pieceOf(quick), piece);
    live.bring(1);
    await clock.advance(1000);
  }
  assert.equal(await pieceOf(slow), 1);
});

test("transportStream live: does not read ahead for a stalled player, which continues in the window", async () => {
  const { engine, live } = liveEngine(1);
  const session = await engine.start(request());
  const reader = (await session.transportStream(piped)).getReader();
  assert.equal(await pieceOf(reader), 0);
  live.bring(99);
  live.oldest = 90;
  assert.equal(await pieceOf(reader), 90);
});

test("transportStream live: splits large pieces into whole packets", async () => {
  const { engine, live } = liveEngine(1);
  live.packetsPerPiece = 2000;
  const reader = (await (await engine.start(request())).transportStream(piped)).getReader();
  live.finish();
  let packets = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    assert.equal(value.length % 188, 0);
    assert.ok(value.length <= 128 * 1024);
    packets += value.length / 188;
  }
  assert.equal(packets, 2000);
});

test("transportStream live: ends with the stream, with the session, and when the player disconnects", async () => {
  const { engine, live } = liveEngine(1);
  const over = (await (await engine.start(request())).transportStream(piped)).getReader();
  const session = await engine.start(request());
  const stopped = (await session.transportStream(piped)).getReader();
  const gone = (await (await engine.start(request())).transportStream(piped)).getReader();
  for (const reader of [over, stopped, gone]) assert.equal(await pieceOf(reader), 0);
  const waiting = stopped.read();
  const left = gone.read();
  await settled();
  session.stop();
  assert.equal((await waiting).done, true);
  await gone.cancel();
  assert.equal((await left).done, true);
  await settled();
  assert.equal(live.aborted.length, 2, "no read is pending for closed connections");
  const last = over.read();
  live.finish();
  assert.equal((await last).done, true);
});

test("transportStream live: a waiting player keeps its session, a long paused one loses it", async () => {
  const { engine, live, clock } = liveEngine(1);
  const reader = (await (await engine.start(request())).transportStream(piped)).getReader();
  assert.equal(await pieceOf(reader), 0);
  const next = pieceOf(reader);
  await clock.advance(100_000);
  live.bring(1);
  assert.equal(await next, 1);
  await clock.advance(3 * 3_600_000 + 1);
  assert.equal(engine.figures().sessions, 0);
});

test("transportStream live: fails after 5 minutes without data", async () => {
  const { engine, clock } = liveEngine(1);
  const reader = (await (await engine.start(request())).transportStream(piped)).getReader();
  await pieceOf(reader);
  const next = assert.rejects(reader.read(), codeOf("start_timeout", /no peer sent data for 300 s/));
  await clock.advance(300_000);
  await next;
});

test("start live: an own broadcast needs no peers", async () => {
  const { engine, clock, transfers } = liveEngine(0, { role: "source" });
  const session = await engine.start(request());
  const transfer = transfers.opened[0]!;
  transfer.figures = { ...transfer.figures, connectedPeers: 0 };
  const settle = assert.rejects(session.settle(100_000), codeOf("start_timeout", /the source sent no data/));
  await clock.advance(40_000);
  session.touch();
  await clock.advance(20_000);
  await settle;
});

test("start live: peers that send no media do not prevent the timeout", async () => {
  const { engine, clock, transfers } = liveEngine(0);
  const session = await engine.start(request());
  const transfer = transfers.opened[0]!;
  const settle = assert.rejects(session.settle(100_000), codeOf("start_timeout", /no peer sent data/));
  for (let second = 0; second < 61; second++) {
    const { figures } = transfer;
    transfer.figures = { ...figures, connectedPeers: 2, downloaded: figures.downloaded + 100 };
    session.touch();
    await clock.advance(1_000);
  }
  await settle;
});

test("liveSeek: moves open and later connections; -1 returns to the edge", async () => {
  const { engine, live } = liveEngine(60);
  live.packetsPerPiece = 2000;
  const session = await engine.start(request());
  const readers = [];
  for (let i = 0; i < 2; i++) readers.push((await session.transportStream(piped)).getReader());
  for (const reader of readers) assert.equal(await pieceOf(reader), 58);
  session.liveSeek(at(21));
  for (const reader of readers)
    assert.equal(await pieceOf(reader), 20, "the rest of the previous piece is dropped");
  live.bring(10);
  const late = (await session.transportStream(piped)).getReader();
  assert.equal(await pieceOf(late), 30, "as far behind the edge");
  session.liveSeek(-1);
  for (const reader of [...readers, late]) assert.equal(await pieceOf(reader), 68);
  assert.equal(await pieceOf((await session.transportStream(piped)).getReader()), 68);
});

test("liveSeek: clamps a time outside the window", async () => {
  const { engine, live } = liveEngine(60);
  live.oldest = 20;
  const session = await engine.start(request());
  const reader = (await session.transportStream(piped)).getReader();
  session.liveSeek(at(-1000));
  assert.equal(await pieceOf(reader), 20);
  session.liveSeek(at(1000));
  assert.equal(await pieceOf(reader), 58);
});

test("liveSeek: after a seek back sends ten seconds at once, then at playback speed", async () => {
  const { engine, live, clock } = liveEngine(100);
  const session = await engine.start(request());
  const reader = (await session.transportStream(piped)).getReader();
  session.liveSeek(at(20));
  for (let piece = 20; piece <= 30; piece++) assert.equal(await pieceOf(reader), piece);
  const next = pieceOf(reader);
  await clock.advance(900);
  live.bring(1);
  assert.equal((await session.info()).live!.position, at(31));
  await clock.advance(100);
  assert.equal(await next, 31);
  const waiting = pieceOf(reader);
  await settled();
  session.liveSeek(at(60));
  assert.equal(await waiting, 60, "a seek ends the wait");
  for (let piece = 61; piece <= 70; piece++) assert.equal(await pieceOf(reader), piece);
  const left = reader.read();
  await settled();
  await reader.cancel();
  assert.equal((await left).done, true);
});

test("liveSeek: moves a player that waits at the edge", async () => {
  const { engine } = liveEngine(60);
  const session = await engine.start(request());
  const reader = (await session.transportStream(piped)).getReader();
  for (const piece of [58, 59]) assert.equal(await pieceOf(reader), piece);
  const waiting = pieceOf(reader);
  await settled();
  session.liveSeek(at(10));
  assert.equal(await waiting, 10);
});

test("liveSeek: fails without a window", async () => {
  const { engine, live } = liveEngine(1);
  Object.assign(live, { livePosition: () => undefined });
  const [plays, waits] = [
    await engine.start(request({ selector: { kind: "transport_file", bytes: film.bytes } })),
    await engine.start(request()),
  ];
  assert.throws(() => waits.liveSeek(-1), codeOf("bad_parameter", /has not started yet/));
  await plays.settle(0);
  await settled();
  assert.throws(() => plays.liveSeek(-1), codeOf("bad_parameter", /not a live stream/));
  assert.throws(
    () => waits.liveSeek(at(0)),
    codeOf("bad_parameter", /no data of this stream has arrived yet/),
  );
  Object.assign(live, { live: undefined });
  assert.throws(() => waits.liveSeek(-1), codeOf("bad_parameter", /nothing of this stream is kept/));
});

test("info live: a player that seeked back is not at the edge, although data is sent ahead", async () => {
  const { engine } = liveEngine(60);
  const session = await engine.start(request());
  const reader = (await session.transportStream(piped)).getReader();
  session.liveSeek(at(44));
  for (let piece = 44; piece <= 53; piece++) assert.equal(await pieceOf(reader), piece);
  const { position, isAtEdge } = (await session.info()).live!;
  assert.deepEqual([position, isAtEdge], [at(54), false]);
});

test("info live: reports the window, the position of the player and the pieces after it", async () => {
  const { engine, live } = liveEngine(60);
  live.oldest = 10;
  const session = await engine.start(request());
  await session.settle(0);
  const before = (await session.info()).live!;
  assert.deepEqual([before.firstAt, before.lastAt, before.position], [at(10), at(59.5), at(59.5)]);
  const reader = (await session.transportStream(piped)).getReader();
  await pieceOf(reader);
  const live1 = (await session.info()).live!;
  assert.deepEqual([live1.position, live1.piecesAhead, live1.isAtEdge], [at(59), 1, true]);
  session.liveSeek(at(40));
  const back = (await session.info()).live!;
  assert.deepEqual([back.position, back.piecesAhead, back.isAtEdge], [at(40), 39, false]);
  await reader.cancel();
  live.bring(10);
  const closed = (await session.info()).live!;
  assert.deepEqual([closed.position, closed.isAtEdge], [at(50), false], "as far behind the edge as before");
});

test("live_changed: is sent only if the start could not know that the content is live", async () => {
  const unknown = liveEngine(1, { isKnown: false });
  const session = await unknown.engine.start(request({ wantsEvents: true }));
  assert.equal(session.isLive, false);
  assert.deepEqual(await session.nextEvent(1000), { name: "live_changed", params: { is_live: 1 } });
  assert.equal(session.isLive, true);
  const known = liveEngine(1);
  const sure = await known.engine.start(request({ wantsEvents: true }));
  assert.equal(sure.isLive, true);
  assert.equal((await sure.nextEvent(1000))?.name, "download_started");
  const nothing = sure.nextEvent(1000);
  await known.clock.advance(1000);
  assert.equal(await nothing, undefined);
});

test("live_changed: is sent for a magnet that turns out to be live", async () => {
  const { engine, transfers, live } = liveEngine(1, { isKnown: false });
  transfers.prepare = (transfer) => {
    transfer.bringData();
    transfer.segmentSource = async () => live;
  };
  const bare = { selector: { kind: "infohash", infohash: stream.infohash }, wantsEvents: true } as const;
  const session = await engine.start(request(bare));
  const event = session.nextEvent(1000);
  await settled();
  transfers.opened[0]!.live = fakeControl();
  transfers.opened[0]!.bringFiles([{ name: "stream.ts", size: 0 }]);
  assert.deepEqual(await event, { name: "live_changed", params: { is_live: 1 } });
});

test("manifest live: a session starts when its manifest lists a segment; each player has its own shift", async () => {
  const { engine, live } = liveEngine(1);
  const session = await engine.start(request({ output: "hls" }));
  await settled();
  assert.equal((await session.info()).status, "starting");
  live.bring(1);
  assert.equal(await session.settle(1000), true);
  live.bring(58);
  session.liveSeek(at(50));
  await session.manifest("http://x", "main");
  const place = live.places.at(-1)!;
  assert.deepEqual([place.shiftMs, place.reload], [9500, undefined]);
  assert.ok(place.urls.segment(7, "ts").startsWith("http://x/ace/c/"));
  assert.deepEqual(live.made, [], "no segment is made before it is requested");
});

test("manifest live: is held until it contains the requested segment", async () => {
  const { engine, live } = liveEngine(5);
  const session = await engine.start(request({ output: "hls" }));
  const reload = { segment: 5, part: 2 };
  const manifest = session.manifest("http://x", "main", undefined, { reload, isDelta: true });
  await settled();
  assert.deepEqual([live.places.at(-1)!.reload, live.places.at(-1)!.isDelta], [reload, true]);
  live.bring(1);
  assert.match(await manifest, /below 6/);
});

test("manifest live: is returned as it is if the requested segment does not arrive in time", async () => {
  const { engine, live, clock } = liveEngine(5);
  const session = await engine.start(request({ output: "hls" }));
  const waiting = session.manifest("http://x", "main", undefined, {
    reload: { segment: 5, part: undefined },
  });
  await clock.advance(7_999);
  assert.equal(live.aborted.length, 0);
  await clock.advance(1);
  assert.match(await waiting, /below 5/);
  assert.equal(live.aborted.length, 1);
});

test("segment live: returns parts by name, made once for concurrent requests", async () => {
  const { engine, live } = liveEngine(5);
  const sessions = [];
  for (let i = 0; i < 3; i++) sessions.push(await engine.start(request({ output: "hls" })));
  const parts = await Promise.all(
    sessions.map(({ infohash }, ordinal) =>
      engine.segment(infohash, { number: 1_000_000 * ordinal + 4, kind: "ts", track: 0, part: 3 }),
    ),
  );
  assert.deepEqual(live.made, ["4.p3"]);
  assert.equal(new Set(parts).size, 1);
  assert.equal(parts[0]![4], 3);
});

test("segment: content that is not live has no parts", async () => {
  const { engine } = liveEngine(5);
  const { infohash } = await engine.start(
    request({ output: "hls", selector: { kind: "transport_file", bytes: film.bytes } }),
  );
  await assert.rejects(
    engine.segment(infohash, { number: 0, kind: "ts", track: 0, part: 0 }),
    codeOf("no_such_segment", /no parts/),
  );
});

test("segment live: a long stream does not evict the segments of films", async () => {
  const { engine, live, transfers } = liveEngine(100);
  live.segmentBytes = 4 * 1024 * 1024;
  const playing = await engine.start(
    request({ output: "hls", selector: { kind: "transport_file", bytes: film.bytes } }),
  );
  await playing.settle(0);
  const { infohash } = await engine.start(request({ output: "hls" }));
  for (let number = 0; number < 20; number++)
    await engine.segment(infohash, { number, kind: "ts", track: 0 });
  await engine.segment(playing.infohash, { number: 0, kind: "ts", track: 0 });
  const filmMedia = transfers.opened.find((transfer) => transfer.infohash === film.infohash)!.media_;
  assert.equal(filmMedia.made.filter((name) => name === "ts 0").length, 1);
});

test("transportStream live: closed connections leave no listeners or readers behind", async () => {
  const { engine, live, clock } = liveEngine(1);
  const session = await engine.start(request());
  await session.settle(0);
  const before = clock.waiting;
  for (let i = 0; i < 100; i++) {
    const reader = (await session.transportStream(piped)).getReader();
    await pieceOf(reader);
    const waiting = reader.read();
    await settled();
    await reader.cancel();
    await waiting;
  }
  assert.equal(live.aborted.length, 100);
  assert.equal(clock.waiting, before);
  const { position } = (await session.info()).live!;
  assert.equal(position, at(0.5), "no connection has a position");
});

test("start live: after its broadcast was stopped, a player gets the one that is opened next", async () => {
  const { engine, live, broadcast, transfers } = liveEngine(7, { role: "source" });
  const onAir = () => {
    const hold = broadcast({ infohash: stream.infohash, trackers: [], peers: [] });
    transfers.opened.at(-1)!.bringFiles([{ name: "live.ts", size: 0 }]);
    return hold;
  };
  const player = request({ playerId: "tv", output: "hls" });
  const first = onAir();
  const before = await engine.start(player);
  await before.settle(1000);
  first.release();
  const second = onAir();
  const again = await engine.start(player);
  assert.notEqual(again.id, before.id);
  assert.equal(engine.session(again.infohash, again.key), again);
  await again.settle(1000);
  // The next time the player notices the end before its next request.
  second.release();
  live.manifest = () => Promise.reject(new SluiceError("session_stopped", "the live stream was closed"));
  await assert.rejects(again.manifest("http://here", "main"), codeOf("session_stopped", /closed/));
  assert.equal(engine.session(again.infohash, again.key), undefined);
  assert.deepEqual(
    transfers.opened.map(({ stopped }) => stopped),
    [true, true],
  );
});

test("info live: an HLS player at a silent edge waits, one that seeked back does not", async () => {
  const { engine, live, clock } = liveEngine(40);
  live.heardAt = clock.now();
  const session = await engine.start(request({ output: "hls" }));
  const reported = async () => {
    session.touch();
    return (await session.info()).buffering?.code;
  };
  await clock.advance(3_000);
  assert.equal(await reported(), undefined);
  await clock.advance(2_000);
  assert.equal(await reported(), "source");
  session.liveSeek(at(10));
  await clock.advance(5_000);
  assert.equal(await reported(), undefined);
});
