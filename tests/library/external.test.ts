import assert from "node:assert/strict";
import { test } from "node:test";
import { SluiceError } from "../../src/base/errors.ts";
import { openMemory } from "../../src/runtime/kv-memory.ts";
import { FakeClock } from "../engine/fake-clock.ts";
import { openExternal } from "./external-parts.ts";
import { ListServer, listOf } from "./list-server.ts";
import { until } from "./until.ts";

const URL_A = "http://lists.example/a.m3u";

test("ExternalPlaylists.add: refreshes at once and lists the playlist", async () => {
  const { server, add, playlists, titles, clock } = await openExternal();
  server.answers.set(URL_A, { body: listOf(["one", "two"]) });
  const id = await add(URL_A, { name: "A", category: "tv" });
  assert.deepEqual(await titles(), ["one", "two"]);
  const now = clock.unixSeconds();
  assert.deepEqual(await playlists.get(id), {
    ...{ id, type: "content", category: "tv", name: "A", url: URL_A, login: "", password: "" },
    ...{ updateInterval: 3600, updatedAt: now, lastUpdate: now, nextUpdate: now + 3600 },
    ...{ problem: null, itemCount: 2 },
  });
  assert.deepEqual(
    (await playlists.list()).map((playlist) => playlist.id),
    [id],
  );
});

test("ExternalPlaylists: update_now false waits for the interval", async () => {
  const { server, add, titles, clock, idle } = await openExternal();
  server.answers.set(URL_A, { body: listOf(["one"]) });
  await add(URL_A, { updateNow: false });
  assert.equal(server.asked.length, 0);
  await clock.advance(3_599_000);
  assert.equal(server.asked.length, 0);
  await clock.advance(61_000);
  await idle();
  assert.deepEqual(await titles(), ["one"]);
});

test("ExternalPlaylists: refuses invalid URLs and intervals", async () => {
  const { add, edit } = await (async () => {
    const opened = await openExternal();
    return { ...opened, edit: opened.playlists.edit.bind(opened.playlists) };
  })();
  const isBad = (name: RegExp) => (error: unknown) =>
    error instanceof SluiceError && error.code === "bad_parameter" && name.test(error.message);
  for (const url of [
    "file:///etc/passwd",
    "ftp://a/b",
    "nothing",
    "javascript:1",
    `http://a/${"x".repeat(9000)}`,
  ])
    await assert.rejects(add(url), isBad(/^url/));
  await assert.rejects(add(URL_A, { updateInterval: -1 }), isBad(/update_interval/));
  await assert.rejects(add(URL_A, { updateInterval: Number.NaN }), isBad(/update_interval/));
  await assert.rejects(add(URL_A, { name: "x".repeat(1001) }), isBad(/name/));
  await assert.rejects(
    edit(5, { name: "", category: "", updateInterval: 0 }),
    (error) => error instanceof SluiceError && error.code === "unknown_external_playlist",
  );
});

test("update-interval: 0 disables refreshes; others are limited to 1 minute to 31 days", async () => {
  const { server, add, playlists, clock } = await openExternal();
  server.answers.set(URL_A, { body: listOf(["one"]) });
  const never = await add(URL_A, { updateInterval: 0 });
  assert.equal((await playlists.get(never))?.nextUpdate, 0);
  const asked = server.asked.length;
  await clock.advance(40 * 86_400_000);
  assert.equal(server.asked.length, asked);
  await playlists.delete(never);
  const intervals = [];
  for (const updateInterval of [1, 60, 90, 99_999_999]) {
    const id = await add(URL_A, { updateInterval });
    intervals.push((await playlists.get(id))?.updateInterval);
  }
  assert.deepEqual(intervals, [60, 60, 90, 31 * 86_400]);
});

test("ExternalPlaylists: an unchanged list is not transferred again", async () => {
  const { server, add, playlists, clock, idle } = await openExternal();
  const headers = { etag: '"v1"', "last-modified": "Sat, 21 Nov 2026 05:00:00 GMT" };
  server.answers.set(URL_A, ({ headers: sent }) =>
    sent?.["if-none-match"] === '"v1"' ? { status: 304 } : { headers, body: listOf(["one"]) },
  );
  const id = await add(URL_A);
  const first = await playlists.get(id);
  await clock.advance(3_661_000);
  await idle();
  assert.equal(server.asked.length, 2);
  assert.equal(server.asked[1]?.options.headers?.["if-modified-since"], headers["last-modified"]);
  const second = await playlists.get(id);
  assert.equal(second?.problem, null);
  assert.equal(second?.itemCount, 1);
  assert.ok(second!.lastUpdate > first!.lastUpdate);
  assert.equal(second?.nextUpdate, second!.lastUpdate + 3600);
});

