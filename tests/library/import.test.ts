import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { SluiceError } from "../../src/base/errors.ts";
import { encodeUtf8 } from "../../src/base/utf8.ts";
import { NO_OWNER } from "../../src/library/contract.ts";
import type { Library } from "../../src/library/library.ts";
import { openMemory } from "../../src/runtime/kv-memory.ts";
import { openLibrary } from "./library-parts.ts";
import { listOf, textStream } from "./list-server.ts";
import { until } from "./until.ts";

const OPTIONS = { name: "channels.m3u", owner: NO_OWNER, category: null };

const EXPORT = {
  query: {},
  format: "m3u",
  base: "http://h",
  protocol: "http",
  urlParameters: [],
  skipAutoSearch: false,
  generatePlayerId: false,
} as const;

async function ended(library: Library, id: number) {
  await until(() => library.tasks.get(id)?.state !== "running", "the end of the import");
  return library.tasks.get(id)!;
}

async function titles(library: Library): Promise<string[]> {
  return (await library.items.query({ sort: "added" })).items.map(({ title }) => title);
}

const isCode = (code: string) => (error: unknown) => error instanceof SluiceError && error.code === code;

test("importPlaylist: adds the entries of a list in a task that reports their number", async () => {
  const { library } = await openLibrary();
  const names = Array.from({ length: 1500 }, (_, i) => `c${i}`);
  const list = `${listOf(names)}#EXTINF:-1,x\nudp://@239.0.0.1:1\n`;
  const id = await library.importPlaylist(textStream(list), { ...OPTIONS, category: "tv", owner: "me" });
  assert.match(library.tasks.get(id)!.message, /^Importing "channels.m3u"/);
  assert.equal(library.tasks.get(id)!.category, "content");
  const task = await ended(library, id);
  assert.equal(task.state, "done");
  assert.equal(task.message, 'Imported "channels.m3u": 1,500 items; not playable: 1');
  assert.deepEqual(task.actions, ["reload_playlist"]);
  assert.deepEqual(await titles(library), names);
  const [item] = (await library.items.query({ name: "c77", limit: 1 })).items;
  assert.deepEqual(
    [item?.owner, item?.category, item?.externalPlaylistId, item?.sourceKey],
    ["me", "tv", -1, null],
  );
});

test("importPlaylist: skips existing items, but not those in the trash", async () => {
  const { library } = await openLibrary();
  const list = listOf(["a", "b", "b", "b http://t.example/backup"]);
  const first = await ended(library, await library.importPlaylist(textStream(list), OPTIONS));
  assert.match(first.message, /3 items; already present: 1/);
  const [a] = (await library.items.query({ name: "a" })).items;
  await library.items.delete([a!.id]);
  const second = await ended(library, await library.importPlaylist(textStream(list), OPTIONS));
  assert.match(second.message, /1 items; already present: 3/);
  assert.deepEqual(await titles(library), ["b", "b", "a"]);
  // Owners have separate lists.
  const other = await ended(
    library,
    await library.importPlaylist(textStream(list), { ...OPTIONS, owner: "other" }),
  );
  assert.match(other.message, /3 items/);
});

test("importPlaylist: recognizes items whose titles were cut", async () => {
  const { library } = await openLibrary();
  const list = `#EXTM3U\n#EXTINF:-1,${"long ".repeat(150)}\nhttp://t.example/x\n`;
  await ended(library, await library.importPlaylist(textStream(list), OPTIONS));
  await ended(library, await library.importPlaylist(textStream(list), OPTIONS));
  assert.equal((await library.items.query({})).total, 1);
});

test("importPlaylist: a gzip body", async () => {
  const { library } = await openLibrary();
  const packed = new Uint8Array(gzipSync(encodeUtf8(listOf(["a", "b"]))));
  await ended(library, await library.importPlaylist(new Blob([packed]).stream(), OPTIONS));
  assert.deepEqual(await titles(library), ["a", "b"]);
});

test("importPlaylist: refuses other files and lists that are too large before the task starts", async () => {
  const { library } = await openLibrary();
  const manifest = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\na.ts\n";
  for (const text of [
    "<!doctype html><title>404</title>",
    '{"error": 1}',
    "",
    manifest,
    "\0\0\0\x18ftypmp42",
  ])
    await assert.rejects(library.importPlaylist(textStream(text), OPTIONS), isCode("not_a_playlist"), text);
  const endless = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(new Uint8Array(1 << 20).fill(10)),
  });
  await assert.rejects(library.importPlaylist(endless, OPTIONS), isCode("too_large"));
  assert.deepEqual(library.tasks.list(), []);
  assert.equal((await library.items.query({})).total, 0);
});

test("importPlaylist: a list without playable entries fails", async () => {
  const { library } = await openLibrary();
  const id = await library.importPlaylist(textStream("#EXTM3U\n#EXTINF:-1,x\nrtmp://a/b\n"), OPTIONS);
  const task = await ended(library, id);
  assert.equal(task.state, "failed");
  assert.match(task.problem!, /no playable entry; 1 have unsupported links/);
});

