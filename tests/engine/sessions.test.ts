import assert from "node:assert/strict";
import { test } from "node:test";
import { SluiceError, type SluiceErrorCode } from "../../src/base/errors.ts";
import type { PlaybackRequest } from "../../src/engine/engine.ts";
import { deferred } from "./deferred.ts";
import { settled } from "./fake-clock.ts";
import { fakeHouse, filmTorrent, playbackRequest } from "./fake-house.ts";
import { segmentTimes, tsBytes } from "./fake-media.ts";

const film = filmTorrent();
const other = filmTorrent("other");

const request = (changes: Partial<PlaybackRequest> = {}) => playbackRequest(film.bytes, changes);

const OTHER = { selector: { kind: "transport_file", bytes: other.bytes } } as const;

/** A house whose transfers have their data at once. */
function quickHouse(settings = {}) {
  const house = fakeHouse(settings);
  house.transfers.prepare = (transfer) => transfer.bringData();
  return house;
}

/** Accepts the `SluiceError` of this code. */
const codeOf = (code: SluiceErrorCode) => (thrown: unknown) => {
  assert.ok(thrown instanceof SluiceError, String(thrown));
  assert.equal(thrown.code, code);
  return true;
};

test("start: the largest playable file is played unless another is asked for", async () => {
  const { engine } = quickHouse();
  const chosen = await engine.start(request());
  await chosen.settle(0);
  assert.equal((await chosen.info()).fileIndex, 1);
  const asked = await engine.start(request({ fileIndex: 0 }));
  await asked.settle(0);
  assert.equal((await asked.info()).fileIndex, 0);
});

test("start: a file index outside the content fails as soon as the files are known", async () => {
  const { engine, transfers } = quickHouse();
  await assert.rejects(engine.start(request({ fileIndex: 9 })), codeOf("no_such_file"));
  const bare = { selector: { kind: "infohash", infohash: other.infohash } } as const;
  const session = await engine.start(request({ fileIndex: 1, ...bare }));
  transfers.opened[1]!.bringFiles([{ name: "only.mp4", size: 10 }]);
  await assert.rejects(session.settle(1000), codeOf("no_such_file"));
});

test("start: the same pid and content are one session, also when both start at once", async () => {
  const { engine } = quickHouse();
  const [a, b] = await Promise.all([
    engine.start(request({ playerId: "tv" })),
    engine.start(request({ playerId: "tv" })),
  ]);
  assert.equal(a, b);
  assert.equal(await engine.start(request({ playerId: "tv" })), a);
  assert.equal(engine.figures().sessions, 1);
  assert.equal(engine.figures().transfers[0]?.holders, 1);
});

test("start: the same pid with other content ends the earlier session", async () => {
  const { engine } = quickHouse();
  const first = await engine.start(request({ playerId: "tv" }));
  const second = await engine.start(request({ playerId: "tv", ...OTHER }));
  assert.equal(engine.session(first.infohash, first.key), undefined);
  assert.equal(engine.session(second.infohash, second.key), second);
});

test("start: the same pid with another file of the same content ends the earlier session", async () => {
  const { engine } = quickHouse();
  const first = await engine.start(request({ playerId: "tv", fileIndex: 0 }));
  await engine.start(request({ playerId: "tv", fileIndex: 1 }));
  assert.equal(engine.session(first.infohash, first.key), undefined);
});

test("start: of two starts of one pid the later asked one wins, whichever resolves first", async () => {
  const { engine, web } = quickHouse();
  web.set("http://slow/film", { status: 200, bytes: film.bytes as Uint8Array<ArrayBuffer> });
  const slow = engine.start(request({ playerId: "tv", selector: { kind: "url", url: "http://slow/film" } }));
  const quick = engine.start(request({ playerId: "tv", ...OTHER }));
  const [early, late] = await Promise.allSettled([slow, quick]);
  assert.equal(late.status, "fulfilled");
  if (early.status === "rejected") assert.equal(early.reason.message, "got newer download");
  assert.equal(engine.figures().sessions, 1);
  assert.equal(
    [...engine.figures().transfers].filter(({ holders }) => holders > 0)[0]?.infohash,
    other.infohash,
  );
});

test("start: TS and HLS of one pid and content live side by side", async () => {
  const { engine } = quickHouse();
  const ts = await engine.start(request({ playerId: "tv" }));
  const hls = await engine.start(request({ playerId: "tv", output: "hls" }));
  assert.notEqual(ts.key, hls.key);
  assert.equal(engine.figures().sessions, 2);
});

