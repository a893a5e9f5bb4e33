import assert from "node:assert/strict";
import { test } from "node:test";
import { askerOf } from "../../routes/access.ts";
import { filmTorrent } from "../engine/fake-house.ts";
import { fakeApp, LOCAL } from "./client.ts";

const VERSION = "/webui/api/service?method=get_version";

const HOSTS: readonly (readonly [host: string, isOwn: boolean])[] = [
  ["127.0.0.1:6878", true],
  ["127.0.0.1", true],
  ["localhost:6878", true],
  ["LOCALHOST", true],
  ["[::1]:6878", true],
  ["[fe80::1]:6878", true],
  ["192.168.1.20:6878", true],
  ["engine:6878", true],
  ["nas.local", true],
  ["tv.example.org:6878", true],
  ["evil.example", false],
  ["evil.example:6878", false],
  ["localhost.evil.example", false],
  ["127.0.0.1.evil.example", false],
  ["127.0.0.1@evil.example", false],
  ["127.0.0.1, evil.example", false],
  ["0177.1", false],
  ["127.1", false],
  ["2130706433", false],
  ["0x7f000001", false],
  ["256.1.1.1", false],
  ["[::1", false],
  ["[::1]evil", false],
  ["engine.", false],
  ["com.", false],
  ["", false],
  ["a b", false],
];

for (const [host, isOwn] of HOSTS) {
  test(`gate: Host "${host}" is ${isOwn ? "answered" : "refused"}`, async () => {
    const { call } = fakeApp({ house: { allowedHosts: ["TV.example.org"] } });
    assert.equal((await call(VERSION, { host })).status, isOwn ? 200 : 421);
  });
}

test("gate: refuses every path and method, and never by the request's URL", async () => {
  const { call } = fakeApp();
  for (const method of ["GET", "HEAD", "POST", "OPTIONS"]) {
    const response = await call("/ace/getstream", { method, host: "evil.example" });
    assert.equal(response.status, 421, method);
  }
});

const ASKERS: readonly (readonly [remote: string, local: string, asker: string])[] = [
  ["127.0.0.1", "127.0.0.1", "local"],
  ["::1", "::1", "local"],
  ["192.168.1.7", "192.168.1.2", "intranet"],
  ["10.0.0.1", "10.0.0.2", "intranet"],
  ["169.254.3.4", "169.254.3.5", "intranet"],
  ["fe80::1", "fe80::2", "intranet"],
  ["fd00::1", "fd00::2", "intranet"],
  ["100.64.0.1", "100.64.0.2", "intranet"],
  ["2001:db8:1:2::5", "2001:db8:1:2::9", "intranet"],
  ["203.0.113.5", "203.0.113.9", "intranet"],
  ["2001:db8:1:3::5", "2001:db8:1:2::9", "internet"],
  ["203.0.114.5", "203.0.113.9", "internet"],
  ["8.8.8.8", "192.168.1.2", "internet"],
];

for (const [remote, local, asker] of ASKERS) {
  test(`asker: ${remote} at ${local} is ${asker}`, async () => {
    const origin = { remote: { host: remote, port: 1 }, local: { host: local, port: 6878 } };
    assert.equal(askerOf(origin), asker);
    const response = await fakeApp().call(VERSION, { origin, headers: { "x-forwarded-for": "127.0.0.1" } });
    assert.equal(response.status, asker === "internet" ? 403 : 200);
  });
}

const PRIVATE: readonly (readonly [name: string, headers: Record<string, string>, mayReach: boolean])[] = [
  ["a player", {}, true],
  ["our own page", { "sec-fetch-site": "same-origin" }, true],
  ["a pasted address", { "sec-fetch-site": "none" }, true],
  ["our own page by origin", { origin: "http://127.0.0.1:6878" }, true],
  ["another site", { "sec-fetch-site": "cross-site" }, false],
  ["another port of this machine", { "sec-fetch-site": "same-site" }, false],
  ["another origin", { origin: "https://evil.example" }, false],
  ["an opaque origin", { origin: "null" }, false],
  ["a page by its referrer", { referer: "https://evil.example/page" }, false],
];

