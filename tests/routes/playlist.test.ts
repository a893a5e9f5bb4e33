import assert from "node:assert/strict";
import { test } from "node:test";
import { filmTorrent } from "../engine/fake-engine.ts";
import { controlClient, withRealClient } from "./control-client.ts";

const INFOHASH = "a".repeat(40);
const CONTENT_ID = "b".repeat(40);
const OWNER = "_no_owner_";
/** The header of a one-pixel PNG; the engine checks only the header. */
const PNG = new File(
  [
    Uint8Array.from("89504e470d0a1a0a0000000d4948445200000001000000010806000000".match(/../g)!, (pair) =>
      Number.parseInt(pair, 16),
    ),
    new Uint8Array(40),
  ],
  "logo.png",
);

/** The members of an item by type, as in the interface's table. */
const ITEM_MEMBERS: Readonly<Record<string, readonly string[]>> = {
  id: ["number"],
  title: ["string"],
  display_title: ["string", "null"],
  description: ["string"],
  poster: ["string"],
  category: ["string", "null"],
  subcategory: ["string"],
  tags: ["list"],
  content_id: ["string", "null"],
  infohash: ["string"],
  url: ["string", "null"],
  content_type: ["string"],
  transport_type: ["string"],
  is_live: ["number"],
  is_favorite: ["boolean"],
  enabled: ["boolean"],
  locked: ["boolean"],
  auto_search: ["boolean"],
  is_deleted: ["boolean"],
  is_multi_vod: ["boolean"],
  is_multi_tfile: ["boolean"],
  is_wrapped_url: ["number"],
  external_playlist_id: ["number"],
  tvg_id: ["string"],
  tvg_name: ["string"],
  tvg_logo: ["string"],
  tvg_chno: ["string", "null"],
  languages: ["list", "null"],
  countries: ["list", "null"],
  created_at: ["number"],
  updated_at: ["number"],
};
const LISTED_MEMBERS = {
  ...ITEM_MEMBERS,
  icons: ["list"],
  hash: ["string"],
  hash_v2: ["string"],
  show_autosearch: ["boolean"],
};

function typeOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "list" : typeof value;
}

function assertMembers(item: Record<string, unknown>, members: Readonly<Record<string, readonly string[]>>) {
  assert.deepEqual(Object.keys(item).sort(), Object.keys(members).sort());
  for (const [name, types] of Object.entries(members))
    assert.ok(types.includes(typeOf(item[name])), `${name}: ${typeOf(item[name])}`);
}

test(
  "playlist_get and playlist_trash_get: items have the members and types of the interface; the trash omits four",
  withRealClient(async (app) => {
    const full = {
      infohash: INFOHASH,
      content_id: CONTENT_ID,
      title: "One",
      tags: '["a","b"]',
      category: "tv",
      is_live: 1,
    };
    const id = await app.result("playlist_add_item", full);
    await app.result("playlist_add_item", { content_id: CONTENT_ID });
    const { playlist, total_items } = await app.result("playlist_get");
    assert.equal(total_items, 2);
    for (const item of playlist) assertMembers(item, LISTED_MEMBERS);
    assert.deepEqual(playlist[0].tags, ["a", "b"]);
    assert.equal(playlist[0].content_type, "live");
    assert.equal(playlist[0].external_playlist_id, -1);
    assert.equal(await app.result("playlist_delete_item", { id }), "ok");
    const { data } = await app.result("playlist_trash_get", { owner: OWNER });
    assert.equal(data.length, 1);
    assertMembers(data[0], ITEM_MEMBERS);
    assert.equal(data[0].is_deleted, true);
  }),
);

test(
  "playlist_add_item: stores the content of each selector",
  withRealClient(async (app) => {
    const magnet = `magnet:?xt=urn:btih:${INFOHASH}&dn=Big%20Film&tr=http://t.example/a`;
    const ways: [Record<string, string>, Record<string, unknown>][] = [
      [{ id: CONTENT_ID.toUpperCase() }, { content_id: CONTENT_ID, transport_type: "bt", title: CONTENT_ID }],
      [
        { infohash: INFOHASH },
        { infohash: INFOHASH, content_id: null, is_live: -1, content_type: "unknown" },
      ],
      [{ magnet }, { infohash: INFOHASH, title: "Big Film" }],
      [
        { magnet: `magnet:?xs=urn:btpk:${"ab".repeat(32)}&s=00&dn=By%20key` },
        { infohash: "", title: "By key", transport_type: "bt" },
      ],
      [
        { url: "http://t.example/My_Film.torrent" },
        { url: "http://t.example/My_Film.torrent", title: "My Film" },
      ],
      [{ hls_manifest_url: "https://h.example/live/one.m3u8" }, { transport_type: "hls", title: "one" }],
      [
        { dash_manifest_url: "https://h.example/a.mpd", title: "D" },
        { transport_type: "dash", title: "D" },
      ],
      [{ video_url: "https://user:secret@h.example/" }, { transport_type: "http", title: "h.example" }],
    ];
    for (const [params, expected] of ways) {
      const id = await app.result("playlist_add_item", params);
      const { playlist } = await app.result("playlist_get", { sort: 0 });
      const item = playlist.find((each: { id: number }) => each.id === id);
      assert.deepEqual({ ...item, ...expected }, item, JSON.stringify(params));
    }
  }),
);