test("start: without pid each start is a player of its own", async () => {
  const { engine } = quickHouse();
  const a = await engine.start(request());
  const b = await engine.start(request());
  const c = await engine.start(request(OTHER));
  assert.equal(new Set([a.key, b.key, c.key]).size, 3);
  a.stop();
  assert.equal(engine.session(b.infohash, b.key), b);
  assert.equal(engine.session(c.infohash, c.key), c);
});

test("start: the same pid and content get the same URLs again, and a new id", async () => {
  const { engine } = quickHouse();
  const first = await engine.start(request({ playerId: "tv" }));
  first.stop();
  const second = await engine.start(request({ playerId: "tv" }));
  assert.equal(second.key, first.key);
  assert.notEqual(second.id, first.id);
  assert.match(second.key, /^[0-9a-f]{32}$/);
  assert.match(second.id, /^[0-9a-f]{40}$/);
});

test("start: a session that failed is replaced by the next start", async () => {
  const house = fakeHouse();
  const first = await house.engine.start(request({ playerId: "tv" }));
  await house.clock.advance(31_000);
  assert.equal((await first.info()).status, "failed");
  const second = await house.engine.start(request({ playerId: "tv" }));
  assert.notEqual(second, first);
  assert.equal((await second.info()).status, "starting");
});

test("stop: ends one session only; the transfer goes on for the other", async () => {
  const { engine, transfers } = quickHouse();
  const [a, b] = [
    await engine.start(request({ playerId: "a" })),
    await engine.start(request({ playerId: "b" })),
  ];
  const stream = await b.transportStream();
  a.stop();
  const read = await stream.getReader().read();
  assert.equal(read.value?.[4], 0);
  assert.equal(engine.session(a.infohash, a.key), undefined);
  assert.equal(transfers.opened.length, 1);
  assert.equal(transfers.opened[0]?.stopped, false);
});

