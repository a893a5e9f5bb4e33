import assert from "node:assert/strict";
import { test } from "node:test";
import { deferred } from "../../src/async/deferred.ts";
import { SluiceError, type SluiceErrorCode } from "../../src/base/errors.ts";
import type { Engine } from "../../src/engine/engine.ts";
import type { PlaybackRequest, RemuxForPlayer, Session } from "../../src/playback/contract.ts";
import { settled } from "../engine/fake-clock.ts";
import { fakeEngine, filmTorrent, playbackRequest } from "../engine/fake-engine.ts";
import { segmentTimes, tsBytes } from "../engine/fake-media.ts";

const piped: RemuxForPlayer = ({ pieces, remuxer }) => pieces.pipeThrough(remuxer);

const film = filmTorrent();
const other = filmTorrent("other");

const request = (changes: Partial<PlaybackRequest> = {}) => playbackRequest(film.bytes, changes);

const OTHER = { selector: { kind: "transport_file", bytes: other.bytes } } as const;

/** An engine whose transfers have their data at once. */
function quickEngine(settings = {}) {
  const fake = fakeEngine(settings);
  fake.transfers.prepare = (transfer) => transfer.bringData();
  return fake;
}

/** Accepts a `SluiceError` with this code. */
const codeOf = (code: SluiceErrorCode) => (thrown: unknown) => {
  assert.ok(thrown instanceof SluiceError, String(thrown));
  assert.equal(thrown.code, code);
  return true;
};

test("start: plays the largest playable file unless another is requested", async () => {
  const { engine } = quickEngine();
  const chosen = await engine.start(request());
  await chosen.settle(0);
  assert.equal((await chosen.info()).fileIndex, 1);
  const asked = await engine.start(request({ fileIndex: 0 }));
  await asked.settle(0);
  assert.equal((await asked.info()).fileIndex, 0);
});

test("start: plays the first episode of a series, not its largest file", async () => {
  const { engine, transfers } = quickEngine();
  const session = await engine.start(
    request({ selector: { kind: "infohash", infohash: other.infohash } as const }),
  );
  transfers.opened[0]!.bringFiles([
    { name: "Show/S01E02.mkv", size: 90 },
    { name: "Show/S01E01.mkv", size: 50 },
  ]);
  await session.settle(0);
  assert.equal((await session.info()).fileIndex, 1);
});

test("start: a file index outside the content fails as soon as the files are known", async () => {
  const { engine, transfers } = quickEngine();
  await assert.rejects(engine.start(request({ fileIndex: 9 })), codeOf("no_such_file"));
  const bare = { selector: { kind: "infohash", infohash: other.infohash } } as const;
  const session = await engine.start(request({ fileIndex: 1, ...bare }));
  transfers.opened[1]!.bringFiles([{ name: "only.mp4", size: 10 }]);
  await assert.rejects(session.settle(1000), codeOf("no_such_file"));
});

test("start: joins the session of the same pid and content, also in concurrent starts", async () => {
  const { engine } = quickEngine();
  const [a, b] = await Promise.all([
    engine.start(request({ playerId: "tv" })),
    engine.start(request({ playerId: "tv" })),
  ]);
  assert.equal(a, b);
  assert.equal(await engine.start(request({ playerId: "tv" })), a);
  assert.equal(engine.figures().sessions, 1);
  assert.equal(engine.figures().transfers[0]?.holders, 1);
});

test("start: other content with the same pid ends the earlier session", async () => {
  const { engine } = quickEngine();
  const first = await engine.start(request({ playerId: "tv" }));
  const second = await engine.start(request({ playerId: "tv", ...OTHER }));
  assert.equal(engine.session(first.infohash, first.key), undefined);
  assert.equal(engine.session(second.infohash, second.key), second);
});

test("start: another file of the content with the same pid ends the earlier session", async () => {
  const { engine } = quickEngine();
  const first = await engine.start(request({ playerId: "tv", fileIndex: 0 }));
  await engine.start(request({ playerId: "tv", fileIndex: 1 }));
  assert.equal(engine.session(first.infohash, first.key), undefined);
});