test(
  "playlist_add_item: an uploaded transport file sets title, ids and files, and is stored",
  withRealClient(async (app) => {
    const film = filmTorrent("films");
    const kept: number[] = [];
    Object.defineProperty(app.engine, "inspect", {
      value: {
        async keep(bytes: Uint8Array) {
          kept.push(bytes.length);
          const files = [{ isPlayable: true }, { isPlayable: true }, { isPlayable: false }];
          return { name: "films", infohash: film.infohash, contentId: CONTENT_ID, type: "vod", files };
        },
      },
    });
    await app.result("playlist_add_item", {
      file: new File([film.bytes.slice()], "films.torrent"),
      logo_file: PNG,
    });
    const { playlist } = await app.result("playlist_get");
    const [item] = playlist;
    assert.deepEqual(kept, [film.bytes.length]);
    assert.equal(item.title, "films");
    assert.equal(item.infohash, film.infohash);
    assert.equal(item.content_id, CONTENT_ID);
    assert.equal(item.is_live, 0);
    assert.equal(item.is_multi_vod, true);
    assert.match(item.icons[0].url, /^http:\/\/127\.0\.0\.1:6878\/image\/[0-9a-f]{40}$/);
  }),
);

test(
  "playlist_add_item: refuses missing, conflicting and invalid parameters",
  withRealClient(async (app) => {
    const faults: [Record<string, string | File>, number, RegExp][] = [
      [{ title: "nothing" }, 102, /^missing parameter: expected one of content_id/],
      [
        { infohash: INFOHASH, url: "http://a.example/" },
        103,
        /only one of .*got content_id or infohash and url$/,
      ],
      [{ infohash: "12" }, 103, /infohash: expected 40 hexadecimal digits, got "12"/],
      [{ magnet: "magnet:?dn=x" }, 103, /magnet: expected a magnet link/],
      [{ magnet: "magnet:?xs=urn:btpk:12" }, 103, /magnet: expected a magnet link/],
      [{ video_url: "file:///etc/passwd" }, 103, /video_url: .*the engine does not read local files/],
      [{ hls_manifest_url: "ftp://a:secret@b/" }, 103, /hls_manifest_url: expected an http/],
      [{ infohash: INFOHASH, tags: "a,b" }, 103, /tags: expected a JSON list/],
      [{ infohash: INFOHASH, tags: `["${"x".repeat(129)}"]` }, 103, /tags: expected a JSON list/],
      [
        { infohash: INFOHASH, title: "x".repeat(301) },
        103,
        /title: expected at most 300 characters, got 301/,
      ],
      [{ infohash: INFOHASH, is_live: "2" }, 103, /is_live: expected 0, 1 or -1, got "2"/],
      [{ infohash: INFOHASH, logo_file: new File(["<svg/>"], "a.png") }, 321, /^bad image/],
    ];
    for (const [params, code, message] of faults) {
      const error = await app.error("playlist_add_item", params);
      assert.equal(error.code, code, JSON.stringify(error));
      assert.match(error.message, message);
      assert.ok(!error.message.includes("secret"));
    }
    assert.equal((await app.result("playlist_get")).total_items, 0);
  }),
);

test(
  "playlist_update_item: changes given parameters, clears empty ones, keeps the rest",
  withRealClient(async (app) => {
    const id = await app.result("playlist_add_item", {
      infohash: INFOHASH,
      title: "One",
      poster: "http://p.example/1.png",
      category: "tv",
      tags: '["a"]',
    });
    const change = { id, title: "Two\nlines", is_favorite: 1, auto_search: 1, tags: "[]", poster: "" };
    assert.equal(await app.result("playlist_update_item", { ...change, logo_file: PNG }), true);
    const [item] = (await app.result("playlist_get")).playlist;
    assert.equal(item.title, "Two lines");
    assert.equal(item.is_favorite, true);
    assert.equal(item.auto_search, true);
    assert.deepEqual(item.tags, []);
    assert.equal(item.poster, "");
    assert.equal(item.category, "tv");
    assert.equal(item.icons.length, 1);
    assert.equal((await app.error("playlist_update_item", { id: 99, title: "x" })).code, 200);
  }),
);