test("ExternalPlaylists: a requested refresh fetches the whole list", async () => {
  const { server, add, refresh } = await openExternal();
  server.answers.set(URL_A, { headers: { etag: '"v1"' }, body: listOf(["one"]) });
  await refresh(await add(URL_A));
  assert.equal(server.asked[1]?.options.headers?.["if-none-match"], undefined);
});

test("ExternalPlaylists: sends login and password to the list's origin and never logs them", async () => {
  const { server, add, refresh, told, playlists } = await openExternal();
  server.answers.set(URL_A, { status: 401 });
  const id = await add(URL_A, { login: "me", password: "canary-7731" });
  assert.deepEqual(server.asked[0]?.options.basic, { login: "me", password: "canary-7731" });
  const task = await refresh(id);
  assert.equal(task.state, "failed");
  assert.match(task.problem!, /401/);
  assert.doesNotMatch(JSON.stringify(told) + JSON.stringify(task), /canary/);
  assert.equal((await playlists.get(id))?.password, "canary-7731");
});

test("ExternalPlaylists: private addresses only if allowed when the list was added", async () => {
  const { server, add, playlists, idle } = await openExternal();
  server.answers.set(URL_A, { body: listOf(["one"]) });
  await add(URL_A);
  const usual = { category: "", name: "b", updateInterval: 0, login: "", password: "" };
  await playlists.add({ type: "content", url: URL_A, ...usual }, { updateNow: true, allowPrivateUrls: true });
  await idle();
  assert.deepEqual(
    server.asked.map(({ options }) => options.allowPrivate),
    [false, true],
  );
});

test("ExternalPlaylists: reports failures and retries after 5, 10, 20 … minutes, up to a day", async () => {
  const { server, add, playlists, clock, idle } = await openExternal();
  server.answers.set(URL_A, { body: listOf(["one"]) });
  const id = await add(URL_A, { updateInterval: 86_400 });
  server.answers.delete(URL_A);
  await clock.advance(86_461_000);
  await idle();
  const waits = [];
  for (let i = 0; i < 12; i++) {
    const { nextUpdate, problem, itemCount } = (await playlists.get(id))!;
    assert.match(problem!, /nothing answers/);
    assert.equal(itemCount, 1);
    const wait = nextUpdate - clock.unixSeconds();
    waits.push(wait);
    await clock.advance(wait * 1000 + 61_000);
    await idle();
  }
  assert.equal(server.asked.length, 14);
  // The clock advances by up to a minute after each failure.
  const expected = [300, 600, 1200, 2400, 4800, 9600, 19_200, 38_400, 76_800, 86_400, 86_400, 86_400];
  for (const [i, wait] of waits.entries())
    assert.ok(expected[i]! - wait <= 62 && expected[i]! >= wait, `${waits}`);

  server.answers.set(URL_A, { body: listOf(["one", "two"]) });
  await clock.advance(86_461_000);
  await idle();
  assert.equal((await playlists.get(id))?.problem, null);
  assert.equal((await playlists.get(id))?.itemCount, 2);
});

test("ExternalPlaylists: honors Retry-After up to a day", async () => {
  const { server, add, playlists, clock } = await openExternal();
  for (const [said, seconds] of [
    ["7200", 7200],
    ["999999999", 86_400],
    ["Wed, 21 Oct 2015 07:28:00 GMT", 300],
    ["soon", 300],
  ] as const) {
    server.answers.set(URL_A, { status: 503, headers: { "retry-after": said } });
    const id = await add(URL_A);
    assert.equal((await playlists.get(id))!.nextUpdate - clock.unixSeconds(), seconds, said);
    await playlists.delete(id);
  }
});

test("ExternalPlaylists: a jump of the wall clock causes at most one refresh of each list", async () => {
  class Jumping extends FakeClock {
    jump = 0;
    override unixSeconds() {
      return (super.unixSeconds() + this.jump) as ReturnType<FakeClock["unixSeconds"]>;
    }
  }
  const clock = new Jumping();
  const { server, add, idle, playlists } = await openExternal({ clock });
  for (const name of ["a", "b", "c"]) {
    server.answers.set(`http://lists.example/${name}`, { body: listOf([name]) });
    await add(`http://lists.example/${name}`);
  }
  const jump = async (seconds: number) => {
    clock.jump += seconds;
    const before = server.asked.length;
    await clock.advance(300_000);
    await idle();
    return server.asked.length - before;
  };
  assert.equal(await jump(400 * 86_400), 3);
  assert.equal(await jump(-800 * 86_400), 0);
  for (const { nextUpdate } of await playlists.list()) assert.ok(nextUpdate <= clock.unixSeconds() + 3600);
  const before = server.asked.length;
  await clock.advance(3_700_000);
  await idle();
  assert.equal(server.asked.length - before, 3);
});

