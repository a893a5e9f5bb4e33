import assert from "node:assert/strict";
import { test } from "node:test";
import type { Player, PlayerCommand, PlayerStatus, Players } from "../../routes/http/dependencies.ts";
import { SluiceError } from "../../src/base/errors.ts";
import { parseInfohash } from "../../src/base/ids.ts";
import type { ItemContent, ItemDraft } from "../../src/library/contract.ts";
import { FAKE_TOKEN } from "../library/fake-library.ts";
import { LOCAL } from "./client.ts";
import { controlClient } from "./control-client.ts";
import { CONTENT_ID, DESCRIPTION, fakeInspector, INFOHASH } from "./fake-inspector.ts";

const FOREIGN = { origin: "https://evil.example", "sec-fetch-site": "cross-site" };
const REMOTE = { ...LOCAL, remote: { host: "127.0.0.2", port: 1 }, local: { host: "127.0.0.1", port: 6878 } };

function client(options: Parameters<typeof controlClient>[0] = {}) {
  const inspector = fakeInspector();
  return { ...controlClient({ inspect: inspector.inspect, ...options }), inspector };
}

function content(part: Partial<ItemContent>): ItemContent {
  return { transport: "bt", contentId: null, infohash: null, magnet: null, url: null, ...part };
}

function draft(part: Partial<ItemDraft> = {}): ItemDraft {
  return { title: "One", content: content({ infohash: INFOHASH }), ...part };
}

test("get_api_access_token: returns the token to this host, but to no page of another site", async () => {
  const { json, library } = client();
  const path = "/server/api?api_version=3&method=get_api_access_token";
  assert.deepEqual((await json(path)).result, { token: await library.access.token() });
  assert.equal((await json(path, { headers: FOREIGN })).error.message, "access denied");
});

test("get_server_settings: returns switches and addresses to callers with the token", async () => {
  const networkUrls = () => ["http://192.168.1.5:6878/"];
  const { json, result, library } = client({ dependencies: { networkUrls } });
  await library.access.setAllowsRemote(true);
  assert.deepEqual(await result("get_server_settings", {}), {
    allow_intranet_access: true,
    allow_remote_access: true,
    addresses: networkUrls(),
  });
  assert.match((await json("/server/api?method=get_server_settings")).error, /access token required/);
});

test("set_allow_remote_access, set_allow_intranet_access: set the switches, and require a value", async () => {
  const { result, error, library } = client();
  assert.equal(await result("set_allow_remote_access", { value: "true" }), "ok");
  assert.equal(await result("set_allow_intranet_access", { value: 0 }), "ok");
  assert.deepEqual([library.access.allowsRemote, library.access.allowsIntranet], [true, false]);
  assert.deepEqual(await error("set_allow_remote_access"), {
    message: "missing parameter: value: expected 1 or 0",
    code: 102,
  });
});

const PLAYERS: readonly Player[] = [
  { id: "vlc", type: "proxy", protocol: null, name: "VLC", icon: null },
  { id: "tv", type: "aircast", protocol: "chromecast", name: "TV", icon: "http://x/i.png" },
];

/** Players that record what they open. */
function fakePlayers() {
  const opened: [id: string, url: string, title: string | undefined][] = [];
  const commands: [id: string, command: PlayerCommand][] = [];
  const status: PlayerStatus = {
    state: "paused",
    volume: 0.5,
    positionSeconds: 61.5,
    durationSeconds: undefined,
    title: "One",
  };
  const players: Players = {
    list: async ({ isLocal }) => (isLocal ? PLAYERS : PLAYERS.slice(1)),
    open: async (id, { url, title }) => void opened.push([id, url, title]),
    control: async (id, command) => void commands.push([id, command]),
    status: async () => status,
  };
  return { opened, commands, players };
}

test("get_available_players: returns the local players, or none", async () => {
  const { players } = fakePlayers();
  const content_id = "any text";
  assert.deepEqual(
    await client({ dependencies: { players } }).result("get_available_players", { content_id }),
    {
      players: PLAYERS,
    },
  );
  assert.deepEqual(await client().result("get_available_players"), { players: [] });
});