test("start: of two starts of one pid the later request wins, whichever resolves first", async () => {
  const { engine, web } = quickEngine();
  web.set("http://slow/film", { status: 200, bytes: film.bytes as Uint8Array<ArrayBuffer> });
  const slow = engine.start(request({ playerId: "tv", selector: { kind: "url", url: "http://slow/film" } }));
  const quick = engine.start(request({ playerId: "tv", ...OTHER }));
  const [early, late] = await Promise.allSettled([slow, quick]);
  assert.equal(late.status, "fulfilled");
  assert.ok(early.status === "rejected");
  assert.equal(early.reason.message, "got newer download");
  assert.equal(engine.figures().sessions, 1);
  assert.equal(
    [...engine.figures().transfers].filter(({ holders }) => holders > 0)[0]?.infohash,
    other.infohash,
  );
});

test("start: TS and HLS of one pid and content are separate sessions", async () => {
  const { engine } = quickEngine();
  const ts = await engine.start(request({ playerId: "tv" }));
  const hls = await engine.start(request({ playerId: "tv", output: "hls" }));
  assert.notEqual(ts.key, hls.key);
  assert.equal(engine.figures().sessions, 2);
});

test("start: without a pid each start is a separate player", async () => {
  const { engine } = quickEngine();
  const a = await engine.start(request());
  const b = await engine.start(request());
  const c = await engine.start(request(OTHER));
  assert.equal(new Set([a.key, b.key, c.key]).size, 3);
  a.stop();
  assert.equal(engine.session(b.infohash, b.key), b);
  assert.equal(engine.session(c.infohash, c.key), c);
});

test("start: the same pid and content get the same URLs again, and a new id", async () => {
  const { engine } = quickEngine();
  const first = await engine.start(request({ playerId: "tv" }));
  first.stop();
  const second = await engine.start(request({ playerId: "tv" }));
  assert.equal(second.key, first.key);
  assert.notEqual(second.id, first.id);
  assert.match(second.key, /^[0-9a-f]{32}$/);
  assert.match(second.id, /^[0-9a-f]{40}$/);
});

test("start: a failed session is replaced by the next start", async () => {
  const fake = fakeEngine();
  const first = await fake.engine.start(request({ playerId: "tv" }));
  await fake.clock.advance(31_000);
  assert.equal((await first.info()).status, "failed");
  const second = await fake.engine.start(request({ playerId: "tv" }));
  assert.notEqual(second, first);
  assert.equal((await second.info()).status, "starting");
});

test("stop: ends one session; the transfer continues for the other", async () => {
  const { engine, transfers } = quickEngine();
  const [a, b] = [
    await engine.start(request({ playerId: "a" })),
    await engine.start(request({ playerId: "b" })),
  ];
  const stream = await b.transportStream(piped);
  a.stop();
  const read = await stream.getReader().read();
  assert.equal(read.value?.[4], 0);
  assert.equal(engine.session(a.infohash, a.key), undefined);
  assert.equal(transfers.opened.length, 1);
  assert.equal(transfers.opened[0]?.stopped, false);
});

test("idle: a session without requests ends; its transfer stops later", async () => {
  const { engine, clock, transfers } = quickEngine();
  const session = await engine.start(request());
  await clock.advance(59_000);
  assert.equal(engine.figures().sessions, 1);
  await clock.advance(1_001);
  assert.equal(engine.session(session.infohash, session.key), undefined);
  assert.equal(transfers.opened[0]?.stopped, false);
  await clock.advance(300_000);
  assert.equal(transfers.opened[0]?.stopped, true);
  assert.equal(clock.waiting, 0);
});

test("idle: a player that returns in time finds the same transfer", async () => {
  const { engine, clock, transfers } = quickEngine();
  (await engine.start(request())).stop();
  await clock.advance(200_000);
  await engine.start(request());
  await clock.advance(59_000);
  assert.equal(transfers.opened.length, 1);
  assert.equal(transfers.opened[0]?.stopped, false);
});

test("idle: touch, a segment and a pull renew the lease; setIdleMs changes its time", async () => {
  const { engine, clock } = quickEngine();
  const session = await engine.start(request({ output: "hls" }));
  await clock.advance(50_000);
  session.touch();
  await clock.advance(50_000);
  await engine.segment(session.infohash, { number: 1, kind: "ts", track: 0 });
  await clock.advance(50_000);
  assert.equal(engine.figures().sessions, 1);
  session.setIdleMs(5_000);
  await clock.advance(5_001);
  assert.equal(engine.figures().sessions, 0);
});

