import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { freePort, startEngine, startSession } from "../parts/engine.ts";
import { testsThatNeed } from "../parts/needs.ts";

const { test } = await testsThatNeed("time");

const INFOHASH = "ab".repeat(20);

test("a start without peers reports the tracker's counts, from a scrape if the announce has none", {
  timeout: 90_000,
}, async () => {
  const asked: string[] = [];
  const tracker = createServer((request, response) => {
    const path = request.url!.split("?")[0]!;
    asked.push(path);
    const counts = Buffer.from("d8:completei3e10:incompletei4ee");
    const files = [Buffer.from("d5:filesd20:"), Buffer.from(INFOHASH, "hex"), counts, Buffer.from("ee")];
    response.end(path === "/scrape" ? Buffer.concat(files) : "d8:intervali900e5:peers0:e");
  });
  await new Promise<void>((resolve) => tracker.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(tracker.address() as AddressInfo).port}/announce`;
  const engine = await startEngine({ env: { SLUICE_PEERS_TIMEOUT: "3s" } });
  const statOf = async (trackers: string[], infohash: string) => {
    const tr = trackers.map((each) => `&tr=${encodeURIComponent(each)}`).join("");
    const session = await startSession(engine, "getstream", {
      magnet: `magnet:?xt=urn:btih:${infohash}${tr}`,
    });
    for (;;) {
      const { response } = (await (await fetch(session.stat_url)).json()) as { response: Stat };
      if (response.error_message) return response;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  };
  try {
    const dead = `http://127.0.0.1:${await freePort()}/announce`;
    const [told, none, unheard] = await Promise.all([
      statOf([url, dead], INFOHASH),
      statOf([], "cd".repeat(20)),
      statOf([dead], "ef".repeat(20)),
    ]);
    assert.match(told.error_message, /no peer was found within 3 s \(1 tracker answered and knows 3 seeds\)/);
    assert.deepEqual([told.swarm_seeds, told.swarm_leechers], [3, 4]);
    assert.equal(asked.filter((path) => path === "/scrape").length, 1);
    assert.match(none.error_message, /the link names no tracker/);
    assert.deepEqual([none.swarm_seeds, none.swarm_leechers], [-1, -1]);
    assert.match(unheard.error_message, /no tracker answered: .*(refused|connect|reach)/i);
  } finally {
    await engine.stop();
    tracker.closeAllConnections();
    tracker.close();
  }
});

interface Stat {
  readonly status: string;
  readonly error_message: string;
  readonly swarm_seeds: number;
  readonly swarm_leechers: number;
}
