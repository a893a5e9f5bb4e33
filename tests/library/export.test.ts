import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { test } from "node:test";
import type { ContentId, Infohash } from "../../src/base/ids.ts";
import { SILENT_LOG } from "../../src/base/log.ts";
import type { UnixSeconds } from "../../src/base/time.ts";
import type { Health } from "../../src/health/health-contract.ts";
import type { ExportOptions, Item, ItemContent, ItemDraft } from "../../src/library/contract.ts";
import { exportItems } from "../../src/library/export.ts";
import { withoutLogin } from "../../src/library/export-links.ts";
import { createItems } from "../../src/library/items.ts";
import { M3uReader } from "../../src/media/m3u.ts";
import { openMemory } from "../../src/runtime/kv-memory.ts";
import { FakeClock } from "../engine/fake-clock.ts";

const CID = "0123456789abcdef0123456789abcdef01234567" as ContentId;
const HASH = "89abcdef0123456789abcdef0123456789abcdef" as Infohash;
const NONE: ItemContent = { transport: "bt", contentId: null, infohash: null, magnet: null, url: null };
const byId: ItemContent = { ...NONE, contentId: CID };
const byHash: ItemContent = { ...NONE, infohash: HASH };
const web = (url: string): ItemContent => ({ ...NONE, transport: "http", url });

async function open(
  drafts: readonly ItemDraft[],
  guides: readonly string[] = [],
  healthOf: (item: Item) => Health | undefined = () => undefined,
) {
  const sha1 = (bytes: Uint8Array) => new Uint8Array(createHash("sha1").update(bytes).digest());
  const items = await createItems({ store: openMemory(), clock: new FakeClock(), log: SILENT_LOG, sha1 });
  const ids: number[] = [];
  for (const draft of drafts) ids.push((await items.add(draft)).id);
  const parts = {
    items,
    guides: () => guides,
    guide: { hasProgrammes: false, match: () => undefined, nowAndNext: async () => [] },
    healthOf,
    randomBytes: (length: number) => new Uint8Array(randomBytes(length)),
  };
  const stream = (options: Partial<ExportOptions> = {}) =>
    exportItems(parts, {
      query: { sort: "added" },
      format: "m3u",
      base: "http://192.168.1.5:6878",
      protocol: "http",
      urlParameters: [],
      skipAutoSearch: false,
      generatePlayerId: false,
      ...options,
    });
  const text = (options?: Partial<ExportOptions>) => new Response(stream(options)).text();
  return { items, ids, stream, text };
}

/** Parses an export as players do. */
function read(text: string) {
  const reader = new M3uReader();
  const entries = [...reader.push(new TextEncoder().encode(text)), ...reader.end()];
  return { header: reader.header, entries };
}

test("exportItems: writes title, group, guide, logo and link of each enabled item", async () => {
  const { text, items, ids } = await open(
    [
      {
        title: 'One, "the" first',
        content: byId,
        tags: ["UK", "News", "radio"],
        tvgId: "one.uk",
        tvgLogo: "https://l.example/1.png",
      },
      { title: "Two", content: byHash, category: "movies" },
      { title: "off", content: byHash },
    ],
    ["http://g.example/a.xml.gz", "http://g.example/b?c=1,2"],
  );
  await items.update(ids[2]!, { isEnabled: false });
  const { header, entries } = read(await text({ urlParameters: [["transcode_audio", "0"]] }));
  assert.deepEqual(header.guides, ["http://g.example/a.xml.gz", "http://g.example/b?c=1%2C2"]);
  assert.equal(entries.length, 2);
  const [one, two] = entries;
  assert.equal(
    one?.url,
    `http://192.168.1.5:6878/ace/getstream?id=${CID}&hlc=1&transcode_audio=0&container=raw`,
  );
  assert.deepEqual(Object.fromEntries(one!.attributes), {
    "tvg-id": "one.uk",
    "tvg-name": "One‚ ”the” first",
    "tvg-logo": `http://192.168.1.5:6878/server/api?api_version=3&method=get_channel_icon&id=${ids[0]}`,
    "group-title": "UK;News",
    radio: "true",
  });
  assert.equal(one?.title, "One, ”the” first");
  assert.equal(
    two?.url,
    `http://192.168.1.5:6878/ace/getstream?infohash=${HASH}&hlc=1&transcode_audio=0&container=raw`,
  );
  assert.equal(two?.group, "movies");
});

