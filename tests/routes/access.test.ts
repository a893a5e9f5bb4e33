import assert from "node:assert/strict";
import { test } from "node:test";
import { clientNetworkOf } from "../../routes/http/access.ts";
import type { Library } from "../../src/library/library.ts";
import type { RequestOrigin } from "../../src/runtime/contract.ts";
import { filmTorrent } from "../engine/fake-engine.ts";
import { fakeApp, LOCAL } from "./client.ts";

const VERSION = "/webui/api/service?method=get_version";

const SIX = { remote: { host: "fe80::7", port: 1 }, local: { host: "fe80::1", port: 6878 } };
const AT_80 = { remote: { host: "192.168.1.7", port: 1 }, local: { host: "192.168.1.2", port: 80 } };

const HOSTS: readonly (readonly [host: string, isOwn: boolean, origin?: RequestOrigin])[] = [
  ["127.0.0.1:6878", true],
  ["localhost:6878", true],
  ["LOCALHOST:6878", true],
  ["nas:6878", true],
  ["NAS.local:6878", true],
  ["tv.example.org:6878", true],
  ["tv.example.org", true],
  ["tv.example.org:443", true],
  ["radio.lan:8080", true],
  ["10.9.8.7:6878", true],
  ["10.9.8.7", true],
  ["[2001:db8::5]:7000", true],
  ["[fe80::1]:6878", true, SIX],
  ["[FE80:0:0::0:1]:6878", true, SIX],
  ["192.168.1.2", true, AT_80],
  ["192.168.1.2:80", true, AT_80],
  ["localhost", true, AT_80],
  ["127.0.0.1", false],
  ["localhost", false],
  ["localhost:80", false],
  ["127.0.0.1:6879", false],
  ["nas", false],
  ["nas:80", false],
  ["nas.lan:6878", false],
  ["radio.lan:6878", false],
  ["radio.lan", false],
  ["127.0.0.2:6878", false],
  ["192.168.1.2:6878", false],
  ["[::1]:6878", false],
  ["[::ffff:127.0.0.1]:6878", true],
  ["[fe80::2]:6878", false, SIX],
  ["[fe80::1]", false, SIX],
  ["[fe80::1%25eth0]:6878", false, SIX],
  ["fe80::1:6878", false, SIX],
  ["192.168.1.2:6878", false, AT_80],
  ["engine:6878", false],
  ["anything.local:6878", false],
  ["evil.example", false],
  ["evil.example:6878", false],
  ["localhost.evil.example:6878", false],
  ["localhost.:6878", false],
  ["127.0.0.1.:6878", false],
  ["127.0.0.1.evil.example:6878", false],
  ["127.0.0.1@evil.example:6878", false],
  ["evil.example@127.0.0.1:6878", false],
  ["127.0.0.1:6878, evil.example", false],
  ["127.0.0.1:6878,127.0.0.1:6878", false],
  ["127.0.0.1:06878", false],
  ["127.0.0.1:+6878", false],
  ["127.0.0.1:0x1ade", false],
  ["127.0.0.1:", false],
  ["0177.1:6878", false],
  ["127.1:6878", false],
  ["2130706433:6878", false],
  ["0x7f000001:6878", false],
  ["0x7f.1:6878", false],
  ["256.1.1.1:6878", false],
  ["0.0.0.0:6878", false],
  ["[::]:6878", false],
  ["[::1", false],
  ["[::1]evil:6878", false],
  ["[localhost]:6878", false],
  ["-nas:6878", false],
  ["nas..local:6878", false],
  ["", false],
  ["a b", false],
];

for (const [host, isOwn, origin = LOCAL] of HOSTS) {
  test(`access: Host "${host}" at ${origin.local.host} is ${isOwn ? "answered" : "refused"}`, async () => {
    const dependencies = {
      allowedHosts: ["tv.example.org", "radio.lan:8080", "10.9.8.7", "2001:db8::5"],
      access: { ownNames: ["nas", "nas.local"] },
    };
    assert.equal((await fakeApp({ dependencies }).call(VERSION, { host, origin })).status, isOwn ? 200 : 421);
  });
}

