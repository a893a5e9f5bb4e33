import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readdir } from "node:fs/promises";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import type { Sha1 } from "../../../src/base/ids.ts";
import { SILENT_LOG } from "../../../src/base/log.ts";
import type { UnixSeconds } from "../../../src/base/time.ts";
import type { Item } from "../../../src/library/contract.ts";
import { exportItems } from "../../../src/library/export.ts";
import { createGuide } from "../../../src/library/guide/guide.ts";
import { exportedChannelId, exportGuide } from "../../../src/library/guide/guide-export.ts";
import { GuideFile } from "../../../src/library/guide/guide-file.ts";
import { createGuideReader } from "../../../src/library/guide/guide-reading.ts";
import { searchProgrammes } from "../../../src/library/guide/programme-search.ts";
import { createItems } from "../../../src/library/items.ts";
import { createTasks } from "../../../src/library/tasks.ts";
import { files } from "../../../src/runtime/files.ts";
import { openMemory } from "../../../src/runtime/kv-memory.ts";
import { FakeClock } from "../../engine/fake-clock.ts";
import { tempFolder } from "../../parts/torrent-files.ts";
import { seededRandom } from "../../seeded-random.ts";
import { ListServer } from "../list-server.ts";
import { until } from "../until.ts";

const NO_CONTENT = { transport: "http", contentId: null, infohash: null, magnet: null, url: null } as const;
const URL_A = "http://guide.example/a.xml.gz";
const sha1: Sha1 = (bytes) => new Uint8Array(createHash("sha1").update(bytes).digest());
const NOW = new FakeClock().unixSeconds();

interface Show {
  readonly channel: string;
  /** Hours after `NOW`. */
  readonly from: number;
  readonly to: number;
  readonly title: string;
}

function time(hours: number): string {
  const iso = new Date((NOW + hours * 3600) * 1000).toISOString();
  return `${iso.slice(0, 19).replace(/[-T:]/g, "")} +0000`;
}

function guideText(channels: Readonly<Record<string, string>>, shows: readonly Show[]): string {
  const heads = Object.entries(channels).map(
    ([id, name]) => `<channel id="${id}"><display-name>${name}</display-name></channel>`,
  );
  const bodies = shows.map(
    ({ channel, from, to, title }) =>
      `<programme start="${time(from)}" stop="${time(to)}" channel="${channel}"><title>${title}</title></programme>`,
  );
  return `<?xml version="1.0" encoding="UTF-8"?><tv>${heads.join("")}${bodies.join("")}</tv>`;
}

const NEWS: Show[] = [
  { channel: "one", from: 1, to: 2, title: "Later — “café”" },
  { channel: "one", from: -1, to: 1, title: "Now & here" },
  { channel: "one", from: -400, to: -399, title: "Two weeks ago" },
  { channel: "two", from: 0, to: 3, title: "Two" },
];
const GUIDE = guideText({ one: "Channel One", two: "Channel Two" }, NEWS);

/** A guide service on a real folder and a fake server, with items named in `titles`. */
async function openGuide(
  t: { after(run: () => unknown): void },
  titles: readonly string[],
  listed: string[] = [],
) {
  const folder = await tempFolder("guide");
  t.after(() => folder.remove());
  const [store, clock, server] = [openMemory(), new FakeClock(), new ListServer()];
  const items = await createItems({ store, clock, log: SILENT_LOG, sha1 });
  const added: Item[] = [];
  for (const title of titles)
    added.push(
      await items.add({
        title,
        content: { ...NO_CONTENT, url: `http://x.example/${encodeURIComponent(title)}` },
      }),
    );
  const open = async () => {
    const tasks = createTasks({ clock, log: SILENT_LOG });
    const guide = await createGuide({
      ...{ store, clock, files, tasks, items, log: SILENT_LOG, readGuide: createGuideReader(files) },
      folder: folder.path,
      outbound: server,
      listed: () => listed,
    });
    /** Resolves when all tasks and the opening of the files have ended. */
    const settle = () =>
      until(() => !tasks.list().some(({ state }) => state === "running"), "the end of the tasks");
    const close = async () => {
      await tasks.close();
      await guide.close();
    };
    return { guide, tasks, settle, close };
  };
  const opened = await open();
  t.after(opened.close);
  const titlesOf = async (guide: typeof opened.guide, item = added[0]!, from = 0, to = 3) =>
    (
      await guide.programmes(item, (NOW + from * 3600) as UnixSeconds, (NOW + to * 3600) as UnixSeconds, 10)
    ).map(({ title }) => title);
  return { ...opened, open, server, clock, items, added, folder, listed, titlesOf };
}