test("importPlaylist: a failing store ends the task; earlier items stay, and a second import adds the rest", async () => {
  const memory = openMemory();
  let commits = 5;
  const store = {
    ...memory,
    commit: async (change: Parameters<typeof memory.commit>[0]) => {
      if (commits-- <= 0) throw new SluiceError("disk_full", "the disk is full");
      return memory.commit(change);
    },
  };
  const { library } = await openLibrary({ store });
  const names = Array.from({ length: 4000 }, (_, i) => `c${i}`);
  const task = await ended(library, await library.importPlaylist(textStream(listOf(names)), OPTIONS));
  assert.equal(task.state, "failed");
  assert.match(task.problem!, /the disk is full/);
  // A restart must show the same items.
  const { library: second } = await openLibrary({ store: memory });
  const before = await titles(second);
  assert.deepEqual(before, names.slice(0, before.length));
  assert.ok(before.length > 0 && before.length < 4000);
  await ended(second, await second.importPlaylist(textStream(listOf(names)), OPTIONS));
  assert.deepEqual(await titles(second), names);
});

test("importPlaylist: at most three at once; the fourth body is cancelled", async () => {
  const { library } = await openLibrary();
  const controllers: ReadableStreamDefaultController<Uint8Array>[] = [];
  const slow = () =>
    new ReadableStream<Uint8Array>({ start: (controller) => void controllers.push(controller) });
  const three = [slow(), slow(), slow()].map((body) => library.importPlaylist(body, OPTIONS));
  let isLetGo = false;
  const fourth = new ReadableStream<Uint8Array>({
    cancel() {
      isLetGo = true;
    },
  });
  await assert.rejects(library.importPlaylist(fourth, OPTIONS), isCode("too_many"));
  assert.ok(isLetGo);
  for (const [i, controller] of controllers.entries()) {
    controller.enqueue(encodeUtf8(listOf([`c${i}`])));
    controller.close();
  }
  for (const id of await Promise.all(three)) await ended(library, id);
  assert.equal((await titles(library)).length, 3);
  await ended(library, await library.importPlaylist(textStream(listOf(["after"])), OPTIONS));
});

test("importPlaylist: exports name the guides of imported lists, also after a restart", async () => {
  const store = openMemory();
  const { library } = await openLibrary({ store });
  const header = '#EXTM3U url-tvg="http://g.example/a.xml"';
  await ended(library, await library.importPlaylist(textStream(listOf(["a"], header)), OPTIONS));
  const exported = async (from: Library) => new Response(from.exportPlaylist(EXPORT)).text();
  assert.match(await exported(library), /^#EXTM3U url-tvg="http:\/\/g\.example\/a\.xml" x-tvg-url=/);
  const { library: second } = await openLibrary({ store });
  assert.match(await exported(second), /url-tvg="http:\/\/g\.example\/a\.xml"/);
});

test("exportPlaylist: names each guide once", async () => {
  const { library, server } = await openLibrary();
  const header = '#EXTM3U url-tvg="http://g.example/a.xml"';
  await ended(library, await library.importPlaylist(textStream(listOf(["a"], header)), OPTIONS));
  const url = "http://lists.example/b.m3u";
  server.answers.set(url, { body: listOf(["b"], header) });
  const id = await library.externalPlaylists.add(
    { type: "content", name: "b", category: "", url, updateInterval: 0, login: "", password: "" },
    { updateNow: false, allowPrivateUrls: false },
  );
  await ended(library, await library.externalPlaylists.refresh(id));
  const text = await new Response(library.exportPlaylist(EXPORT)).text();
  assert.match(text, /^#EXTM3U url-tvg="http:\/\/g\.example\/a\.xml" x-tvg-url=/);
});

test("importPlaylist: the next start reports an interrupted import once", async () => {
  const store = openMemory();
  await store.commit({ set: [["meta/import/1", 'Importing "a.m3u"']] });
  const { library } = await openLibrary({ store });
  await until(() => library.tasks.list()[0]?.state === "failed", "the told end");
  const [task] = library.tasks.list();
  assert.equal(task?.message, 'Importing "a.m3u"');
  assert.match(task?.problem ?? "", /interrupted .* repeat it/);
  // A completed import leaves no record.
  await ended(library, await library.importPlaylist(textStream(listOf(["a"])), OPTIONS));
  const { library: second } = await openLibrary({ store });
  assert.deepEqual(second.tasks.list(), []);
});

test("guidesOf: reads the head of a list and cancels the rest", async () => {
  const { library, server } = await openLibrary();
  const url = "http://lists.example/x.m3u";
  let isLetGo = false;
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) =>
      controller.enqueue(encodeUtf8(listOf(["a", "b"], '#EXTM3U url-tvg="http://g.example/a.xml"'))),
    cancel() {
      isLetGo = true;
    },
  });
  server.answers.set(url, { body });
  assert.deepEqual(await library.guidesOf(url, { allowPrivateUrls: true }), ["http://g.example/a.xml"]);
  assert.ok(isLetGo);
  assert.equal(server.asked[0]?.options.allowPrivate, true);
  server.answers.set(url, { body: listOf(["a"]) });
  assert.deepEqual(await library.guidesOf(url, { allowPrivateUrls: false }), []);
  server.answers.set(url, { body: "<html></html>" });
  await assert.rejects(library.guidesOf(url, { allowPrivateUrls: false }), isCode("not_a_playlist"));
  server.answers.set(url, { status: 404, body: "no" });
  await assert.rejects(library.guidesOf(url, { allowPrivateUrls: false }), /returned status 404/);
});

test("Library.close: ends running work and starts no more", async () => {
  const { library } = await openLibrary();
  const names = Array.from({ length: 20_000 }, (_, i) => `c${i}`);
  await library.importPlaylist(textStream(listOf(names)), OPTIONS);
  await library.close();
  await assert.rejects(library.importPlaylist(textStream(listOf(["a"])), OPTIONS), /engine is stopping/);
  assert.ok(library.tasks.list().every(({ state }) => state === "failed"));
});