for (const [name, headers, mayReach] of PRIVATE) {
  test(`url= to private addresses: ${name} ${mayReach ? "may" : "may not"}`, async () => {
    const app = fakeApp();
    await app.call("/ace/getstream?url=http://192.168.1.1/film.torrent", { headers });
    assert.deepEqual(app.asked, [{ url: "http://192.168.1.1/film.torrent", allowPrivate: mayReach }]);
  });
}

test("x.pe of another site's link: private peers are left out, names are looked up", async () => {
  const film = filmTorrent();
  const link = `magnet:?xt=urn:btih:${film.infohash}&x.pe=127.0.0.1:22&x.pe=192.0.2.1:7000&x.pe=8.8.4.4:7001&x.pe=peer.example:7002&x.pe=none.example:1`;
  const peers = async (headers: Record<string, string>) => {
    const app = fakeApp();
    await app.call(`/ace/getstream?magnet=${encodeURIComponent(link)}`, { headers });
    return app.transfers.opened[0]!.content.peers.map(({ host, port }) => `${host}:${port}`);
  };
  assert.ok(!(await peers({ "sec-fetch-site": "cross-site" })).includes("127.0.0.1:22"));
  const own = await peers({});
  assert.ok(own.includes("127.0.0.1:22") && own.includes("203.0.113.7:7002") && own.includes("8.8.4.4:7001"));
});

test("CORS: media, redirects and session JSON are open to web players; control methods are not", async () => {
  const app = fakeApp();
  for (const path of ["/ace/getstream", "/ace/stat/x/y", "/ace/c/x/0.ts", "/files/x/0/y", "/content/x/y"]) {
    const response = await app.call(path, { headers: { origin: "https://player.example" } });
    assert.equal(response.headers.get("access-control-allow-origin"), "*", path);
  }
  const preflight = await app.call("/files/x/0/y", {
    method: "OPTIONS",
    headers: {
      origin: "https://player.example",
      "access-control-request-headers": "range",
      "access-control-request-method": "GET",
    },
  });
  assert.equal(preflight.status, 204);
  assert.match(preflight.headers.get("access-control-allow-headers") ?? "", /range/);
  for (const path of [VERSION, "/server/api?method=get_status"])
    assert.equal(
      (await app.call(path, { headers: { origin: "https://player.example" } })).headers.get(
        "access-control-allow-origin",
      ),
      null,
    );
});

test("every answer says nosniff", async () => {
  const app = fakeApp();
  for (const path of [VERSION, "/ace/getstream", "/nothing", "/ace/stat/x/y"])
    assert.equal((await app.call(path)).headers.get("x-content-type-options"), "nosniff", path);
  assert.equal(
    (await app.call(VERSION, { host: "evil.example" })).headers.get("x-content-type-options"),
    "nosniff",
  );
});

test("get_version: its members, spaced, on both addresses", async () => {
  const app = fakeApp({ house: { platform: "win32" } });
  const text = await (await app.call(VERSION, { origin: LOCAL })).text();
  assert.match(
    text,
    /^\{"result": \{"version": "[\d.]+", "code": \d+, "platform": "win32", .*\}, "error": null\}$/,
  );
  const status = await app.json("/server/api?api_version=3&method=get_status");
  assert.equal(status.result.version.platform, "win32");
  assert.equal((await app.json("/server/api/?method=get_network_connection_status")).result.connected, true);
});

test("control methods: unknown and missing ones are errors, strings before api_version 2 and objects from it", async () => {
  const app = fakeApp();
  assert.equal((await app.json("/server/api?method=dance")).error, "unknown method dance");
  assert.deepEqual((await app.json("/server/api?api_version=3&method=dance")).error, {
    message: "unknown method dance",
    code: 0,
  });
  const bare = await app.json("/webui/api/service");
  assert.deepEqual([bare.status, bare.error], [200, "missing method"]);
  assert.equal((await app.json("/server/api?method=constructor")).error, "unknown method constructor");
});