test("open_in_player: opens a URL of the engine in a listed player", async () => {
  const { opened, players } = fakePlayers();
  const { result, error, json, library } = client({ dependencies: { players } });
  const { id } = await library.items.add(draft({ content: content({ url: "http://u:secret@x/a.torrent" }) }));
  const url = "http://x/a b.torrent?c=d&e";
  const magnet = `magnet:?xt=urn:btih:${INFOHASH}&dn=a%26b`;
  await result("open_in_player", { player_id: "vlc", content_id: CONTENT_ID, infohash: INFOHASH });
  await result("open_in_player", { player_id: "tv", url, file_index: 2 });
  await result("open_in_player", { player_id: "-1", magnet });
  await result("open_in_player", { magnet });
  await result("open_in_player", { player_id: "vlc", playlist_item_id: id });
  assert.deepEqual(
    opened.map(([player]) => player),
    ["vlc", "tv", "vlc", "vlc", "vlc"],
  );
  const urls = opened.map(([, address]) => new URL(address));
  assert.ok(urls.every(({ origin }) => origin === "http://127.0.0.1:6878"));
  assert.deepEqual(
    [...urls[0]!.searchParams],
    [
      ["content_id", CONTENT_ID],
      ["container", "raw"],
    ],
  );
  assert.deepEqual(
    [...urls[1]!.searchParams],
    [
      ["url", url],
      ["container", "raw"],
      ["_idx", "2"],
    ],
  );
  assert.equal(urls[2]!.searchParams.get("magnet"), magnet);
  assert.equal(urls[4]!.pathname, `/play/0/${id}`);
  assert.equal((await error("open_in_player", { player_id: "vlc" })).code, 300);
  assert.equal((await error("open_in_player", { player_id: "vlc", playlist_item_id: 99 })).code, 200);
  assert.deepEqual(await error("open_in_player", { player_id: "radio", infohash: INFOHASH }), {
    message: "unknown player: radio; available players: vlc, tv",
    code: 202,
  });
  const path = `/server/api?method=open_in_player&player_id=vlc&infohash=${INFOHASH}`;
  assert.equal((await json(path, { headers: FOREIGN })).error, "access denied");
  assert.equal(opened.length, 5);
});

test("get_available_players: tells the players whether the client is on this host", async () => {
  const { players } = fakePlayers();
  const { json } = client({ dependencies: { players } });
  const origin = {
    ...REMOTE,
    remote: { host: "192.168.1.7", port: 1 },
    local: { host: "192.168.1.5", port: 6878 },
  };
  const { result } = await json("/server/api?method=get_available_players", {
    origin,
    host: "192.168.1.5:6878",
  });
  assert.deepEqual(
    result.players.map(({ id }: Player) => id),
    ["tv"],
  );
});

test("aircast_…: commands with checked values, and the status with null for what is unknown", async () => {
  const { commands, players } = fakePlayers();
  const { result, error } = client({ dependencies: { players } });
  for (const method of ["aircast_pause", "aircast_play", "aircast_stop"])
    assert.equal(await result(method, { device_id: "tv" }), "ok");
  await result("aircast_seek", { device_id: "tv", value: "61.5" });
  await result("aircast_set_volume", { device_id: "tv", value: "0.25" });
  assert.deepEqual(
    commands.map(([, command]) => command),
    [
      { kind: "pause" },
      { kind: "play" },
      { kind: "stop" },
      { kind: "seek", seconds: 61.5 },
      { kind: "volume", volume: 0.25 },
    ],
  );
  assert.deepEqual(await result("aircast_get_status", { device_id: "tv" }), {
    status: "paused",
    volume: 0.5,
    position: 61.5,
    duration: null,
    title: "One",
  });
  assert.equal((await error("aircast_seek", { device_id: "tv" })).code, 102);
  for (const value of ["-1", "1e9", "NaN", "2"])
    assert.equal((await error("aircast_set_volume", { device_id: "tv", value })).code, 103);
  assert.equal(commands.length, 5);
});

