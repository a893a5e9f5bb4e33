import assert from "node:assert/strict";
import { test } from "node:test";
import { mimeOf } from "../../src/base/mime.ts";
import type { ItemContent, ItemDraft } from "../../src/library/contract.ts";
import { logoUrl } from "../../src/library/export.ts";
import { M3uReader } from "../../src/media/m3u.ts";
import { base64, filmTorrent } from "../engine/fake-engine.ts";
import { controlClient, withRealClient } from "./control-client.ts";

const INFOHASH = "a".repeat(40);
const NOTHING = { contentId: null, infohash: null, magnet: null, url: null } as const;
const FOREIGN = { headers: { origin: "https://elsewhere.example" } };

test("/playlist/get?channel_number: the channel that has the number in its list", async () => {
  const app = controlClient();
  const content = { ...NOTHING, transport: "bt", infohash: INFOHASH } as ItemContent;
  for (const tvgExtra of [["tvg-chno=7"], ["tvg-chno=9"], []])
    await app.library.items.add({ title: `Channel ${tvgExtra}`, content, isLive: 1, tvgExtra });
  // Ids are not listed numbers.
  for (const number of ["7", "9", "3", "x"])
    await app.call(`/playlist/get?format=json&channel_number=${number}`);
  assert.deepEqual(
    app.library.exported.map(({ query }) => query.ids),
    [[1], [2], [], []],
  );
});

test("/playlist/get: passes its parameters to the library", async () => {
  const app = controlClient();
  const response = await app.call("/playlist/get");
  assert.equal(response.status, 200);
  assert.equal(response.headers.get("content-type"), "audio/x-mpegurl; charset=utf-8");
  assert.equal(response.headers.get("content-disposition"), null);
  assert.equal(await response.text(), "#EXTM3U\n");
  const query =
    "format=acestream&category=tv&subcategory=news&favorites=1&items=3,5&host=tv.lan&protocol=hls" +
    "&transcode_audio=1&transcode_ac3=0&preferred_audio_language=ENG&skip_autosearch=1&generate_player_id=1";
  await app.call(`/playlist/get?${query}`);
  assert.deepEqual(
    app.library.exported.map(({ catchUpDays, ...options }) => options),
    [
      {
        query: { isEnabled: true, sort: "added" },
        format: "m3u",
        base: "http://127.0.0.1:6878",
        protocol: "http",
        urlParameters: [],
        skipAutoSearch: false,
        generatePlayerId: false,
      },
      {
        query: {
          category: "tv",
          subcategory: "news",
          isFavorite: true,
          ids: [3, 5],
          isEnabled: true,
          sort: "added",
        },
        format: "acestream",
        base: "http://tv.lan:6878",
        protocol: "hls",
        urlParameters: [
          ["transcode_audio", "1"],
          ["transcode_ac3", "0"],
          ["preferred_audio_language", "eng"],
        ],
        skipAutoSearch: true,
        generatePlayerId: true,
      },
    ],
  );
});

test("/tv: the whole list under a short address, in the form of the player that asks or that the address names", async () => {
  const app = controlClient();
  const player = async (path: string, userAgent = "") => {
    const { status } = await app.call(path, { headers: { "user-agent": userAgent } });
    return status === 200 ? app.library.exported.at(-1)!.player : status;
  };
  assert.equal(await player("/tv"), undefined);
  assert.equal(await player("/tv", "VLC/3.0.18 LibVLC/3.0.18"), "vlc");
  assert.equal(await player("/tv", "Kodi/20.1 (X11; Linux x86_64)"), "kodi");
  assert.equal(await player("/tv/jellyfin", "Kodi/20.1"), "jellyfin");
  assert.equal(await player("/tv/plex"), "jellyfin");
  assert.equal(await player("/tv/unknown"), 404);
});

