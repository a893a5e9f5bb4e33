import assert from "node:assert/strict";
import { test } from "node:test";
import { SluiceError } from "../../src/base/errors.ts";
import { SILENT_LOG } from "../../src/base/log.ts";
import type { Broadcast, BroadcastRequest, Broadcasts } from "../../src/live/broadcast/broadcast-contract.ts";
import { createBroadcastLists } from "../../src/live/broadcast/broadcast-lists.ts";
import { checkedBroadcastName } from "../../src/live/broadcast/broadcast-name.ts";
import type { OpenOptions, OutboundStream } from "../../src/outbound/request.ts";
import { FakeStudio, someRequest } from "./broadcast-parts.ts";
import { streamOf } from "./source-parts.ts";

const LIST = { id: 7, url: "http://lists.example/a.m3u", login: "", password: "", allowPrivateUrls: true };
const PROGRESS = { report() {}, signal: new AbortController().signal };

/** Fake broadcasts, and a server with one list. */
function someLists() {
  const live = new Map<string, BroadcastRequest>();
  const asked: { readonly url: string; readonly options: OpenOptions }[] = [];
  const refused = new Set<string>();
  const web = { status: 200, text: "", isHome: false };
  const ends = new Map<string, () => void>();
  const broadcasts: Broadcasts = {
    async start(request) {
      if (refused.has(request.name)) throw new SluiceError("url_unreachable", "there is nothing");
      live.set(request.name, request);
      const ended = new Promise<void>((resolve) => ends.set(request.name, resolve));
      const stop = async () => void live.delete(request.name);
      return { request, ended, stop } as unknown as Broadcast;
    },
    get: () => undefined,
    all: () => [],
    close: async () => {},
  };
  const outbound = {
    open: async (url: string, options: OpenOptions): Promise<OutboundStream> => {
      asked.push({ url, options });
      const body = streamOf([new TextEncoder().encode(web.text)]);
      return { status: web.status, headers: new Headers(), body, finalUrl: url, allowPrivate: web.isHome };
    },
  };
  const defaults = () => ({ trackers: ["udp://t.example:1"], addresses: [{ host: "192.0.2.1", port: 1 }] });
  const lists = createBroadcastLists({ broadcasts, outbound, log: SILENT_LOG, defaults });
  const refresh = (text: string, list = LIST) => {
    web.text = text;
    return lists.refresh(list, PROGRESS);
  };
  return { live, asked, refused, web, ends, lists, refresh, names: () => [...live.keys()].sort() };
}

test("createBroadcastLists: broadcasts the entries of a list, and stops removed ones", async () => {
  const { live, names, refresh, lists } = someLists();
  const first =
    '#EXTM3U\n#EXTINF:-1 tvg-logo="http://l.example/1.png" group-title="News",One: HD\nhttp://a.example/1\n';
  assert.equal(await refresh(`${first}#EXTINF:-1,Two\nhttp://a.example/2.m3u8\n`), "2 on air");
  assert.deepEqual(names(), ["list 7 One HD", "list 7 Two"]);
  const one = live.get("list 7 One HD")!;
  assert.deepEqual(one.place, { kind: "http", url: "http://a.example/1" });
  assert.deepEqual(one.meta, { title: "One: HD", logo: "http://l.example/1.png", categories: ["News"] });
  assert.deepEqual([one.trackers, one.addresses.length], [["udp://t.example:1"], 1]);
  assert.equal(live.get("list 7 Two")!.place.kind, "hls");
  // The same list again, and the same list with another id.
  assert.equal(await refresh(`${first}#EXTINF:-1,Two\nhttp://a.example/2.m3u8\n`), "2 on air");
  assert.equal(live.get("list 7 One HD"), one, "goes on");
  await refresh(first, { ...LIST, id: 8 });
  // Entry one changes its URL, two is removed, three is added.
  await refresh(`${first.replace("example/1\n", "example/9\n")}#EXTINF:-1,Three\nhttp://a.example/3\n`);
  assert.deepEqual(names(), ["list 7 One HD", "list 7 Three", "list 8 One HD"]);
  assert.deepEqual(live.get("list 7 One HD")!.place, { kind: "http", url: "http://a.example/9" });
  await lists.forget(7);
  assert.deepEqual(names(), ["list 8 One HD"]);
});

