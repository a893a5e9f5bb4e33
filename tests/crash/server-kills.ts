import assert from "node:assert/strict";
import { once } from "node:events";
import { startRedis } from "../interop/redis-server.ts";
import { seededRandom } from "../seeded-random.ts";
import { areSame, History, openPlace, recordsOf } from "./history.ts";

/** The server is killed within this many acknowledged commits, plus a random delay. */
const LONGEST_LIFE_COMMITS = 60;
const LONGEST_MOMENT_MS = 3;
/** A refused commit is tried again after this time. */
const RETRY_MS = 5;

/**
 * Kills a Redis server (SIGKILL) repeatedly under the commits of one engine, with `appendfsync always`. After each restart the records
 * are those of exactly the acknowledged commits: none is lost, none is partial, and no refused commit was applied. Throws with the seed if not.
 */
export async function killServerOften(folder: string, kills: number, seed: number) {
  const random = seededRandom(seed);
  const history = new History(seed);
  let server = await startRedis(folder);
  const complain = (message: string) => assert.fail(message);
  const store = await openPlace(server.url, complain);
  let acknowledged = 0;
  let refused = 0;
  const lateOnes = new Map<string, string>();
  const write = async (isOver: () => boolean) => {
    while (!isOver()) {
      try {
        assert.ok(await store.commit(history.change(acknowledged + 1)));
        acknowledged++;
      } catch (error) {
        assert.equal((error as { code?: string }).code, "store_unavailable");
        refused++;
        await pause(RETRY_MS);
      }
    }
  };
  try {
    for (let kill = 0; kill < kills; kill++) {
      const target = acknowledged + 1 + Math.floor(random() * LONGEST_LIFE_COMMITS);
      let isBack = false;
      const writing = write(() => isBack);
      while (acknowledged < target) await pause(1);
      await pause(random() * LONGEST_MOMENT_MS);
      server.child.kill("SIGKILL");
      await once(server.child, "close");
      // As a rule this is refused, and waits for the server if the engine has not noticed that it is gone.
      const change = { set: [[`late/${kill}`, kill]] } as const;
      const late = store.commit(change).then(
        () => void lateOnes.set(`late/${kill}`, String(kill)),
        () => void refused++,
      );
      server = await startRedis(folder, {}, server.port);
      const label = `seed ${seed}, kill ${kill}, after commit ${acknowledged}`;
      isBack = true;
      await Promise.all([writing, late]);
      const fresh = await openPlace(server.url, complain);
      const there = await recordsOf(fresh);
      await fresh.close();
      assert.ok(areSame(there, new Map([...history.after(acknowledged), ...lateOnes])), label);
      assert.ok(areSame(await recordsOf(store), there), `${label}: the copy in memory`);
    }
    return { kills, acknowledged, refused };
  } finally {
    await store.close();
    await server.stop();
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
