import assert from "node:assert/strict";
import { test } from "node:test";
import { CONTROL_SECTIONS } from "../../routes/control/control.ts";
import { createSignedLinks } from "../../routes/http/signed-links.ts";
import { jsonSchemaOf, shapeOf } from "../../routes/openapi-parts.ts";
import type { UnixSeconds } from "../../src/base/time.ts";
import { NO_OWNER } from "../../src/library/contract.ts";
import { type CallValues, controlClient } from "./control-client.ts";
import { fakeBroadcastOptions, fakeBroadcastService } from "./fake-broadcasts.ts";
import { FakeCatchUp } from "./fake-catch-up.ts";
import { fakeDownloads } from "./fake-downloads.ts";
import { fakeInspector, INFOHASH } from "./fake-inspector.ts";
import { fakeRecordings } from "./fake-recordings.ts";
import { INTERFACE_METHODS } from "./interface-methods.ts";

const METHODS = CONTROL_SECTIONS.flatMap(({ methods }) => methods);

/** Parameters that a successful call needs besides the required ones. */
const VALUES: Readonly<Record<string, CallValues>> = {
  open_in_player: { player_id: "vlc", infohash: INFOHASH },
  get_media_files: { infohash: INFOHASH },
  get_content_id: { infohash: INFOHASH },
  get_channel_icon: { id: 1 },
  analyze_content: { query: "sluice:x" },
  parse_m3u_playlist: { url: "http://x/tv.m3u" },
  playlist_add_item: { title: "New", infohash: "4".repeat(40) },
  playlist_restore_item: { owner: NO_OWNER, id: 2 },
  playlist_import: { file: new File(["#EXTM3U\n#EXTINF:-1,A\nhttp://x/a\n"], "a.m3u") },
  sign_in: { email: "viewer@example.org", password: "correct horse" },
  get_public_user_key: {},
  get_playlist_task_status: { task_id: 1 },
  watched_set: {
    infohash: INFOHASH,
    file_index: 0,
    title: "Film",
    link: "item:1",
    position: 60,
    duration: 600,
  },
  cache_delete: { infohash: INFOHASH },
  sign_link: { path: `/live/${INFOHASH}`, seconds: 60 },
  get_piece_map: { infohash: INFOHASH },
  transfer_stop: { infohash: INFOHASH },
  transfer_set_limits: { infohash: INFOHASH, download_limit: 1, upload_limit: 2 },
  download_add: { infohash: INFOHASH, file_indexes: "0" },
  download_pause: { infohash: INFOHASH },
  download_resume: { infohash: INFOHASH },
  download_delete: { infohash: INFOHASH },
  get_image: { url: "http://x/logo.png" },
  search: { query: "one" },
  broadcast_start: { test_pattern: 1 },
  broadcast_stop: { name: "news" },
  broadcast_get_status: { name: "news" },
  relay_start: { link: INFOHASH },
  relay_stop: { infohash: INFOHASH },
  broadcast_get_relay_pass: { name: "news" },
  get_epg_by_item_id: { id: 1 },
  search_epg: { query: "show" },
  epg_source_add: { url: "http://x/guide.xml" },
  epg_source_delete: { id: 1 },
  get_epg_match: { id: 1 },
  set_epg_match: { id: 1, channel: "none" },
  get_channel_sources: { id: 1 },
  set_channel_sources: { id: 1, ids: "1" },
  catch_up_set: { id: 1, value: 1 },
  recording_add: { id: 1 },
  recording_series_add: { title: "Show", id: 1 },
  recording_series_delete: { id: 1 },
  recording_stop: { id: 1 },
  recording_convert: { id: 1 },
  recording_share: { id: 1, value: "1" },
  recording_delete: { id: 1 },
  set_settings: { values: "{}" },
  account_add: { email: "you@example.org", password: "correct horse" },
  account_set_password: { email: "me@example.org", password: "battery staple" },
  account_set_limits: { email: "me@example.org", max_streams: 2, group: "News" },
  account_remove: { email: "me@example.org" },
  aircast_play: { device_id: "tv" },
  aircast_pause: { device_id: "tv" },
  aircast_stop: { device_id: "tv" },
  aircast_seek: { device_id: "tv", value: 1 },
  aircast_set_volume: { device_id: "tv", value: 1 },
  aircast_get_status: { device_id: "tv" },
};

const RELAY = {
  ...{ infohash: INFOHASH, link: INFOHASH, hasPass: false, name: "News", problem: "", isFailed: false },
  ...{ peers: 2, children: 1, behindMs: 800.4, bytesPerSecondDown: 1, bytesPerSecondUp: 1 },
};