test(
  "a poster is any text, but only a web URL becomes an icon",
  withRealClient(async (app) => {
    const id = await app.result("playlist_add_item", { infohash: INFOHASH, poster: "poster.png" });
    const item = async () => (await app.result("playlist_get")).playlist[0];
    assert.deepEqual([(await item()).poster, (await item()).icons], ["poster.png", []]);
    await app.result("playlist_update_item", { id, poster: "javascript:alert(1)" });
    assert.deepEqual([(await item()).poster, (await item()).icons], ["javascript:alert(1)", []]);
    const poster = "http://p.example/1.png";
    await app.result("playlist_update_item", { id, poster });
    assert.deepEqual((await item()).icons, [{ url: poster, type: "poster" }]);
  }),
);

test(
  "use_media_groups: applies to all sources of the channel, locked ones included",
  withRealClient(async (app) => {
    const add = (title: string, digit: string) =>
      app.result("playlist_add_item", { infohash: digit.repeat(40), title });
    const [one, two, locked, other] = [
      await add("News", "1"),
      await add("News", "2"),
      await add("News", "3"),
      await add("Sport", "4"),
    ];
    assert.equal(await app.result("playlist_item_set_locked", { id: locked, value: 1 }), true);
    const values = { id: one, value: 1, use_media_groups: 1 };
    assert.equal(await app.result("playlist_item_set_favorite", values), true);
    const favourites = (await app.result("playlist_get", { is_favorite: 1 })).playlist;
    assert.deepEqual(
      favourites.map((item: { id: number }) => item.id),
      [one, two, locked],
    );
    assert.equal(await app.result("playlist_delete_item", { id: one, use_media_groups: 1 }), "ok");
    const left = (await app.result("playlist_get")).playlist.map((item: { id: number }) => item.id);
    assert.deepEqual(left, [other]);
  }),
);

test(
  "flags: each sets its member, only for the given owner",
  withRealClient(async (app) => {
    const id = await app.result("playlist_add_item", { infohash: INFOHASH });
    const flags: [string, string, unknown][] = [
      ["playlist_item_set_favorite", "is_favorite", true],
      ["playlist_item_set_enabled", "enabled", true],
      ["playlist_item_set_locked", "locked", true],
      ["playlist_item_set_auto_search", "auto_search", "ok"],
    ];
    for (const [method, member, answer] of flags) {
      for (const value of [true, false]) {
        assert.equal(await app.result(method, { id, value: String(value), owner: OWNER }), answer);
        assert.equal((await app.result("playlist_get")).playlist[0][member], value, method);
      }
      assert.equal((await app.error(method, { id, owner: OWNER })).code, 102, "value is needed");
      assert.equal((await app.error(method, { id, value: "2", owner: OWNER })).code, 103);
      assert.equal((await app.error(method, { id, value: 1, owner: "somebody" })).code, 200);
    }
  }),
);

test(
  "calls on several items: apply to all of them, locked ones included",
  withRealClient(async (app) => {
    const ids: number[] = [];
    for (const digit of "123")
      ids.push(await app.result("playlist_add_item", { infohash: digit.repeat(40) }));
    await app.result("playlist_item_set_locked", { id: ids[0]!, value: 1 });
    assert.equal(await app.result("playlist_items_set_enabled", { ids: ids.join(), value: 0 }), true);
    const disabled = (await app.result("playlist_get")).playlist.map(
      (item: { enabled: boolean }) => item.enabled,
    );
    assert.deepEqual(disabled, [false, false, false]);
    const foreign = await app.error("playlist_items_set_enabled", {
      ids: ids.join(),
      value: 1,
      owner: "other",
    });
    assert.equal(foreign.code, 200);
    const own = { ids: ids.join(), value: 0, owner: OWNER, use_media_groups: 1 };
    assert.equal(await app.result("playlist_items_set_enabled", own), true, "nothing is left to change");
    assert.equal(await app.result("playlist_delete_items", { owner: OWNER, ids: ids.join() }), "ok");
    assert.equal((await app.result("playlist_get")).total_items, 0);
    assert.equal((await app.error("playlist_delete_items", { owner: OWNER })).code, 102);
    assert.equal((await app.error("playlist_delete_items", { owner: OWNER, ids: "1,x" })).code, 103);
  }),
);