test("get_media_files: accepts every selector; the first one given counts", async () => {
  const { result, inspector } = client();
  const selectors = [
    { content_id: CONTENT_ID, infohash: INFOHASH },
    { id: CONTENT_ID },
    { infohash: INFOHASH.toUpperCase(), url: "x" },
    { url: "http://x/film.torrent", magnet: "x" },
    { magnet: `magnet:?xt=urn:btih:${INFOHASH}` },
  ];
  for (const selector of selectors)
    assert.equal((await result("get_media_files", selector)).infohash, INFOHASH);
  assert.deepEqual(
    inspector.asked.map(({ what }) => (what as { kind: string }).kind),
    ["content_id", "content_id", "infohash", "url", "magnet"],
  );
});

test("get_media_files: full returns type and size of each file and of the default file, brief only names", async () => {
  const { result } = client();
  const common = { infohash: INFOHASH, type: "vod", transport_type: "bt" };
  const head = { name: "Film", ...common, transport_file_cache_key: null };
  const main = { mime: "video/mp4", size: 1000 };
  const readme = { index: 0, filename: "Film/readme.txt" };
  const sample = { index: 1, filename: "Film/sample.mkv" };
  const film = { index: 2, filename: "Film/film.mp4" };
  assert.deepEqual(await result("get_media_files", { infohash: INFOHASH, mode: "brief" }), {
    ...head,
    files: [readme, sample, film],
    ...main,
  });
  const files = [
    { ...readme, ...common, mime: "text/plain", size: 9000 },
    { ...sample, ...common, mime: "video/x-matroska", size: 10 },
    { ...film, ...common, ...main },
  ];
  assert.deepEqual(await result("get_media_files", { infohash: INFOHASH }), { ...head, files, ...main });
  const { analysis } = await result("get_media_files", { infohash: INFOHASH, analyze_content: 1 });
  const asked = await result("analyze_content", { query: `sluice:?infohash=${INFOHASH}`, title: "Film" });
  assert.deepEqual(analysis, asked);
});

test("get_media_files: expand_wrapper adds the URL of web content, if the call names it", async () => {
  const { inspect } = fakeInspector();
  for (const [transportType, type] of [
    ["hls", "hls"],
    ["wrapper", "http"],
    ["bt", undefined],
  ] as const) {
    const describe = async () => ({ ...DESCRIPTION, transportType });
    const { result } = client({ inspect: { ...inspect, describe } });
    const wrapped = async (selector: object, expand = 1) =>
      (await result("get_media_files", { ...selector, expand_wrapper: expand })).wrapper_data;
    const url = "http://x/live";
    assert.deepEqual(await wrapped({ url }), type && { type, mime: "video/mp4", data: url });
    assert.equal(await wrapped({ url }, 0), undefined);
    assert.equal(await wrapped({ infohash: INFOHASH }), undefined);
  }
});

test("get_media_files: version 1 returns an object keyed by index", async () => {
  const { json } = client();
  const path = `/server/api?method=get_media_files&infohash=${INFOHASH}`;
  assert.deepEqual((await json(`${path}&mode=brief`)).result, { 1: "Film/sample.mkv", 2: "Film/film.mp4" });
  const full = (await json(`${path}&mode=full&api_version=1`)).result;
  assert.deepEqual(full[2], {
    infohash: INFOHASH,
    type: "vod",
    filename: "Film/film.mp4",
    mime: "video/mp4",
    transport_type: "bt",
    index: 2,
    size: 1000,
  });
});

test("get_media_files: dump_transport_file adds the file and its key; a posted file is inspected", async () => {
  const { result, json, inspector } = client();
  const dumped = await result("get_media_files", { infohash: INFOHASH, dump_transport_file: 1 });
  assert.deepEqual([dumped.transport_file_data, dumped.transport_file_cache_key], ["AAH+/w==", CONTENT_ID]);
  const body = JSON.stringify({ transport_file_data: "AAH-_w" });
  const posted = await json("/server/api?method=get_media_files&api_version=2", { method: "POST", body });
  assert.equal(posted.result.name, "Film");
  assert.deepEqual(inspector.asked.at(-1)?.what, {
    kind: "transport_file",
    bytes: new Uint8Array([0, 1, 254, 255]),
  });
});

