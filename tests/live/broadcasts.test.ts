import assert from "node:assert/strict";
import { test } from "node:test";
import { runtime } from "#runtime";
import { concatBytes, equalBytes } from "../../src/base/bytes.ts";
import { SluiceError } from "../../src/base/errors.ts";
import { parseLink } from "../../src/base/link.ts";
import { MAX_BROADCASTS } from "../../src/live/broadcast/broadcasts.ts";
import { isSignedStat } from "../../src/wire/live/stat.ts";
import { parseLiveTransportFile } from "../../src/wire/live/transport-file.ts";
import { liveHash } from "../../src/wire/live/trust.ts";
import { checkTs } from "../remux/ts-checker.ts";
import { checkSent, FakeStudio, someRequest } from "./broadcast-parts.ts";
import { MemoryFiles } from "./memory-files.ts";
import { streamOf } from "./source-parts.ts";

const code =
  (wanted: string, expected = /./) =>
  (error: unknown) =>
    error instanceof SluiceError && error.code === wanted && expected.test(error.message);
const bytesOf = (sent: FakeStudio["sent"]) => concatBytes(sent.flatMap(({ chunks }) => chunks));

test("createBroadcasts: sends the test pattern signed, in whole pieces, from its first second", async () => {
  const studio = new FakeStudio();
  const broadcasts = studio.broadcasts();
  const broadcast = await studio.within(broadcasts.start(someRequest()));
  await studio.world.clock.advance(10_000);
  const { sent, opened } = studio;
  assert.ok(sent.length >= 38 && sent.length <= 41, `${sent.length} pieces`);
  checkSent(sent, opened[0]!);
  // The user's own tracker may be in the local network.
  assert.deepEqual(opened[0]!.localTrackers, opened[0]!.trackers.flat());
  const first = sent[0]!.header.value;
  assert.equal(first.seq, Math.floor(first.timestampMs / 250));
  assert.equal(first.segment, Math.floor(first.timestampMs / 2000));
  assert.deepEqual(first.previousHash, new Uint8Array(20));
  assert.equal(first.isDiscontinuity, false);
  assert.deepEqual(checkTs(bytesOf(sent)).faults, []);
  assert.equal(broadcasts.get("one"), broadcast);
  assert.deepEqual(broadcasts.all(), [broadcast]);
  await broadcast.stop();
  await broadcast.ended;
  assert.equal(broadcasts.get("One"), undefined);
  assert.equal(studio.released, 1);
  assert.equal(studio.locked.size, 0);
  await studio.world.clock.advance(20_000);
  assert.equal(studio.world.clock.waiting, 0);
  assert.equal(sent.at(-1)!.header.value.isEnd, false, "a start may go on from here");
});

test("createBroadcasts: a small signed transport file, and links that lead to it", async () => {
  const studio = new FakeStudio();
  const address = { host: "192.0.2.1", port: 4000 };
  const addresses = [address, { ...address }];
  const relays = [{ host: "2001:db8::2", port: 5000 }];
  const broadcast = await studio.within(
    studio.broadcasts().start(someRequest({ addresses, relays, manifests: ["https://a.example/b.m3u8"] })),
  );
  const file = parseLiveTransportFile(broadcast.transportFile, runtime.sha1, runtime.ed25519Verifier);
  assert.ok(file.isSigned);
  assert.ok(broadcast.transportFile.length < 1000, `${broadcast.transportFile.length} bytes`);
  assert.deepEqual([file.infohash, file.infohash], [broadcast.infohash, broadcast.contentId]);
  assert.equal(file.info.name, "One");
  assert.deepEqual([file.info.stripeCount, file.info.pieceMs], [8, 250]);
  assert.equal(file.info.windowSeconds, 1800);
  assert.equal(file.meta.title, "The first");
  assert.deepEqual(file.relays, relays);
  assert.equal(broadcast.transportFilePath, "/data/broadcasts/One/One.sluice");
  assert.deepEqual(studio.files.kept.get(broadcast.transportFilePath)!.bytes, broadcast.transportFile);
  for (const text of [broadcast.magnet, broadcast.link]) {
    const link = parseLink(text);
    assert.ok(link?.kind === "magnet" && link.infohash === broadcast.infohash);
    assert.match(
      decodeURIComponent(link.magnet),
      /dn=The first&.*&x\.pe=192\.0\.2\.1:4000&x\.pe=\[2001:db8::2\]:5000$/,
    );
  }
  await broadcast.stop();
});