test("/playlist/get: download and HEAD; HEAD reads nothing", async () => {
  const app = controlClient();
  const file = await app.call("/playlist/get?download=1&format=json");
  assert.equal(file.headers.get("content-type"), "application/json");
  assert.equal(file.headers.get("content-disposition"), 'attachment; filename="playlist.json"');
  const head = await app.call("/playlist/get?download=1", { method: "HEAD" });
  assert.equal(head.status, 200);
  assert.equal(head.headers.get("content-disposition"), 'attachment; filename="playlist.m3u"');
  assert.equal(await head.text(), "");
  assert.equal(app.library.exported.length, 1);
});

test("/playlist/get: host accepts only a host with an optional port", async () => {
  const app = controlClient();
  const bases: [string, string][] = [
    ["192.168.1.5", "http://192.168.1.5:6878"],
    ["192.168.1.5:8080", "http://192.168.1.5:8080"],
    ["TV.lan", "http://tv.lan:6878"],
    ["[fe80::1]", "http://[fe80::1]:6878"],
    ["[fe80::1]:80", "http://[fe80::1]:80"],
  ];
  for (const [host, base] of bases) {
    assert.equal((await app.call(`/playlist/get?host=${encodeURIComponent(host)}`)).status, 200, host);
    assert.equal(app.library.exported.at(-1)!.base, base);
  }
  const hosts = [
    "a/b",
    "a b",
    "user@a",
    "a\n#EXTINF",
    "a?b",
    "a#b",
    'a"b',
    "a:1:2",
    "a:port",
    "fe80::1",
    "-a",
    "a\\b",
  ];
  for (const host of hosts) {
    const response = await app.call(`/playlist/get?host=${encodeURIComponent(host)}`);
    assert.equal(response.status, 400, host);
    assert.match(await response.text(), /^bad parameter: host: expected a host, or host:port\n$/);
  }
});

test("/playlist/get: names the invalid parameter", async () => {
  const app = controlClient();
  for (const query of [
    "format=xml",
    "items=1,x",
    "favorites=2",
    "protocol=ftp",
    "preferred_audio_language=%0A",
  ]) {
    const response = await app.call(`/playlist/get?${query}`);
    assert.equal(response.status, query.endsWith("%0A") ? 200 : 400, query);
  }
});

test("/playlist/<id>.m3u: the whole list, or one external playlist", async () => {
  const app = controlClient();
  const settings = { category: "", name: "n", updateInterval: 0, login: "", password: "" };
  const list = { ...settings, type: "content", url: "http://l.example/" } as const;
  await app.library.externalPlaylists.add(list, { updateNow: false, allowPrivateUrls: false });
  assert.equal((await app.call("/playlist/0.m3u?is_favorite=1")).status, 200);
  assert.equal((await app.call("/playlist/1.m3u8?category=tv")).status, 200);
  assert.deepEqual(
    app.library.exported.map(({ query }) => query),
    [
      { isFavorite: true, isEnabled: true, sort: "added" },
      { externalPlaylistId: 1, category: "tv", isEnabled: true, sort: "added" },
    ],
  );
  assert.equal((await app.call("/playlist/2.m3u")).status, 404);
  assert.equal((await app.call("/playlist/x.m3u")).status, 404);
});

test("/playlist, /search and /play: pages of other sites are refused", async () => {
  const app = controlClient();
  const { id } = await app.library.items.add({ title: "x", content: bt() });
  for (const path of ["/playlist/get", "/playlist/0.m3u", "/search?query=x", `/play/0/${id}`]) {
    const response = await app.call(path, FOREIGN);
    assert.equal(response.status, 403, path);
    assert.ok(!(await response.text()).includes(INFOHASH));
  }
  assert.equal(app.library.exported.length, 0);
});