test("Guide: programmes of an item in order, from a compressed guide; the past of two weeks is dropped", async (t) => {
  const { guide, server, settle, added, titlesOf } = await openGuide(t, ["Channel One HD"]);
  const bytes = gzipSync(GUIDE);
  server.answers.set(URL_A, () => ({ body: new Blob([bytes]).stream() as ReadableStream<Uint8Array> }));
  await guide.addSource(URL_A, { allowPrivateUrls: false });
  await settle();
  assert.deepEqual(
    guide
      .sources()
      .map(({ programmeCount, channelCount, problem }) => [programmeCount, channelCount, problem]),
    [[3, 2, null]],
  );
  assert.deepEqual(await titlesOf(guide), ["Now & here", "Later — “café”"]);
  assert.deepEqual(
    (await guide.nowAndNext(added[0]!)).map(({ title }) => title),
    ["Now & here", "Later — “café”"],
  );
  assert.deepEqual(await titlesOf(guide, undefined, 1, 2), ["Later — “café”"]);
  assert.deepEqual(await titlesOf(guide, undefined, -500, -300), []);
});

test("Guide.search: programmes of the playlist's channels that are not over, the earliest first", async (t) => {
  const { guide, server, settle, items, clock } = await openGuide(t, ["Channel One HD", "Unknown"]);
  const more = [
    { channel: "one", from: 5, to: 6, title: "Cafe again" },
    { channel: "one", from: -3, to: -2, title: "An old café" },
    { channel: "two", from: 1, to: 2, title: "Café of another channel" },
  ];
  const text = guideText({ one: "Channel One", two: "Channel Two" }, [...more, ...NEWS]);
  server.answers.set(URL_A, { body: text });
  await guide.addSource(URL_A, { allowPrivateUrls: false });
  await settle();
  const search = async (query: string) => {
    const { found, isComplete } = await searchProgrammes({ items, guide, clock }, query);
    return [...found.map(({ item, programme }) => `${item.title}: ${programme.title}`), isComplete];
  };
  assert.deepEqual(await search(" CAFÉ "), [
    "Channel One HD: Later — “café”",
    "Channel One HD: Cafe again",
    true,
  ]);
  assert.deepEqual(await search("now & HERE"), ["Channel One HD: Now & here", true]);
  assert.deepEqual(await search(" "), [true]);
});

test("Guide: a broken, empty, truncated or missing guide keeps the programmes of the refresh before it", async (t) => {
  const { guide, server, settle, titlesOf, folder } = await openGuide(t, ["Channel One"]);
  server.answers.set(URL_A, { body: GUIDE });
  await guide.addSource(URL_A, { allowPrivateUrls: false });
  await settle();
  const broken = [
    "",
    "<html>",
    GUIDE.slice(0, -20),
    "<tv></tv>",
    guideText({ one: "x" }, [{ ...NEWS[0]!, from: 900, to: 901 }]),
  ];
  for (const answer of [...broken.map((body) => ({ body })), { status: 404 }, { status: 500, body: GUIDE }]) {
    server.answers.set(URL_A, answer);
    guide.refresh();
    await settle();
    assert.notEqual(guide.sources()[0]!.problem, null, JSON.stringify(answer).slice(0, 60));
    assert.deepEqual(await titlesOf(guide), ["Now & here", "Later — “café”"]);
  }
  server.answers.set(URL_A, { body: guideText({ one: "Channel One" }, [{ ...NEWS[1]!, title: "Fresh" }]) });
  guide.refresh();
  await settle();
  assert.deepEqual([await titlesOf(guide), guide.sources()[0]!.problem], [["Fresh"], null]);
  assert.equal((await readdir(folder.file("guide"))).length, 1, "old files are removed");
});