test("createBroadcastLists: a list cannot open files, ports or pipes, or local URLs unless the list is local", async () => {
  const { live, web, refresh } = someLists();
  const evil = ["/etc/passwd", "file:///etc/passwd", "-", "udp://@239.1.1.1:1234", "rtmp://a/b"];
  const text = `#EXTM3U\n${evil.map((url) => `#EXTINF:-1,x\n${url}\n`).join("")}#EXTINF:-1,y\nhttp://192.168.1.1/\n`;
  assert.match(await refresh(text), /^1 on air; \d entries skipped$/);
  assert.equal(live.get("list 7 y")!.allowPrivateUrls, false);
  web.isHome = true;
  await refresh(text.replace("y\n", "z\n"));
  assert.equal(live.get("list 7 z")!.allowPrivateUrls, true);
});

test("createBroadcastLists: uses sixteen entries, with names that are valid folder names", async () => {
  const { names, refresh, asked } = someLists();
  const entry = (i: number) => `#EXTINF:-1,${"字/\\:".repeat(40)} ${i}\nhttp://a.example/${i}\n`;
  const many = Array.from({ length: 40 }, (_, i) => entry(i)).join("");
  assert.equal(
    await refresh(`#EXTM3U\n${many}`),
    "1 on air; 39 entries skipped",
    "names that are cut are one",
  );
  const short = Array.from({ length: 40 }, (_, i) => `#EXTINF:-1,c${i}\nhttp://a.example/${i}\n`).join("");
  const list = { ...LIST, id: 8, login: "me", password: "pw" };
  assert.equal(await refresh(`#EXTM3U\n${short}`, list), "16 on air; 24 entries skipped");
  for (const name of names()) assert.equal(checkedBroadcastName(name), name);
  assert.deepEqual(asked.at(-1)!.options.basic, { login: "me", password: "pw" });
});

test("createBroadcastLists: retries failed and ended entries at the next refresh", async () => {
  const { refused, names, refresh, web, ends, live } = someLists();
  const text = "#EXTM3U\n#EXTINF:-1,a\nhttp://a.example/1\n#EXTINF:-1,b\nhttp://a.example/2\n";
  refused.add("list 7 a");
  assert.match(await refresh(text), /^1 on air; 1 failed \(list 7 a: there is nothing\)$/);
  refused.clear();
  await refresh(text);
  assert.deepEqual(names(), ["list 7 a", "list 7 b"]);
  live.clear();
  for (const end of ends.values()) end();
  await refresh(text);
  assert.deepEqual(names(), ["list 7 a", "list 7 b"]);
  // A list that cannot be fetched changes nothing.
  web.status = 500;
  await assert.rejects(refresh(text), /status 500/);
  web.status = 200;
  await assert.rejects(
    refresh("#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\na.ts\n"),
    /manifest of one stream/,
  );
  await assert.rejects(refresh("<html>"), /HTML|web page|expected/i);
  assert.equal(names().length, 2);
});

test("createBroadcasts: passes on that a source must not be in the local network", async () => {
  for (const allowPrivateUrls of [true, false]) {
    const studio = new FakeStudio();
    studio.world.answer = () => ({ status: 404 });
    const place = { kind: "http", url: "http://a.example/b" } as const;
    const start = studio.within(studio.broadcasts().start(someRequest({ place, allowPrivateUrls })));
    await assert.rejects(start, SluiceError);
    assert.equal(studio.world.asked[0]!.options.allowPrivate, allowPrivateUrls);
  }
});