test("idle: a player that waits for data is not idle", async () => {
  const { engine, clock, transfers } = fakeEngine({ peersTimeoutMs: 1e9, startTimeoutMs: 1e9 });
  const session = await engine.start(request());
  const opening = session.transportStream(piped);
  await clock.advance(8_000);
  const reader = (await opening).getReader();
  const nulls = reader.read();
  await clock.advance(500);
  assert.deepEqual((await nulls).value?.subarray(0, 4), new Uint8Array([0x47, 0x1f, 0xff, 0x10]));
  for (let i = 0; i < 400; i++) {
    const read = reader.read();
    await clock.advance(500);
    await read;
  }
  assert.equal(engine.figures().sessions, 1);
  const read = reader.read();
  transfers.opened[0]!.bringData();
  await settled();
  assert.equal((await read).value?.[1], 0x01, "media packets follow as soon as they arrive");
});

test("idle: a paused HLS player continues with its next segment, under the same URLs", async () => {
  const { engine, clock } = quickEngine();
  const session = await engine.start(request({ output: "hls", playerId: "tv" }));
  const { infohash, key } = session;
  await clock.advance(61_000);
  assert.equal(engine.session(infohash, key), undefined);
  const other = await engine.start(request({ output: "hls", fileIndex: 0, playerId: "other" }));
  assert.equal(
    (await other.manifest("http://x", "main")).includes("/1000000.ts"),
    true,
    "its segment numbers stay reserved",
  );
  const [a, b] = await Promise.all(
    [2, 3].map((number) => engine.segment(infohash, { number, kind: "ts", track: 0 })),
  );
  assert.deepEqual([a, b], [tsBytes(2), tsBytes(3)]);
  assert.equal(engine.figures().sessions, 2);
  assert.equal((await engine.session(infohash, key)!.info()).fileIndex, 1);
});

test("idle: a paused TS player keeps its session while its stream is open", async () => {
  const { engine, clock } = quickEngine();
  const session = await engine.start(request());
  const reader = (await session.transportStream(piped)).getReader();
  assert.deepEqual((await reader.read()).value, tsBytes(0));
  await clock.advance(2 * 3_600_000);
  assert.deepEqual((await reader.read()).value, tsBytes(1));
  await reader.cancel();
  await clock.advance(4_999);
  assert.equal(engine.figures().sessions, 1);
  await clock.advance(2);
  assert.equal(engine.figures().sessions, 0);
});

test("idle: a TS session without a connection ends after 5 s, unless its client polls or set an idle time", async () => {
  const { engine, clock } = quickEngine();
  const open = async () => {
    const session = await engine.start(request());
    const reader = (await session.transportStream(piped)).getReader();
    await reader.read();
    return { session, reader };
  };
  const [left, polled, timed] = [await open(), await open(), await open()];
  timed.session.setIdleMs(30_000);
  for (const { reader } of [left, polled, timed]) await reader.cancel();
  for (let second = 0; second < 6; second++) {
    polled.session.touch();
    await clock.advance(1_000);
  }
  const { infohash } = left.session;
  const isOpen = ({ session }: typeof left) => engine.session(infohash, session.key) !== undefined;
  assert.deepEqual([left, polled, timed].map(isOpen), [false, true, true]);
  await clock.advance(24_001);
  assert.equal(engine.figures().sessions, 0);
});

test("idle: a TS player that connects again gets its session back; a stopped one does not", async () => {
  const { engine, clock } = quickEngine();
  const session = await engine.start(request({ playerId: "tv" }));
  const { infohash, key } = session;
  await (await session.transportStream(piped)).cancel();
  await clock.advance(5_001);
  assert.equal(engine.session(infohash, key), undefined);
  const [again, same] = await Promise.all([engine.reconnect(infohash, key), engine.reconnect(infohash, key)]);
  assert.equal(again, same);
  assert.equal(engine.session(infohash, key), again);
  assert.deepEqual((await (await again!.transportStream(piped)).getReader().read()).value, tsBytes(0));
  again!.stop();
  assert.equal(await engine.reconnect(infohash, key), undefined);
});

test("idle: a session ends after three hours without a pull of its open TS stream", async () => {
  const { engine, clock } = quickEngine();
  const reader = (await (await engine.start(request())).transportStream(piped)).getReader();
  await reader.read();
  await clock.advance(3 * 3_600_000 + 1);
  assert.equal(engine.figures().sessions, 0);
  assert.equal((await reader.read()).done, true);
  assert.equal(clock.waiting <= 1, true, "only the timer of the transfer is left");
});

test("stop: a request for a segment does not bring back a stopped session", async () => {
  const { engine } = quickEngine();
  const session = await engine.start(request({ output: "hls" }));
  session.stop();
  await assert.rejects(
    engine.segment(session.infohash, { number: 0, kind: "ts", track: 0 }),
    codeOf("unknown_session"),
  );
});