test("Guide: 100 broken refreshes and restarts between them lose no mapping", async (t) => {
  const { guide, open, close, server, settle, added, clock } = await openGuide(t, ["Channel One", "Other"]);
  server.answers.set(URL_A, { body: GUIDE });
  await guide.addSource(URL_A, { allowPrivateUrls: false });
  await settle();
  await guide.choose(added[1]!, guide.candidates(added[1]!, "channel two")[0]!.key);
  const random = seededRandom(15);
  let current = { guide, settle, close };
  for (let round = 0; round < 100; round++) {
    const body = GUIDE.slice(0, Math.floor(random() * (GUIDE.length - 5)));
    server.answers.set(URL_A, random() < 0.3 ? { status: 503 } : { body });
    current.guide.refresh();
    await current.settle();
    assert.notEqual(current.guide.sources()[0]!.problem, null, `round ${round}`);
    if (round % 25 === 24) {
      await current.close();
      current = await open();
      await until(() => current.guide.hasProgrammes, "the stored guide");
    }
    const mapped = added.map((item) => current.guide.match(item)!);
    assert.deepEqual(
      mapped.map(({ channel, reason }) => [channel.key, reason]),
      [
        ["1/one", "name"],
        ["1/two", "chosen"],
      ],
    );
    assert.equal((await current.guide.nowAndNext(added[1]!))[0]!.title, "Two");
  }
  t.after(current.close);
  assert.equal(clock.unixSeconds(), NOW);
});

test("Guide: now and next follow a refresh that brings other programmes", async (t) => {
  const { guide, server, settle, added } = await openGuide(t, ["Channel One"]);
  const nowTitle = async () => (await guide.nowAndNext(added[0]!))[0]?.title;
  server.answers.set(URL_A, { body: GUIDE });
  await guide.addSource(URL_A, { allowPrivateUrls: false });
  await settle();
  assert.equal(await nowTitle(), "Now & here");
  server.answers.set(URL_A, { body: guideText({ one: "Channel One" }, [{ ...NEWS[1]!, title: "Fresh" }]) });
  guide.refresh();
  await settle();
  assert.equal(await nowTitle(), "Fresh");
});

test("Guide: programmes, sources and choices survive a restart; a damaged file is fetched again", async (t) => {
  const { guide, open, close, server, settle, added, titlesOf, folder } = await openGuide(t, [
    "Something else",
  ]);
  server.answers.set(URL_A, { body: GUIDE });
  await guide.addSource(URL_A, { allowPrivateUrls: false });
  await settle();
  assert.equal(guide.match(added[0]!), undefined);
  await guide.choose(added[0]!, guide.candidates(added[0]!, "channel two")[0]!.key);
  await close();
  const again = await open();
  await until(() => again.guide.hasProgrammes, "the stored guide");
  assert.deepEqual(await titlesOf(again.guide), ["Two"]);
  assert.equal(again.guide.match(added[0]!)!.reason, "chosen");
  await again.close();
  const [name] = await readdir(folder.file("guide"));
  await files.replace(folder.file(`guide/${name}`), new TextEncoder().encode('["one",["x"],""]\n[1,2,99,"'));
  const third = await open();
  t.after(third.close);
  await until(() => third.guide.hasProgrammes, "the guide that is fetched again");
  assert.deepEqual(await titlesOf(third.guide), ["Two"]);
});

test("Guide: follows the guides that lists name, and refreshes them when they are due", async (t) => {
  const { guide, server, settle, clock, listed, titlesOf } = await openGuide(t, ["Channel Two"]);
  server.answers.set(URL_A, { body: GUIDE, headers: { etag: '"1"' } });
  listed.push(URL_A);
  await until(() => clock.waiting > 0, "the first check");
  await clock.advance(60_000);
  await until(() => guide.hasProgrammes, "the listed guide");
  await settle();
  assert.deepEqual(await titlesOf(guide), ["Two"]);
  assert.equal(guide.sources()[0]!.origin, "list");
  server.answers.set(URL_A, ({ headers }) => ({ status: headers?.["if-none-match"] === '"1"' ? 304 : 500 }));
  await clock.advance(13 * 3_600_000);
  await until(() => server.asked.length === 2, "the refresh that is due");
  await settle();
  assert.equal(guide.sources()[0]!.problem, null);
  await guide.removeSource(guide.sources()[0]!.id);
  await clock.advance(60_000);
  await settle();
  assert.deepEqual([guide.sources(), server.asked.length], [[], 2], "a removed guide is not fetched again");
});

