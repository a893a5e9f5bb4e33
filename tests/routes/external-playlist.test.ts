import assert from "node:assert/strict";
import { test } from "node:test";
import { controlClient } from "./control-client.ts";

const LIST = {
  type: "content",
  category: "tv",
  name: "My list",
  url: "https://lists.example/a.m3u",
  update_interval: 3600,
};

test("external_playlist_add: stores and refreshes the playlist at once, unless update_now is 0", async () => {
  const app = controlClient();
  assert.equal(await app.result("external_playlist_add", { ...LIST, login: "me", password: "p:w d" }), 1);
  assert.equal(await app.result("external_playlist_add", { ...LIST, update_now: 0 }), 2);
  assert.deepEqual(app.library.refreshed, [1]);
  const { playlist } = await app.result("external_playlist_get");
  assert.deepEqual(playlist[0], {
    id: 1,
    ...LIST,
    login: "me",
    password: "p:w d",
    updated_at: 1_780_000_000,
    last_update: 0,
    next_update: 0,
  });
  assert.equal(playlist.length, 2);
});

test("external_playlist_get: returns all playlists or one, also in the shape of api_version 1; the response is never cached", async () => {
  const app = controlClient();
  await app.result("external_playlist_add", LIST);
  const one = await app.result("external_playlist_get", { id: 1 });
  assert.deepEqual(Object.keys(one), ["playlist"]);
  assert.equal(one.playlist[0].name, "My list");
  const old = await app.result("external_playlist_get", { id: 1, api_version: 1 });
  assert.equal(old.name, "My list");
  assert.equal(old.playlist[0].id, 1);
  assert.equal((await app.error("external_playlist_get", { id: 7 })).code, 201);
  const response = await app.call(`/server/api?${app.query("external_playlist_get")}`);
  assert.equal(response.headers.get("cache-control"), "no-store");
});

test("external_playlist_add: the error names the missing or invalid parameter, and repeats no URL or password", async () => {
  const app = controlClient();
  for (const name of Object.keys(LIST)) {
    const { [name as "url"]: _, ...rest } = LIST;
    const error = await app.error("external_playlist_add", rest);
    assert.equal(error.code, 102, name);
    assert.ok(error.message.startsWith(`missing parameter: ${name}: expected`), error.message);
  }
  const faults: [Record<string, string | number>, RegExp][] = [
    [{ type: "other" }, /type: expected content or broadcast, got "other"/],
    [{ url: "file:///etc/passwd" }, /url: .*the engine does not read local files/],
    [{ url: "http//me:secret@x" }, /url: expected an http/],
    [{ update_interval: -1 }, /update_interval: expected seconds/],
    [{ update_interval: "1h" }, /update_interval: expected a whole number/],
    [{ password: "a\nsecret" }, /password: expected at most 128/],
  ];
  for (const [values, message] of faults) {
    const error = await app.error("external_playlist_add", { ...LIST, ...values });
    assert.equal(error.code, 103);
    assert.match(error.message, message);
    assert.ok(!error.message.includes("secret"));
  }
  assert.deepEqual(await app.library.externalPlaylists.list(), []);
});

test("external_playlist_add: only clients on this host may use a URL with a private address", async () => {
  const app = controlClient();
  await app.result("external_playlist_add", LIST);
  assert.equal(app.library.allowedPrivate, true);
  const neighbour = {
    remote: { host: "192.168.1.7", port: 50000 },
    local: { host: "192.168.1.2", port: 6878 },
  };
  const answer = await app.ask("external_playlist_add", LIST, {
    host: "192.168.1.2:6878",
    origin: neighbour,
  });
  assert.equal(answer.result, 2);
  assert.equal(app.library.allowedPrivate, false);
});

test("external_playlist_edit, _update, _delete and update_all_external_playlists: change, refresh and delete playlists", async () => {
  const app = controlClient();
  await app.result("external_playlist_add", { ...LIST, login: "me", password: "old", update_now: 0 });
  const edit = { id: 1, category: "", name: "Other", update_interval: 0 };
  assert.equal(await app.result("external_playlist_edit", edit), "ok");
  const [edited] = (await app.result("external_playlist_get")).playlist;
  assert.equal(edited.name, "Other");
  assert.equal(edited.category, "");
  assert.equal(edited.password, "old");
  await app.result("external_playlist_edit", { ...edit, login: "", password: "" });
  const [cleared] = (await app.result("external_playlist_get")).playlist;
  assert.equal(cleared.password, "");
  assert.equal((await app.error("external_playlist_edit", { id: 1, name: "x" })).code, 102);
  assert.equal(await app.result("external_playlist_update", { id: 1 }), "ok");
  assert.deepEqual(await app.result("update_all_external_playlists"), { task_id: 2 });
  assert.deepEqual(app.library.refreshed, [1, 1]);
  assert.equal(await app.result("external_playlist_delete", { id: 1 }), "ok");
  for (const method of ["external_playlist_update", "external_playlist_delete"])
    assert.equal((await app.error(method, { id: 1 })).code, 201);
});