test("exportItems: repeats catch-up, time shift and channel number, without URLs that may contain credentials", async () => {
  const source = (url: string, content: ItemContent) => ({
    title: "t",
    content,
    tvgExtra: [`catchup-source=${url}`],
  });
  const { text } = await open([
    { title: "One", content: byId, tvgExtra: ["tvg-chno=7", "tvg-shift=-2", "catchup=append"] },
    source("?utc={utc}&lutc={lutc}", byId),
    source("http://c.example/{utc}.m3u8?a=b", byId),
    source("http://c.example/{utc}.m3u8?token=canary", byId),
    source("http://a.example/timeshift/user/canary/{utc}.ts", web("http://a.example/live/user/canary/1.ts")),
    source("x".repeat(2000), byId),
  ]);
  const list = await text();
  assert.ok(!list.includes("canary"));
  const [one, ...others] = read(list).entries.map(({ attributes }) => attributes);
  assert.deepEqual(
    ["tvg-chno", "tvg-shift", "catchup"].map((name) => one!.get(name)),
    ["7", "-2", "append"],
  );
  assert.deepEqual(
    others.map((attributes) => attributes.get("catchup-source")),
    ["?utc={utc}&lutc={lutc}", "http://c.example/{utc}.m3u8?a=b", undefined, undefined, undefined],
  );
});

test("exportItems: HLS links with a random player id each", async () => {
  const { text } = await open([
    { title: "a", content: byId },
    { title: "b", content: web("http://a.example/b") },
  ]);
  const urls = read(await text({ protocol: "hls", generatePlayerId: true })).entries.map(
    ({ url }) => new URL(url),
  );
  assert.equal(urls[0]?.pathname, "/ace/manifest.m3u8");
  assert.equal(urls[1]?.searchParams.get("protocol"), "hls");
  const pids = urls.map((url) => url.searchParams.get("pid"));
  assert.ok(pids.every((pid) => /^[0-9a-f]{32}$/.test(pid!)));
  assert.notEqual(pids[0], pids[1]);
});

test("export-links: no format contains a URL of another server or a secret of a magnet", async () => {
  const secrets = [
    web("http://me:canary@a.example/live"),
    web("http://a.example/live/user/canary/1.ts"),
    web("http://a.example/x?token=canary"),
    { ...NONE, transport: "hls", url: "https://a.example/canary.m3u8" } as ItemContent,
    { ...NONE, url: "https://canary.example/x.torrent" },
    { ...byHash, magnet: `magnet:?xt=urn:btih:${HASH}&tr=http%3A%2F%2Ft.example%2Fcanary%2Fannounce` },
  ];
  const { text, ids } = await open(
    secrets.map((content, i) => ({ title: `t${i}`, content, tvgLogo: "http://u:canary@l.example/x.png" })),
    ["http://g.example/xmltv.php?username=a&password=canary", "http://u:canary@g.example/"],
  );
  for (const format of ["m3u", "acestream", "json"] as const)
    assert.doesNotMatch(await text({ format }), /canary/);
  const { entries } = read(await text());
  assert.deepEqual(
    entries.map(({ url }) => url),
    ids.map((id) => `http://192.168.1.5:6878/play/0/${id}?hlc=1&container=raw`),
  );
});

test("exportItems: the format for other engines has ids and magnets", async () => {
  const { text, items, ids } = await open([
    { title: "a", content: byId },
    { title: "b", content: { ...byHash, magnet: `magnet:?xt=urn:btih:${HASH}` } },
    { title: "c", content: web("http://a.example/c") },
  ]);
  await items.update(ids[0]!, { autoSearch: true });
  const { entries } = read(await text({ format: "acestream" }));
  assert.deepEqual(
    entries.map(({ url }) => url),
    [`acestream://${CID}`, `magnet:?xt=urn:btih:${HASH}`, `http://192.168.1.5:6878/play/0/${ids[2]}`],
  );
  assert.equal(entries[0]?.attributes.get("acestream-autosearch"), "1");
});

