import assert from "node:assert/strict";
import { test } from "node:test";
import type { Infohash } from "../../../src/base/ids.ts";
import { tellingPort } from "../../../src/engine/reach/told-port.ts";
import type { AnnounceRequest } from "../../../src/wire/tracker.ts";

const REQUEST: AnnounceRequest = {
  url: "http://tracker.example/announce",
  infohash: "a1".repeat(20) as Infohash,
  peerId: new Uint8Array(20),
  port: 6881,
  uploaded: 0,
  downloaded: 0,
  left: 1,
  event: "started",
  numWant: 50,
  key: 1,
};

const TOLD: readonly [url: string, port: number][] = [
  ["http://tracker.example/announce", 20_001],
  ["udp://tracker.example:1337", 20_001],
  ["wss://tracker.example/", 20_001],
  ["http://93.184.216.34/announce", 20_001],
  ["udp://[2606:4700::1]:80", 20_001],
  ["http://192.168.1.7:6969/announce", 6881],
  ["udp://192.168.1.7:6969", 6881],
  ["http://[fd00::7]:6969/announce", 6881],
  ["http://localhost:6969/announce", 6881],
];
for (const [url, port] of TOLD) {
  test(`tellingPort: ${url} is told port ${port}`, async () => {
    const told: number[] = [];
    const announcer = tellingPort(
      {
        async announce(request) {
          told.push(request.port);
          return { ok: false, reason: "none" };
        },
        scrape: async () => undefined,
        close() {},
      },
      () => 20_001,
    );
    await announcer.announce({ ...REQUEST, url });
    await announcer.announce({ ...REQUEST, url, port: 0 });
    // Who takes no calls at all is not made to.
    assert.deepEqual(told, [port, 0]);
  });
}
