import assert from "node:assert/strict";
import { test } from "node:test";
import { SluiceError } from "../../src/base/errors.ts";
import type { PlaybackRequest } from "../../src/playback/contract.ts";
import { prefetchNext } from "../../src/playback/next-files.ts";
import { FakeClock, settled } from "../engine/fake-clock.ts";
import { fakeEngine, filmTorrent, playbackRequest } from "../engine/fake-engine.ts";

const film = filmTorrent();
const request = (changes: Partial<PlaybackRequest> = {}) => playbackRequest(film.bytes, changes);

function quickEngine(settings = {}) {
  const fake = fakeEngine(settings);
  fake.transfers.prepare = (transfer) => transfer.bringData();
  return fake;
}

test("events: start, error and stop of the download; the rest is kept after the end until it is fetched", async () => {
  const { engine } = quickEngine();
  const session = await engine.start(request({ wantsEvents: true }));
  assert.deepEqual(await session.nextEvent(1000), { name: "download_started", params: {} });
  session.stop();
  const left = engine.events(session.infohash, session.key);
  const stopped = { name: "download_stopped", params: { reason: "the session was stopped" } };
  assert.deepEqual(await left?.nextEvent(1000), stopped);
  assert.equal(engine.events(session.infohash, session.key), undefined);
  const { engine: slow, clock } = fakeEngine({ peersTimeoutMs: 5_000 });
  const failing = await slow.start(request({ wantsEvents: true }));
  const event = failing.nextEvent(15_000);
  await clock.advance(6_000);
  const { name, params } = (await event)!;
  assert.equal(name, "error");
  assert.match(String(params.message), /no peer|peers/);
});

test("events: stop notifications alone report the end only; without a wish nothing is queued", async () => {
  const { engine } = quickEngine();
  const session = await engine.start(request({ wantsStops: true }));
  assert.equal(session.wantsEvents, true);
  await session.settle(1000);
  session.stop();
  const events = engine.events(session.infohash, session.key);
  assert.equal((await events?.nextEvent(1000))?.name, "download_stopped");
  const silent = await engine.start(request());
  silent.stop();
  assert.equal(engine.events(silent.infohash, silent.key), undefined);
});

test("force_session_restart: a start of the same player begins a new session under the same URLs", async () => {
  const { engine } = quickEngine();
  const first = await engine.start(request({ playerId: "tv" }));
  assert.equal(await engine.start(request({ playerId: "tv" })), first);
  const second = await engine.start(request({ playerId: "tv", isRestart: true }));
  assert.notEqual(second.id, first.id);
  assert.deepEqual([second.key, engine.figures().sessions], [first.key, 1]);
});

test("disable_p2p: content of a swarm is refused", async () => {
  const { engine } = quickEngine();
  await assert.rejects(engine.start(request({ withoutPeers: true })), (thrown: unknown) => {
    assert.ok(thrown instanceof SluiceError && thrown.code === "unsupported_content");
    return /comes from peers only/.test(thrown.message);
  });
  assert.equal(engine.figures().sessions, 0);
});

test("playlist_output_format: replaces the output of the endpoint once the kind of content is known", async () => {
  const { engine } = quickEngine();
  const output = async (vod: "auto" | "original" | "hls" | "http", endpoint: "ts" | "hls") =>
    (await engine.start(request({ output: endpoint, outputFormats: { live: "auto", vod } }))).output;
  assert.deepEqual(
    [
      await output("auto", "hls"),
      await output("hls", "ts"),
      await output("http", "hls"),
      await output("original", "hls"),
    ],
    ["hls", "hls", "ts", "ts"],
  );
});

test("playlist_selected_indexes: the first playable one of them is played, unless a file is requested", async () => {
  const { engine } = quickEngine();
  const main = await engine.start(request());
  const chosen = (await main.info()).fileIndex;
  const files = (
    await engine.inspect.describe({ kind: "transport_file", bytes: film.bytes }, { allowPrivateUrls: false })
  ).files;
  const another = files.find(({ index, isPlayable }) => isPlayable && index !== chosen)!;
  const selected = await engine.start(request({ selectedFiles: [another.index] }));
  assert.equal((await selected.info()).fileIndex, another.index);
  const requested = await engine.start(request({ selectedFiles: [another.index], fileIndex: chosen }));
  assert.equal((await requested.info()).fileIndex, chosen);
});

test("prefetchNext: fetches the heads of the next files when the played file is complete, and only then", async () => {
  const clock = new FakeClock();
  const opened: [number, number][] = [];
  let progress = 40;
  const transfer = {
    files: [0, 1, 2].map((index) => ({
      index,
      name: "",
      size: 10e6 * index,
      offset: 0,
      mime: "",
      isPlayable: true,
    })),
    progress: () => progress,
    source: (index: number) => ({
      open: ({ end }: { end: number }) => {
        opened.push([index, end]);
        return new ReadableStream({ start: (c) => c.close() });
      },
    }),
  };
  const end = new AbortController();
  const start = (files: number[]) => prefetchNext(clock, transfer as never, 0, files, end.signal);
  start([0, 7]);
  assert.equal(clock.waiting, 0, "no other file exists");
  start([2, 0, 1]);
  await clock.advance(20_000);
  assert.deepEqual(opened, []);
  progress = 100;
  await clock.advance(5_000);
  assert.deepEqual(opened, [
    [1, 4 * 1024 * 1024],
    [2, 4 * 1024 * 1024],
  ]);
  progress = 40;
  start([1]);
  end.abort();
  await settled();
  assert.equal(clock.waiting, 0);
});
