import assert from "node:assert/strict";
import { test } from "node:test";
import { SluiceError } from "../../src/base/errors.ts";
import { fakeApp } from "./client.ts";

const LAN = { remote: { host: "192.168.1.7", port: 1 }, local: { host: "192.168.1.2", port: 6878 } };

/** An app with a backup of three chunks, and how far it was read. */
function backupApp(failsAt = 9) {
  const seen = { started: 0, chunks: 0, ended: 0 };
  async function* backup() {
    seen.started++;
    try {
      for (let i = 0; i < 3; i++) {
        if (i === failsAt) throw new SluiceError("too_many", "another backup is being downloaded");
        seen.chunks++;
        yield new TextEncoder().encode(`line ${i}\n`);
      }
    } finally {
      seen.ended++;
    }
  }
  const app = fakeApp({ dependencies: { backup } });
  const path = async () => {
    const { token } = (await app.json("/server/api?method=get_api_access_token&api_version=3")).result;
    return `/server/api/get_backup?token=${token}`;
  };
  return { ...app, seen, path };
}

test("get_backup: sends the backup as a file with the date, which no cache stores", async () => {
  const { call, path, seen } = backupApp();
  const response = await call(await path());
  assert.equal(response.status, 200);
  assert.equal(response.headers.get("cache-control"), "no-store");
  assert.match(
    response.headers.get("content-disposition") ?? "",
    /^attachment; filename="sluice-\d{4}-\d\d-\d\d\.backup"/,
  );
  // Only the first chunk is made before the client reads.
  assert.equal(seen.chunks, 1);
  assert.equal(await response.text(), "line 0\nline 1\nline 2\n");
  assert.equal(seen.ended, 1);
});

test("get_backup: a client that disconnects ends the backup, and HEAD starts none", async () => {
  const { call, path, seen } = backupApp();
  const response = await call(await path());
  const reader = response.body!.getReader();
  await reader.read();
  await reader.cancel();
  assert.deepEqual(seen, { started: 1, chunks: 1, ended: 1 });
  const head = await call(await path(), { method: "HEAD" });
  assert.equal(head.headers.get("cache-control"), "no-store");
  assert.equal(seen.started, 1);
});

test("get_backup: refuses other hosts even with the token, pages of other sites, and calls without the token", async () => {
  const { json, path, seen, library } = backupApp();
  const right = await path();
  await library.access.setAllowsIntranet(true);
  const lan = await json(right, { origin: LAN, host: "192.168.1.2:6878" });
  assert.equal(lan.error.code, 0);
  const page = await json(right, { headers: { origin: "https://evil.example" } });
  assert.equal(page.error.code, 0);
  assert.equal((await json("/server/api/get_backup")).error.code, 104);
  assert.equal((await json("/server/api/get_backup?token=wrong-token")).error.code, 105);
  assert.equal(seen.started, 0);
});

test("get_backup: an error before the first chunk is a JSON error, a later one breaks the file off", async () => {
  const early = backupApp(0);
  assert.match((await early.json(await early.path())).error.message, /another backup/);
  const late = backupApp(1);
  const response = await late.call(await late.path());
  await assert.rejects(response.text());
  const none = fakeApp();
  const { token } = (await none.json("/server/api?method=get_api_access_token&api_version=3")).result;
  assert.match((await none.json(`/server/api/get_backup?token=${token}`)).error.message, /store is memory/);
});
