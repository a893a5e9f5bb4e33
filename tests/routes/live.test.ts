import assert from "node:assert/strict";
import { test } from "node:test";
import { concatBytes } from "../../src/base/bytes.ts";
import { base64, filmTorrent } from "../engine/fake-engine.ts";
import { FakeLive, FIRST_AT, fakeControl } from "../engine/fake-live.ts";
import { languagesIn, PAT, pmtOf, VIDEO_PACKET } from "../remux/synthetic-ts.ts";
import { fakeApp } from "./client.ts";

const stream = filmTorrent("stream");

/** A session that plays a live stream with a window of sixty seconds. */
async function appWithLive(output: "getstream" | "manifest.m3u8" = "getstream", query = "") {
  const app = fakeApp();
  const live = new FakeLive();
  live.bring(60);
  app.transfers.prepare = (transfer) => {
    transfer.bringData();
    transfer.segmentSource = async () => live;
    transfer.live = fakeControl();
  };
  const { response } = await app.json(`/ace/${output}?format=json${query}`, {
    method: "POST",
    body: JSON.stringify({ transport_file_data: base64(stream.bytes) }),
  });
  return { ...app, live, session: response };
}

test("start live: is_live is 1", async () => {
  const { session, json } = await appWithLive();
  assert.equal(session.is_live, 1);
  const { response } = await json(session.stat_url);
  assert.deepEqual([response.is_live, response.status, response.selected_file_index], [1, "dl", -1]);
});

test("preferred_audio_language: its audio comes first in a live stream, for TS and HLS players", async () => {
  for (const output of ["getstream", "manifest.m3u8"] as const) {
    const { live, session, call } = await appWithLive(output, "&preferred_audio_language=ger");
    const packets = concatBytes([PAT, pmtOf("eng", "deu"), VIDEO_PACKET]);
    live.cursor = () => ({ next: async () => packets, seek() {}, position: undefined });
    live.make = async () => packets;
    const url = output === "getstream" ? session.playback_url : `/ace/c/${session.infohash}/0.ts`;
    const reader = (await call(url)).body!.getReader();
    assert.deepEqual(languagesIn((await reader.read()).value!), ["deu", "eng"]);
    await reader.cancel();
  }
});

test("stat live: livepos has eight string members", async () => {
  const { session, json, call, live } = await appWithLive();
  live.oldest = 10;
  const reader = (await call(session.playback_url)).body!.getReader();
  await reader.read();
  const livepos = async () => (await json(session.stat_url)).response.livepos;
  const [first, last] = [String(FIRST_AT + 10), String(FIRST_AT + 59)];
  assert.deepEqual(await livepos(), {
    last,
    live_first: first,
    pos: last,
    first_ts: first,
    last_ts: last,
    is_live: "1",
    live_last: last,
    buffer_pieces: "1",
  });
  live.bring(1);
  assert.equal((await livepos()).live_last, String(FIRST_AT + 60), "players look whether it moves");
  await json(`${session.command_url}?method=liveseek&pos=${FIRST_AT + 20}`);
  const { pos, is_live, buffer_pieces } = await livepos();
  assert.deepEqual([pos, is_live, buffer_pieces], [String(FIRST_AT + 20), "0", "81"]);
});

test("liveseek: moves the session; an invalid position is an error", async () => {
  const { session, json, call } = await appWithLive();
  const reader = (await call(session.playback_url)).body!.getReader();
  const piece = async () => (await reader.read()).value![4];
  assert.equal(await piece(), 58);
  const seek = (pos: string) => json(`${session.command_url}?method=liveseek${pos}`);
  assert.equal((await seek(`&pos=${FIRST_AT + 12}`)).response, "ok");
  assert.equal(await piece(), 12);
  assert.equal((await seek("&pos=-1")).response, "ok");
  assert.equal(await piece(), 58);
  for (const pos of ["", "&pos=", "&pos=-2", "&pos=soon", "&pos=1e9", "&pos=99999999999999"])
    assert.match((await seek(pos)).error, /liveseek: pos: expected UNIX seconds, or -1 for live, got/, pos);
  await reader.cancel();
});

test("manifest live: the delivery directives reach the source", async () => {
  const { session, call, live } = await appWithLive("manifest.m3u8");
  const ask = async (query: string) => {
    assert.equal((await call(`${session.playback_url}${query}`)).status, 200, query);
    const { reload, isDelta } = live.places.at(-1)!;
    return { reload, isDelta };
  };
  assert.deepEqual(await ask(""), { reload: undefined, isDelta: false });
  assert.deepEqual(await ask("?_HLS_msn=59"), { reload: { segment: 59, part: undefined }, isDelta: false });
  assert.deepEqual(await ask("?_HLS_msn=59&_HLS_part=3&_HLS_skip=YES"), {
    reload: { segment: 59, part: 3 },
    isDelta: true,
  });
  assert.deepEqual(await ask("?_HLS_skip=no"), { reload: undefined, isDelta: false });
});

test("manifest live: an invalid segment or part number is refused", async () => {
  const { session, call } = await appWithLive("manifest.m3u8");
  for (const query of ["_HLS_msn=", "_HLS_msn=-1", "_HLS_msn=1e3", "_HLS_part=2", "_HLS_msn=1&_HLS_part=x"])
    assert.equal((await call(`${session.playback_url}?${query}`)).status, 400, query);
});

test("manifest live: a HEAD request does not wait", async () => {
  const { session, call } = await appWithLive("manifest.m3u8");
  const url = `${session.playback_url}?_HLS_msn=1000`;
  assert.equal((await call(url, { method: "HEAD" })).status, 200);
});

test("segment live: serves a part by its name; a HEAD request reads no part", async () => {
  const { call, live } = await appWithLive("manifest.m3u8");
  const url = `/ace/c/${stream.infohash}/59.p2.ts`;
  const head = await call(url, { method: "HEAD" });
  assert.deepEqual([head.status, head.headers.get("content-type"), live.made], [200, "video/mp2t", []]);
  const answer = await call(url);
  assert.deepEqual([answer.status, answer.headers.get("cache-control")], [200, "no-store"]);
  assert.equal(new Uint8Array(await answer.arrayBuffer())[4], 2);
  assert.deepEqual(live.made, ["59.p2"]);
  for (const name of ["59.p.ts", "59.p99999.ts", "59.p2.mp4", "59.p2.a1.ts", "p2.ts"])
    assert.equal((await call(`/ace/c/${stream.infohash}/${name}`)).status, 404, name);
});