test("timeouts: without peers a start fails with no_peers", async () => {
  const { engine, clock } = fakeEngine({ peersTimeoutMs: 10_000 });
  const session = await engine.start(request({ selector: { kind: "infohash", infohash: film.infohash } }));
  const settle = assert.rejects(session.settle(60_000), codeOf("no_peers"));
  const opening = session.transportStream(piped);
  await clock.advance(8_000);
  const reader = (await opening).getReader();
  const read = reader.read();
  await clock.advance(500);
  assert.equal((await read).value?.length, 7 * 188, "null packets after 8 s");
  await clock.advance(2_000);
  await settle;
  await assert.rejects(reader.read(), codeOf("no_peers"));
  assert.equal((await session.info()).status, "failed");
});

test("timeouts: a failed start is tried again at the next request of its URL", async () => {
  const { engine, clock, transfers } = fakeEngine({ peersTimeoutMs: 5_000 });
  const session = await engine.start(request({ output: "hls" }));
  await clock.advance(6_000);
  assert.equal((await session.info()).status, "failed");
  const manifest = session.manifest("http://x", "main");
  transfers.opened[0]!.bringData();
  assert.match(await manifest, /#EXTINF/);
  await settled();
  assert.equal((await session.info()).status, "playing");
});

test("timeouts: peers without metadata cause metadata_timeout, which names what is missing", async () => {
  for (const [lacksLayers, missing] of [
    [false, /^no peer sent the metadata within/],
    [true, /^no peer sent all hashes of its pieces .BitTorrent v2. within/],
  ] as const) {
    const { engine, clock, transfers } = fakeEngine();
    const session = await engine.start(request({ selector: { kind: "infohash", infohash: film.infohash } }));
    transfers.opened[0]!.figures = { ...transfers.opened[0]!.figures, connectedPeers: 3, lacksLayers };
    const error = session.settle(100_000).then(
      () => undefined,
      (reason) => reason,
    );
    await clock.advance(40_000);
    session.touch();
    await clock.advance(20_000);
    const failed = await error;
    assert.ok(codeOf("metadata_timeout")(failed));
    assert.match(failed.message, missing);
  }
});

test("timeouts: peers without data cause start_timeout; slow data does not", async () => {
  const { engine, clock, transfers } = fakeEngine({ startTimeoutMs: 60_000 });
  const session = await engine.start(request());
  const transfer = transfers.opened[0]!;
  for (let i = 1; i < 5; i++) {
    transfer.figures = { ...transfer.figures, connectedPeers: 3, downloaded: 1000 * i };
    await clock.advance(59_000);
    session.touch();
  }
  assert.equal((await session.info()).status, "starting", "no timeout while bytes arrive");
  const settle = assert.rejects(session.settle(200_000), codeOf("start_timeout"));
  for (let i = 0; i < 4; i++) {
    await clock.advance(30_000);
    session.touch();
  }
  await settle;
  assert.equal((await session.info()).status, "failed");
});

test("info: reports starting, then playing with the figures of the transfer", async () => {
  const { engine, transfers, clock } = fakeEngine();
  const session = await engine.start(request());
  await clock.advance(10);
  const before = await session.info();
  assert.equal(before.status, "starting");
  assert.ok(before.progress > 0 && before.progress < 100);
  transfers.opened[0]!.bringData();
  await settled();
  const after = await session.info();
  assert.deepEqual(
    [after.status, after.progress, after.totalProgress, after.fileIndex, after.figures.connectedPeers],
    ["playing", 100, 12.7, 1, 2],
  );
});

test("info: reports why the player waits: the proxy, no peers, or the current limit", async () => {
  const { engine, transfers, proxy, clock } = fakeEngine({ downloadLimit: 5_000_000 });
  const session = await engine.start(request());
  const transfer = transfers.opened[0]!;
  const reported = async () => {
    await clock.advance(4_000);
    return (await session.info()).buffering;
  };
  proxy.problem = "SOCKS5 proxy 127.0.0.1:1080: connection refused";
  assert.match((await reported())!.sentence, /proxy \(--proxy\) fails: .*connection refused/);
  proxy.problem = undefined;
  assert.equal((await reported())?.code, "no_peers");
  const some = { connectedPeers: 2, unchokedByPeers: 1, hasMetadata: true, needed: 1 };
  transfer.figures = { ...transfer.figures, ...some, limitedToBytesPerSecond: 300_000 };
  const limited = (await reported())!;
  assert.equal(limited.code, "own_limit");
  assert.match(limited.sentence, /300 kB\/s.*--schedule/);
});

test("segments: two players of one file share segments, unless their languages differ", async () => {
  const { engine, transfers } = quickEngine();
  const a = await engine.start(request({ output: "hls", playerId: "a" }));
  const b = await engine.start(request({ output: "hls", playerId: "b" }));
  await Promise.all([
    engine.segment(a.infohash, { number: 2, kind: "ts", track: 0 }),
    engine.segment(b.infohash, { number: 1_000_002, kind: "ts", track: 0 }),
  ]);
  const { media_: media } = transfers.opened[0]!;
  assert.deepEqual(media.made.filter((made) => made === "ts 2").length, 1);
  const c = await engine.start(request({ output: "hls", playerId: "c", audioLanguage: "rus" }));
  await engine.segment(c.infohash, { number: 2_000_002, kind: "ts", track: 0 });
  assert.deepEqual(media.made.filter((made) => made === "ts 2").length, 2);
  assert.ok(media.languages.includes("rus"));
});

test("segments: fail outside the manifest, for the wrong container, and without a session", async () => {
  const { engine } = quickEngine();
  const { infohash } = await engine.start(request({ output: "hls" }));
  await assert.rejects(
    engine.segment(infohash, { number: 5, kind: "ts", track: 0 }),
    codeOf("no_such_segment"),
  );
  await assert.rejects(
    engine.segment(infohash, { number: 0, kind: "m4s", track: 0 }),
    codeOf("no_such_segment"),
  );
  await assert.rejects(
    engine.segment(infohash, { number: 1_000_000, kind: "ts", track: 0 }),
    codeOf("unknown_session"),
  );
});

test("segments: production continues for the second player when the first disconnects", async () => {
  const { engine, transfers, clock } = quickEngine();
  const a = await engine.start(request({ output: "hls", playerId: "a" }));
  const b = await engine.start(request({ output: "hls", playerId: "b" }));
  await settled();
  let open = () => {};
  transfers.opened[0]!.media_.gate = () => new Promise((resolve) => (open = resolve));
  const leaves = engine.segment(a.infohash, { number: 3, kind: "ts", track: 0 });
  const stays = engine.segment(b.infohash, { number: 1_000_003, kind: "ts", track: 0 });
  await clock.advance(1);
  a.stop();
  await assert.rejects(leaves, codeOf("session_stopped"));
  open();
  assert.deepEqual(await stays, tsBytes(3));
});

test("segments: a seeking player gets at most six pending requests", async () => {
  const { engine, transfers, clock } = quickEngine();
  const { infohash } = await engine.start(request({ output: "hls" }));
  await settled();
  let open = () => {};
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  const { media_: media } = transfers.opened[0]!;
  media.segments = segmentTimes(20);
  media.gate = () => gate;
  const asked = [2, 5, 8, 11, 14, 17, 19].map((number) =>
    engine.segment(infohash, { number, kind: "ts", track: 0 }),
  );
  const first = assert.rejects(asked[0]!, codeOf("cancelled"));
  await clock.advance(1);
  await first;
  open();
  assert.deepEqual(await asked[6], tsBytes(19));
  assert.deepEqual(await asked[1], tsBytes(5));
});

test("transportStream: returns all segments in order, each made while the previous one is read", async () => {
  const { engine, transfers } = quickEngine();
  const session = await engine.start(request());
  const seen: number[] = [];
  for await (const chunk of await session.transportStream(piped)) {
    for (let at = 4; at < chunk.length; at += 188) if (seen.at(-1) !== chunk[at]) seen.push(chunk[at]!);
  }
  assert.deepEqual(seen, [0, 1, 2, 3, 4]);
  // The first batch is made twice: it tells whether the film can play.
  assert.deepEqual(transfers.opened[0]!.media_.made, ["ts 0", "ts 0", "ts 1", "ts 2", "ts 3", "ts 4"]);
});

test("transportStream: a stalled player causes no work and holds no segment", async () => {
  const { engine, transfers, clock } = quickEngine();
  const session = await engine.start(request());
  transfers.opened[0]!.media_.packetsPerSegment = 3000;
  const reader = (await session.transportStream(piped)).getReader();
  await reader.read();
  await clock.advance(20_000);
  assert.ok(transfers.opened[0]!.media_.made.length <= 2);
  const next = await reader.read();
  assert.equal(next.value?.[188 * 2 + 4], 0);
});

test("transportStream: ends when its session is stopped, also while the player does not read", async () => {
  const { engine } = quickEngine();
  const session = await engine.start(request());
  const reader = (await session.transportStream(piped)).getReader();
  await reader.read();
  session.stop();
  assert.equal((await reader.read()).done, true);
});

test("transportStream: fifty stalled players do not stall another one", async () => {
  const { engine, clock } = quickEngine();
  const stalled: ReadableStreamDefaultReader<Uint8Array>[] = [];
  for (let i = 0; i < 50; i++) {
    const session = await engine.start(request({ playerId: `stalled ${i}` }));
    const reader = (await session.transportStream(piped)).getReader();
    await reader.read();
    stalled.push(reader);
  }
  const one = await engine.start(request({ playerId: "reads on" }));
  let bytes = 0;
  for await (const chunk of await one.transportStream(piped)) bytes += chunk.length;
  assert.equal(bytes, 5 * 400 * 188);
  for (const reader of stalled) await reader.cancel();
  await clock.advance(61_000);
  assert.equal(engine.figures().sessions, 0);
});

test("read: holds the transfer until the bytes are read", async () => {
  const { engine, transfers, clock } = quickEngine({ transferIdleMs: 1000 });
  await engine.acquire({ kind: "transport_file", bytes: film.bytes });
  const { file, stream } = await engine.read(film.infohash, 1, () => ({ start: 100, end: 3100 }));
  assert.equal(file.name, "long.mkv");
  const reader = stream!.getReader();
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    assert.equal(value[0], (100 + length) & 0xff);
    length += value.length;
  }
  assert.equal(length, 3000);
  assert.equal(engine.figures().transfers[0]?.holders, 1, "only the acquired lease is left");
  assert.equal(transfers.opened.length, 1);
  await clock.advance(60_000);
});