test("idle: a session nobody reads ends; its transfer follows later", async () => {
  const { engine, clock, transfers } = quickHouse();
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

test("idle: whoever comes back finds the transfer still there", async () => {
  const { engine, clock, transfers } = quickHouse();
  (await engine.start(request())).stop();
  await clock.advance(200_000);
  await engine.start(request());
  await clock.advance(59_000);
  assert.equal(transfers.opened.length, 1);
  assert.equal(transfers.opened[0]?.stopped, false);
});

test("idle: touch, a segment and a pull each renew the lease; setIdleMs changes it", async () => {
  const { engine, clock } = quickHouse();
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

test("idle: a player that waits for data is not idle, however long it takes", async () => {
  const { engine, clock, transfers } = fakeHouse({ peersTimeoutMs: 1e9, startTimeoutMs: 1e9 });
  const session = await engine.start(request());
  const opening = session.transportStream();
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
  assert.equal((await read).value?.[1], 0x01, "real packets follow as soon as they are there");
});

test("idle: a paused HLS player goes on with its next segment, under the same URLs", async () => {
  const { engine, clock } = quickHouse();
  const session = await engine.start(request({ output: "hls", playerId: "tv" }));
  const { infohash, key } = session;
  await clock.advance(61_000);
  assert.equal(engine.session(infohash, key), undefined);
  const other = await engine.start(request({ output: "hls", fileIndex: 0, playerId: "other" }));
  assert.equal(
    (await other.manifest("http://x", "main")).includes("/1000000.ts"),
    true,
    "its numbers stay its own",
  );
  const [a, b] = await Promise.all(
    [2, 3].map((number) => engine.segment(infohash, { number, kind: "ts", track: 0 })),
  );
  assert.deepEqual([a, b], [tsBytes(2), tsBytes(3)]);
  assert.equal(engine.figures().sessions, 2);
  assert.equal((await engine.session(infohash, key)!.info()).fileIndex, 1);
});

test("idle: a paused TS player goes on with its open stream; once that is closed the session is idle", async () => {
  const { engine, clock } = quickHouse();
  const session = await engine.start(request());
  const reader = (await session.transportStream()).getReader();
  assert.deepEqual((await reader.read()).value, tsBytes(0));
  await clock.advance(2 * 3_600_000);
  assert.deepEqual((await reader.read()).value, tsBytes(1));
  await reader.cancel();
  await clock.advance(59_000);
  assert.equal(engine.figures().sessions, 1);
  await clock.advance(1_001);
  assert.equal(engine.figures().sessions, 0);
});

test("idle: a TS stream that nobody pulls for three hours ends with its session", async () => {
  const { engine, clock } = quickHouse();
  const reader = (await (await engine.start(request())).transportStream()).getReader();
  await reader.read();
  await clock.advance(3 * 3_600_000 + 1);
  assert.equal(engine.figures().sessions, 0);
  assert.equal((await reader.read()).done, true);
  assert.equal(clock.waiting <= 1, true, "the transfer's own timer alone");
});

test("stop: a stopped session does not come back with a segment", async () => {
  const { engine } = quickHouse();
  const session = await engine.start(request({ output: "hls" }));
  session.stop();
  await assert.rejects(
    engine.segment(session.infohash, { number: 0, kind: "ts", track: 0 }),
    codeOf("unknown_session"),
  );
});

test("waiting: no peers is said after its time-out", async () => {
  const { engine, clock } = fakeHouse({ peersTimeoutMs: 10_000 });
  const session = await engine.start(request({ selector: { kind: "infohash", infohash: film.infohash } }));
  const settle = assert.rejects(session.settle(60_000), codeOf("no_peers"));
  const opening = session.transportStream();
  await clock.advance(8_000);
  const reader = (await opening).getReader();
  const read = reader.read();
  await clock.advance(500);
  assert.equal((await read).value?.length, 7 * 188, "held for 8 s at most: then null packets");
  await clock.advance(2_000);
  await settle;
  await assert.rejects(reader.read(), codeOf("no_peers"));
  assert.equal((await session.info()).status, "failed");
});

test("waiting: a start that got stuck is tried again when its URL is asked again", async () => {
  const { engine, clock, transfers } = fakeHouse({ peersTimeoutMs: 5_000 });
  const session = await engine.start(request({ output: "hls" }));
  await clock.advance(6_000);
  assert.equal((await session.info()).status, "failed");
  const manifest = session.manifest("http://x", "main");
  transfers.opened[0]!.bringData();
  assert.match(await manifest, /#EXTINF/);
  await settled();
  assert.equal((await session.info()).status, "playing");
});

test("waiting: peers without metadata is its own error, which says what of it is missing", async () => {
  for (const [lacksLayers, missing] of [
    [false, /^no peer sent the metadata within/],
    [true, /^no peer sent all hashes of its pieces .BitTorrent v2. within/],
  ] as const) {
    const { engine, clock, transfers } = fakeHouse();
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

test("waiting: peers without data is its own error; data that trickles is waited for", async () => {
  const { engine, clock, transfers } = fakeHouse({ startTimeoutMs: 60_000 });
  const session = await engine.start(request());
  const transfer = transfers.opened[0]!;
  for (let i = 1; i < 5; i++) {
    transfer.figures = { ...transfer.figures, connectedPeers: 3, downloaded: 1000 * i };
    await clock.advance(59_000);
    session.touch();
  }
  assert.equal((await session.info()).status, "starting", "as long as bytes come");
  const settle = assert.rejects(session.settle(200_000), codeOf("start_timeout"));
  for (let i = 0; i < 4; i++) {
    await clock.advance(30_000);
    session.touch();
  }
  await settle;
  assert.equal((await session.info()).status, "failed");
});

test("info: starting, then playing with what the transfer tells", async () => {
  const { engine, transfers, clock } = fakeHouse();
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

test("info: why it waits is told: the proxy, nobody, or the limit that holds now and not the one that is set", async () => {
  const { engine, transfers, proxy, clock } = fakeHouse({ downloadLimit: 5_000_000 });
  const session = await engine.start(request());
  const transfer = transfers.opened[0]!;
  const told = async () => {
    await clock.advance(4_000);
    return (await session.info()).holdUp;
  };
  proxy.problem = "SOCKS5 proxy 127.0.0.1:1080: connection refused";
  assert.match((await told())!.sentence, /proxy does not carry us.*connection refused/);
  proxy.problem = undefined;
  assert.equal((await told())?.code, "no_peers");
  const some = { connectedPeers: 2, unchokedByPeers: 1, hasMetadata: true, needed: 1 };
  transfer.figures = { ...transfer.figures, ...some, heldToBytesPerSecond: 300_000 };
  const limited = (await told())!;
  assert.equal(limited.code, "own_limit");
  assert.match(limited.sentence, /300 kB\/s.*--schedule/);
});

test("segments: two players of one file share what is made; another language is made by itself", async () => {
  const { engine, transfers } = quickHouse();
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

test("segments: outside the manifest, of another kind, or of no session each have their error", async () => {
  const { engine } = quickHouse();
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

test("segments: one who leaves does not end the making for the one who stays", async () => {
  const { engine, transfers, clock } = quickHouse();
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

test("segments: a player that jumps about does not keep its old requests waiting", async () => {
  const { engine, transfers, clock } = quickHouse();
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

test("transportStream: is all segments in order, once each, made while the one before is read", async () => {
  const { engine, transfers } = quickHouse();
  const session = await engine.start(request());
  const seen: number[] = [];
  for await (const chunk of await session.transportStream()) {
    for (let at = 4; at < chunk.length; at += 188) if (seen.at(-1) !== chunk[at]) seen.push(chunk[at]!);
  }
  assert.deepEqual(seen, [0, 1, 2, 3, 4]);
  assert.deepEqual(transfers.opened[0]!.media_.made, ["ts 0", "ts 1", "ts 2", "ts 3", "ts 4"]);
});

test("transportStream: a stalled player makes nothing more, and keeps no segment in memory", async () => {
  const { engine, transfers, clock } = quickHouse();
  const session = await engine.start(request());
  transfers.opened[0]!.media_.packetsPerSegment = 3000;
  const reader = (await session.transportStream()).getReader();
  await reader.read();
  await clock.advance(20_000);
  assert.ok(transfers.opened[0]!.media_.made.length <= 2);
  const next = await reader.read();
  assert.equal(next.value?.[188 * 2 + 4], 0);
});

test("transportStream: ends when its session is stopped, also while nobody reads", async () => {
  const { engine } = quickHouse();
  const session = await engine.start(request());
  const reader = (await session.transportStream()).getReader();
  await reader.read();
  session.stop();
  assert.equal((await reader.read()).done, true);
});

test("transportStream: fifty players that stop reading do not stall the one that reads on", async () => {
  const { engine, clock } = quickHouse();
  const stalled: ReadableStreamDefaultReader<Uint8Array>[] = [];
  for (let i = 0; i < 50; i++) {
    const session = await engine.start(request({ playerId: `stalled ${i}` }));
    const reader = (await session.transportStream()).getReader();
    await reader.read();
    stalled.push(reader);
  }
  const one = await engine.start(request({ playerId: "reads on" }));
  let bytes = 0;
  for await (const chunk of await one.transportStream()) bytes += chunk.length;
  assert.equal(bytes, 5 * 400 * 188);
  for (const reader of stalled) await reader.cancel();
  await clock.advance(61_000);
  assert.equal(engine.figures().sessions, 0);
});

test("read: bytes of a file, the transfer held until they are read", async () => {
  const { engine, transfers, clock } = quickHouse({ transferIdleMs: 1000 });
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
  assert.equal(engine.figures().transfers[0]?.holders, 1, "only the acquired one is left");
  assert.equal(transfers.opened.length, 1);
  await clock.advance(60_000);
});

test("read: a reader that goes away cancels the source; one that waits too long is told", async () => {
  const { engine, transfers, clock } = fakeHouse({ startTimeoutMs: 20_000 });
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

test("read: a file that has begun waits 5 minutes for more", async () => {
  const { engine, transfers, clock } = quickHouse({ startTimeoutMs: 20_000 });
  await engine.start(request());
  const { stream } = await engine.read(film.infohash, 1, () => ({ start: 0, end: 10_000 }));
  const reader = stream!.getReader();
  await reader.read();
  transfers.opened[0]!.data = deferred();
  let told: SluiceError | undefined;
  const draining = (async () => {
    for (let part = await reader.read(); !part.done; ) part = await reader.read();
  })().catch((thrown: SluiceError) => {
    told = thrown;
  });
  await clock.advance(299_000);
  assert.equal(told, undefined);
  await clock.advance(2_000);
  await draining;
  assert.equal((told as SluiceError | undefined)?.code, "start_timeout");
});

test("read: without any peer the answer is held, and is an error when the peers' time is over", async () => {
  const { engine, transfers, clock } = quickHouse({ peersTimeoutMs: 20_000 });
  await engine.start(request());
  const transfer = transfers.opened[0]!;
  transfer.data = deferred();
  transfer.figures = { ...transfer.figures, connectedPeers: 0 };
  let told: SluiceError | undefined;
  const reading = engine
    .read(film.infohash, 1, () => ({ start: 0, end: 10_000 }))
    .then(
      () => assert.fail("there was nothing to answer with"),
      (thrown: SluiceError) => {
        told = thrown;
      },
    );
  await clock.advance(19_000);
  assert.equal(told, undefined);
  await clock.advance(1_001);
  await reading;
  assert.equal((told as SluiceError | undefined)?.code, "no_peers");
});

test("acquire: tells of progress while the files are not known, and gives up on the signal", async () => {
  const { engine, clock } = fakeHouse();
  let told = 0;
  const abort = new AbortController();
  const acquiring = assert.rejects(
    engine.acquire(
      { kind: "infohash", infohash: film.infohash },
      { signal: abort.signal, onProgress: () => void told++ },
    ),
    codeOf("cancelled"),
  );
  await clock.advance(2_000);
  assert.equal(told, 4);
  abort.abort(new SluiceError("cancelled", "gone"));
  await acquiring;
});

test("limits: more transfers than are allowed end an idle one, or are refused", async () => {
  const { engine, transfers } = quickHouse();
  const sessions = [];
  for (let i = 0; i < 24; i++) {
    const { bytes } = filmTorrent(`film ${i}`);
    sessions.push(await engine.start(request({ selector: { kind: "transport_file", bytes } })));
  }
  await assert.rejects(engine.start(request()), codeOf("too_many"));
  sessions[3]!.stop();
  await engine.start(request());
  assert.equal(transfers.opened[3]?.stopped, true);
});

test("stop of the engine: ends sessions, timers and transfers", async () => {
  const { engine, transfers, clock } = quickHouse();
  const session = await engine.start(request());
  const reader = (await session.transportStream()).getReader();
  await engine.stop();
  assert.equal((await reader.read()).done, true);
  assert.equal(transfers.isClosed, true);
  await settled();
  assert.equal(clock.waiting, 0);
  await assert.rejects(engine.start(request()), codeOf("session_stopped"));
});

/** A signal to fire, with the reason that a runtime gives when the asker hangs up. */
function hangUp() {
  const abort = new AbortController();
  return {
    signal: abort.signal,
    now: () => abort.abort(new SluiceError("cancelled", "the asker went away")),
  };
}

test("hanging up: a manifest, a stream and a segment that are held end at once, and the session goes idle", async () => {
  const { engine, clock } = fakeHouse({ peersTimeoutMs: 1e9, startTimeoutMs: 1e9 });
  const session = await engine.start(request({ output: "hls" }));
  const asker = hangUp();
  const waiting = [
    session.manifest("http://x", "main", asker.signal),
    engine.segment(session.infohash, { number: 0, kind: "ts", track: 0 }, asker.signal),
  ];
  await clock.advance(120_000);
  assert.equal(engine.figures().sessions, 1, "somebody waits: the session is not idle");
  const stream = session.transportStream(asker.signal);
  await clock.advance(1_000);
  asker.now();
  for (const held of [...waiting, stream]) await assert.rejects(held, codeOf("cancelled"));
  await clock.advance(61_000);
  assert.equal(engine.figures().sessions, 0);
});

test("hanging up: a file that is held is read no more, and its transfer is given back", async () => {
  const { engine, clock, transfers } = fakeHouse();
  await engine.start(request()).then((session) => session.stop());
  const asker = hangUp();
  const read = engine.read(film.infohash, 1, ({ size }) => ({ start: 0, end: size }), asker.signal);
  await clock.advance(1_000);
  assert.equal(engine.figures().transfers[0]?.holders, 1);
  asker.now();
  await assert.rejects(read, codeOf("cancelled"));
  assert.equal(transfers.opened[0]?.cancelled.length, 1);
  assert.equal(engine.figures().transfers[0]?.holders, 0);
});

test("hanging up: an event goes to the next who asks, not to somebody who has gone", async () => {
  const { engine } = quickHouse();
  const session = await engine.start(request({ wantsEvents: true }));
  const asker = hangUp();
  const gone = session.nextEvent(15_000, asker.signal);
  asker.now();
  assert.equal(await gone, undefined);
  const next = session.nextEvent(15_000);
  session.stop();
  assert.equal((await next)?.name, "download_stopped");
});

test("stop: ends the session that is there when it comes; a start on its way gets a new one", async () => {
  const { engine } = quickHouse();
  const first = await engine.start(request({ playerId: "tv" }));
  const starting = engine.start(request({ playerId: "tv" }));
  first.stop();
  const second = await starting;
  first.stop();
  assert.notEqual(second, first);
  assert.deepEqual([second.key, second.id !== first.id], [first.key, true]);
  assert.equal(engine.session(second.infohash, second.key), second);
});

test("waiting: a film that has begun waits 5 minutes for data, where a start waits for its own time", async () => {
  const { engine, clock, transfers } = quickHouse({ startTimeoutMs: 10_000, sessionIdleMs: 1e9 });
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