test("get_media_files: missing, malformed and unknown content have different errors", async () => {
  const { error } = client();
  assert.equal((await error("get_media_files")).code, 300);
  assert.match((await error("get_media_files", { infohash: "xyz" })).message, /infohash: expected 40 hex/);
  assert.equal((await error("get_media_files", { infohash: "3".repeat(40) })).code, 307);
  assert.equal((await error("get_media_files", { infohash: INFOHASH, mode: "all" })).code, 103);
});

test("get_media_files: only clients of this host may name private addresses, and no page of another site", async () => {
  const { json, inspector } = client();
  const path = "/server/api?method=get_media_files&url=http://x/film.torrent";
  const networks = [{ host: "192.168.1.2", bits: 24 }];
  const neighbour = {
    remote: { host: "192.168.1.7", port: 1 },
    local: { host: "192.168.1.2", port: 6878 },
    networks,
  };
  await json(path);
  await json(path, { headers: FOREIGN });
  await json(path, { origin: neighbour, host: "192.168.1.2:6878" });
  await json(path, { origin: REMOTE });
  assert.deepEqual(
    inspector.asked.map(({ options }) => options.allowPrivateUrls),
    [true, false, false, true],
  );
});

test("get_content_id: of an item, an infohash, a URL; items are closed to pages of other sites", async () => {
  const { result, error, json, library } = client();
  const known = await library.items.add(draft({ content: content({ contentId: CONTENT_ID }) }));
  const byHash = await library.items.add(draft());
  const expected = { content_id: CONTENT_ID };
  assert.deepEqual(await result("get_content_id", { playlist_item_id: known.id }), expected);
  assert.deepEqual(await result("get_content_id", { playlist_item_id: byHash.id }), expected);
  assert.deepEqual(await result("get_content_id", { infohash: INFOHASH }), expected);
  assert.deepEqual(await result("get_content_id", { url: "http://x/film.torrent" }), expected);
  assert.equal((await error("get_content_id")).code, 102);
  assert.equal((await error("get_content_id", { playlist_item_id: 99 })).code, 200);
  assert.equal((await error("get_content_id", { infohash: "3".repeat(40) })).code, 306);
  const path = `/server/api?method=get_content_id&playlist_item_id=${known.id}`;
  assert.equal((await json(path, { headers: FOREIGN })).error, "access denied");
  const open = await json(`/server/api?method=get_content_id&infohash=${INFOHASH}`, { headers: FOREIGN });
  assert.deepEqual(open.result, expected);
});

const PNG = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

test("get_channel_icon: the uploaded logo before the fetched one, found by id, name or hash", async () => {
  const { call, library } = client();
  const logo = await library.images.put(PNG);
  const url = "http://x/logo.jpg";
  library.web.set(url, { mime: "image/jpeg", bytes: new Uint8Array([1, 2, 3]) });
  const uploaded = await library.items.add(draft({ logo, tvgLogo: url }));
  const fetched = await library.items.add(draft({ title: "Two", tvgLogo: url, content: content({ url }) }));
  const bare = await library.items.add(draft({ title: "Three" }));
  const gone = await library.items.add(draft({ title: "Four", tvgLogo: "http://x/none.png" }));
  const ask = (query: string) => call(`/server/api?api_version=3&method=get_channel_icon&${query}`);
  const png = await ask(`id=${uploaded.id}`);
  assert.equal(png.headers.get("content-type"), "image/png");
  assert.equal(png.headers.get("x-content-type-options"), "nosniff");
  assert.match(png.headers.get("content-security-policy") ?? "", /default-src 'none'; sandbox/);
  assert.deepEqual(new Uint8Array(await png.arrayBuffer()), PNG);
  for (const query of [
    `id=${fetched.id}`,
    "common_name=tWO",
    `item_hash=${library.items.figures(fetched).hashV2}`,
  ]) {
    const jpeg = await ask(query);
    assert.equal(jpeg.headers.get("content-type"), "image/jpeg", query);
    assert.equal(jpeg.headers.get("content-length"), "3");
  }
  for (const query of [
    `id=${bare.id}`,
    `id=${gone.id}`,
    "id=99",
    "common_name=nobody",
    "item_hash=nothing",
  ]) {
    const none = await ask(query);
    assert.equal(none.status, 404, query);
    assert.deepEqual(await none.json(), {
      result: null,
      error: { message: "unknown item: there is no image", code: 200 },
    });
  }
  assert.equal(((await (await ask("")).json()) as { error: { code: number } }).error.code, 102);
  assert.match(await (await ask("id=x")).text(), /bad parameter: id: expected a whole number/);
});