test("read: cancelling the stream closes the source; a wait without data times out", async () => {
  const { engine, transfers, clock } = fakeEngine({ startTimeoutMs: 20_000 });
  transfers.prepare = (transfer) => (transfer.figures = { ...transfer.figures, connectedPeers: 1 });
  const lease = await engine.acquire({ kind: "transport_file", bytes: film.bytes });
  const opening = engine.read(film.infohash, 1, () => ({ start: 0, end: 10 }));
  await clock.advance(8_000);
  const reader = (await opening).stream!.getReader();
  const read = assert.rejects(reader.read(), codeOf("start_timeout"));
  await clock.advance(40_000);
  await read;
  const second = engine.read(film.infohash, 1, () => ({ start: 0, end: 10 }));
  await clock.advance(8_000);
  await (await second).stream!.cancel("gone");
  assert.ok(transfers.opened[0]!.cancelled.includes("gone"));
  lease.release();
  await clock.advance(300_000);
  assert.equal(clock.waiting, 0);
});

test("read: after the first bytes a read waits 5 minutes for more", async () => {
  const { engine, transfers, clock } = quickEngine({ startTimeoutMs: 20_000 });
  await engine.start(request());
  const { stream } = await engine.read(film.infohash, 1, () => ({ start: 0, end: 10_000 }));
  const reader = stream!.getReader();
  await reader.read();
  transfers.opened[0]!.data = deferred();
  let failure: SluiceError | undefined;
  const draining = (async () => {
    for (let part = await reader.read(); !part.done; ) part = await reader.read();
  })().catch((thrown: SluiceError) => {
    failure = thrown;
  });
  await clock.advance(299_000);
  assert.equal(failure, undefined);
  await clock.advance(2_000);
  await draining;
  assert.equal((failure as SluiceError | undefined)?.code, "start_timeout");
});

