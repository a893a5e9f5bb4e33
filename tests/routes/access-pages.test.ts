import assert from "node:assert/strict";
import { test } from "node:test";
import { createApp } from "../../routes/app.ts";
import { createPageRoutes } from "../../routes/page.ts";
import { fakeEngine } from "../engine/fake-engine.ts";
import { fakeLibrary } from "../library/fake-library.ts";
import { fakeApp, LOCAL } from "./client.ts";

const FOREIGN = "https://evil.example";
const LISTED = "https://tv.example";
const CONTROL = "/server/api?api_version=3&method=";

function app() {
  return fakeApp({ dependencies: { library: fakeLibrary(), access: { allowedOrigins: [LISTED] } } });
}

function preflight(path: string, origin: string, more: Record<string, string> = {}) {
  const headers = { origin, "access-control-request-method": "GET", ...more };
  return app().call(path, { method: "OPTIONS", headers });
}

const PREFLIGHTS: readonly (readonly [path: string, origin: string, allowed: string | null])[] = [
  ["/ace/getstream", FOREIGN, "*"],
  ["/files/x/0/y", FOREIGN, "*"],
  [`${CONTROL}get_status`, FOREIGN, "*"],
  [`${CONTROL}playlist_get`, FOREIGN, null],
  [`${CONTROL}playlist_get`, LISTED, LISTED],
  [`${CONTROL}open_in_player`, FOREIGN, null],
  [`${CONTROL}open_in_player`, LISTED, LISTED],
  [`${CONTROL}get_api_access_token`, FOREIGN, null],
  [`${CONTROL}get_api_access_token`, LISTED, null],
  [`${CONTROL}get_api_access_token`, "null", null],
  [`${CONTROL}dance`, LISTED, null],
  [`${CONTROL}playlist_get`, `${LISTED}.evil.example`, null],
  ["/server/api", LISTED, null],
  ["/search?query=a", FOREIGN, null],
  ["/search?query=a", LISTED, null],
  ["/openapi.json", FOREIGN, null],
];

for (const [path, origin, allowed] of PREFLIGHTS) {
  test(`preflight: ${origin} at ${path} is ${allowed === null ? "refused" : "allowed"}`, async () => {
    const answer = await preflight(path, origin);
    assert.equal(answer.headers.get("access-control-allow-origin"), allowed);
    assert.equal(answer.headers.get("access-control-allow-credentials"), null);
    assert.equal(answer.ok, allowed !== null);
  });
}

test("preflight: private network access is allowed for paths that the page may read", async () => {
  const headers = { "access-control-request-private-network": "true" };
  const name = "access-control-allow-private-network";
  assert.equal((await preflight("/ace/getstream", FOREIGN, headers)).headers.get(name), "true");
  assert.equal((await preflight(`${CONTROL}playlist_get`, FOREIGN, headers)).headers.get(name), null);
  assert.equal((await preflight("/ace/getstream", FOREIGN)).headers.get(name), null);
});

test("cross-origin-resource-policy: media are cross-origin, everything else same-origin", async () => {
  const policy = async (path: string) => (await app().call(path)).headers.get("cross-origin-resource-policy");
  assert.equal(await policy("/ace/getstream"), "cross-origin");
  assert.equal(await policy(`${CONTROL}get_status`), "cross-origin");
  assert.equal(await policy(`${CONTROL}get_api_access_token`), "same-origin");
  assert.equal(await policy("/playlist/get"), "same-origin");
  assert.equal(await policy("/nothing"), "same-origin");
});

test("responses with secrets are not stored by caches", async () => {
  for (const method of ["get_api_access_token", "external_playlist_get", "check_auth"])
    assert.equal((await app().call(CONTROL + method)).headers.get("cache-control"), "no-store", method);
});

test("signaling: checks Host and client, and is open only to same-origin pages", async () => {
  const { engine } = fakeEngine();
  const routes = createApp({ engine, version: "1" });
  let joined = 0;
  const handlers = { received() {}, closed() {} };
  const join = () => {
    joined++;
    return handlers;
  };
  const signaling = { assignCode: () => "12345678", join };
  const rooms = { assignId: () => "1", list: () => [], join };
  const viewers = { viewerSharing: "ask", iceServers: [], turnServers: [] } as const;
  const assets = async () => ({});
  const viewerArchive = async () => undefined;
  routes.route(
    "/",
    createPageRoutes({ engine, assets, digest: String, signaling, rooms, viewers, viewerArchive }),
  );
  const acceptWebSocket = (open: (socket: { send(): void; close(): void }) => unknown) => {
    open({ send() {}, close() {} });
    return new Response(null);
  };
  const far = { ...LOCAL, remote: { host: "8.8.8.8", port: 1 } };
  const ask = async (headers: Record<string, string>, origin = LOCAL) => {
    const request = new Request("http://127.0.0.1:6878/app/screens/peerjs?id=1", {
      headers: { host: "127.0.0.1:6878", ...headers },
    });
    return (await routes.fetch(request, { origin, acceptWebSocket } as never)).status;
  };
  assert.equal(await ask({ origin: "http://127.0.0.1:6878" }), 200);
  assert.equal(await ask({ host: "evil.example:6878", origin: "http://evil.example:6878" }), 421);
  assert.equal(await ask({ origin: FOREIGN }), 403);
  assert.equal(await ask({ origin: "null" }), 403);
  assert.equal(await ask({ "sec-fetch-site": "same-site" }), 403);
  assert.equal(await ask({ origin: "http://127.0.0.1:6878" }, far), 403);
  assert.equal(joined, 1);
});
