import assert from "node:assert/strict";
import { test } from "node:test";
import { encodeUtf8 } from "../../src/base/utf8.ts";
import { FAKE_TOKEN } from "../library/fake-library.ts";
import { fakeApp } from "./client.ts";
import { controlClient } from "./control-client.ts";

const FORM = { "content-type": "application/x-www-form-urlencoded" };

test("control methods: served at /server/api and /service/api, with and without a slash, by GET, HEAD and POST", async () => {
  const app = fakeApp();
  for (const path of ["/server/api", "/server/api/", "/service/api", "/service/api/"]) {
    for (const method of ["GET", "POST"]) {
      const { result, error } = await app.json(`${path}?method=get_status`, { method });
      assert.equal(error, null);
      assert.equal(result.playlist_loaded, true);
    }
    assert.equal((await app.call(`${path}?method=get_status`, { method: "HEAD" })).status, 200);
  }
});

test("control responses: JSON with spaces, status 200, nosniff, no-store", async () => {
  const app = fakeApp();
  for (const method of ["get_status", "dance"]) {
    const response = await app.call(`/server/api?api_version=3&method=${method}`);
    assert.equal(response.status, 200);
    assert.equal(response.headers.get("content-type"), "application/json");
    assert.equal(response.headers.get("x-content-type-options"), "nosniff");
    assert.equal(response.headers.get("cache-control"), "no-store");
    assert.match(await response.text(), /^\{"result": (null|\{.*\}), "error": (null|\{.*\})\}$/);
  }
});

test("api_version: errors are strings if absent or 1, objects for 2, 3 and later; also in a form", async () => {
  const app = fakeApp();
  const text = "missing method: add method=…; see /docs";
  for (const version of ["", "api_version=1", "api_version=", "api_version=x", "api_version=0"])
    assert.equal((await app.json(`/server/api?${version}`)).error, text, version);
  for (const version of [2, 3, 4])
    assert.deepEqual((await app.json(`/server/api?api_version=${version}`)).error, {
      message: text,
      code: 100,
    });
  const body = "api_version=3";
  const posted = await app.json("/server/api", { method: "POST", headers: FORM, body });
  assert.deepEqual(posted.error, { message: text, code: 100 });
});

const ERRORS: readonly (readonly [what: string, query: string, message: string, code: number])[] = [
  ["no method", "", "missing method: add method=…; see /docs", 100],
  ["an empty method", "method=", "missing method: add method=…; see /docs", 100],
  ["a typo", "method=get_statsu", "unknown method: get_statsu; did you mean get_status? see /docs", 101],
  ["a name like no method", "method=dance", "unknown method: dance; see /docs", 101],
  ["a property of every object", "method=constructor", "unknown method: constructor; see /docs", 101],
  ["a long name", `method=${"q".repeat(5000)}`, `unknown method: ${"q".repeat(60)}…; see /docs`, 101],
  ["a missing parameter", "method=analyze_content", "missing parameter: query: expected text", 102],
  [
    "a malformed parameter",
    "method=get_content_id&playlist_item_id=one",
    'bad parameter: playlist_item_id: expected a whole number, got "one"',
    103,
  ],
  [
    "no token",
    "method=set_allow_remote_access&value=1",
    "access token required: get one with get_api_access_token",
    104,
  ],
  [
    "a wrong token",
    "method=set_allow_remote_access&value=1&token=0",
    "wrong access token: get a new one with get_api_access_token",
    105,
  ],
];

for (const [what, query, message, code] of ERRORS) {
  test(`control errors: ${what} has its text and number`, async () => {
    const { json } = fakeApp();
    const { result, error } = await json(`/server/api?api_version=3&${query}`);
    assert.deepEqual([result, error], [null, { message, code }]);
    assert.equal((await json(`/server/api?${query}`)).error, message);
  });
}

test("forms: method, token and parameters may be in the body; the query takes precedence", async () => {
  const { json, library } = controlClient();
  const body = `method=set_allow_intranet_access&value=0&token=${FAKE_TOKEN}`;
  assert.equal((await json("/server/api", { method: "POST", headers: FORM, body })).result, "ok");
  assert.equal(library.access.allowsIntranet, false);
  const both = await json("/server/api?value=1", { method: "POST", headers: FORM, body });
  assert.deepEqual([both.result, library.access.allowsIntranet], ["ok", true]);
});

test("forms: multipart/form-data contains fields and files", async () => {
  const { json, library } = controlClient();
  const body = new FormData();
  body.append("method", "playlist_import");
  body.append("token", FAKE_TOKEN);
  body.append("file", new File(["#EXTM3U\n"], "tv.m3u"));
  const { result, error } = await json("/server/api?api_version=3", { method: "POST", body });
  assert.equal(error, null);
  assert.equal(typeof result.task_id, "number");
  assert.equal(library.imported[0]?.text, "#EXTM3U\n");
});

test("forms: a text where a file is expected is refused", async () => {
  const { error } = controlClient();
  assert.deepEqual(await error("playlist_import", { file: "#EXTM3U" }), {
    message: "bad parameter: file: expected a file of a multipart/form-data body, got text",
    code: 103,
  });
});

test("forms: a long text with any characters arrives unchanged", async () => {
  const { json, library } = controlClient();
  const title = "+&=%#?;é😀 ";
  const ids = Array.from({ length: 9_000 }, (_, i) => 1_000_000 + i).join(",");
  const body = new URLSearchParams({ infohash: "a".repeat(40), title: title.trim(), ids, token: FAKE_TOKEN });
  const { result, error } = await json("/server/api/playlist_add_item", { method: "POST", body });
  assert.equal(error, null);
  assert.equal((await library.items.get(result))?.title, title.trim());
});