test("read: without any peer the response is held until the peers timeout and then fails", async () => {
  const { engine, transfers, clock } = quickEngine({ peersTimeoutMs: 20_000 });
  await engine.start(request());
  const transfer = transfers.opened[0]!;
  transfer.data = deferred();
  transfer.figures = { ...transfer.figures, connectedPeers: 0 };
  let failure: SluiceError | undefined;
  const reading = engine
    .read(film.infohash, 1, () => ({ start: 0, end: 10_000 }))
    .then(
      () => assert.fail("no bytes have arrived"),
      (thrown: SluiceError) => {
        failure = thrown;
      },
    );
  await clock.advance(19_000);
  assert.equal(failure, undefined);
  await clock.advance(1_001);
  await reading;
  assert.equal((failure as SluiceError | undefined)?.code, "no_peers");
});

test("acquire: reports progress while the files are not known, and stops when the signal fires", async () => {
  const { engine, clock } = fakeEngine();
  let progressReports = 0;
  const abort = new AbortController();
  const acquiring = assert.rejects(
    engine.acquire(
      { kind: "infohash", infohash: film.infohash },
      { signal: abort.signal, onProgress: () => void progressReports++ },
    ),
    codeOf("cancelled"),
  );
  await clock.advance(2_000);
  assert.equal(progressReports, 4);
  abort.abort(new SluiceError("cancelled", "gone"));
  await acquiring;
});