test("access: an unknown Host is refused on every path and method; the URL of the request does not matter", async () => {
  const { call } = fakeApp();
  for (const method of ["GET", "HEAD", "POST", "OPTIONS"]) {
    const response = await call("/ace/getstream", { method, host: "evil.example" });
    assert.equal(response.status, 421, method);
  }
});

test("access: the error for an unknown Host says what to do, and repeats only a well-formed host", async () => {
  const { call } = fakeApp();
  const named = await (await call(VERSION, { host: "tv.lan:6878" })).text();
  assert.match(named, /use http:\/\/127\.0\.0\.1:6878\/, or start the engine with --allowed-hosts tv\.lan\n/);
  const broken = await (await call(VERSION, { host: "<b>" })).text();
  assert.equal(broken, "this engine does not answer to that address: use http://127.0.0.1:6878/\n");
});

const NETWORKS: RequestOrigin["networks"] = [
  { host: "127.0.0.1", bits: 8 },
  { host: "192.168.1.2", bits: 24 },
  { host: "10.0.0.2", bits: 30 },
  { host: "203.0.113.9", bits: 32 },
  { host: "2001:db8:1:2::9", bits: 64 },
  { host: "2001:db8:1:2::a", bits: 128 },
  { host: "172.17.0.2", bits: 16 },
];

const ASKERS: readonly (readonly [remote: string, local: string, asker: string])[] = [
  ["127.0.0.1", "127.0.0.1", "local"],
  ["127.9.9.9", "127.0.0.1", "local"],
  ["::1", "::1", "local"],
  ["192.168.1.2", "192.168.1.2", "local"],
  ["10.0.0.2", "192.168.1.2", "local"],
  ["2001:db8:1:2::9", "2001:db8:1:2::9", "local"],
  ["192.168.1.7", "192.168.1.2", "intranet"],
  ["10.0.0.1", "10.0.0.2", "intranet"],
  ["10.0.0.4", "10.0.0.2", "internet"],
  ["172.17.200.1", "172.17.0.2", "intranet"],
  ["169.254.3.4", "169.254.3.5", "intranet"],
  ["169.254.3.4", "192.168.1.2", "intranet"],
  ["fe80::1", "fe80::2", "intranet"],
  ["febf::1", "fe80::2", "intranet"],
  ["fec0::1", "fe80::2", "internet"],
  ["fd00::1", "fd00::2", "intranet"],
  ["fd00:0:0:1::1", "fd00::2", "internet"],
  ["100.64.0.1", "100.64.0.2", "intranet"],
  ["2001:db8:1:2::5", "2001:db8:1:2::9", "intranet"],
  ["2001:db8:1:2::5", "2001:db8:1:2::a", "internet"],
  ["2001:db8:1:3::5", "2001:db8:1:2::9", "internet"],
  ["203.0.113.5", "203.0.113.9", "internet"],
  ["203.0.114.5", "203.0.113.9", "internet"],
  ["192.168.2.7", "192.168.1.2", "internet"],
  ["10.1.2.3", "192.168.1.2", "internet"],
  ["192.168.1.7", "172.17.0.2", "internet"],
  ["8.8.8.8", "192.168.1.2", "internet"],
  // IPv6 addresses that embed an IPv4 address are not treated as that address.
  ["2002:7f00:1::1", "192.168.1.2", "internet"],
  ["64:ff9b::7f00:1", "192.168.1.2", "internet"],
  ["::7f00:1", "192.168.1.2", "internet"],
  ["7f00::1", "192.168.1.2", "internet"],
  ["::", "192.168.1.2", "internet"],
];

for (const [remote, local, asker] of ASKERS) {
  test(`clientNetworkOf: ${remote} at ${local} is ${asker}`, async () => {
    const origin = {
      remote: { host: remote, port: 1 },
      local: { host: local, port: 6878 },
      networks: NETWORKS,
    };
    assert.equal(clientNetworkOf(origin), asker);
    const host = local.includes(":") ? `[${local}]:6878` : `${local}:6878`;
    const headers = { "x-forwarded-for": "127.0.0.1", forwarded: "for=127.0.0.1", "x-real-ip": "127.0.0.1" };
    const response = await fakeApp().call(VERSION, { origin, host, headers });
    assert.equal(response.status, asker === "internet" ? 403 : 200);
  });
}