test("ExternalPlaylists: at most two concurrent refreshes, one per list", async () => {
  const { server, playlists, idle, tasks } = await openExternal();
  const ends: (() => void)[] = [];
  const usual = { type: "content", category: "", updateInterval: 0, login: "", password: "" } as const;
  const ids = [];
  for (const name of ["a", "b", "c", "d"]) {
    const url = `http://lists.example/${name}`;
    server.answers.set(url, () => new Promise((end) => ends.push(() => end({ body: listOf([name]) }))));
    ids.push(await playlists.add({ ...usual, url, name }, { updateNow: false, allowPrivateUrls: false }));
  }
  const all = await playlists.refreshAll();
  await until(() => ends.length === 2);
  const joined = await playlists.refresh(ids[0]!);
  assert.equal(tasks.get(joined)?.state, "running");
  assert.equal(await playlists.refresh(ids[0]!), joined);
  for (let done = 0; done < 4; done++) {
    await until(() => ends.length > 0);
    ends.shift()!();
  }
  await idle();
  assert.equal(server.most, 2);
  assert.equal(server.asked.length, 4);
  assert.equal(tasks.get(all)?.message, "Refreshed 4 of 4 external playlists");
});

test("ExternalPlaylists.delete: aborts a running refresh and deletes all its items, locked ones included", async () => {
  const { server, add, playlists, items, titles, idle, store } = await openExternal();
  server.answers.set(URL_A, { body: listOf(["one", "two", "three"]) });
  const id = await add(URL_A);
  const locked = (await items.query({ name: "two" })).items[0]!;
  await items.update(locked.id, { isLocked: true });
  server.answers.set(URL_A, () => new Promise(() => {}));
  server.answers.set(
    URL_A,
    ({ signal }) =>
      new Promise((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason))),
  );
  await playlists.refresh(id);
  await playlists.delete(id);
  await idle();
  assert.deepEqual(await titles(), []);
  assert.equal(await playlists.get(id), undefined);
  const left = [];
  for (const prefix of ["external/", "source/"]) for await (const [key] of store.list(prefix)) left.push(key);
  assert.deepEqual(left, []);
  await assert.rejects(playlists.delete(id), /external playlist 1 does not exist/);
  // Its id is never reused.
  assert.ok((await add(URL_A, { updateNow: false })) > id);
});

test("ExternalPlaylists: persist across a restart, which continues an interrupted deletion", async () => {
  const store = openMemory();
  const server = new ListServer();
  server.answers.set(URL_A, { body: listOf(["one"]) });
  const first = await openExternal({ store, server });
  const kept = await first.add(URL_A, { name: "kept", login: "l", password: "p" });
  const going = await first.add(URL_A, { name: "going" });
  const before = await first.playlists.get(kept);
  await first.close();
  const key = `external/${String(going).padStart(10, "0")}`;
  await store.commit({ set: [[key, { ...((await store.get(key)) as object), isGoing: true }]] });

  const asked = server.asked.length;
  const second = await openExternal({ store, server });
  assert.deepEqual(await second.playlists.list(), [before]);
  assert.equal((await second.items.query({})).total, 1);
  assert.equal(server.asked.length, asked, "what is not due is not asked");
});

test("ExternalPlaylists: logs and ignores a damaged record", async () => {
  const store = openMemory();
  await store.commit({ set: [["external/0000000003", { id: 3, url: 7 }]] });
  const { told, playlists, server, add } = await openExternal({ store });
  assert.match(told.join(), /external\/0000000003/);
  assert.deepEqual(await playlists.list(), []);
  server.answers.set(URL_A, { body: listOf(["one"]) });
  assert.equal(await add(URL_A), 4);
});