test("/play: an infohash and an item play as getstream does, with its parameters", async () => {
  const app = controlClient();
  const { id } = await app.library.items.add({ title: "x", content: bt() });
  for (const path of [`/play/infohash/${INFOHASH}`, `/play/0/${id}`, `/play/7/${id}.m3u8?hlc=1`]) {
    const response = await app.call(`${path}${path.includes("?") ? "&" : "?"}url=http://evil.example/`);
    assert.equal(response.status, 302, path);
    const target = new RegExp(`^http://127\\.0\\.0\\.1:6878/ace/r/${INFOHASH}/[0-9a-f]{32}$`);
    assert.match(response.headers.get("location")!, target);
  }
  const hls = await app.call(`/play/0/${id}?protocol=hls`);
  assert.match(hls.headers.get("location")!, /\/ace\/m\/.*\.m3u8$/);
  const film = filmTorrent();
  const body = JSON.stringify({ transport_file_data: base64(film.bytes) });
  await app.json("/ace/getstream?format=json", { method: "POST", body });
  const { response } = await app.json(`/play/infohash/${film.infohash}?format=json&pid=tv`);
  assert.equal(response.infohash, film.infohash);
  assert.equal((await app.call(`/play/0/${id}`, { method: "HEAD" })).status, 302);
});

test("/play: with auto search, an item plays the best source of its group; an exported link plays what it names", async () => {
  const app = controlClient();
  const { items } = app.library;
  const { id } = await items.add({ title: "x", content: bt() });
  const other = { ...bt(), infohash: "b".repeat(40) as never };
  await items.add({ title: "x", content: other });
  const played = async (path: string) => (await app.call(path)).headers.get("location")!.split("/")[5];
  assert.equal(await played(`/play/0/${id}`), INFOHASH);
  await items.update(id, { autoSearch: true });
  assert.equal(await played(`/play/0/${id}`), "b".repeat(40));
  assert.equal(await played(`/play/0/${id}?skip_autosearch=1`), INFOHASH);
});

test(
  "/playlist/get: pages, filters by title and sorts; the JSON format counts all matches",
  withRealClient(async (app) => {
    for (const title of ["News b", "Film", "news a", "News c"])
      await app.result("playlist_add_item", { infohash: INFOHASH, title });
    const page = async (query: string) => {
      const response = await app.call(`/playlist/get?format=json&${query}`);
      const list = (await response.json()) as { total_items: number; playlist: { title: string }[] };
      return [list.total_items, ...list.playlist.map(({ title }) => title)];
    };
    assert.deepEqual(await page(""), [4, "News b", "Film", "news a", "News c"]);
    assert.deepEqual(await page("name=news&sort=1&offset=1&limit=1"), [3, "News b"]);
    assert.deepEqual(await page("offset=9"), [4]);
    assert.equal((await app.call("/playlist/get?limit=-1")).status, 400);
  }),
);

test("/play: errors are the same as those of getstream", async () => {
  const app = controlClient();
  const { id } = await app.library.items.add({ title: "x", content: bt() });
  await app.library.items.delete([id]);
  const faults: [string, number, RegExp][] = [
    [`/play/0/${id}`, 404, /^unknown item: there is no item 1\n$/],
    ["/play/0/99", 404, /^unknown item/],
    ["/play/0/x", 404, /^unknown item/],
    ["/play/infohash/12", 400, /expected \/play\/infohash/],
    [`/play/x/${id}`, 404, /^no such address/],
  ];
  for (const [path, status, text] of faults) {
    const response = await app.call(path);
    assert.equal(response.status, status, path);
    assert.match(await response.text(), text);
  }
  const cid = await app.library.items.add({
    title: "y",
    content: { ...NOTHING, transport: "bt", contentId: "c".repeat(40) as never },
  });
  assert.equal((await app.call(`/play/0/${cid.id}`)).status, 302);
});

test("/play: the player does not learn the URL of another server", async () => {
  const app = controlClient();
  const url = "http://me:secret@t.example/film.torrent?key=hidden";
  const { id } = await app.library.items.add({ title: "x", content: { ...NOTHING, transport: "bt", url } });
  app.web.set(url, { status: 200, bytes: new TextEncoder().encode("<html>") });
  const response = await app.call(`/play/0/${id}`);
  assert.equal(response.status, 415);
  assert.deepEqual(
    app.asked.map((asked) => asked.url),
    [url],
  );
  assert.doesNotMatch(await response.text(), /hidden|secret/);
});

