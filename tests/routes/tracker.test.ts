import assert from "node:assert/strict";
import { test } from "node:test";
import type { TrackerService } from "../../routes/http/dependencies.ts";
import type { RequestOrigin } from "../../src/runtime/contract.ts";
import { type Call, fakeApp, LOCAL } from "./client.ts";

const INTERNET: RequestOrigin = { ...LOCAL, remote: { host: "60.0.0.1", port: 5 } };
const QUERY = "info_hash=%124Vx%9a%bc%de%f1%23Eg%89%ab%cd%ef%124Vx%9a&port=1";

/** A tracker that echoes the client and the query. */
function fakeTracker(isOpen: boolean): TrackerService & { readonly asked: string[] } {
  const asked: string[] = [];
  const note =
    (what: string) =>
    (query: string, { host, isForeign }: { host: string; isForeign: boolean }) => {
      asked.push(`${what} ${host} ${isForeign ? "foreign" : "own"} ${query}`);
      return new TextEncoder().encode("de");
    };
  return {
    isOpen,
    asked,
    announce: note("announce"),
    scrape: note("scrape"),
    join: () => ({ received() {}, closed() {} }),
  };
}

const CASES: readonly (readonly [
  what: string,
  isOpen: boolean,
  call: Call,
  expected: "own" | "foreign" | number,
])[] = [
  ["this machine", false, {}, "own"],
  ["the Internet, which may use no other path", false, { origin: INTERNET }, "own"],
  ["an unknown host name", false, { host: "tv.example:6878" }, "foreign"],
  ["an unknown host name, from the Internet", false, { host: "tv.example", origin: INTERNET }, "foreign"],
  ["a page of another site", false, { headers: { origin: "https://evil.example" } }, 403],
  [
    "a page of another site, if the tracker is open",
    true,
    { headers: { origin: "https://evil.example" } },
    "foreign",
  ],
  [
    "a page that rebinds its name",
    true,
    { host: "evil.example", headers: { origin: "http://evil.example" } },
    "foreign",
  ],
  ["another method", true, { method: "POST" }, 404],
];

for (const [what, isOpen, call, expected] of CASES) {
  test(`tracker routes: ${what}: ${expected}`, async () => {
    const tracker = fakeTracker(isOpen);
    const app = fakeApp({ dependencies: { tracker } });
    for (const path of ["announce", "scrape"]) {
      const response = await app.call(`/${path}?${QUERY}`, call);
      if (typeof expected === "number") {
        assert.equal(response.status, expected);
        continue;
      }
      assert.deepEqual([response.status, await response.text()], [200, "de"]);
      const host = call.origin?.remote.host ?? "127.0.0.1";
      assert.equal(tracker.asked.pop(), `${path} ${host} ${expected} ${QUERY}`);
      assert.equal(response.headers.get("access-control-allow-origin"), null);
    }
    assert.deepEqual(tracker.asked, []);
  });
}

test("tracker routes: open no other path, and do not exist without a tracker", async () => {
  const app = fakeApp({ dependencies: { tracker: fakeTracker(true) } });
  for (const path of [
    "/",
    "/announce/",
    "/announcex",
    "/webui/api/service?method=get_version",
    "/server/api",
  ]) {
    assert.equal((await app.call(path, { host: "tv.example" })).status, 421, path);
    assert.equal((await app.call(path, { origin: INTERNET })).status, 403, path);
  }
  const none = fakeApp();
  assert.equal((await none.call("/announce")).status, 404);
  assert.equal((await none.call("/announce", { host: "tv.example" })).status, 421);
  assert.equal((await none.call("/scrape", { origin: INTERNET })).status, 403);
});