test("createBroadcasts: a restart continues the stream, also with a new title", async () => {
  const studio = new FakeStudio();
  const before = await studio.within(studio.broadcasts().start(someRequest()));
  await studio.world.clock.advance(5000);
  studio.reachable = [{ host: "192.0.2.7", port: 7000 }];
  await before.stop();
  const count = studio.sent.length;
  await studio.world.clock.advance(9500);
  const after = await studio.within(
    studio.broadcasts().start(someRequest({ meta: { title: "Renamed" }, bytesPerSecond: 5_000_000 })),
  );
  await studio.world.clock.advance(5000);
  assert.equal(after.infohash, before.infohash);
  assert.equal(after.contentId, before.contentId);
  assert.notDeepEqual(after.transportFile, before.transportFile);
  assert.deepEqual(studio.opened[1]!.live!.knownPeers, studio.reachable);
  checkSent(studio.sent, studio.opened[1]!);
  const last = studio.sent[count - 1]!.header.value;
  const next = studio.sent[count]!.header.value;
  assert.equal(next.epoch, last.epoch);
  assert.ok(next.seq > last.seq + 1, "numbers follow the clock");
  assert.equal(next.seq, Math.floor(next.timestampMs / 250));
  assert.ok(next.isDiscontinuity);
  assert.equal(next.segment, last.segment + 1);
  await after.stop();
});

test("createBroadcasts: no number is used twice, whenever the process is killed", async () => {
  for (const isSent of [false, true]) {
    const studio = new FakeStudio();
    studio.taking = (piece) => {
      if (studio.sent.length < 12) return;
      if (isSent) studio.sent.push(piece);
      throw new Error("killed");
    };
    const first = await studio.within(studio.broadcasts().start(someRequest()));
    await assert.rejects(studio.within(first.ended), /killed/);
    const count = studio.sent.length;
    studio.taking = () => {};
    const second = await studio.within(studio.broadcasts().start(someRequest()));
    await studio.world.clock.advance(3000);
    await second.stop();
    checkSent(studio.sent.slice(0, count), studio.opened[0]!);
    checkSent(studio.sent.slice(count), studio.opened[0]!);
    const headers = studio.sent.map(({ header }) => header.value);
    const [last, next] = [headers[count - 1]!, headers[count]!];
    assert.equal(next.epoch, last.epoch);
    assert.ok(next.seq >= last.seq + (isSent ? 1 : 2), "what was made and not sent has its number");
    const follows = liveHash(studio.sent[count - 1]!.header.bytes, runtime.sha256);
    assert.equal(equalBytes(next.previousHash, follows), isSent);
  }
});

test("createBroadcasts: no number is used twice after a lost state, or with a clock that was set back", async () => {
  const studio = new FakeStudio();
  const first = await studio.within(studio.broadcasts().start(someRequest()));
  await studio.world.clock.advance(22_000);
  assert.ok(studio.files.syncs < studio.sent.length / 4, `${studio.files.syncs} syncs`);
  const sent = [...studio.sent];
  // The machine restarts with the content of its disk.
  const disk = new MemoryFiles(studio.files);
  disk.cutPower();
  await first.stop();
  for (const backMs of [0, 4000, 300_000]) {
    const again = new FakeStudio();
    again.files = new MemoryFiles(disk);
    again.world.epochMs = studio.world.epochMs + 22_000 - backMs;
    const second = await again.within(again.broadcasts().start(someRequest()));
    await again.world.clock.advance(3000);
    await second.stop();
    assert.ok(again.sent.length > 5);
    assert.ok(again.sent[0]!.header.value.seq > sent.at(-1)!.header.value.seq, `${backMs} ms back`);
    assert.equal(again.sent[0]!.header.value.epoch, sent[0]!.header.value.epoch);
    const stamps = again.sent.map(({ header }) => header.value.timestampMs);
    assert.ok(stamps.every((ms, i) => i === 0 || ms >= stamps[i - 1]!));
    assert.ok(stamps.at(-1)! - stamps[0]! > 1500, "time goes on");
    checkSent(again.sent, again.opened[0]!);
  }
});

