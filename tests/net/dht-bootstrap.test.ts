import assert from "node:assert/strict";
import { test } from "node:test";
import { runtime } from "#runtime";
import type { Log } from "../../src/base/log.ts";
import { startDht } from "../../src/net/dht.ts";
import { inFolder } from "../contract/folder.ts";
import { FakeClock } from "../engine/fake-clock.ts";
import { keepingLog } from "../engine/parts.ts";

test("startDht: bootstrap nodes that cannot be resolved are logged once, and again when that changes", () =>
  inFolder(async (dataDir) => {
    const clock = new FakeClock();
    const lines: string[] = [];
    const log: Log = { ...keepingLog(), info: (message) => void lines.push(message) };
    let isOnline = false;
    let lookups = 0;
    const lookup = async () => {
      lookups++;
      if (isOnline) return ["81.2.3.4"];
      throw new Error("getaddrinfo EAI_AGAIN");
    };
    const dht = await startDht({
      runtime: { ...runtime, clock, lookup },
      udp: { port: 0, send() {}, listen() {} },
      log,
      bootstrap: ["a.example:1", "b.example:2"],
      dataDir,
      port: () => 0,
      isImpliedPort: false,
      isReadOnly: false,
    });
    for (let minutes = 0; minutes < 5; minutes++) await clock.advance(60_000);
    assert.ok(lookups >= 10, `${lookups}`);
    assert.deepEqual(lines, ["cannot resolve DHT bootstrap nodes; retrying"]);
    isOnline = true;
    await clock.advance(60_000);
    assert.deepEqual(lines.slice(1), ["all DHT bootstrap nodes are resolved"]);
    isOnline = false;
    for (let minutes = 0; minutes < 5; minutes++) await clock.advance(60_000);
    assert.equal(lines.length, 3);
    await dht.close();
  }));