/** Starts `count` films, each of its own transfer. */
async function startFilms(engine: Engine, count: number, changes: Partial<PlaybackRequest> = {}) {
  const sessions = [];
  for (let i = 0; i < count; i++) {
    const { bytes } = filmTorrent(`film ${i} ${JSON.stringify(changes)}`);
    sessions.push(await engine.start(request({ ...changes, selector: { kind: "transport_file", bytes } })));
  }
  return sessions;
}

test("limits: a transfer beyond the limit replaces an idle one, or is refused if all are played", async () => {
  const { engine, transfers } = quickEngine();
  const sessions = await startFilms(engine, 24);
  for (const session of sessions) await session.transportStream(piped);
  await assert.rejects(engine.start(request()), codeOf("too_many"));
  sessions[3]!.stop();
  await engine.start(request());
  assert.equal(transfers.opened[3]?.stopped, true);
});

test("limits: a start replaces the session that has been without a player for longest, and no other", async () => {
  const { engine, transfers, clock } = quickEngine();
  const [hls, ts, polled] = await startFilms(engine, 24, { output: "hls" });
  await hls!.manifest("http://a", "main");
  await (await ts!.transportStream(piped)).getReader().read();
  await clock.advance(20_000);
  polled!.touch();
  await startFilms(engine, 2);
  assert.deepEqual(
    transfers.opened.slice(0, 6).map(({ stopped }) => stopped),
    [false, false, false, true, true, false],
  );
  // A film whose HLS player has paused for a while is replaced, too, and comes back with its next segment.
  await clock.advance(11_000);
  await engine.start(request());
  assert.equal(engine.session(hls!.infohash, hls!.key), undefined);
  await engine.segment(hls!.infohash, { number: 0, kind: "ts", track: 0 });
  assert.ok(engine.session(hls!.infohash, hls!.key));
  assert.equal(engine.session(ts!.infohash, ts!.key), ts);
});

test("limits: a stream that was not read for ten minutes is replaced", async () => {
  const { engine, transfers, clock } = quickEngine();
  const readers = [];
  for (const session of await startFilms(engine, 24))
    readers.push((await session.transportStream(piped)).getReader());
  await clock.advance(9 * 60_000);
  await readers[0]!.read();
  await assert.rejects(engine.start(request()), codeOf("too_many"));
  await clock.advance(60_000);
  await engine.start(request());
  assert.deepEqual(
    transfers.opened.slice(0, 3).map(({ stopped }) => stopped),
    [false, true, false],
  );
  assert.equal((await readers[1]!.read()).done, true);
});

test("limits: pages of other sites share four transfers and replace only each other's", async () => {
  const { engine } = quickEngine();
  const own = await startFilms(engine, 20);
  const foreign = await startFilms(engine, 24, { isForeign: true });
  const isOpen = (session: Session) => engine.session(session.infohash, session.key) === session;
  assert.deepEqual([own.filter(isOpen).length, foreign.filter(isOpen).length], [20, 4]);
  for (const session of foreign.filter(isOpen)) await session.transportStream(piped);
  await assert.rejects(engine.start(request({ isForeign: true })), codeOf("too_many"));
  // Content that the user plays takes none of their share.
  await engine.start(request());
  await engine.start(request({ isForeign: true }));
  assert.equal(foreign.filter(isOpen).length, 4);
});

test("limits: pages of other sites share sixteen sessions", async () => {
  const { engine } = quickEngine();
  const own = await engine.start(request());
  for (let i = 0; i < 300; i++) await engine.start(request({ isForeign: true }));
  assert.deepEqual([engine.session(own.infohash, own.key), engine.figures().sessions], [own, 17]);
});