test("get_image: returns an image of another server, with the token", async () => {
  const { call, library } = client();
  library.web.set("http://x/a.jpg", { mime: "image/jpeg", bytes: new Uint8Array([1]) });
  const path = `/server/api?method=get_image&token=${FAKE_TOKEN}&url=`;
  assert.equal((await call(`${path}http://x/a.jpg`)).headers.get("content-type"), "image/jpeg");
  assert.equal((await call(`${path}http://x/b.jpg`)).status, 404);
  assert.match(
    await (await call("/server/api?method=get_image&url=http://x/a.jpg")).text(),
    /token required/,
  );
});

test("analyze_content: returns the result of the interface, or an error", async () => {
  const { result, error } = client();
  assert.deepEqual(await result("analyze_content", { query: `sluice://?infohash=${INFOHASH}`, title: "T" }), {
    content_type: "transport_file",
    transport_type: "bt",
    content_id: CONTENT_ID,
    infohash: INFOHASH,
    item_url: null,
    title: "T",
    is_live: 0,
    categories: ["movies"],
  });
  assert.deepEqual(await error("analyze_content", { query: "qq" }), { message: "unknown protocol", code: 0 });
});

test("analyze_content_multi: returns results and errors in order, at most 50, a few at a time", async () => {
  const { json, error, inspector } = client();
  const ask = async (queries: readonly string[]) => {
    const params = new URLSearchParams([
      ["method", "analyze_content_multi"],
      ["api_version", "3"],
    ]);
    for (const query of queries) params.append("query", query);
    return json(`/server/api?${params}`);
  };
  const { result } = await ask(["sluice:a", "qq", "http://x/"]);
  assert.equal(result[0].result.title, "Film");
  assert.deepEqual(result[1], { error: { message: "unknown protocol", code: 0 } });
  assert.equal(result[2].result.item_url, "http://x/");
  const many = Array.from({ length: 50 }, (_, i) => `http://x/${i}`);
  const all = (await ask(many)).result as { result: { item_url: string } }[];
  assert.deepEqual(
    all.map((each) => each.result.item_url),
    many,
  );
  assert.equal(inspector.counts.most, 4);
  assert.equal((await ask([...many, "qq"])).error.code, 103);
  assert.equal((await error("analyze_content_multi")).code, 102);
});

test("analyze_deferred_playlist_items: analyzes and stores new items, and keeps edits", async () => {
  const { result, library } = client();
  const { items } = library;
  const film = await items.add(draft({ category: "movies" }));
  const stream = await items.add(
    draft({ content: content({ transport: "hls", url: "http://x/live.m3u8" }) }),
  );
  const done = await items.add(draft({ isLive: 0, fileCount: 1 }));
  const dead = await items.add(draft({ content: content({ infohash: parseInfohash("3".repeat(40))! }) }));
  const answer = await result("analyze_deferred_playlist_items");
  assert.deepEqual(
    answer.map((each: { playlist_item_id: number }) => each.playlist_item_id),
    [film.id, stream.id, dead.id],
  );
  assert.deepEqual(answer[0].result, {
    content_type: "transport_file",
    transport_type: "bt",
    content_id: CONTENT_ID,
    infohash: INFOHASH,
    item_url: null,
    title: "One",
    is_live: 0,
    categories: ["movies"],
  });
  assert.equal(answer[1].result.content_type, "hls");
  assert.deepEqual(answer[2].error, { message: "download not found: no peers", code: 307 });
  const after = (await items.get(film.id))!;
  assert.deepEqual(
    [after.isLive, after.fileCount, after.content.contentId, after.edited, after.updatedAt],
    [0, 2, CONTENT_ID, [], film.updatedAt],
  );
  assert.equal((await items.get(stream.id))!.isLive, 1);
  assert.deepEqual(await items.get(dead.id), dead);
  const named = await result("analyze_deferred_playlist_items", { playlist_item_id: `${done.id},99` });
  assert.equal(named[0].result.infohash, INFOHASH);
  assert.equal(named[1].error.code, 200);
});