test("forms: an unknown, an invalid and a too large body have different errors", async () => {
  const { json } = controlClient();
  const post = async (type: string, body: string) =>
    (
      await json("/server/api?api_version=3&method=get_status", {
        method: "POST",
        headers: { "content-type": type },
        body,
      })
    ).error;
  assert.match(
    (await post("application/xml", "<a/>")).message,
    /^bad parameter: content-type: expected multipart/,
  );
  assert.match((await post("multipart/form-data", "x")).message, /^bad parameter: content-type: .*boundary/);
  const broken = await post("multipart/form-data; boundary=b", "x");
  assert.deepEqual(broken, {
    message: "bad parameter: multipart form: expected the boundary (at 0)",
    code: 103,
  });
  assert.equal((await post(FORM["content-type"], `a=${"x".repeat(1_100_000)}`)).code, 322);
  assert.equal((await post(FORM["content-type"], "a&".repeat(3000))).code, 322);
  assert.match((await post("application/json", "{}")).message, /transport_file_data/);
});

test("forms: at most four uploads are read at once, and each releases its slot", async () => {
  const { call } = controlClient();
  const senders: ReadableStreamDefaultController<Uint8Array>[] = [];
  const upload = () =>
    call("/server/api?api_version=3&method=get_status", {
      method: "POST",
      headers: { "content-type": "multipart/form-data; boundary=end" },
      body: new ReadableStream<Uint8Array>({ start: (controller) => void senders.push(controller) }),
      duplex: "half",
    } as RequestInit);
  const finish = (sender: ReadableStreamDefaultController<Uint8Array>) => {
    sender.enqueue(encodeUtf8("--end--\r\n"));
    sender.close();
  };
  const waiting = Array.from({ length: 4 }, upload);
  const { error } = (await (await upload()).json()) as { error: { code: number } };
  assert.equal(error.code, 400);
  for (const sender of senders) finish(sender);
  for (const answer of await Promise.all(waiting))
    assert.equal(((await answer.json()) as { error: null }).error, null);
  const again = upload();
  finish(senders.at(-1)!);
  assert.equal(((await (await again).json()) as { error: null }).error, null);
});

test("forms: the body of a caller that may not call the method is not read", async () => {
  const { call } = controlClient();
  let pulls = 0;
  const body = new ReadableStream<Uint8Array>(
    {
      pull() {
        pulls++;
      },
    },
    { highWaterMark: 0 },
  );
  const response = await call("/server/api?api_version=3&method=playlist_import", {
    method: "POST",
    headers: { ...FORM, origin: "https://evil.example", "sec-fetch-site": "cross-site" },
    body,
    duplex: "half",
  } as RequestInit);
  assert.equal(((await response.json()) as { error: { message: string } }).error.message, "access denied");
  assert.equal(pulls, 0);
});

const REDIRECTS: readonly (readonly [redirect: string, location: string | null])[] = [
  ["/", "/"],
  ["/app/?tab=playlist#top", "/app/?tab=playlist#top"],
  ["//evil.example/", null],
  ["/\\evil.example/", null],
  ["https://evil.example/", null],
  ["javascript:alert(1)", null],
  ["/a\r\nset-cookie: x", null],
  ["", null],
];

test("forms: redirect leads only to a path of the engine, and only after a POST", async () => {
  const { call } = controlClient();
  for (const [redirect, location] of REDIRECTS) {
    const body = new URLSearchParams({ method: "get_status", redirect }).toString();
    const response = await call("/server/api", { method: "POST", headers: FORM, body });
    assert.deepEqual(
      [response.status, response.headers.get("location")],
      location ? [303, location] : [200, null],
    );
    const { search } = new URL(`http://x/?${new URLSearchParams({ method: "get_status", redirect })}`);
    assert.equal((await call(`/server/api${search}`)).status, 200);
  }
  const failed = await call("/server/api", {
    method: "POST",
    headers: FORM,
    body: "method=dance&redirect=/",
  });
  assert.equal(failed.status, 200);
});

test("control methods: unknown parameters are ignored", async () => {
  const { json } = fakeApp();
  const { error } = await json(
    "/server/api?method=get_status&.mp4&__proto__=1&constructor=2&id=x&id=y&%ff=%",
  );
  assert.equal(error, null);
});

test("control methods: a query with too many parameters is refused as JSON", async () => {
  const { json } = fakeApp();
  for (const path of ["/server/api", "/webui/api/service"]) {
    const { status, error } = await json(`${path}?${"a&".repeat(3000)}`);
    assert.deepEqual([status, error], [200, "too large: the request has more than 2000 parameters"]);
  }
});

test("method-paths: /server/api/<method> calls the method; errors are objects unless api_version=1", async () => {
  const { json, call } = controlClient();
  const first = await json("/server/api/get_status");
  assert.deepEqual(first.result, (await json("/server/api?method=get_status&api_version=3")).result);
  assert.deepEqual((await json("/server/api/check_auth")).error.code, 104);
  assert.equal(typeof (await json("/server/api/check_auth?api_version=1")).error, "string");
  assert.equal(
    (await json(`/server/api/check_auth?method=get_status&token=${FAKE_TOKEN}`)).result.method,
    "none",
  );
  assert.equal((await json("/server/api/constructor")).error.code, 101);
  const foreign = { headers: { origin: "https://elsewhere.example" } };
  assert.equal(
    (await call("/server/api/get_status", foreign)).headers.get("access-control-allow-origin"),
    "*",
  );
  assert.match(await (await call("/server/api/playlist_get", foreign)).text(), /access denied/);
});