test("createBroadcasts: a lost or damaged state starts a new epoch of the same stream", async () => {
  for (const damage of ["lost", "damaged", "from the far future"]) {
    const studio = new FakeStudio();
    const first = await studio.within(studio.broadcasts().start(someRequest()));
    await studio.world.clock.advance(3000);
    await first.stop();
    const last = studio.sent.at(-1)!.header.value;
    const state = studio.files.kept.get("/data/broadcasts/One/state")!;
    if (damage === "lost") studio.files.kept.delete("/data/broadcasts/One/state");
    if (damage === "damaged") state.bytes = state.bytes.map((byte) => byte ^ 1);
    if (damage === "from the far future") studio.world.epochMs -= 86_400_000;
    const second = await studio.within(studio.broadcasts().start(someRequest()));
    await studio.world.clock.advance(3000);
    await second.stop();
    const next = studio.sent.findIndex(({ header }) => header.value.epoch !== last.epoch);
    assert.ok(next > 0, damage);
    const header = studio.sent[next]!.header.value;
    assert.deepEqual(header.previousHash, new Uint8Array(20));
    // A clock that was set back by a day gives an earlier epoch.
    assert.equal(header.epoch > last.epoch, damage !== "from the far future", damage);
    assert.equal(second.infohash, first.infohash);
    checkSent(studio.sent.slice(next), studio.opened[1]!);
    assert.equal(
      studio.log.warnings.filter((line) => /new epoch/.test(line)).length,
      damage === "damaged" ? 1 : 0,
    );
  }
});

test("createBroadcasts: a damaged identity is reported and never overwritten", async () => {
  const folder = "/data/broadcasts/One";
  const change = (name: string, changes: object) => (files: MemoryFiles) =>
    void Object.assign(files.kept.get(`${folder}/${name}`)!, changes);
  const cases: [what: string, damage: (files: MemoryFiles) => void, expected: RegExp][] = [
    ["a short key", change("key", { bytes: new Uint8Array(31) }), /damaged.*backup/],
    ["another key", change("key", { bytes: new Uint8Array(32) }), /does not belong to/],
    ["a lost key", (files) => void files.kept.delete(`${folder}/key`), /is missing.*backup/],
    ["an open key", change("key", { rights: 0o644 }), /644.*chmod 600/],
    [
      "nothing left of the info",
      (files) => {
        change("info", { bytes: new Uint8Array(9) })(files);
        files.kept.delete(`${folder}/One.sluice`);
      },
      /damaged.*infohash/,
    ],
  ];
  for (const [what, damage, expected] of cases) {
    const studio = new FakeStudio();
    await (await studio.within(studio.broadcasts().start(someRequest()))).stop();
    damage(studio.files);
    const before = new MemoryFiles(studio.files).kept;
    studio.files.replaced.length = 0;
    const start = studio.within(studio.broadcasts().start(someRequest()));
    await assert.rejects(start, code("bad_configuration", expected), what);
    assert.deepEqual(studio.files.replaced, [], what);
    assert.deepEqual(studio.files.kept, before, what);
    assert.equal(studio.locked.size, 0, what);
  }
});