test("/play: the request headers that a list sets are sent to its server", async () => {
  const app = controlClient();
  const url = "http://t.example/film.torrent";
  const draft = { title: "x", content: { ...NOTHING, transport: "bt", url } } as const;
  const { id } = await app.library.items.add({ ...draft, httpHeaders: ["user-agent: A: b", "cookie: k=v"] });
  app.web.set(url, { status: 200, bytes: new TextEncoder().encode("<html>") });
  await app.call(`/play/0/${id}`);
  await app.call(`/ace/getstream?url=${url}`);
  const [listed, named] = app.asked;
  assert.equal(listed?.headers?.["user-agent"], "A: b");
  assert.deepEqual(listed?.originHeaders, { cookie: "k=v" });
  assert.deepEqual([named?.headers?.["user-agent"], named?.originHeaders], [undefined, {}]);
});

test("/play?mode=download: redirects to the largest playable file", async () => {
  const app = controlClient();
  const file = (index: number, name: string, size: number, isPlayable: boolean) => ({
    index,
    name,
    size,
    isPlayable,
    mime: mimeOf(name),
  });
  const files = [
    file(0, "a/sample.mkv", 10, true),
    file(1, "a/the film?.mkv", 99, true),
    file(2, "all.iso", 999, false),
  ];
  let transportType = "bt";
  Object.defineProperty(app.engine, "inspect", {
    value: { describe: async () => ({ infohash: INFOHASH, files, transportType }) },
  });
  const response = await app.call(`/play/infohash/${INFOHASH}?mode=download`);
  assert.equal(response.status, 302);
  assert.equal(response.headers.get("location"), `/files/${INFOHASH}/1/the%20film%3F.mkv?download=1`);
  transportType = "hls";
  assert.equal((await app.call(`/play/infohash/${INFOHASH}?mode=download`)).status, 415);
});

test("/image: an uploaded logo with its type, cached forever", async () => {
  const app = controlClient();
  const bytes = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 7]);
  const id = await app.library.images.put(bytes);
  const response = await app.call(`/image/${id}`);
  assert.equal(response.headers.get("content-type"), "image/png");
  assert.equal(response.headers.get("x-content-type-options"), "nosniff");
  assert.match(response.headers.get("cache-control")!, /immutable/);
  assert.equal(response.headers.get("content-length"), "5");
  assert.deepEqual(new Uint8Array(await response.arrayBuffer()), bytes);
  const etag = response.headers.get("etag")!;
  assert.equal((await app.call(`/image/${id}`, { headers: { "if-none-match": etag } })).status, 304);
  assert.equal((await app.call(`/image/${"e".repeat(40)}`)).status, 404);
  for (const path of ["/image/../x", "/image/x", `/image/${id}.png`])
    assert.equal((await app.call(path)).status, 404, path);
});

function bt(): ItemDraft["content"] {
  const content: ItemContent = { ...NOTHING, transport: "bt", infohash: INFOHASH as never };
  return content;
}

const LIST = `#EXTM3U url-tvg="http://guide.example/epg.xml"
#EXTINF:-1 tvg-id="n1" tvg-logo="http://l.example/n.png" group-title="News",News One
acestream://${"c".repeat(40)}
#EXTINF:-1 group-title="Sport",Sport, live
http://other.engine:6878/ace/getstream?infohash=${INFOHASH}&pid=x
#EXTINF:-1,Secret HLS
http://me:secret@tv.example/live/index.m3u8?token=hidden
`;

