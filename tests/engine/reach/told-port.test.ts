import assert from "node:assert/strict";
import { test } from "node:test";
import { tellingPort } from "../../../src/engine/reach/told-port.ts";
import { announceRequest } from "../../parts/announce-request.ts";

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
    await announcer.announce(announceRequest(url, { port: 6881 }));
    await announcer.announce(announceRequest(url, { port: 0 }));
    // Who takes no calls at all is not made to.
    assert.deepEqual(told, [port, 0]);
  });
}
