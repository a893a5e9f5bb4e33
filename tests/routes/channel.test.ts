import assert from "node:assert/strict";
import { test } from "node:test";
import type { Infohash } from "../../src/base/ids.ts";
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

test("/play: one source, HLS, JSON and HEAD are answered without opening the channel", async () => {
  const { call, id, engine } = await channelApp();
  const head = await call(`/play/0/${id}`, { method: "HEAD" });
  assert.deepEqual([head.status, head.headers.get("content-type")], [200, "video/mp2t"]);
  assert.equal(engine.figures().sessions, 0);
  for (const [query, place] of [
    ["skip_autosearch=1", "/ace/r/"],
    ["protocol=hls", "/ace/m/"],
  ])
    assert.match((await call(`/play/0/${id}?${query}`)).headers.get("location")!, new RegExp(place!));
  const { response } = (await (await call(`/play/0/${id}?format=json`)).json()) as {
    response: { infohash: string };
  };
  assert.equal(response.infohash, ONE);
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
