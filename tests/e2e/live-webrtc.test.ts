import assert from "node:assert/strict";
import { startEngine } from "../parts/engine.ts";
import { startBroadcast, watchUrl } from "../parts/live-broadcast.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { inRealTime } from "../parts/real-time.ts";

const { test } = await testsThatNeed("time");

/** Some four seconds of the test pattern. */
const SOME_BYTES = 100_000;

test(
  "a live stream plays over WebRTC alone, introduced by a WebSocket tracker",
  { timeout: 120_000 },
  inRealTime(async () => {
    const tracker = await startEngine({ env: { SLUICE_TRACKER_SERVER: "open" } });
    const announceUrl = `${tracker.url.replace("http", "ws")}/announce`;
    // One side refuses plain connections and the other encrypted ones, so that TCP and uTP fail.
    const source = await startBroadcast("test-pattern", {
      flags: ["--webrtc", "on", "--encryption", "require", "--tracker", announceUrl, "--lsd", "off"],
    });
    const viewer = await startEngine({
      env: { SLUICE_WEBRTC: "on", SLUICE_ENCRYPTION: "off", SLUICE_LSD: "off", SLUICE_LOG: "debug" },
    });
    try {
      const magnet = `magnet:?xt=urn:btih:${source.infohash}&tr=${encodeURIComponent(announceUrl)}`;
      const response = await fetch(watchUrl(viewer, magnet));
      assert.equal(response.status, 200, viewer.output());
      let got = 0;
      for await (const bytes of response.body!) {
        got += bytes.length;
        if (got < SOME_BYTES) continue;
        // While nothing arrives, a player receives null packets.
        const diagnosis = await (await fetch(`${viewer.url}/api/diagnosis`)).text();
        assert.match(diagnosis, /1 over WebRTC/);
        break;
      }
      assert.ok(got >= SOME_BYTES, `the stream ended after ${got} bytes\n${viewer.output()}`);
    } finally {
      await Promise.all([viewer.stop(), source.stop(), tracker.stop()]);
    }
  }),
);
