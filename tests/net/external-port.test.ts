import assert from "node:assert/strict";
import { test } from "node:test";
import { announcingExternalPort } from "../../src/net/announcer.ts";
import { announceRequest } from "../parts/announce-request.ts";

const CASES: readonly [url: string, port: number][] = [
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
for (const [url, port] of CASES) {
  test(`announcingExternalPort: ${url} receives port ${port}`, async () => {
    const ports: number[] = [];
    const announcer = announcingExternalPort(
      {
        async announce(request) {
          ports.push(request.port);
          return { ok: false, reason: "none" };
        },
        scrape: async () => undefined,
        close() {},
      },
      () => 20_001,
    );
    await announcer.announce(announceRequest(url, { port: 6881 }));
    await announcer.announce(announceRequest(url, { port: 0 }));
    // Port 0 (no incoming connections) stays.
    assert.deepEqual(ports, [port, 0]);
  });
}