test("analyze_deferred_playlist_items: without ids it analyzes 20 items, and eventually all", async () => {
  const { result, library } = client();
  for (let i = 0; i < 25; i++)
    await library.items.add(draft({ content: content({ infohash: parseInfohash("3".repeat(40))! }) }));
  const seen = new Set<number>();
  for (let round = 0; seen.size < 25; round++) {
    assert.ok(round < 200, `only ${[...seen]} had their turn`);
    const ids = (await result("analyze_deferred_playlist_items")).map(
      (each: { playlist_item_id: number }) => each.playlist_item_id,
    );
    assert.equal(new Set(ids).size, 20);
    for (const id of ids) seen.add(id);
  }
});

test("analyze_deferred_playlist_items: use_media_groups adds the other sources of the channel", async () => {
  const { result, library } = client();
  const first = await library.items.add(draft({ isLive: 0, fileCount: 1 }));
  const second = await library.items.add(draft({ isLive: 0, fileCount: 1 }));
  await library.items.add(draft({ title: "Two", isLive: 0, fileCount: 1 }));
  const ids = async (use_media_groups: number) =>
    (await result("analyze_deferred_playlist_items", { playlist_item_id: first.id, use_media_groups })).map(
      (each: { playlist_item_id: number }) => each.playlist_item_id,
    );
  assert.deepEqual(await ids(0), [first.id]);
  assert.deepEqual(await ids(1), [first.id, second.id]);
});

test("parse_m3u_playlist: returns the guides of the playlist, or an error", async () => {
  const { result, error, library } = client();
  library.guides.set("http://x/tv.m3u", ["http://x/guide.xml.gz"]);
  assert.deepEqual(await result("parse_m3u_playlist", { url: "http://x/tv.m3u" }), {
    epg_sources: ["http://x/guide.xml.gz"],
  });
  assert.equal((await error("parse_m3u_playlist", { url: "http://x/none" })).code, 304);
  assert.equal((await error("parse_m3u_playlist")).code, 102);
});

test("get_background_tasks, get_playlist_task_status: list running and failed tasks; ended tasks by id", async () => {
  const { result, error, library } = client();
  const task = {
    category: "content",
    message: "Importing a.m3u: 12 items",
    problem: null,
    done: 12,
    total: null,
    actions: ["reload_playlist"],
    startedAt: library.taskList[0]?.startedAt ?? 0,
    endedAt: null,
  } as unknown as (typeof library.taskList)[number];
  library.taskList.push({ ...task, id: 1, state: "running" }, { ...task, id: 2, state: "done" });
  library.taskList.push({
    ...task,
    id: 3,
    state: "failed",
    problem: "not a playlist",
    category: "broadcast",
  });
  const listed = await result("get_background_tasks");
  assert.deepEqual(listed[0], {
    id: 1,
    msg: "Importing a.m3u: 12 items",
    timeout: 60,
    actions: ["reload_playlist"],
    done: 12,
    total: null,
  });
  assert.deepEqual(
    listed.map((each: { id: number; msg: string }) => [each.id, each.msg]),
    [
      [1, "Importing a.m3u: 12 items"],
      [3, "Importing a.m3u: 12 items: not a playlist"],
    ],
  );
  assert.equal((await result("get_background_tasks", { category: "broadcast" })).length, 1);
  const status = await result("get_playlist_task_status", { task_id: 2 });
  assert.deepEqual([status.task_id, status.status, status.problem], [2, "done", null]);
  assert.equal((await error("get_playlist_task_status", { task_id: 9 })).code, 205);
});

test("control methods: a bug is thrown, not returned to the caller", async () => {
  const { call, library } = client();
  library.guidesOf = () => Promise.reject(new TypeError("a bug"));
  await assert.rejects(call("/server/api?method=parse_m3u_playlist&url=http://x/"), TypeError);
  library.guidesOf = () => Promise.reject(new SluiceError("url_refused", "private"));
  assert.equal((await call("/server/api?method=parse_m3u_playlist&url=http://x/")).status, 200);
});