test("ExternalPlaylists.edit: stores the edit; the next refresh applies a new category", async () => {
  const { server, add, playlists, clock, items, refresh } = await openExternal();
  server.answers.set(URL_A, { headers: { etag: '"1"' }, body: listOf(["one"]) });
  const id = await add(URL_A, { category: "tv", login: "a", password: "b" });
  await clock.advance(10_000);
  await playlists.edit(id, { name: "new", category: "movies", updateInterval: 7200 });
  const edited = (await playlists.get(id))!;
  assert.deepEqual(
    [edited.name, edited.category, edited.login, edited.password],
    ["new", "movies", "a", "b"],
  );
  assert.equal(edited.updatedAt, clock.unixSeconds());
  assert.equal(edited.nextUpdate, edited.lastUpdate + 7200);
  await refresh(id);
  assert.equal((await items.query({})).items[0]?.category, "movies");
  await playlists.edit(id, { name: "new", category: "movies", updateInterval: 0, login: "", password: "" });
  assert.equal((await playlists.get(id))?.nextUpdate, 0);
  assert.equal((await playlists.get(id))?.login, "");
});

test("ExternalPlaylists.edit: survives a running refresh; the next one applies it", async () => {
  const { server, add, playlists, items, idle, clock } = await openExternal();
  const id = await add(URL_A, { category: "tv", updateNow: false });
  let send: () => void = () => {};
  server.answers.set(
    URL_A,
    () =>
      new Promise((end) => {
        send = () => end({ headers: { etag: '"1"' }, body: listOf(["one"]) });
      }),
  );
  await playlists.refresh(id);
  await until(() => server.asked.length === 1);
  await playlists.edit(id, { name: "new", category: "movies", updateInterval: 60 });
  send();
  await idle();
  assert.deepEqual([(await playlists.get(id))?.name, (await playlists.get(id))?.updateInterval], ["new", 60]);
  server.answers.set(URL_A, ({ headers }) =>
    headers?.["if-none-match"] ? { status: 304 } : { body: listOf(["one"]) },
  );
  await clock.advance(70_000);
  await idle();
  assert.equal(server.asked.length, 2);
  assert.equal((await items.query({})).items[0]?.category, "movies");
});

test("ExternalPlaylists: passes broadcast lists to the broadcaster; fails without one", async () => {
  const usual = { category: "", name: "b", updateInterval: 0, login: "", password: "" };
  const options = { updateNow: true, allowPrivateUrls: false };
  const without = await openExternal();
  const id = await without.playlists.add({ type: "broadcast", url: URL_A, ...usual }, options);
  await without.idle();
  assert.match(without.tasks.list("broadcast")[0]?.problem ?? "", /broadcasting is unavailable/);
  assert.match((await without.playlists.get(id))?.problem ?? "", /broadcasting is unavailable/);

  const asked: string[] = [];
  const forgotten: number[] = [];
  const broadcasts = {
    refresh: async ({ url }: { url: string }) => `${asked.push(url)} channel`,
    forget: async (gone: number) => void forgotten.push(gone),
  };
  const store = openMemory();
  const before = await openExternal({ store, broadcasts });
  await before.playlists.add({ type: "broadcast", url: URL_A, ...usual }, { ...options, updateNow: false });
  before.playlists.close();
  const again = await openExternal({ store, broadcasts });
  await again.idle();
  assert.deepEqual(asked.splice(0), [URL_A], "what was broadcast is so again at the next start");

  const within = await openExternal({ broadcasts });
  const kept = await within.playlists.add({ type: "broadcast", url: URL_A, ...usual }, options);
  await within.idle();
  assert.deepEqual(asked, [URL_A]);
  assert.equal(within.tasks.list("broadcast")[0]?.state, "done");
  await within.playlists.delete(kept);
  assert.deepEqual(forgotten, [kept]);
});

test("ExternalPlaylists: a full disk is reported and does not cause repeated fetches", async () => {
  const memory = openMemory();
  let isFull = false;
  const store: typeof memory = {
    ...memory,
    commit: async (change) => {
      if (isFull) throw new SluiceError("disk_full", "the disk is full");
      return memory.commit(change);
    },
  };
  const { server, add, clock, idle, playlists } = await openExternal({ store });
  server.answers.set(URL_A, { body: listOf(["one"]) });
  const id = await add(URL_A, { updateInterval: 60 });
  isFull = true;
  server.answers.set(URL_A, { body: listOf(["one", "two"]) });
  const asked = server.asked.length;
  for (let i = 0; i < 10; i++) {
    await clock.advance(60_000);
    await idle();
  }
  assert.ok(server.asked.length - asked <= 11, `${server.asked.length - asked} times`);
  isFull = false;
  await clock.advance(120_000);
  await idle();
  assert.equal((await playlists.get(id))?.itemCount, 2);
});