test(
  "trash: restores by owner and id, clears permanently; clear deletes locked items too",
  withRealClient(async (app) => {
    const [one, two] = [
      await app.result("playlist_add_item", { infohash: "1".repeat(40) }),
      await app.result("playlist_add_item", { infohash: "2".repeat(40) }),
    ];
    await app.result("playlist_delete_items", { owner: OWNER, ids: `${one},${two}` });
    assert.equal((await app.error("playlist_restore_item", { id: one })).code, 102);
    assert.equal((await app.error("playlist_restore_item", { id: one, owner: "other" })).code, 200);
    assert.equal(await app.result("playlist_restore_item", { id: one, owner: OWNER }), "ok");
    assert.equal(await app.result("playlist_trash_clear"), "ok");
    assert.deepEqual((await app.result("playlist_trash_get", { owner: OWNER })).data, []);
    await app.result("playlist_item_set_locked", { id: one, value: 1 });
    assert.equal((await app.error("playlist_clear")).code, 102);
    assert.equal(await app.result("playlist_clear", { owner: OWNER }), "ok");
    assert.equal((await app.result("playlist_get")).total_items, 0);
  }),
);

test(
  "playlist_get: filters, sorts and pages as deployed clients expect",
  withRealClient(async (app) => {
    for (const [title, category, subcategory] of [
      ["b news", "tv", "news"],
      ["a film", "movies", ""],
      ["c news", "tv", "sport"],
    ] as const)
      await app.result("playlist_add_item", { infohash: INFOHASH, title, category, subcategory });
    const titles = async (values: Record<string, string | number>) => {
      const { playlist } = await app.result("playlist_get", values);
      return playlist.map((item: { title: string }) => item.title).join();
    };
    assert.equal(await titles({}), "b news,a film,c news");
    assert.equal(await titles({ sort: 1 }), "a film,b news,c news");
    assert.equal(await titles({ name: "NEWS", sort: 1, offset: 1, limit: 25 }), "c news");
    assert.equal(await titles({ category: "tv", subcategory: "sport" }), "c news");
    assert.equal(
      await titles({ is_favorite: 0, owner: OWNER, external_playlist_id: -1 }),
      "b news,a film,c news",
    );
    assert.equal(await titles({ owner: "other" }), "");
    assert.equal(await titles({ offset: 9 }), "");
    assert.equal(await titles({ limit: 0 }), "");
    assert.equal((await app.result("playlist_get", { limit: 0 })).total_items, 3);
    assert.match(
      (await app.error("playlist_get", { limit: -1 })).message,
      /limit: expected a whole number, 0 or more/,
    );
  }),
);

test(
  "playlist_get: returns a list of any length, and a page of the requested length",
  withRealClient(async (app) => {
    const count = 1203;
    for (let i = 0; i < count; i++) await app.library.items.add({ title: `item ${i}`, content: content(i) });
    for (const [values, expected] of [
      [{}, count],
      [{ limit: 700, offset: 2 }, 700],
      [{ limit: 5000, offset: 1000 }, 203],
    ] as const) {
      const { result, error } = await app.ask("playlist_get", values);
      assert.equal(error, null);
      assert.equal(result.total_items, count);
      assert.equal(result.playlist.length, expected);
      assertMembers(result.playlist[0], LISTED_MEMBERS);
    }
    const all = Array.from({ length: count }, (_, i) => i + 1);
    await app.library.items.delete(all);
    assert.equal((await app.result("playlist_trash_get", { owner: OWNER })).data.length, count);
  }),
);

test("playlist_import: imports a file with its name; a URL becomes an external playlist", async () => {
  const app = controlClient();
  const file = new File(["#EXTM3U\n"], "channels.m3u");
  assert.deepEqual(await app.result("playlist_import", { file, category: "tv" }), { task_id: 1 });
  const { text, options } = app.library.imported[0]!;
  assert.equal(text, "#EXTM3U\n");
  assert.deepEqual(options, { name: "channels.m3u", owner: OWNER, category: "tv" });
  const url = "http://lists.example/a.m3u";
  const values = { url, login: "me", password: " pass word " };
  assert.deepEqual(await app.result("playlist_import", values), { task_id: 2 });
  assert.deepEqual(app.library.refreshed, [1]);
  const [kept] = await app.library.externalPlaylists.list();
  assert.equal(kept!.password, " pass word ");
  assert.equal(kept!.updateInterval, 0);
  assert.equal((await app.error("playlist_import")).code, 102);
  assert.equal((await app.error("playlist_import", { file, url })).code, 103);
  const page = new File(["<html>"], "a.m3u");
  assert.equal((await app.error("playlist_import", { file: page })).code, 320);
});

function content(number: number) {
  const infohash = number.toString(16).padStart(40, "0") as never;
  return { transport: "bt", contentId: null, infohash, magnet: null, url: null } as const;
}