/** A library with an item, one in the trash, an external playlist and a task, on an engine that knows one film. */
async function prepared() {
  const { inspect } = fakeInspector();
  const players = {
    list: async () => [{ id: "vlc", type: "proxy", protocol: null, name: "VLC", icon: null }] as const,
    open: async () => {},
    control: async () => {},
    status: async () => ({
      state: "playing" as const,
      volume: 1,
      positionSeconds: 1,
      durationSeconds: undefined,
      title: undefined,
    }),
  };
  const broadcasts = fakeBroadcastService();
  await broadcasts.start(fakeBroadcastOptions("news"));
  const { recordings } = fakeRecordings();
  const times = { start: 0 as UnixSeconds, stop: 1 as UnixSeconds };
  await recordings.add({ itemId: 1, title: "Show", channel: "One", allowPrivateUrls: false, ...times });
  const settings = {
    list: async () => ({ file: "/c.json", needsRestart: false, problem: undefined, settings: [] }),
    change: async () => {},
    restart: () => {},
  };
  const client = controlClient({
    inspect,
    dependencies: {
      players,
      deviceId: "d".repeat(40),
      broadcasts,
      relays: { start: async () => RELAY, stop: async () => {}, list: () => [RELAY] },
      recordings,
      downloads: fakeDownloads(),
      settings,
      restore: { receive: () => assert.fail(), start() {}, outcome: undefined },
      catchUp: new FakeCatchUp(),
      drain: () => {},
      signedLinks: createSignedLinks("k".repeat(32), () => 0),
      backup: async function* () {
        yield new Uint8Array([1]);
      },
    },
  });
  const { library } = client;
  client.transfers.cache = {
    isOwner: true,
    contents: () => [{ infohash: INFOHASH, bytes: 1, lastRead: 0, isOpen: false, isKept: false }],
    removeContents: async () => 1,
  };
  await library.guide.addSource("http://x/guide.xml", { allowPrivateUrls: false });
  const content = { transport: "bt", contentId: null, infohash: INFOHASH, magnet: null, url: null } as const;
  const tvgLogo = "http://x/logo.png";
  await library.items.add({ title: "One", content, tvgLogo });
  await library.items.add({ title: "Two", content });
  await library.items.delete([2]);
  library.web.set(tvgLogo, { mime: "image/png", bytes: new Uint8Array([0x89, 0x50, 0x4e, 0x47]) });
  library.guides.set("http://x/tv.m3u", ["http://x/guide.xml"]);
  await library.externalPlaylists.add(
    {
      type: "content",
      category: "tv",
      name: "list",
      url: "http://x/tv.m3u",
      login: "",
      password: "",
      updateInterval: 3600,
    },
    { updateNow: true, allowPrivateUrls: true },
  );
  await library.externalPlaylists.refreshAll();
  await client.call(`/ace/getstream?infohash=${INFOHASH}`);
  return client;
}

test("METHODS: exactly those of the interface with its flags, and marked extensions", () => {
  const listed = METHODS.filter((method) => !method.isExtra).map(({ name, isPublic, isRemote }) => ({
    name,
    isPublic,
    isRemote,
  }));
  const expected = INTERFACE_METHODS.map(({ name, isPublic, isRemote }) => ({ name, isPublic, isRemote }));
  const byName = (a: { name: string }, b: { name: string }) => a.name.localeCompare(b.name);
  assert.deepEqual(listed.sort(byName), expected.sort(byName));
  assert.equal(listed.length, 38);
  const names = METHODS.map(({ name }) => name);
  assert.equal(new Set(names).size, names.length);
  assert.ok(METHODS.every(({ summary }) => summary.length > 0 && !summary.endsWith(".")));
});

for (const method of METHODS) {
  const { name } = method;
  const required = INTERFACE_METHODS.find((each) => each.name === name)?.required ?? {};
  const values: CallValues = VALUES[name] ?? required;

  test(`${name}: returns its result in both envelopes`, async () => {
    for (const api_version of [3, 2, 1]) {
      const { call, query, ask } = await prepared();
      if (jsonSchemaOf(method.result, "output").format === "binary") {
        const response = await call(`/server/api?${query(name, { ...values, api_version })}`);
        assert.match(response.headers.get("content-type") ?? "", /^(?:image|application\/octet-stream)/);
        continue;
      }
      const { result, error, status } = await ask(name, { ...values, api_version });
      assert.deepEqual([status, error], [200, null]);
      // Version 1 of this method has another shape.
      if (name === "get_media_files" && api_version === 1) continue;
      const parsed = method.result.safeParse(result);
      assert.ok(parsed.success, `${JSON.stringify(result)} ${parsed.error}`);
      assert.deepEqual(parsed.data, result, "the result has members that its schema does not know");
    }
  });

  test(`${name}: a missing and a malformed parameter have different errors`, async () => {
    const { error, ask, library } = await prepared();
    for (const missing of Object.keys(required)) {
      const rest = Object.fromEntries(Object.entries(values).filter(([key]) => key !== missing));
      const { message, code } = await error(name, rest);
      assert.equal(code, 102, `${missing}: ${message}`);
      assert.ok(message.startsWith(`missing parameter: ${missing}: expected `), message);
    }
    for (const [key, schema] of Object.entries(shapeOf(method.params))) {
      const { type, enum: words } = jsonSchemaOf(schema, "input");
      if (type !== "integer" && words === undefined) continue;
      const { message, code } = await error(name, { ...values, [key]: "x y" });
      assert.equal(code, 103, `${key}: ${message}`);
      assert.ok(message.startsWith(`bad parameter: ${key}: expected `), message);
      const old = await ask(name, { ...values, [key]: "x y", api_version: 1 });
      assert.equal(old.error, message);
    }
    assert.equal((await library.items.query({})).total, 1, "nothing was changed");
  });

  test(`${name}: ${method.isPublic ? "needs no token" : "needs the token"}`, async () => {
    const { ask } = await prepared();
    const none = await ask(name, { ...(method.isPublic ? { api_version: 2 } : values), token: "" }).catch(
      () => null,
    );
    const wrong = await ask(name, { ...values, token: "0".repeat(64) }).catch(() => null);
    if (method.isPublic) {
      for (const answer of [none, wrong]) assert.ok(![104, 105].includes(answer?.error?.code));
    } else {
      assert.deepEqual([none?.error.code, wrong?.error.code], [104, 105]);
    }
  });
}
