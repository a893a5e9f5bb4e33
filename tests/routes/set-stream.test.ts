import assert from "node:assert/strict";
import { test } from "node:test";
import type { SegmentSource } from "../../src/transfer/segment-source.ts";
import { base64, filmTorrent } from "../engine/fake-engine.ts";
import { tsBytes } from "../engine/fake-media.ts";
import { fakeApp } from "./client.ts";

const film = filmTorrent("variants");
const FACTS = [240, 480, 720].map((height) => ({
  bitsPerSecond: 10_000 * height,
  averageBitsPerSecond: undefined,
  width: undefined,
  height,
  codecs: [],
  isAudio: false,
}));

/** Ten segments whose packets contain the variant and the number. */
function variant(index: number, container: "ts" | "fmp4" = "ts"): SegmentSource {
  return {
    container,
    name: `variant ${index}`,
    isLive: false,
    variants: FACTS,
    variantIndex: index,
    manifest: async ({ cuts = [] }) => `#EXTM3U\n# variant ${index}, cuts ${cuts}\n`,
    first: async () => 0,
    reach: async (number) => (number < 10 ? number : undefined),
    find: async (_, number) => number,
    make: async (_, number) => tsBytes(16 * index + number, 1000),
  };
}

/** An app with a session of this content, which plays variant 1 unless `stream_id` says otherwise. */
async function appWithVariants(output: "getstream" | "manifest.m3u8", of = variant) {
  const app = fakeApp();
  app.transfers.prepare = (transfer) => {
    transfer.bringData();
    transfer.segmentSource = async (_, { variantIndex = -1 }) => of(variantIndex < 0 ? 1 : variantIndex);
  };
  const { response: session } = await app.json(`/ace/${output}?format=json`, {
    method: "POST",
    body: JSON.stringify({ transport_file_data: base64(film.bytes) }),
  });
  const set = (index: string) => app.json(`${session.command_url}?method=set_stream&stream_index=${index}`);
  const selected = async () => (await app.json(session.stat_url)).response.selected_stream_index;
  return { ...app, session, set, selected };
}

test("set_stream: manifests and stat show the new stream; -1 returns to the engine's choice", async () => {
  const { call, session, set, selected } = await appWithVariants("manifest.m3u8");
  const manifest = async () => (await call(session.playback_url)).text();
  assert.match(await manifest(), /variant 1/);
  assert.equal((await set("2")).response, "ok");
  assert.match(await manifest(), /variant 2/);
  assert.equal(await selected(), 2);
  await set("-1");
  assert.match(await manifest(), /variant 1/);
  assert.equal(await selected(), 1);
});

test("set_stream: manifests name the next segment of the player as a discontinuity", async () => {
  const { call, session, set } = await appWithVariants("manifest.m3u8");
  const cuts = async () => /cuts (.*)/.exec(await (await call(session.playback_url)).text())?.[1];
  const play = async (number: number) =>
    assert.equal((await call(`/ace/c/${session.infohash}/${number}.ts`)).status, 200);
  // Before the first segment there is nothing to continue.
  await set("2");
  assert.equal(await cuts(), "");
  for (const number of [0, 1, 2]) await play(number);
  await set("1");
  assert.equal(await cuts(), "3");
  // A second change before the next segment is the same discontinuity.
  await set("2");
  assert.equal(await cuts(), "3");
  await play(3);
  await set("0");
  assert.equal(await cuts(), "3,4");
});

test("set_stream: an open MPEG-TS connection continues with the next segment of the new stream", async () => {
  const { call, session, set } = await appWithVariants("getstream");
  const reader = (await call(session.playback_url)).body!.getReader();
  const seen = new Set<number>();
  const read = async () => {
    const { value } = await reader.read();
    if (value) seen.add(value[4]!);
    return value;
  };
  await read();
  await set("2");
  while (await read());
  assert.deepEqual([...seen], [16, ...Array.from({ length: 9 }, (_, i) => 33 + i)]);
});

test("set_stream: refuses what the content does not have", async () => {
  const { set, selected } = await appWithVariants("manifest.m3u8");
  assert.match((await set("3")).error, /stream_index up to 2, got 3/);
  assert.match((await set("x")).error, /expected a whole number, got x/);
  assert.equal(await selected(), 1);
  const fragmented = await appWithVariants("manifest.m3u8", (index) => variant(index, "fmp4"));
  assert.match((await fragmented.set("2")).error, /start again with stream_id/);
});
