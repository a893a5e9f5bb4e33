import assert from "node:assert/strict";
import { test } from "node:test";
import { SILENT_LOG } from "../../src/base/log.ts";
import { vettedAddress } from "../../src/cluster/engine-address.ts";
import { type EngineCluster, hasEngines, openCluster } from "../../src/cluster/engine-cluster.ts";
import type { KeyValueStore } from "../../src/runtime/contract.ts";
import { FakeClock } from "../engine/fake-clock.ts";
import { sharedMemory } from "../parts/shared-memory.ts";

/** Engines on one store and one fake clock. */
function site() {
  const open = sharedMemory();
  const clock = new FakeClock();
  const engine = async (
    name: string,
    { store = open(), players = 0, address = `http://10.0.0.${name}:6878` } = {},
  ) => {
    const facts = { address, version: "1", log: SILENT_LOG };
    const cluster = await openCluster({ store, clock, id: `engine-${name}`, ...facts });
    cluster.measure(() => ({ players, contents: [] }));
    return cluster;
  };
  return { open, clock, engine };
}

/** A store whose engine can be cut off: it neither sees nor makes changes, as if its process were stopped. */
function breakable(store: KeyValueStore) {
  const state = { isBroken: false };
  const broken: KeyValueStore = {
    ...store,
    commit: (change) => (state.isBroken ? Promise.reject(new Error("unreachable")) : store.commit(change)),
    watch: (prefix, changed) => store.watch!(prefix, (keys) => void (state.isBroken || changed(keys))),
  };
  return { store: broken, state };
}

test("cluster: a job runs on one engine; when it dies, another takes it within 15 s, and the old fence holds no more", async () => {
  const { open, clock, engine } = site();
  const { store, state } = breakable(open());
  const one = await engine("1", { store });
  const two = await engine("2");
  const lease = await one.take("refresh/1");
  assert.ok(lease);
  assert.equal(await one.take("refresh/1"), undefined, "it is taken here");
  assert.equal(await two.take("refresh/1"), undefined, "it is taken there");
  assert.ok(await two.take("refresh/2"), "another job");
  await clock.advance(60_000);
  assert.equal(await two.take("refresh/1"), undefined, "the engine is alive");
  const fenced = (value: number) => open().commit({ check: [lease.fence!], set: [["x", value]] });
  assert.equal(await fenced(1), true);
  let gone = 0;
  two.onEngineGone(() => gone++);
  state.isBroken = true;
  let taken: Awaited<ReturnType<EngineCluster["take"]>>;
  let waited = 0;
  for (; !taken && waited < 30_000; waited += 500) {
    await clock.advance(500);
    taken = await two.take("refresh/1");
  }
  assert.ok(taken && waited <= 15_000, `taken over after ${waited} ms`);
  assert.equal(await fenced(2), false);
  await clock.advance(5_000);
  assert.equal(gone, 1);
  assert.deepEqual(
    two.engines().map(({ id }) => id),
    ["engine-2"],
  );
  // It was only stopped: it learns that its job is lost.
  state.isBroken = false;
  assert.equal(lease.lost.aborted, false);
  await taken.release();
  await clock.advance(4_000);
  assert.ok(lease.lost.aborted);
  assert.equal(two.engines().length, 2, "it is back");
  await Promise.all([one.close(), two.close()]);
});

test("cluster: a job that is released, or whose engine is closed, is free at once", async () => {
  const { engine, clock, open } = site();
  const [one, two] = [await engine("1"), await engine("2")];
  const lease = (await one.take("a"))!;
  await lease.release();
  const second = await two.take("a");
  assert.ok(second);
  assert.notDeepEqual(second.fence, lease.fence, "the term has grown");
  await two.close();
  assert.ok(await one.take("a"));
  await clock.advance(1_000);
  assert.equal(one.engines().length, 1);
  await one.close();
  assert.equal(await hasEngines(open(), clock), false, "no engine has left a record");
});

test("cluster: an engine that cannot reach the store does not take the others for dead", async () => {
  const { open, clock, engine } = site();
  const { store, state } = breakable(open());
  const one = await engine("1", { store });
  const two = await engine("2");
  state.isBroken = true;
  await clock.advance(9_000);
  state.isBroken = false;
  await clock.advance(30_000);
  assert.equal(one.engines().length, 2);
  assert.equal(two.engines().length, 2);
  state.isBroken = true;
  await clock.advance(120_000);
  assert.equal(one.engines().length, 2, "its own view does not change while it is cut off");
  assert.equal(two.engines().length, 1);
  await Promise.all([one.close(), two.close()]);
});

