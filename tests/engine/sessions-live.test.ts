import assert from "node:assert/strict";
import { test } from "node:test";
import { SluiceError, type SluiceErrorCode } from "../../src/base/errors.ts";
import type { UnixSeconds } from "../../src/base/time.ts";
import type { PlaybackRequest } from "../../src/engine/engine.ts";
import { settled } from "./fake-clock.ts";
import { fakeHouse, filmTorrent, playbackRequest } from "./fake-house.ts";
import { FakeLive, FIRST_AT, fakeControl } from "./fake-live.ts";

const stream = filmTorrent("stream");
const film = filmTorrent("film");

const request = (changes: Partial<PlaybackRequest> = {}) => playbackRequest(stream.bytes, changes);

/** A house in which the content `stream` is live, with so many pieces there already. */
function liveHouse(pieces: number, options: { isKnown?: boolean; role?: "viewer" | "source" } = {}) {
  const house = fakeHouse();
  const live = new FakeLive();
  live.bring(pieces);
  house.transfers.prepare = (transfer) => {
    transfer.bringData();
    if (transfer.infohash !== stream.infohash) return;
    transfer.segmentSource = async () => live;
    if (options.isKnown ?? true) transfer.live = fakeControl(options.role);
  };
  return { ...house, live };
}

const codeOf = (code: SluiceErrorCode, words: RegExp) => (thrown: unknown) => {
  assert.ok(thrown instanceof SluiceError, String(thrown));
  assert.equal(thrown.code, code);
  assert.match(thrown.message, words);
  return true;
};

const at = (second: number) => (FIRST_AT + second) as UnixSeconds;