test(
  "/playlist/get: exports an imported list for players, without secrets",
  withRealClient(async (app) => {
    const { task_id } = await app.result("playlist_import", { file: new File([LIST], "tv.m3u") });
    await app.idle();
    const status = await app.result("get_playlist_task_status", { task_id });
    assert.equal(status.status, "done", status.problem);
    const text = await (await app.call("/playlist/get?protocol=hls&host=10.0.0.9")).text();
    const reader = new M3uReader();
    const entries = [...reader.push(new TextEncoder().encode(text)), ...reader.end()];
    assert.deepEqual(reader.header.guides, ["http://guide.example/epg.xml"]);
    assert.deepEqual(
      entries.map(({ title, url }) => [title, url]),
      [
        ["News One", `http://10.0.0.9:6878/ace/manifest.m3u8?id=${"c".repeat(40)}&hlc=1`],
        ["Sport, live", `http://10.0.0.9:6878/ace/manifest.m3u8?infohash=${INFOHASH}&hlc=1`],
        ["Secret HLS", "http://10.0.0.9:6878/play/0/3?hlc=1&protocol=hls"],
      ],
    );
    assert.equal(entries[0]!.attributes.get("tvg-id"), "n1");
    assert.doesNotMatch(text, /secret|hidden/);
    const json = await (await app.call("/playlist/get?format=json&items=3")).json();
    assert.deepEqual(
      json.playlist.map(({ title }: { title: string }) => title),
      ["Secret HLS"],
    );
    assert.doesNotMatch(JSON.stringify(json), /secret|hidden/);
    await app.result("playlist_item_set_enabled", { id: 1, value: 0 });
    await app.result("playlist_item_set_favorite", { id: 2, value: 1 });
    const engines = await (await app.call("/playlist/get?format=acestream")).text();
    assert.ok(engines.includes(`magnet:?xt=urn:btih:${INFOHASH}`) && !engines.includes("News"));
    const favourites = await (await app.call("/playlist/0.m3u?is_favorite=1")).text();
    assert.ok(favourites.includes("Sport") && !favourites.includes("Secret"));
  }),
);

test(
  "/playlist/<id>.m3u: only the external playlist",
  withRealClient(async (app) => {
    app.server.answers.set("http://l.example/a.m3u", { body: LIST });
    await app.result("playlist_add_item", { infohash: "b".repeat(40), title: "Mine" });
    const values = {
      type: "content",
      category: "tv",
      name: "l",
      url: "http://l.example/a.m3u",
      update_interval: 0,
    };
    const id = await app.result("external_playlist_add", values);
    await app.idle();
    const text = await (await app.call(`/playlist/${id}.m3u`)).text();
    assert.ok(text.includes("Sport, live") && !text.includes("Mine"), text);
    assert.match(text, new RegExp(`/play/${id}/\\d+\\?hlc=1`));
    const { playlist } = await app.result("playlist_get", { external_playlist_id: id });
    assert.equal(playlist.length, 3);
    assert.equal(await app.result("external_playlist_delete", { id }), "ok");
    await app.idle();
    assert.equal((await app.result("playlist_get")).total_items, 1);
    assert.equal((await app.call(`/playlist/${id}.m3u`)).status, 404);
  }),
);

test("a logo of an exported playlist is readable by a player of the network without a token", async () => {
  const { call, library } = controlClient();
  const url = "http://l.example/n.png";
  library.web.set(url, { mime: "image/png", bytes: new Uint8Array([1, 2, 3]) });
  const content: ItemContent = { ...NOTHING, transport: "bt", url: "http://x.example/1.ts" };
  const { id } = await library.items.add({ title: "News", content, tvgLogo: url });
  const origin = {
    remote: { host: "192.168.1.7", port: 5_000 },
    local: { host: "192.168.1.5", port: 6878 },
  };
  const logo = logoUrl(library, (await library.items.get(id))!, "http://192.168.1.5:6878");
  const response = await call(logo, { origin, host: "192.168.1.5:6878" });
  assert.deepEqual([response.status, response.headers.get("content-type")], [200, "image/png"]);
});

test("/playlist/get: player selects the form of the list; an unknown player is an error", async () => {
  const { call, library } = controlClient();
  await call("/playlist/get?player=jellyfin");
  assert.equal(library.exported[0]?.player, "jellyfin");
  assert.equal((await call("/playlist/get?player=winamp")).status, 400);
});
