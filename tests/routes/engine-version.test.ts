import assert from "node:assert/strict";
import { test } from "node:test";
import { fakeApp } from "./client.ts";

const SERVICE = "/webui/api/service";
const FOREIGN = { origin: "https://evil.example", "sec-fetch-site": "cross-site" };

test("get_version: the same members, with spaces, on both paths", async () => {
  const app = fakeApp({ dependencies: { platform: "win32" } });
  const expected =
    /^\{"result": \{"version": "[\d.]+", "code": \d+, "platform": "win32", .*\}, "error": null\}$/;
  for (const path of [SERVICE, `${SERVICE}/`, "/server/api"])
    assert.match(await (await app.call(`${path}?method=get_version`)).text(), expected, path);
  const status = await app.json("/server/api?api_version=3&method=get_status");
  assert.equal(status.result.version.platform, "win32");
  assert.equal(status.result.version.code, 3_021_100);
});

test("/webui/api/service: missing and unknown methods answer 200 with an error", async () => {
  const { json } = fakeApp();
  const bare = await json(SERVICE);
  assert.deepEqual([bare.status, bare.error], [200, "missing method: add method=…; see /docs"]);
  assert.deepEqual((await json(`${SERVICE}?method=playlist_get&api_version=3`)).error, {
    message: "unknown method: playlist_get; see /docs",
    code: 101,
  });
});

test("/webui/api/service: get_status and get_network_connection_status answer as on /server/api", async () => {
  const app = fakeApp({ dependencies: { hasRemoteContact: () => true } });
  for (const method of ["get_status", "get_network_connection_status"])
    assert.deepEqual(
      (await app.json(`${SERVICE}?method=${method}`)).result,
      (await app.json(`/server/api?method=${method}`)).result,
    );
});

test("get_network_connection_status: true if a remote host has answered or a peer is connected, else false", async () => {
  const connected = async (app: ReturnType<typeof fakeApp>) =>
    (await app.json("/server/api?method=get_network_connection_status")).result.connected;
  assert.equal(await connected(fakeApp({ dependencies: { hasRemoteContact: () => true } })), true);
  assert.equal(await connected(fakeApp({ dependencies: { hasRemoteContact: () => false } })), false);
});

test("device-id and get_public_user_key: only for same-origin pages", async () => {
  const deviceId = "d".repeat(40);
  const app = fakeApp({ dependencies: { deviceId } });
  const version = `${SERVICE}?method=get_version&params=device-id`;
  assert.equal((await app.json(version)).result.device_id, deviceId);
  assert.equal((await app.json(`${SERVICE}?method=get_version`)).result.device_id, undefined);
  assert.equal((await app.json(version, { headers: FOREIGN })).result.device_id, undefined);
  const key = `${SERVICE}?method=get_public_user_key`;
  assert.equal((await app.json(key)).result, deviceId);
  assert.equal((await app.json(key, { headers: FOREIGN })).error, "access denied");
  const keyless = (await fakeApp().json(key)).error;
  assert.match(keyless, /has no identifier/);
});

test("JSONP: wraps only the version, in a plain function name", async () => {
  const { call, json } = fakeApp({ dependencies: { deviceId: "d".repeat(40) } });
  const ask = (query: string) => call(`${SERVICE}?${query}`, { headers: FOREIGN });
  const wrapped = await ask("method=get_version&format=jsonp&callback=jQuery1_2.cb");
  assert.equal(wrapped.headers.get("content-type"), "text/javascript; charset=utf-8");
  assert.equal(wrapped.headers.get("x-content-type-options"), "nosniff");
  assert.match(
    await wrapped.text(),
    /^\/\*\*\/jQuery1_2\.cb\(\{"result": \{"version": .*\}, "error": null\}\);$/,
  );
  for (const query of [
    "method=get_version&format=jsonp&callback=",
    "method=get_version&callback=cb",
    "method=get_status&format=jsonp&callback=cb",
    "method=dance&format=jsonp&callback=cb",
  ])
    assert.equal((await ask(query)).headers.get("content-type"), "application/json", query);
  for (const callback of ["alert(1)//", "a b", "1a", "<script>", "a".repeat(62), "a;b", "é", "a\n"]) {
    const query = new URLSearchParams({ method: "get_version", format: "jsonp", callback });
    assert.match(
      (await json(`${SERVICE}?${query}`)).error,
      /^bad parameter: callback: expected the name of a function/,
    );
  }
});