test("cluster: content is played by one engine: the one that has it, else the least loaded; of a dead one by another", async () => {
  const { open, clock, engine } = site();
  const { store, state } = breakable(open());
  const one = await engine("1", { players: 5 });
  const two = await engine("2", { store, players: 0 });
  const three = await engine("3", { players: 3 });
  await clock.advance(4_000);
  assert.equal(await one.place("aa"), "http://10.0.0.2:6878", "the least loaded");
  assert.equal(await three.place("aa"), "http://10.0.0.2:6878", "the same for all");
  assert.equal(await two.place("aa"), undefined, "here");
  // Requests at the same moment claim one engine.
  const places = await Promise.all([one, two, three].map((each) => each.place("bb")));
  const named = places.map((address, i) => address ?? `http://10.0.0.${i + 1}:6878`);
  assert.equal(new Set(named).size, 1);
  // A rush before the next beat is spread.
  const rush = await Promise.all(Array.from({ length: 12 }, (_, i) => one.place(`rush ${i}`)));
  assert.ok(new Set(rush).size > 1, "not all to one engine");
  state.isBroken = true;
  await clock.advance(15_000);
  assert.equal(await one.place("aa"), "http://10.0.0.3:6878");
  assert.equal(await three.place("aa"), undefined);
  await Promise.all([one, two, three].map((each) => each.close()));
});

test("cluster: a draining engine gets no content, and sends that which it has to others", async () => {
  const { clock, engine } = site();
  const [one, two] = [await engine("1"), await engine("2", { players: 9 })];
  await clock.advance(4_000);
  assert.equal(await one.place("aa"), undefined);
  await one.drain();
  await clock.advance(100);
  assert.equal(await one.place("aa"), "http://10.0.0.2:6878");
  assert.equal(await two.place("aa"), undefined);
  assert.equal(await two.place("bb"), undefined);
  await two.drain();
  assert.equal(await two.place("cc"), undefined, "without any other engine it serves");
  await Promise.all([one.close(), two.close()]);
});

test("cluster: claims of content without players are removed, those of open content stay", async () => {
  const { open, clock, engine } = site();
  const one = await engine("1");
  one.measure(() => ({ players: 1, contents: ["aa"] }));
  await one.place("aa");
  await one.place("bb");
  await clock.advance(200_000);
  const keys: string[] = [];
  for await (const [key] of open().list("cluster/content/")) keys.push(key);
  assert.deepEqual(keys, ["cluster/content/aa"]);
  await one.close();
});

test("cluster: clients that name ever new contents cannot fill the store; it is empty again later", async () => {
  const { open, clock, engine } = site();
  const [one, two] = [await engine("1", { players: 9_000 }), await engine("2")];
  await clock.advance(4_000);
  const claims = async () => {
    let count = 0;
    for await (const _ of open().list("cluster/content/")) count++;
    return count;
  };
  for (let round = 0; round < 3; round++) {
    for (let i = 0; i < 600; i++) await one.place(`${round} ${i}`);
    assert.equal(await one.place(`${round} more`), undefined, "it is played here");
    await clock.advance(31_000);
  }
  assert.ok((await claims()) <= 3 * 250, `${await claims()} claims`);
  assert.equal(await one.place("next"), "http://10.0.0.2:6878");
  await clock.advance(300_000);
  assert.equal(await claims(), 0);
  await Promise.all([one.close(), two.close()]);
});

test("cluster: records that are not those of an engine are ignored, and addresses are vetted", async () => {
  const { open, clock, engine } = site();
  const one = await engine("1");
  const evil = { beat: 1, isDraining: false, players: 0, contents: 0, version: "1" };
  const two = open();
  await two.commit({
    set: [
      ["cluster/engine/a", { ...evil, address: "http://169.254.169.254" }],
      ["cluster/engine/b", { ...evil, address: "http://10.0.0.9/path?x" }],
      ["cluster/engine/c", { ...evil, address: "http://127.0.0.1:22" }],
      ["cluster/engine/d", { ...evil, address: "javascript:alert(1)" }],
      ["cluster/engine/e", { ...evil, players: -1, address: "http://10.0.0.9" }],
      ["cluster/engine/f", 7],
    ],
  });
  await clock.advance(100);
  for (let i = 0; i < 20; i++) assert.equal(await one.place(`content ${i}`), undefined);
  await one.close();
});

test("vettedAddress: origins of http and https; loopback only if this engine is there, too", () => {
  const own = "http://10.0.0.1:6878";
  assert.equal(vettedAddress("http://10.0.0.5:6878/", own), "http://10.0.0.5:6878");
  assert.equal(vettedAddress("https://tv.example.org", own), "https://tv.example.org");
  assert.equal(vettedAddress("http://[2001:db8::1]:80", own), "http://[2001:db8::1]");
  assert.equal(vettedAddress("http://127.0.0.1:1", "http://127.0.0.1:2"), "http://127.0.0.1:1");
  const bad = [
    "http://127.0.0.1",
    "http://0x7f.1",
    "http://localhost",
    "http://a.localhost.",
    "http://[::1]",
    "http://[::ffff:127.0.0.1]",
  ];
  const malformed = [
    "",
    "http://",
    "http://u@10.0.0.1",
    "http://u:p@10.0.0.1",
    "http://10.0.0.1/a",
    "http://10.0.0.1?a",
    "http://10.0.0.1#a",
    "http://10.0.0.1\\a",
    "ftp://10.0.0.1",
    "//10.0.0.1",
    "http://0.0.0.0",
    "http://224.0.0.1",
    "http://[fe80::1]",
    "http://169.254.1.1",
    `http://${"a".repeat(250)}`,
  ];
  for (const text of [...bad, ...malformed]) assert.equal(vettedAddress(text, own), undefined, text);
});