/** The number of the piece that a chunk is of. */
async function pieceOf(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<number | undefined> {
  return (await reader.read()).value?.[4];
}

test("transportStream live: begins with the newest cut, though no whole segment is there", async () => {
  const { engine, live } = liveHouse(7);
  const session = await engine.start(request());
  assert.equal(await session.settle(1000), true);
  assert.equal((await session.info()).status, "playing");
  const reader = (await session.transportStream()).getReader();
  assert.deepEqual([await pieceOf(reader), live.made], [6, []]);
  const next = pieceOf(reader);
  live.bring(1);
  assert.equal(await next, 7);
});

test("transportStream live: null packets until the first piece, then never again", async () => {
  const { engine, live, clock } = liveHouse(0);
  const session = await engine.start(request());
  const opening = session.transportStream();
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

test("transportStream live: two connections of a session each have their own place", async () => {
  const { engine, live, clock } = liveHouse(1);
  const session = await engine.start(request());
  const slow = (await session.transportStream()).getReader();
  const quick = (await session.transportStream()).getReader();
  assert.equal(await pieceOf(slow), 0);
  for (let piece = 0; piece < 50; piece++) {
    assert.equal(await pieceOf(quick), piece);
    live.bring(1);
    await clock.advance(1000);
  }
  assert.equal(await pieceOf(slow), 1);
});

test("transportStream live: who stalls is not read ahead for, and goes on at what is kept", async () => {
  const { engine, live } = liveHouse(1);
  const session = await engine.start(request());
  const reader = (await session.transportStream()).getReader();
  assert.equal(await pieceOf(reader), 0);
  live.bring(99);
  live.oldest = 90;
  assert.equal(await pieceOf(reader), 90);
});

test("transportStream live: large pieces are handed out in whole packets, nothing lost", async () => {
  const { engine, live } = liveHouse(1);
  live.packetsPerPiece = 2000;
  const reader = (await (await engine.start(request())).transportStream()).getReader();
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

test("transportStream live: ends with the stream, with the session, and when its player goes", async () => {
  const { engine, live } = liveHouse(1);
  const over = (await (await engine.start(request())).transportStream()).getReader();
  const session = await engine.start(request());
  const stopped = (await session.transportStream()).getReader();
  const gone = (await (await engine.start(request())).transportStream()).getReader();
  for (const reader of [over, stopped, gone]) assert.equal(await pieceOf(reader), 0);
  const waiting = stopped.read();
  const left = gone.read();
  await settled();
  session.stop();
  assert.equal((await waiting).done, true);
  await gone.cancel();
  assert.equal((await left).done, true);
  await settled();
  assert.equal(live.aborted.length, 2, "nobody waits for those who have gone");
  const last = over.read();
  live.finish();
  assert.equal((await last).done, true);
});

test("transportStream live: a player that waits keeps its session, one that is paused for long loses it", async () => {
  const { engine, live, clock } = liveHouse(1);
  const reader = (await (await engine.start(request())).transportStream()).getReader();
  assert.equal(await pieceOf(reader), 0);
  const next = pieceOf(reader);
  await clock.advance(100_000);
  live.bring(1);
  assert.equal(await next, 1);
  await clock.advance(3 * 3_600_000 + 1);
  assert.equal(engine.figures().sessions, 0);
});

test("transportStream live: a stream from which nothing comes for 5 minutes is told to have broken off", async () => {
  const { engine, clock } = liveHouse(1);
  const reader = (await (await engine.start(request())).transportStream()).getReader();
  await pieceOf(reader);
  const next = assert.rejects(reader.read(), codeOf("start_timeout", /no peer sent any data for 300 s/));
  await clock.advance(300_000);
  await next;
});

test("start live: of a stream that we broadcast, no peer is missed", async () => {
  const { engine, clock, transfers } = liveHouse(0, { role: "source" });
  const session = await engine.start(request());
  const transfer = transfers.opened[0]!;
  transfer.figures = { ...transfer.figures, connectedPeers: 0 };
  const settle = assert.rejects(
    session.settle(100_000),
    codeOf("start_timeout", /its source did not send any data/),
  );
  await clock.advance(40_000);
  session.touch();
  await clock.advance(20_000);
  await settle;
});

test("start live: peers that talk and send no media are as good as none", async () => {
  const { engine, clock, transfers } = liveHouse(0);
  const session = await engine.start(request());
  const transfer = transfers.opened[0]!;
  const settle = assert.rejects(session.settle(100_000), codeOf("start_timeout", /no peer sent any data/));
  for (let second = 0; second < 61; second++) {
    const { figures } = transfer;
    transfer.figures = { ...figures, connectedPeers: 2, downloaded: figures.downloaded + 100 };
    session.touch();
    await clock.advance(1_000);
  }
  await settle;
});

test("liveSeek: all connections go there at once, those to come too; -1 leads back", async () => {
  const { engine, live } = liveHouse(60);
  live.packetsPerPiece = 2000;
  const session = await engine.start(request());
  const readers = [];
  for (let i = 0; i < 2; i++) readers.push((await session.transportStream()).getReader());
  for (const reader of readers) assert.equal(await pieceOf(reader), 58);
  session.liveSeek(at(21));
  for (const reader of readers)
    assert.equal(await pieceOf(reader), 20, "the rest of the piece before is left out");
  live.bring(10);
  const late = (await session.transportStream()).getReader();
  assert.equal(await pieceOf(late), 30, "as far behind the edge");
  session.liveSeek(-1);
  for (const reader of [...readers, late]) assert.equal(await pieceOf(reader), 68);
  assert.equal(await pieceOf((await session.transportStream()).getReader()), 68);
});

test("liveSeek: a time outside the window is the nearest in it", async () => {
  const { engine, live } = liveHouse(60);
  live.oldest = 20;
  const session = await engine.start(request());
  const reader = (await session.transportStream()).getReader();
  session.liveSeek(at(-1000));
  assert.equal(await pieceOf(reader), 20);
  session.liveSeek(at(1000));
  assert.equal(await pieceOf(reader), 58);
});

test("liveSeek: who went back gets ten seconds at once, and then what is due", async () => {
  const { engine, live, clock } = liveHouse(100);
  const session = await engine.start(request());
  const reader = (await session.transportStream()).getReader();
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
  assert.equal(await waiting, 60, "who is taken elsewhere does not wait");
  for (let piece = 61; piece <= 70; piece++) assert.equal(await pieceOf(reader), piece);
  const left = reader.read();
  await settled();
  await reader.cancel();
  assert.equal((await left).done, true);
});

test("liveSeek: a player that waits at the edge is taken back", async () => {
  const { engine } = liveHouse(60);
  const session = await engine.start(request());
  const reader = (await session.transportStream()).getReader();
  for (const piece of [58, 59]) assert.equal(await pieceOf(reader), piece);
  const waiting = pieceOf(reader);
  await settled();
  session.liveSeek(at(10));
  assert.equal(await waiting, 10);
});

test("liveSeek: what has no window says so", async () => {
  const { engine, live } = liveHouse(0);
  const [plays, waits] = [
    await engine.start(request({ selector: { kind: "transport_file", bytes: film.bytes } })),
    await engine.start(request()),
  ];
  assert.throws(() => waits.liveSeek(-1), codeOf("bad_parameter", /has not begun yet/));
  await plays.settle(0);
  await settled();
  assert.throws(() => plays.liveSeek(-1), codeOf("bad_parameter", /not a live stream/));
  assert.throws(() => waits.liveSeek(at(0)), codeOf("bad_parameter", /nothing of this stream is here yet/));
  Object.assign(live, { live: undefined });
  assert.throws(() => waits.liveSeek(-1), codeOf("bad_parameter", /nothing is kept to go back to/));
});

test("info live: who was taken back is not at the edge, though the next seconds are sent ahead", async () => {
  const { engine } = liveHouse(60);
  const session = await engine.start(request());
  const reader = (await session.transportStream()).getReader();
  session.liveSeek(at(44));
  for (let piece = 44; piece <= 53; piece++) assert.equal(await pieceOf(reader), piece);
  const { position, isAtEdge } = (await session.info()).live!;
  assert.deepEqual([position, isAtEdge], [at(54), false]);
});

test("info live: the window, the player's place in it, and what is ahead of it", async () => {
  const { engine, live } = liveHouse(60);
  live.oldest = 10;
  const session = await engine.start(request());
  await session.settle(0);
  const before = (await session.info()).live!;
  assert.deepEqual([before.firstAt, before.lastAt, before.position], [at(10), at(59.5), at(59.5)]);
  const reader = (await session.transportStream()).getReader();
  await pieceOf(reader);
  const live1 = (await session.info()).live!;
  assert.deepEqual([live1.position, live1.piecesAhead, live1.isAtEdge], [at(59), 1, true]);
  session.liveSeek(at(40));
  const back = (await session.info()).live!;
  assert.deepEqual([back.position, back.piecesAhead, back.isAtEdge], [at(40), 39, false]);
  await reader.cancel();
  live.bring(10);
  const closed = (await session.info()).live!;
  assert.deepEqual([closed.position, closed.isAtEdge], [at(50), false], "as far behind as it watched");
});

test("live_changed: is told to who could not know, and to nobody else", async () => {
  const unknown = liveHouse(1, { isKnown: false });
  const session = await unknown.engine.start(request({ wantsEvents: true }));
  assert.equal(session.isLive, false);
  assert.deepEqual(await session.nextEvent(1000), { name: "live_changed", params: { is_live: 1 } });
  assert.equal(session.isLive, true);
  const known = liveHouse(1);
  const sure = await known.engine.start(request({ wantsEvents: true }));
  assert.equal(sure.isLive, true);
  const nothing = sure.nextEvent(1000);
  await known.clock.advance(1000);
  assert.equal(await nothing, undefined);
});

test("live_changed: a magnet that turns out to be live is told", async () => {
  const { engine, transfers, live } = liveHouse(1, { isKnown: false });
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

test("manifest live: a session begins when it lists something; the shift is the player's", async () => {
  const { engine, live } = liveHouse(1);
  const session = await engine.start(request({ output: "hls" }));
  await settled();
  assert.equal((await session.info()).status, "starting");
  live.bring(1);
  assert.equal(await session.settle(1000), true);
  live.bring(58);
  session.liveSeek(at(50));
  await session.manifest("http://x", "main");
  const place = live.places.at(-1)!;
  assert.deepEqual([place.base, place.shiftMs, place.reload], ["http://x", 9500, undefined]);
  assert.deepEqual(live.made, [], "no segment is made before it is asked");
});

test("manifest live: is held until it has what was asked for", async () => {
  const { engine, live } = liveHouse(5);
  const session = await engine.start(request({ output: "hls" }));
  const reload = { segment: 5, part: 2 };
  const manifest = session.manifest("http://x", "main", undefined, { reload, isDelta: true });
  await settled();
  assert.deepEqual([live.places.at(-1)!.reload, live.places.at(-1)!.isDelta], [reload, true]);
  live.bring(1);
  assert.match(await manifest, /below 6/);
});

test("manifest live: is given as it is where what was asked for does not come", async () => {
  const { engine, live, clock } = liveHouse(5);
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

test("segment live: parts by their names, made once for all who ask at once", async () => {
  const { engine, live } = liveHouse(5);
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

test("segment: what is no live stream has no parts", async () => {
  const { engine } = liveHouse(5);
  const { infohash } = await engine.start(
    request({ output: "hls", selector: { kind: "transport_file", bytes: film.bytes } }),
  );
  await assert.rejects(
    engine.segment(infohash, { number: 0, kind: "ts", track: 0, part: 0 }),
    codeOf("no_such_segment", /no parts/),
  );
});

test("segment live: a stream that goes on and on does not push out what was made of a film", async () => {
  const { engine, live, transfers } = liveHouse(100);
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

test("transportStream live: connections that come and go leave nothing behind", async () => {
  const { engine, live, clock } = liveHouse(1);
  const session = await engine.start(request());
  await session.settle(0);
  const before = clock.waiting;
  for (let i = 0; i < 100; i++) {
    const reader = (await session.transportStream()).getReader();
    await pieceOf(reader);
    const waiting = reader.read();
    await settled();
    await reader.cancel();
    await waiting;
  }
  assert.equal(live.aborted.length, 100);
  assert.equal(clock.waiting, before);
  const { position } = (await session.info()).live!;
  assert.equal(position, at(0.5), "no connection stands anywhere");
});

test("start live: a player whose stream was ended by its broadcaster gets the one that is opened next", async () => {
  const { engine, live, broadcast, transfers } = liveHouse(7, { role: "source" });
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
  // The next time the player notices before it asks.
  second.release();
  live.manifest = () => Promise.reject(new SluiceError("session_stopped", "the live stream was closed"));
  await assert.rejects(again.manifest("http://here", "main"), codeOf("session_stopped", /closed/));
  assert.equal(engine.session(again.infohash, again.key), undefined);
  assert.deepEqual(
    transfers.opened.map(({ stopped }) => stopped),
    [true, true],
  );
});

test("info live: a player of HLS at an edge that stands still waits, one that went back does not", async () => {
  const { engine, live, clock } = liveHouse(40);
  live.heardAt = clock.now();
  const session = await engine.start(request({ output: "hls" }));
  const told = async () => {
    session.touch();
    return (await session.info()).holdUp?.code;
  };
  await clock.advance(3_000);
  assert.equal(await told(), undefined);
  await clock.advance(2_000);
  assert.equal(await told(), "source");
  session.liveSeek(at(10));
  await clock.advance(5_000);
  assert.equal(await told(), undefined);
});