test("createBroadcasts: a damaged info dictionary is replaced by that of the transport file", async () => {
  const studio = new FakeStudio();
  const first = await studio.within(studio.broadcasts().start(someRequest()));
  await first.stop();
  studio.files.kept.get("/data/broadcasts/One/info")!.bytes.fill(1);
  const second = await studio.within(studio.broadcasts().start(someRequest({ bytesPerSecond: 9_000_000 })));
  assert.equal(second.infohash, first.infohash);
  await second.stop();
});

test("createBroadcasts: a name is on air once, in this process and in others", async () => {
  const studio = new FakeStudio();
  const broadcasts = studio.broadcasts();
  const both = [broadcasts.start(someRequest()), broadcasts.start(someRequest({ name: "ONE" }))];
  const [first, second] = await studio.within(Promise.allSettled(both));
  assert.equal(first!.status, "fulfilled");
  assert.ok(second?.status === "rejected" && code("bad_parameter", /already/)(second.reason));
  const elsewhere = studio.within(studio.broadcasts().start(someRequest()));
  await assert.rejects(elsewhere, code("bad_configuration", /another Sluice process/));
  await broadcasts.close();
  await assert.rejects(broadcasts.start(someRequest()), code("session_stopped"));
  assert.equal(studio.locked.size, 0);
});

test("createBroadcasts: refuses invalid requests before it starts anything", async () => {
  const studio = new FakeStudio();
  const broadcasts = studio.broadcasts();
  for (const [changes, expected] of [
    [{ name: "" }, /name/],
    [{ name: "../up" }, /name/],
    [{ name: ".hidden" }, /name/],
    [{ name: "a/b" }, /name/],
    [{ name: "con" }, /name/],
    [{ name: "x".repeat(65) }, /name/],
    [{ isPrivate: true }, /relays/],
    [{ isLooped: true }, /looped/],
    [{ uploadLimit: -1 }, /upload/],
    [{ bytesPerSecond: 0 }, /rate/],
    [{ trackers: ["http://exämple/ü"] }, /tracker/],
    [{ manifests: ["file:///etc/passwd"] }, /manifests/],
    [{ meta: { description: "x".repeat(70_000) } }, /65536/],
  ] as const) {
    const start = studio.within(broadcasts.start(someRequest(changes)));
    await assert.rejects(start, code("bad_parameter", expected), JSON.stringify(changes).slice(0, 99));
  }
  assert.deepEqual(studio.opened, []);
  assert.equal(studio.locked.size, 0);
  await studio.world.clock.advance(60_000);
  assert.equal(studio.world.clock.waiting, 0);
});

test("createBroadcasts: a private stream is sent to its relays only, and stays private", async () => {
  const studio = new FakeStudio();
  const relays = [{ host: "192.0.2.9", port: 9000 }];
  const request = someRequest({
    isPrivate: true,
    relays,
    addresses: [{ host: "192.0.2.1", port: 1 }],
    uploadLimit: 5e5,
  });
  const broadcast = await studio.within(studio.broadcasts().start(request));
  await broadcast.stop();
  const { live, trackers, localTrackers } = studio.opened[0]!;
  assert.deepEqual(localTrackers, []);
  assert.ok(live!.file.info.isPrivate);
  assert.deepEqual([live!.only, trackers, live!.uploadBytesPerSecond], [relays, [], 5e5]);
  assert.doesNotMatch(decodeURIComponent(broadcast.magnet), /192\.0\.2\.1:/);
  const open = studio.within(studio.broadcasts().start(someRequest({ relays })));
  await assert.rejects(open, code("bad_parameter", /private.*another name/));
});

test("createBroadcasts: at most sixteen at the same time", async () => {
  const studio = new FakeStudio();
  const broadcasts = studio.broadcasts();
  for (let i = 0; i < MAX_BROADCASTS; i++)
    await studio.within(broadcasts.start(someRequest({ name: `n${i}` })));
  await assert.rejects(broadcasts.start(someRequest()), code("too_many"));
  await studio.within(broadcasts.close());
  assert.equal(studio.released, MAX_BROADCASTS);
});

