import assert from "node:assert/strict";
import { test } from "node:test";
import { CONTROL_METHODS } from "../../routes/control/control.ts";
import { jsonSchemaOf, shapeOf } from "../../routes/openapi-parts.ts";
import { NO_OWNER } from "../../src/library/contract.ts";
import { type CallValues, controlClient } from "./control-client.ts";
import { fakeDesk, fakeWish } from "./fake-desk.ts";
import { fakeInspector, INFOHASH } from "./fake-inspector.ts";
import { INTERFACE_METHODS } from "./interface-methods.ts";

/** What makes a call succeed, where the required parameters alone do not. */
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
  get_image: { url: "http://x/logo.png" },
  search: { query: "one" },
  broadcast_start: { test_pattern: 1 },
  broadcast_stop: { name: "news" },
  broadcast_get_status: { name: "news" },
};

/** A library with an item, one in the trash, an external playlist and a task, on an engine that knows one film. */
async function prepared() {
  const { inspect } = fakeInspector();
  const players = {
    list: async () => [{ id: "vlc", type: "proxy", protocol: null, name: "VLC", icon: null }] as const,
    open: async () => {},
  };
  const broadcasts = fakeDesk();
  await broadcasts.start(fakeWish("news"));
  const client = controlClient({ inspect, house: { players, deviceId: "d".repeat(40), broadcasts } });
  const { library } = client;
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
  return client;
}

test("CONTROL_METHODS: exactly the interface's, with its flags, and extras that say so", () => {
  const told = CONTROL_METHODS.filter((method) => !method.isExtra).map(({ name, isPublic, isRemote }) => ({
    name,
    isPublic,
    isRemote,
  }));
  const expected = INTERFACE_METHODS.map(({ name, isPublic, isRemote }) => ({ name, isPublic, isRemote }));
  const byName = (a: { name: string }, b: { name: string }) => a.name.localeCompare(b.name);
  assert.deepEqual(told.sort(byName), expected.sort(byName));
  assert.equal(told.length, 38);
  const names = CONTROL_METHODS.map(({ name }) => name);
  assert.equal(new Set(names).size, names.length);
  assert.ok(CONTROL_METHODS.every(({ summary }) => summary.length > 0 && !summary.endsWith(".")));
});

for (const method of CONTROL_METHODS) {
  const { name } = method;
  const required = INTERFACE_METHODS.find((each) => each.name === name)?.required ?? {};
  const values: CallValues = VALUES[name] ?? required;

  test(`${name}: answers its result in both envelopes`, async () => {
    for (const api_version of [3, 2, 1]) {
      const { call, query, ask } = await prepared();
      if (jsonSchemaOf(method.result, "output").format === "binary") {
        const response = await call(`/server/api?${query(name, { ...values, api_version })}`);
        assert.match(response.headers.get("content-type") ?? "", /^image\//);
        continue;
      }
      const { result, error, status } = await ask(name, { ...values, api_version });
      assert.deepEqual([status, error], [200, null]);
      // Version 1 of this one has another shape.
      if (name === "get_media_files" && api_version === 1) continue;
      const parsed = method.result.safeParse(result);
      assert.ok(parsed.success, `${JSON.stringify(result)} ${parsed.error}`);
      assert.deepEqual(parsed.data, result, "the result has members that its schema does not know");
    }
  });

  test(`${name}: a missing and a malformed parameter each have their own error`, async () => {
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