test("exportItems: valid JSON for zero, one and many items", async () => {
  for (const count of [0, 1, 250]) {
    const { text } = await open(
      Array.from({ length: count }, (_, i) => ({ title: `t "${i}"\n`, content: byId, tags: ["x"] })),
    );
    const { playlist } = JSON.parse(await text({ format: "json" })) as {
      playlist: Record<string, unknown>[];
    };
    assert.equal(playlist.length, count);
    if (count === 0) continue;
    assert.equal(playlist[0]?.content_id, CID);
    assert.deepEqual(playlist[0]?.tags, ["x"]);
    assert.match(String(playlist[0]?.url), /getstream\?id=/);
  }
});

test("exportItems: with auto search an item links to its best match, unless skipped", async () => {
  const { text, items, ids } = await open([
    { title: "One HD", content: byId, isLive: 0 },
    { title: "One", content: byHash, isLive: 0 },
    { title: "Live HD", content: byId, isLive: 1 },
    { title: "Live", content: byHash, isLive: 1 },
  ]);
  await items.update(ids[0]!, { autoSearch: true });
  // The source of a live channel is chosen while it is played.
  await items.update(ids[2]!, { autoSearch: true });
  const channel = async (more: object) => read(await text(more)).entries[2]!.url;
  assert.match(await channel({}), new RegExp(`/play/0/${ids[2]}\\?hlc=1&container=raw$`));
  assert.match(await channel({ protocol: "hls" }), new RegExp(`manifest.m3u8\\?infohash=${HASH}`));
  assert.match(await channel({ skipAutoSearch: true }), new RegExp(`id=${CID}`));
  const first = async (skipAutoSearch: boolean) => read(await text({ skipAutoSearch })).entries[0]?.url;
  assert.match((await first(false))!, new RegExp(`infohash=${HASH}`));
  assert.match((await first(true))!, new RegExp(`id=${CID}`));
  // A link to an item names the chosen source, and must not search again.
  await items.update(ids[0]!, { isEnabled: false });
  const byUrl = await items.add({
    title: "Two",
    content: { ...byHash, infohash: null, transport: "http", url: "http://a.example/1" },
  });
  await items.update(byUrl.id, { autoSearch: true });
  assert.match(
    read(await text({})).entries[3]!.url,
    new RegExp(`/play/0/${byUrl.id}\\?hlc=1&container=raw&skip_autosearch=1$`),
  );
});

test("exportItems: pull drives it, and cancelling ends it", async () => {
  const { stream } = await open(Array.from({ length: 1000 }, (_, i) => ({ title: `t${i}`, content: byId })));
  const reader = stream().getReader();
  const { value } = await reader.read();
  assert.ok(value!.length < 60_000);
  await reader.cancel();
  assert.equal((await reader.read()).done, true);
});

test("withoutLogin: drops URLs with credentials", () => {
  for (const url of ["http://a.example/x?id=1", "https://a.example/guide.xml.gz"])
    assert.equal(withoutLogin(url), url);
  for (const url of [
    "http://a:b@c.example/",
    "http://c.example/?PASSWORD=x",
    "http://c.example/?a=1&username=x",
    "file:///x",
    "nothing",
    "",
  ])
    assert.equal(withoutLogin(url), "", url);
});

test("exportItems: skip_dead leaves out dead channels, but none whose other source may play", async () => {
  const dead: Health = {
    status: "dead",
    availability: 0,
    checkedAt: 1 as UnixSeconds,
    last: undefined,
    problem: "x",
  };
  const { text } = await open(
    [
      { title: "One", content: web("http://a.example/dead") },
      { title: "Two", content: web("http://a.example/two") },
      { title: "Three", content: web("http://a.example/dead3"), autoSearch: true },
      { title: "Three", content: web("http://a.example/three") },
      { title: "Four", content: web("http://a.example/dead4"), autoSearch: true },
      { title: "Four", content: web("http://a.example/dead44") },
    ],
    [],
    ({ content }) => (content.url?.includes("dead") ? dead : undefined),
  );
  const titles = async (options?: Partial<ExportOptions>) =>
    read(await text(options)).entries.map(({ title }) => title);
  assert.equal((await titles()).length, 6);
  assert.deepEqual(await titles({ skipsDead: true }), ["Two", "Three", "Three"]);
  assert.deepEqual(await titles({ skipsDead: true, skipAutoSearch: true }), ["Two", "Three"]);
});

