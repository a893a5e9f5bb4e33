import assert from "node:assert/strict";
import { test } from "node:test";
import type { Context } from "hono";
import { answerRange } from "../../routes/range.ts";
import { base64, filmTorrent } from "../engine/fake-engine.ts";
import { type Call, fakeApp } from "./client.ts";

const film = filmTorrent();
const SIZE = 20_000;
const URL_ = `/files/${film.infohash}/1/long.mkv`;

async function appWithFilm(options: Parameters<typeof fakeApp>[0] = {}) {
  const app = fakeApp(options);
  await app.call("/ace/getstream", {
    method: "POST",
    body: JSON.stringify({ transport_file_data: base64(film.bytes) }),
  });
  return app;
}

const withRange = (range: string, more: Record<string, string> = {}): Call => ({
  headers: { range, ...more },
});

const RANGES: readonly (readonly [
  range: string,
  status: number,
  contentRange: string | null,
  length: number,
])[] = [
  ["bytes=0-0", 206, `bytes 0-0/${SIZE}`, 1],
  ["bytes=0-", 206, `bytes 0-19999/${SIZE}`, SIZE],
  ["bytes=100-199", 206, `bytes 100-199/${SIZE}`, 100],
  ["bytes=19999-", 206, `bytes 19999-19999/${SIZE}`, 1],
  ["bytes=19000-99999", 206, `bytes 19000-19999/${SIZE}`, 1000],
  ["bytes=-500", 206, `bytes 19500-19999/${SIZE}`, 500],
  ["bytes=-99999", 206, `bytes 0-19999/${SIZE}`, SIZE],
  ["bytes=20000-", 416, `bytes */${SIZE}`, 0],
  ["bytes=-0", 416, `bytes */${SIZE}`, 0],
  ["bytes=5-1", 200, null, SIZE],
  ["bytes=0-1,5-6", 200, null, SIZE],
  ["items=0-1", 200, null, SIZE],
  ["bytes=abc", 200, null, SIZE],
  ["bytes=-", 200, null, SIZE],
];

for (const [range, status, contentRange, length] of RANGES) {
  test(`files: Range ${range} answers ${status} with ${length} bytes`, async () => {
    const { call } = await appWithFilm();
    const response = await call(URL_, withRange(range));
    assert.equal(response.status, status);
    assert.equal(response.headers.get("content-range"), contentRange);
    const body = new Uint8Array(await response.arrayBuffer());
    assert.equal(body.length, length);
    assert.equal(response.headers.get("content-length"), status === 416 ? null : String(length));
    const start = Number(/bytes (\d+)-/.exec(contentRange ?? "bytes 0-")?.[1]);
    assert.ok(body.every((byte, i) => byte === ((start + i) & 0xff)));
  });
}

test("files: the whole file, with type, tag and length", async () => {
  const { call } = await appWithFilm();
  const response = await call(URL_);
  assert.equal(response.status, 200);
  assert.equal(response.headers.get("accept-ranges"), "bytes");
  assert.equal(response.headers.get("content-length"), String(SIZE));
  assert.equal(response.headers.get("content-type"), "video/mp4");
  assert.equal(response.headers.get("etag"), `"${film.infohash}-1"`);
  await response.body?.cancel();
});

test("files: HEAD returns the same headers and reads nothing", async () => {
  const { call, transfers } = await appWithFilm();
  const response = await call(URL_, { method: "HEAD", headers: { range: "bytes=0-9" } });
  assert.deepEqual([response.status, response.headers.get("content-length")], [206, "10"]);
  assert.equal(await response.text(), "");
  assert.equal(transfers.opened[0]!.openRanges.length, 0);
});

test("files: If-Range with the tag returns the range, else the whole file; If-None-Match answers 304", async () => {
  const { call } = await appWithFilm();
  const tag = `"${film.infohash}-1"`;
  const part = await call(URL_, withRange("bytes=0-9", { "if-range": tag }));
  const whole = await call(URL_, withRange("bytes=0-9", { "if-range": '"other"' }));
  assert.deepEqual([part.status, whole.status], [206, 200]);
  await part.body?.cancel();
  await whole.body?.cancel();
  assert.equal((await call(URL_, { headers: { "if-none-match": tag } })).status, 304);
});

test("files: the name in the URL is ignored", async () => {
  const { call } = await appWithFilm();
  for (const path of [`/files/${film.infohash}/1`, `/files/${film.infohash}/1/a%2Fb%20c/d.mkv`]) {
    const response = await call(path, withRange("bytes=0-1"));
    assert.equal(response.status, 206, path);
    await response.body?.cancel();
  }
});

test("files: an invalid index or infohash is refused", async () => {
  const { call } = await appWithFilm();
  assert.equal((await call(`/files/${film.infohash}/9/x`)).status, 404);
  assert.equal((await call(`/files/${film.infohash}/x/x`)).status, 404);
  assert.equal((await call("/files/zz/0/x")).status, 400);
});

test("files: untrusted content never runs as a page of the engine", async () => {
  const app = await appWithFilm();
  const transfer = app.transfers.opened[0]!;
  transfer.bringFiles(
    ["text/html", "image/svg+xml", "text/plain", "application/javascript"].map((mime) => ({
      name: "x",
      size: 1,
      mime,
    })),
  );
  const types = await Promise.all(
    [0, 1, 2, 3].map(async (index) => {
      const response = await app.call(`/files/${film.infohash}/${index}/x`, { method: "HEAD" });
      assert.equal(response.headers.get("x-content-type-options"), "nosniff");
      assert.match(response.headers.get("content-security-policy")!, /^sandbox/);
      return response.headers.get("content-type");
    }),
  );
  const neutral = "application/octet-stream";
  assert.deepEqual(types, [neutral, neutral, "text/plain", neutral]);
});

test("files: an unknown infohash is an error", async () => {
  const app = fakeApp({ hasData: false });
  const response = app.call(URL_);
  await app.clock.advance(30_000);
  assert.equal((await response).status, 500);
  assert.match(await (await response).text(), /^download not found/);
});

test("answerRange: a huge number is unsatisfiable, not invalid", () => {
  const answer = (range: string, size: number) => {
    const req = { method: "GET", header: (name: string) => (name === "range" ? range : undefined) };
    return answerRange({ req } as unknown as Context, size);
  };
  assert.equal(answer(`bytes=${"9".repeat(400)}-`, 10).status, 416);
  assert.deepEqual(answer(`bytes=0-${"9".repeat(400)}`, 10).range, { start: 0, end: 10 });
  assert.equal(answer("bytes=0-0", 0).status, 416);
});

test("files: download=1 makes browsers save the file under its own name", async () => {
  const { call } = await appWithFilm();
  const named = await call(`${URL_}?download=1`, { method: "HEAD" });
  const forms = `attachment; filename="long.mkv"; filename*=UTF-8''long.mkv`;
  assert.equal(named.headers.get("content-disposition"), forms);
  assert.equal((await call(URL_, { method: "HEAD" })).headers.get("content-disposition"), null);
});
