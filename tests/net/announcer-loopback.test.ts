import assert from "node:assert/strict";
import { test } from "node:test";
import { runtime } from "#runtime";
import type { Infohash } from "../../src/base/ids.ts";
import { SILENT_LOG } from "../../src/base/log.ts";
import { createAnnouncer } from "../../src/net/announcer.ts";
import { createOutbound } from "../../src/outbound/outbound.ts";
import type { AnnounceRequest } from "../../src/wire/tracker/announce.ts";
import { announceRequest } from "../parts/announce-request.ts";
import { startLoopbackTracker } from "./loopback-tracker.ts";

const INFOHASH = "0123456789abcdef0123456789abcdef01234567" as Infohash;

const request = (url: string, port: number, event: AnnounceRequest["event"]) =>
  announceRequest(url, { infohash: INFOHASH, peerId: new Uint8Array(20).fill(0x61), port, event });

for (const kind of ["httpUrl", "udpUrl"] as const) {
  test(`announce over real sockets (${kind}): two peers find each other until one stops`, async () => {
    const tracker = await startLoopbackTracker();
    const announcer = createAnnouncer(runtime, createOutbound(runtime, SILENT_LOG), SILENT_LOG);
    try {
      const ask = (port: number, event: AnnounceRequest["event"]) =>
        announcer.announce(request(tracker[kind], port, event), { allowPrivate: true });
      const peers = async (port: number, event: AnnounceRequest["event"]) => {
        const reply = await ask(port, event);
        assert.ok(reply.ok, JSON.stringify(reply));
        assert.equal(reply.intervalSeconds, 900);
        return reply.peers;
      };
      assert.deepEqual(await peers(1001, "started"), []);
      assert.deepEqual(await peers(1002, "started"), [{ host: "127.0.0.1", port: 1001 }]);
      assert.deepEqual(await peers(1001, "none"), [{ host: "127.0.0.1", port: 1002 }]);
      await ask(1002, "stopped");
      assert.deepEqual(await peers(1001, "completed"), []);
      assert.deepEqual(
        tracker.announces.map(({ infohash, event, port }) => [infohash, event, port]),
        [
          [INFOHASH, "started", 1001],
          [INFOHASH, "started", 1002],
          [INFOHASH, "", 1001],
          [INFOHASH, "stopped", 1002],
          [INFOHASH, "completed", 1001],
        ],
      );
    } finally {
      announcer.close();
      await tracker.close();
    }
  });
}