test("exportItems: logos come from the engine, except those of private addresses and those for other engines", async () => {
  const logo = (tvgLogo: string) => ({ title: tvgLogo, content: byId, tvgLogo });
  const own = "http://192.168.1.5:6878/server/api?api_version=3&method=get_channel_icon&id=";
  const { text, ids } = await open([
    logo("https://l.example/1.png"),
    logo("https://l.example/2.png?token=canary"),
    logo("http://192.168.1.9/3.png"),
    logo("http://[fd00::1]/4.png"),
    { title: "none", content: byId },
  ]);
  const logos = async (format: "m3u" | "acestream") =>
    read(await text({ format })).entries.map(({ attributes }) => attributes.get("tvg-logo"));
  const near = ["http://192.168.1.9/3.png", "http://[fd00::1]/4.png", undefined];
  assert.deepEqual(await logos("m3u"), [`${own}${ids[0]}`, `${own}${ids[1]}`, ...near]);
  assert.deepEqual(await logos("acestream"), ["https://l.example/1.png", undefined, ...near]);
});

test("exportItems: writes the groups, guides and attributes that the chosen player reads", async () => {
  const draft = {
    title: "a",
    content: byId,
    tags: ["UK", "News"],
    tvgExtra: ["tvg-chno=7", "catchup=append"],
  };
  const { text } = await open([draft], ["http://g.example/a.xml", "http://g.example/b.xml"]);
  const shape = async (player?: "vlc" | "kodi" | "tivimate" | "jellyfin") => {
    const { header, entries } = read(await text(player && { player }));
    const { attributes } = entries[0]!;
    return [
      header.guides.length,
      attributes.get("group-title"),
      attributes.get("tvg-chno"),
      attributes.get("catchup"),
    ];
  };
  assert.deepEqual(await shape("vlc"), [0, "UK", undefined, undefined]);
  assert.deepEqual(await shape("jellyfin"), [0, "UK", "7", undefined]);
  assert.deepEqual(await shape("kodi"), [1, "UK;News", "7", "append"]);
  for (const player of ["tivimate", undefined] as const)
    assert.deepEqual(await shape(player), [2, "UK;News", "7", "append"]);
});

test("exportItems: a kept channel has the catch-up of this engine instead of its own", async () => {
  const tvgExtra = ["catchup=shift", "catchup-days=9", "tvg-chno=5", "timeshift=3"];
  const { text, ids } = await open([
    { title: "Kept", content: byHash, isLive: 1, tvgExtra },
    { title: "Other", content: byId, isLive: 1, tvgExtra },
  ]);
  const catchUpDays = ({ id }: Item) => (id === ids[0] ? 2 : undefined);
  const [kept = "", other = ""] = (await text({ catchUpDays })).match(/#EXTINF.*/g)!;
  const source = `http://192.168.1.5:6878/catch-up/${ids[0]}.ts?utc={utc}&duration={duration}`;
  assert.ok(
    kept.includes(` tvg-chno="5" catchup="default" catchup-source="${source}" catchup-days="2"`),
    kept,
  );
  assert.ok(!kept.includes("timeshift") && other.includes('catchup="shift" catchup-days="9"'));
  assert.match(await text({ catchUpDays, protocol: "hls" }), /catch-up\/\d+\.m3u8\?utc=/);
  assert.doesNotMatch(await text({ catchUpDays, format: "acestream" }), /catch-up\//);
  assert.doesNotMatch(await text({ catchUpDays, player: "vlc" }), /catchup/);
});