test("createBroadcasts: ends a local viewer's transfer of the stream in favour of its source", async () => {
  const studio = new FakeStudio();
  studio.roles = ["viewer"];
  const broadcast = await studio.within(studio.broadcasts().start(someRequest()));
  assert.deepEqual([studio.opened.length, studio.released], [2, 1]);
  await studio.world.clock.advance(1000);
  assert.ok(studio.sent.length > 2);
  await broadcast.stop();
  studio.roles = ["viewer", "viewer"];
  const start = studio.within(studio.broadcasts().start(someRequest()));
  await assert.rejects(start, code("bad_parameter", /playing the same stream/));
  assert.equal(studio.released, 4);
  assert.equal(studio.locked.size, 0);
});

test("Broadcasts.close: waits for broadcasts that are starting", async () => {
  const studio = new FakeStudio();
  const broadcasts = studio.broadcasts({ pipe: () => streamOf([undefined]) });
  const starting = broadcasts.start(someRequest({ place: { kind: "pipe" } }));
  starting.catch(() => {}); // Told below.
  await studio.world.clock.advance(1000);
  assert.equal(studio.locked.size, 1);
  await broadcasts.close();
  assert.equal(studio.locked.size, 0);
  await assert.rejects(starting, code("cancelled"));
  assert.equal(studio.world.clock.waiting, 0);
});