test("limits: max-sessions; a start beyond it replaces a session without a player, or is refused", async () => {
  const { engine } = quickEngine({ maxSessions: 3 });
  const [first] = await Promise.all([1, 2, 3].map(() => engine.start(request())));
  await engine.start(request());
  assert.deepEqual([engine.figures().sessions, engine.session(first!.infohash, first!.key)], [3, undefined]);
  const { engine: full } = quickEngine({ maxSessions: 1 });
  await (await full.start(request())).transportStream(piped);
  await assert.rejects(full.start(request()), /session limit \(1; see --max-sessions\)/);
});

test("stop of the engine: ends sessions, timers and transfers", async () => {
  const { engine, transfers, clock } = quickEngine();
  const session = await engine.start(request());
  const reader = (await session.transportStream(piped)).getReader();
  await engine.stop();
  assert.equal((await reader.read()).done, true);
  assert.equal(transfers.isClosed, true);
  await settled();
  assert.equal(clock.waiting, 0);
  await assert.rejects(engine.start(request()), codeOf("session_stopped"));
});

/** Returns a signal and a function that fires it as a runtime does when the client disconnects. */
function disconnectable() {
  const abort = new AbortController();
  return {
    signal: abort.signal,
    now: () => abort.abort(new SluiceError("cancelled", "the client went away")),
  };
}

test("disconnect: pending requests for a manifest, stream or segment end, and the session becomes idle", async () => {
  const { engine, clock } = fakeEngine({ peersTimeoutMs: 1e9, startTimeoutMs: 1e9 });
  const session = await engine.start(request({ output: "hls" }));
  const client = disconnectable();
  const waiting = [
    session.manifest("http://x", "main", client.signal),
    engine.segment(session.infohash, { number: 0, kind: "ts", track: 0 }, client.signal),
  ];
  await clock.advance(120_000);
  assert.equal(engine.figures().sessions, 1, "pending requests keep the session busy");
  const stream = session.transportStream(piped, client.signal);
  await clock.advance(1_000);
  client.now();
  for (const held of [...waiting, stream]) await assert.rejects(held, codeOf("cancelled"));
  await clock.advance(61_000);
  assert.equal(engine.figures().sessions, 0);
});

test("disconnect: a pending file read is closed and releases its transfer", async () => {
  const { engine, clock, transfers } = fakeEngine();
  await engine.start(request()).then((session) => session.stop());
  const client = disconnectable();
  const read = engine.read(film.infohash, 1, ({ size }) => ({ start: 0, end: size }), {
    signal: client.signal,
  });
  await clock.advance(1_000);
  assert.equal(engine.figures().transfers[0]?.holders, 1);
  client.now();
  await assert.rejects(read, codeOf("cancelled"));
  assert.equal(transfers.opened[0]?.cancelled.length, 1);
  assert.equal(engine.figures().transfers[0]?.holders, 0);
});

test("disconnect: an event is kept for the next request", async () => {
  const { engine } = quickEngine();
  const session = await engine.start(request({ wantsEvents: true }));
  const client = disconnectable();
  const gone = session.nextEvent(15_000, client.signal);
  client.now();
  assert.equal(await gone, undefined);
  const next = session.nextEvent(15_000);
  session.stop();
  assert.equal((await next)?.name, "download_stopped");
});

test("stop: does not affect a start that is still being resolved", async () => {
  const { engine } = quickEngine();
  const first = await engine.start(request({ playerId: "tv" }));
  const starting = engine.start(request({ playerId: "tv" }));
  first.stop();
  const second = await starting;
  first.stop();
  assert.notEqual(second, first);
  assert.deepEqual([second.key, second.id !== first.id], [first.key, true]);
  assert.equal(engine.session(second.infohash, second.key), second);
});

test("timeouts: a started film waits 5 minutes for data, a start only its own timeout", async () => {
  const { engine, clock, transfers } = quickEngine({ startTimeoutMs: 10_000, sessionIdleMs: 1e9 });
  const session = await engine.start(request({ output: "hls" }));
  await session.settle(0);
  const gate = deferred();
  transfers.opened[0]!.media_.gate = () => gate.promise;
  const segment = (number: number) => engine.segment(session.infohash, { number, kind: "ts", track: 0 });
  const given = assert.rejects(segment(3), codeOf("start_timeout"));
  await clock.advance(299_000);
  const late = segment(2);
  await clock.advance(2_000);
  await given;
  gate.resolve();
  assert.deepEqual(await late, tsBytes(2));
  assert.equal((await session.info()).status, "playing");
});
