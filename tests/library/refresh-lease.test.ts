import assert from "node:assert/strict";
import { test } from "node:test";
import { SILENT_LOG } from "../../src/base/log.ts";
import { openCluster } from "../../src/cluster/engine-cluster.ts";
import type { KeyValueStore } from "../../src/runtime/contract.ts";
import { FakeClock, settled } from "../engine/fake-clock.ts";
import { sharedMemory } from "../parts/shared-memory.ts";
import { openExternal } from "./external-parts.ts";
import { ListServer, listOf } from "./list-server.ts";

const URL = "http://lists.example/a.m3u";

/** Two engines with a common store, clock and list server. The first one can be stopped: it neither sees nor makes changes then. */
async function twoEngines() {
  const open = sharedMemory();
  const clock = new FakeClock();
  const server = new ListServer();
  const state = { isStopped: false };
  let go = () => {};
  const resumed = new Promise<void>((resolve) => {
    go = resolve;
  });
  const stoppable = (store: KeyValueStore): KeyValueStore => ({
    ...store,
    async commit(change) {
      if (state.isStopped) await resumed;
      return store.commit(change);
    },
  });
  const engine = async (id: string, store: KeyValueStore) => {
    const leases = await openCluster({ store, clock, id, address: "", version: "1", log: SILENT_LOG });
    return openExternal({ store, clock, server, leases });
  };
  const [one, two] = [await engine("one", stoppable(open())), await engine("two", open())];
  return { clock, server, one, two, state, go };
}

test("refresh: of two engines one refreshes a playlist that is due; both list its items", async () => {
  const { clock, server, one, two } = await twoEngines();
  server.answers.set(URL, { body: listOf(["A", "B"]) });
  await one.add(URL, { updateInterval: 3600 });
  await clock.advance(1_000);
  assert.deepEqual(await two.titles(), ["A", "B"]);
  server.answers.set(URL, { body: listOf(["A", "B", "C"]) });
  const before = server.asked.length;
  await clock.advance(4_000_000);
  await Promise.all([one.idle(), two.idle()]);
  await settled();
  assert.equal(server.asked.length - before, 1, "one engine asks the server");
  for (const engine of [one, two]) assert.deepEqual(await engine.titles(), ["A", "B", "C"]);
  await Promise.all([one.close(), two.close()]);
});

test("refresh: an engine that stops in the middle is replaced within 15 s, and changes nothing when it goes on", async () => {
  const { clock, server, one, two, state, go } = await twoEngines();
  server.answers.set(URL, { body: listOf(["A"]) });
  await one.add(URL, { updateInterval: 3600 });
  const id = (await two.playlists.list())[0]!.id;
  // The first engine receives an old list and stops before it writes.
  server.answers.set(URL, () => {
    state.isStopped = true;
    server.answers.set(URL, { body: listOf(["A", "new"]) });
    return { body: listOf(["A", "old"]) };
  });
  await one.playlists.refresh(id);
  await settled();
  assert.ok(state.isStopped);
  // The time of the list has come: without the other engine, the second one refreshes it.
  await two.playlists.edit(id, { category: "", name: "list", updateInterval: 0 });
  await clock.advance(15_000);
  const refreshed = await two.refresh(id);
  assert.match(refreshed.message, /1 new/, "the job is free");
  state.isStopped = false;
  go();
  await one.idle();
  await settled();
  for (const engine of [one, two]) assert.deepEqual(await engine.titles(), ["A", "new"]);
  assert.match(one.tasks.list().at(-1)!.problem ?? "", /another engine has taken this job over/);
  await Promise.all([one.close(), two.close()]);
});
