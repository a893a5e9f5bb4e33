import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { runtime } from "#runtime";
import type { Infohash } from "../../src/base/ids.ts";
import { SILENT_LOG } from "../../src/base/log.ts";
import { createAnnouncer } from "../../src/net/announcer.ts";
import { createOutbound } from "../../src/outbound/outbound.ts";
import { parseLiveTransportFile } from "../../src/wire/live/transport-file.ts";
import { announceRequest } from "../parts/announce-request.ts";
import { type EngineProcess, startEngine, startSession } from "../parts/engine.ts";
import { startBroadcast } from "../parts/live-broadcast.ts";
import { testsThatNeed } from "../parts/needs.ts";

const { test } = await testsThatNeed("time");

test("a broadcast that is its own tracker is found by its infohash and by its content id, and viewers find each other", {
  timeout: 200_000,
}, async () => {
  const flags = ["--tracker-server", "own", "--p2p-host", "127.0.0.1"];
  const source = await startBroadcast("test-pattern", { flags });
  const engines: EngineProcess[] = [];
  const announcer = createAnnouncer(runtime, createOutbound(runtime, SILENT_LOG), SILENT_LOG);
  try {
    const url = `udp://127.0.0.1:${source.p2pPort}/announce`;
    const bytes = new Uint8Array(await readFile(source.transportFile));
    const file = parseLiveTransportFile(bytes, runtime.sha1, runtime.ed25519Verifier);
    assert.deepEqual(file.trackers, [[url]]);
    // Remote peers can reach only the tracker.
    for (const named of [{ infohash: source.infohash }, { content_id: source.contentId }]) {
      const engine = await startEngine({ env: { SLUICE_TRACKERS: url } });
      engines.push(engine);
      const { playback_url } = await startSession(engine, "getstream", named);
      await beginsToPlay(playback_url);
    }
    const ports = [source, ...engines].map(({ p2pPort }) => p2pPort).sort();
    for (const each of [url, `${source.url}/announce`, `${source.url.replace("http", "ws")}/announce`]) {
      // Asks for peers without announcing itself as one.
      const request = announceRequest(each, { infohash: source.infohash as Infohash, port: 0 });
      // A viewer that found peers by the content id may play before it announces itself.
      let reply = await announcer.announce(request, { allowPrivate: true });
      for (let tries = 0; tries < 100 && reply.ok && reply.peers.length < ports.length; tries++) {
        await new Promise((resolve) => setTimeout(resolve, 300));
        reply = await announcer.announce(request, { allowPrivate: true });
      }
      assert.ok(reply.ok, `${each}: ${JSON.stringify(reply)}`);
      assert.deepEqual(reply.peers.map(({ port }) => port).sort(), ports, each);
      assert.deepEqual(reply.peers[0], { host: "127.0.0.1", port: source.p2pPort });
    }
  } finally {
    announcer.close();
    await Promise.all(engines.map((engine) => engine.stop()));
    await source.stop();
  }
});

/** Reads a second of packets or so. */
async function beginsToPlay(url: string): Promise<void> {
  const response = await fetch(url);
  assert.equal(response.status, 200);
  let got = 0;
  for await (const part of response.body!) {
    got += part.length;
    if (got > 30_000) return;
  }
  assert.fail(`the stream ended after ${got} bytes`);
}
