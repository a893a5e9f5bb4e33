import assert from "node:assert/strict";
import { test } from "node:test";
import { channelRequest, createChannelOpener } from "../../routes/channel-list.ts";
import type { Infohash } from "../../src/base/ids.ts";
import type { Item } from "../../src/library/contract.ts";
import { PATTERN_SOUND_CONFIG } from "../../src/media/test-pattern/sound.ts";
import { TestPattern } from "../../src/media/test-pattern/test-pattern.ts";
import { TsMuxer } from "../../src/remux/ts-muxer.ts";
import { FakeLive, fakeControl } from "../engine/fake-live.ts";
import { checkTs } from "../remux/ts-checker.ts";
import { fakeApp } from "./client.ts";
import { controlClient } from "./control-client.ts";

const CONTENT = { transport: "bt", contentId: null, magnet: null, url: null } as const;
const [ONE, TWO] = ["1".repeat(40), "2".repeat(40)] as Infohash[];

/** A live stream of one second for each start, that then ends or waits. */
class PatternLive extends FakeLive {
  #ends: boolean;
  constructor(ends: boolean) {
    super();
    this.#ends = ends;
  }

  override cursor() {
    const muxer = new TsMuxer([
      { codec: "h264", language: "und" },
      { codec: "aac", language: "und", config: PATTERN_SOUND_CONFIG },
    ]);
    const frames = new TestPattern().second(1_000);
    let isSent = false;
    return {
      next: async (signal: AbortSignal) => {
        if (isSent && this.#ends) return undefined;
        if (isSent)
          return new Promise<undefined>((resolve) =>
            signal.addEventListener("abort", () => resolve(undefined)),
          );
        isSent = true;
        return muxer.segment(frames.map((frame) => ({ ...frame, track: frame.track === "video" ? 0 : 1 })));
      },
      seek() {},
      position: undefined,
    };
  }
}

async function channelApp() {
  const app = fakeApp();
  app.transfers.prepare = (transfer) => {
    transfer.bringFiles([{ name: "news.ts", size: 1 }]);
    transfer.bringData();
    transfer.segmentSource = async () => new PatternLive(transfer.infohash === ONE);
    transfer.live = fakeControl("viewer");
  };
  const add = (infohash: Infohash) =>
    app.library.items.add({ title: "News", content: { ...CONTENT, infohash }, isLive: 1 });
  const { id } = await add(ONE!);
  await add(TWO!);
  return { ...app, id };
}

test("/play: a live channel of several sources is one stream, which goes on when a source ends", async () => {
  const { call, id, engine } = await channelApp();
  const response = await call(`/play/0/${id}?hlc=1&container=raw`);
  assert.deepEqual([response.status, response.headers.get("content-type")], [200, "video/mp2t"]);
  const reader = response.body!.getReader();
  const chunks: Uint8Array[] = [];
  const keyframes = () => checkTs(new Uint8Array(Buffer.concat(chunks)), { isPassThrough: true }).keyframes;
  while (chunks.length === 0 || keyframes() < 2) chunks.push((await reader.read()).value!);
  assert.deepEqual(checkTs(new Uint8Array(Buffer.concat(chunks)), { isPassThrough: true }).faults, []);
  assert.deepEqual(
    engine
      .figures()
      .transfers.map(({ infohash }) => infohash)
      .sort(),
    [ONE, TWO],
  );
  await reader.cancel();
});

test("/play: HEAD does not open the channel, and one source is played as its own content", async () => {
  const { call, id, engine } = await channelApp();
  const head = await call(`/play/0/${id}`, { method: "HEAD" });
  assert.deepEqual([head.status, head.headers.get("content-type")], [200, "video/mp2t"]);
  assert.equal(engine.figures().sessions, 0);
  const { headers } = await call(`/play/0/${id}?skip_autosearch=1`);
  assert.match(headers.get("location")!, new RegExp(`/ace/r/${ONE}/`));
});

test("/play: HLS and JSON play a channel of several sources in a session, whose stat and events report each switch", async () => {
  const { call, json, id, clock, engine } = await channelApp();
  const { headers } = await call(`/play/0/${id}?protocol=hls`);
  assert.match(headers.get("location")!, /\/ace\/m\/[0-9a-f]{40}\/[0-9a-f]{32}\.m3u8$/);
  const start = json(`/play/0/${id}?protocol=hls&format=json&use_api_events=1`);
  await clock.advance(1_000);
  const { response } = await start;
  assert.equal(response.is_live, 1);
  assert.ok(![ONE, TWO].includes(response.infohash), "the channel has an id of its own");
  assert.ok(headers.get("location")!.includes(response.infohash), "players share the channel");
  const { channel, is_live, peers } = (await json(response.stat_url)).response;
  assert.deepEqual([is_live, peers], [1, 2]);
  assert.deepEqual(
    [channel.source, channel.sources, channel.switches, channel.shows_pattern],
    [2, 2, 1, false],
  );
  assert.match(channel.last_switch_reason, /^item \d+: the source has ended$/);
  const events = [];
  for (let event = await json(response.event_url); event.response; event = await json(response.event_url)) {
    events.push(event.response);
    if (event.response.params.source === 2) break;
  }
  assert.deepEqual(
    events
      .filter(({ name }) => name === "source_changed")
      .map(({ params }) => [params.source, params.switches]),
    [
      [1, 0],
      [2, 1],
    ],
  );
  const options = { allowPrivateUrls: false };
  const selector = { kind: "infohash", infohash: response.infohash } as const;
  assert.equal((await engine.inspect.describe(selector, options)).type, "live");
});

test("onStart: a visit ends and stops receiving before the content of the player is known", async () => {
  const { engine, transfers } = await channelApp();
  const idle: boolean[] = [];
  const { prepare } = transfers;
  transfers.prepare = (transfer) => {
    prepare(transfer);
    if (transfer.infohash === TWO) transfer.setIdle = (isIdle) => idle.push(isIdle);
  };
  const request = (infohash: Infohash, isVisit: boolean) => ({
    ...channelRequest({ content: { ...CONTENT, infohash } } as Item, false),
    isVisit,
  });
  let starts = 0;
  const leave = engine.onStart(() => {
    starts++;
    visit.stop();
  });
  const visit = await engine.start(request(TWO!, true));
  assert.deepEqual([starts, idle], [0, [false]]);
  const player = engine.start(request(ONE!, false));
  assert.deepEqual([starts, idle], [1, [false, true]]);
  leave();
  (await player).stop();
});

test("figures: a channel that the engine itself plays counts as a session, but not as a player", async () => {
  const { engine, library, id } = await channelApp();
  const starts: boolean[] = [];
  engine.onStart((isBackground) => starts.push(isBackground));
  const item = (await library.items.get(id))!;
  const stop = new AbortController();
  const kept = await createChannelOpener(engine, library)(item, { allowPrivateUrls: false }, stop.signal);
  await kept.getReader().read();
  const { sessions, players } = engine.figures();
  assert.ok(sessions > 0);
  assert.equal(players, 0);
  assert.ok(starts.length > 0 && starts.every((isBackground) => isBackground), `${starts}`);
  const player = await engine.start(channelRequest(item, false));
  assert.deepEqual([engine.figures().players, starts.at(-1)], [1, false]);
  player.stop();
  stop.abort();
});

test("set_channel_sources: the order in which a channel's sources are tried", async () => {
  const app = controlClient();
  const ids: number[] = [];
  for (const digit of ["1", "2", "3"])
    ids.push(await app.result("playlist_add_item", { title: "News", infohash: digit.repeat(40) }));
  const other = await app.result("playlist_add_item", { title: "Sport", infohash: "4".repeat(40) });
  const order = async () =>
    (await app.result("get_channel_sources", { id: ids[0]! })).map(({ id }: { id: number }) => id);
  assert.equal((await order())[0], ids[0]);
  await app.result("set_channel_sources", { id: ids[0]!, ids: `${ids[2]},${ids[0]}` });
  assert.deepEqual(await order(), [ids[2], ids[0], ids[1]]);
  const { message } = await app.error("set_channel_sources", { id: ids[0]!, ids: `${other}` });
  assert.match(message, /is no source of the channel/);
});