test("Guide.choose: no guide, another channel, and automatic again", async (t) => {
  const { guide, server, settle, added, titlesOf } = await openGuide(t, ["Channel One"]);
  server.answers.set(URL_A, { body: GUIDE });
  await guide.addSource(URL_A, { allowPrivateUrls: false });
  await settle();
  await guide.choose(added[0]!, null);
  assert.deepEqual(await titlesOf(guide), []);
  await assert.rejects(guide.choose(added[0]!, "1/none"), /no such channel/);
  await guide.choose(added[0]!, undefined);
  assert.deepEqual(await titlesOf(guide), ["Now & here", "Later — “café”"]);
});

test("exportGuide: XMLTV of the items that have a channel, escaped, with the ids of exported lists", async (t) => {
  const { guide, server, settle, items, added, clock } = await openGuide(t, [
    "Channel One",
    "Channel One",
    "Unknown",
  ]);
  server.answers.set(URL_A, { body: GUIDE });
  await guide.addSource(URL_A, { allowPrivateUrls: false });
  await settle();
  const text = await new Response(exportGuide({ items, guide, clock }, {})).text();
  const id = exportedChannelId(added[0]!, items.figures(added[0]!));
  assert.equal(text.split("<channel ").length, 2);
  assert.match(text, new RegExp(`<channel id="${id}"><display-name>Channel One</display-name></channel>`));
  assert.match(text, /<title>Now &amp; here<\/title>/);
  assert.equal(text.split("<programme ").length, 3);
  assert.match(text, /<\/tv>\n$/);
});

test("exportGuide, exportItems: the same channel ids, as tv_validate_file demands; channels without programmes are omitted", async (t) => {
  const ids: Readonly<Record<string, string>> = {
    "one.uk": "one.uk",
    "BBC-2.co.uk": "BBC-2.co.uk",
    one: "one.sluice",
    "One.uk@SD": "One.uk-40SD",
    "é 1": "-e9-201.sluice",
    "..a..b.": "-2e.a-2e.b-2e",
  };
  const { guide, server, settle, items, clock } = await openGuide(t, []);
  const owned = [...Object.keys(ids), "silent.uk"];
  for (const [i, tvgId] of owned.entries()) {
    const content = { ...NO_CONTENT, url: `http://x.example/${i}` };
    await items.add({ title: `Channel ${i}`, tvgId, content });
  }
  const shows = Object.keys(ids).map((channel) => ({ channel, from: 0, to: 1, title: "Show" }));
  const names = Object.fromEntries(owned.map((id, i) => [id, `Channel ${i}`]));
  server.answers.set(URL_A, { body: guideText(names, shows) });
  await guide.addSource(URL_A, { allowPrivateUrls: false });
  await settle();
  const text = await new Response(exportGuide({ items, guide, clock }, {})).text();
  const found = [...text.matchAll(/<channel id="([^"]*)"/g)].map(([, id]) => id!);
  assert.deepEqual(found.sort(), Object.values(ids).sort());
  for (const id of found) assert.match(id, /^[-a-zA-Z0-9]+(\.[-a-zA-Z0-9]+)+$/);
  const list = exportItems(
    { items, guide, guides: () => [], healthOf: () => undefined, randomBytes: (n) => new Uint8Array(n) },
    {
      ...{ query: {}, format: "m3u", base: "http://192.168.1.5:6878", protocol: "http", urlParameters: [] },
      ...{ skipAutoSearch: false, generatePlayerId: false },
    },
  );
  const listed = [...(await new Response(list).text()).matchAll(/tvg-id="([^"]*)"/g)].map(([, id]) => id!);
  assert.deepEqual(listed.sort(), [...found, "silent.uk"].sort());
});

test("GuideFile.flush: a large guide ends before the disk is full, a small one is written in any case", async (t) => {
  const folder = await tempFolder("guide");
  t.after(() => folder.remove());
  const full = { ...files, freeBytes: async () => 500 * 1024 * 1024 };
  const guide = await GuideFile.create(full, `${folder.path}/guide`);
  t.after(() => guide.close());
  const programme = {
    ...{
      channel: "one",
      stop: undefined,
      title: "Show",
      subtitle: "",
      categories: [],
      icon: "",
      episode: "",
    },
    description: "x".repeat(2_000),
  };
  const add = async (count: number) => {
    for (let i = 0; i < count; i++) {
      guide.addProgramme({ ...programme, start: (NOW + i) as UnixSeconds });
      await guide.flush();
    }
  };
  await add(1_000);
  await assert.rejects(add(10_000), { code: "disk_full" });
});