test("clientNetworkOf: without a known prefix the subnet is /24 or /64; settings add networks", () => {
  const at = (remote: string, local: string) => ({
    remote: { host: remote, port: 1 },
    local: { host: local, port: 6878 },
  });
  assert.equal(clientNetworkOf(at("203.0.113.5", "203.0.113.9")), "intranet");
  assert.equal(clientNetworkOf(at("203.0.112.5", "203.0.113.9")), "internet");
  assert.equal(clientNetworkOf(at("2001:db8::5", "2001:db8::1:9")), "intranet");
  const neighbours = [{ host: "10.8.0.0", bits: 16 }];
  assert.equal(clientNetworkOf({ ...at("10.8.3.4", "192.168.1.2"), neighbours }), "intranet");
  assert.equal(clientNetworkOf({ ...at("10.9.3.4", "192.168.1.2"), neighbours }), "internet");
});

test("access: the two access switches take effect at once", async () => {
  const access = { allowsIntranet: true, allowsRemote: false };
  const dependencies = { library: { access } as unknown as Library };
  const { call } = fakeApp({ dependencies });
  const from = async (remote: string) => {
    const local = { host: "192.168.1.2", port: 6878 };
    const origin = { remote: { host: remote, port: 1 }, local };
    return (await call(VERSION, { host: "192.168.1.2:6878", origin })).status;
  };
  const all = async () => [await from("192.168.1.2"), await from("192.168.1.7"), await from("8.8.8.8")];
  assert.deepEqual(await all(), [200, 200, 403]);
  access.allowsIntranet = false;
  assert.deepEqual(await all(), [200, 403, 403]);
  access.allowsRemote = true;
  assert.deepEqual(await all(), [200, 403, 200]);
});

const PRIVATE: readonly (readonly [name: string, headers: Record<string, string>, mayReach: boolean])[] = [
  ["a player", {}, true],
  ["the engine's own page", { "sec-fetch-site": "same-origin" }, true],
  ["a pasted address", { "sec-fetch-site": "none" }, true],
  ["the engine's own page by origin", { origin: "http://127.0.0.1:6878" }, true],
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
    assert.deepEqual(
      app.asked.map(({ url, allowPrivate }) => [url, allowPrivate]),
      [["http://192.168.1.1/film.torrent", mayReach]],
    );
  });
}

test("x.pe in a link of another site: private peers are ignored, names are resolved", async () => {
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

test("CORS: media, redirects and session JSON are open to web players; private control methods are not", async () => {
  const app = fakeApp();
  const swarm = `/swarm/${"ab".repeat(20)}`;
  const swarms = [`${swarm}/peerjs/id`, `${swarm}/peerjs/peers`, `${swarm}/peerjs`];
  const media = ["/ace/getstream", "/ace/stat/x/y", "/ace/c/x/0.ts", "/files/x/0/y", "/content/x/y"];
  for (const path of [...media, ...swarms]) {
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
});

test("CORS: a page of another site can read that it is refused, and nothing else", async () => {
  const app = fakeApp();
  const headers = { origin: "https://player.example" };
  const refused = [
    "/server/api?method=playlist_get",
    "/server/api?method=get_api_access_token",
    `/swarm/${"ab".repeat(20)}/other`,
    "/search?query=a",
  ];
  for (const path of refused) {
    const answer = await app.call(path, { headers });
    assert.match(await answer.text(), /access denied/, path);
    assert.equal(answer.headers.get("access-control-allow-origin"), "*", path);
  }
  const remote = await app.call("/ace/getstream", {
    headers,
    origin: { ...LOCAL, remote: { host: "8.8.8.8", port: 1 } },
  });
  assert.deepEqual([remote.status, remote.headers.get("access-control-allow-origin")], [403, "*"]);
});

test("every response has nosniff", async () => {
  const app = fakeApp();
  for (const path of [VERSION, "/ace/getstream", "/nothing", "/ace/stat/x/y"])
    assert.equal((await app.call(path)).headers.get("x-content-type-options"), "nosniff", path);
  assert.equal(
    (await app.call(VERSION, { host: "evil.example" })).headers.get("x-content-type-options"),
    "nosniff",
  );
});