test("createBroadcasts: a source that is silent, fails or ends", async () => {
  const studio = new FakeStudio();
  const silent = someRequest({ place: { kind: "pipe" } });
  const pipe = () => streamOf([undefined]);
  await assert.rejects(
    studio.within(studio.broadcasts({ pipe }).start(silent)),
    code("start_timeout", /30 s;.*--bitrate/),
  );
  const nothing = { pipe: () => streamOf([]) };
  for (const rate of [{}, { bytesPerSecond: 1e6 }])
    await assert.rejects(
      studio.within(studio.broadcasts(nothing).start({ ...silent, ...rate })),
      code("start_timeout", /no data on standard input/),
    );
  const away = someRequest({ name: "away", place: { kind: "http", url: "http://a.example/b" } });
  studio.world.answer = () => ({ failure: new SluiceError("url_unreachable", "ECONNREFUSED") });
  await assert.rejects(
    studio.within(studio.broadcasts().start(away)),
    code("start_timeout", /30 s \(.*ECONNREFUSED/),
  );
  const channels = "#EXTM3U\n#EXTINF:-1,News\nhttp://a.example/news.ts\n";
  studio.world.answer = () => ({ body: [new TextEncoder().encode(channels)] });
  const list = someRequest({ name: "list", place: { kind: "hls", url: "http://a.example/b.m3u" } });
  await assert.rejects(
    studio.within(studio.broadcasts().start(list)),
    code("unsupported_content", /channel list, use the URL of one/),
  );
  studio.world.answer = () => ({ status: 404 });
  const waiting = await studio.within(studio.broadcasts({ pipe }).start({ ...silent, bytesPerSecond: 1e6 }));
  assert.equal(waiting.figures().health, "waiting");
  assert.deepEqual([studio.opened[0]!.live!.file.info.stripeCount, studio.sent.length], [16, 0]);
  await waiting.stop();
  assert.equal(waiting.figures().health, "ended");
  const web = someRequest({ name: "web", place: { kind: "http", url: "http://a.example/b" } });
  await assert.rejects(studio.within(studio.broadcasts().start(web)), code("url_unreachable"));
  const given = new AbortController();
  const start = studio.broadcasts({ pipe }).start({ ...silent, name: "given up" }, given.signal);
  await studio.world.clock.advance(1000);
  given.abort();
  await assert.rejects(studio.within(start), code("cancelled"));
  assert.equal(studio.locked.size, 0);
  assert.equal(studio.world.clock.waiting, 0);
});

test("createBroadcasts: a failing disk does not end a broadcast, and is logged once", async () => {
  const studio = new FakeStudio();
  const broadcast = await studio.within(studio.broadcasts().start(someRequest()));
  await studio.world.clock.advance(2000);
  studio.files.failure = new SluiceError("disk_full", "the disk is full");
  const count = studio.sent.length;
  await studio.world.clock.advance(3000);
  assert.ok(studio.sent.length >= count + 10);
  assert.equal(studio.log.warnings.filter((line) => /cannot write the state/.test(line)).length, 1);
  checkSent(studio.sent, studio.opened[0]!);
  await broadcast.stop();
});

test("createBroadcasts: a known stream starts although the disk is full", async () => {
  const studio = new FakeStudio();
  const first = await studio.within(studio.broadcasts().start(someRequest()));
  await studio.world.clock.advance(2000);
  await first.stop();
  studio.files.failure = new SluiceError("disk_full", "the disk is full");
  const count = studio.sent.length;
  const again = await studio.within(studio.broadcasts().start(someRequest()));
  await studio.world.clock.advance(3000);
  assert.ok(studio.sent.length >= count + 10);
  await again.stop();
});

test("createBroadcasts: a corrected clock ends a broadcast without viewers, and the next start is in time", async () => {
  const studio = new FakeStudio();
  studio.world.epochMs += 3_600_000;
  const ahead = await studio.within(studio.broadcasts().start(someRequest()));
  await studio.world.clock.advance(5000);
  const ended = assert.rejects(
    ahead.ended,
    code("bad_configuration", /set back by 60 min.*start the broadcast again/),
  );
  studio.world.epochMs -= 3_600_000;
  await studio.world.clock.advance(5000);
  await ended;
  const right = await studio.within(studio.broadcasts().start(someRequest()));
  await studio.world.clock.advance(5000);
  const offMs =
    studio.sent.at(-1)!.header.value.timestampMs - studio.world.epochMs - studio.world.clock.now();
  assert.ok(Math.abs(offMs) < 2000, `${offMs} ms`);
  // A source with viewers has the right time.
  studio.live = { peers: 1, children: 1 };
  studio.world.epochMs -= 3_600_000;
  const count = studio.sent.length;
  await studio.world.clock.advance(5000);
  assert.ok(studio.sent.length >= count + 10);
  await right.stop();
});

test("Broadcast.figures: health and remark", async () => {
  const studio = new FakeStudio();
  const broadcast = await studio.within(studio.broadcasts().start(someRequest()));
  studio.live = { peers: 5, children: 3 };
  await studio.world.clock.advance(4000);
  const figures = broadcast.figures();
  assert.deepEqual([figures.health, figures.peers, figures.children], ["good", 5, 3]);
  assert.match(figures.remark, /^5 peers; upload/);
  assert.ok(figures.bytesPerSecond! > 10_000 && figures.bytesPerSecond! < 60_000);
  assert.equal(figures.seq, studio.sent.at(-1)!.header.value.seq);
  studio.live = { peers: 5, starvingPeers: 2 };
  assert.equal(broadcast.figures().health, "late");
  await broadcast.stop();
});

test("createBroadcasts: sends relays and trackers in a signed STAT, at the start and every minute", async () => {
  const studio = new FakeStudio();
  const relays = [{ host: "2001:db8::2", port: 5000 }];
  const broadcast = await studio.within(studio.broadcasts().start(someRequest({ relays })));
  await studio.world.clock.advance(130_000);
  const { told, opened, sent } = studio;
  assert.equal(told.length, 3);
  const { info, infohash } = opened[0]!.live!.file;
  const verify = runtime.ed25519Verifier(info.publicKey);
  for (const { value, bytes } of told) {
    assert.ok(isSignedStat(bytes, infohash, verify));
    assert.deepEqual([value.relays, value.trackers], [relays, ["udp://tracker.example:1337/announce"]]);
    assert.deepEqual([value.epoch, value.isEnd], [sent[0]!.header.value.epoch, false]);
  }
  assert.ok(told[0]!.value.number < told[1]!.value.number && told[1]!.value.number < told[2]!.value.number);
  await broadcast.stop();
});
