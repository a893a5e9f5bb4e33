import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { runtime } from "#runtime";
import { SILENT_LOG } from "../../src/base/log.ts";
import type { SharedUdp } from "../../src/net/contract.ts";
import { filteredNet, filteredUdp, openIpFilter } from "../../src/net/ip-filter.ts";
import { inFolder } from "../contract/folder.ts";
import { FakeClock } from "../engine/fake-clock.ts";
import { MemoryNet } from "./memory-net.ts";

const LIST = "# a list\r\nUniversity:1.2.3.4-1.2.3.9\r\nnot a line\r\n10.0.0.0/8\r\n2001:db8::/32\nalso none";
const EXPECTED = {
  "1.2.3.3": true,
  "1.2.3.4": false,
  "10.9.9.9": false,
  "2001:db8::5": false,
  "2001:db9::": true,
};

function judged(isAllowed: (host: string) => boolean): Record<string, boolean> {
  return Object.fromEntries(Object.keys(EXPECTED).map((host) => [host, isAllowed(host)]));
}

test("openIpFilter: reads a plain or compressed list and logs the number of malformed lines once", () =>
  inFolder(async (folder) => {
    for (const bytes of [Buffer.from(LIST), gzipSync(LIST), gzipSync(LIST + "\nx".repeat(400_000))]) {
      const path = `${folder}/list`;
      await writeFile(path, bytes);
      const warnings: unknown[] = [];
      const log = { ...SILENT_LOG, warn: (...fields: unknown[]) => void warnings.push(fields) };
      const clock = new FakeClock();
      const filter = await openIpFilter(path, { clock, files: runtime.files }, log);
      assert.equal(filter.count, 3);
      assert.deepEqual(judged(filter.isAllowed), EXPECTED);
      assert.equal(warnings.length, 1);
      filter.close();
      assert.equal(clock.waiting, 0);
    }
  }));

test("openIpFilter: rejects an unreadable list with advice", () =>
  inFolder(async (folder) => {
    const opened = openIpFilter(
      `${folder}/none`,
      { clock: new FakeClock(), files: runtime.files },
      SILENT_LOG,
    );
    await assert.rejects(opened, { code: "bad_configuration", message: /--ip-filter/ });
  }));

test("openIpFilter: reloads a changed list, and keeps the previous one if it becomes unreadable", async () => {
  const clock = new FakeClock();
  let text = "1.2.3.4";
  let changed = 1;
  let reads = 0;
  const files = {
    ...runtime.files,
    stat: async () => ({ size: 1, modifiedMs: changed }),
    async *parts() {
      reads++;
      if (text === "gone") throw new Error("gone");
      yield new TextEncoder().encode(text);
    },
  };
  const filter = await openIpFilter("/list", { clock, files }, SILENT_LOG);
  await clock.advance(100_000);
  assert.equal(reads, 1, "it has not changed");
  text = "1.2.3.5";
  changed++;
  await clock.advance(31_000);
  assert.deepEqual([filter.isAllowed("1.2.3.4"), filter.isAllowed("1.2.3.5")], [true, false]);
  text = "gone";
  changed++;
  await clock.advance(31_000);
  assert.equal(reads, 3);
  assert.deepEqual([filter.isAllowed("1.2.3.4"), filter.isAllowed("1.2.3.5")], [true, false]);
  text = "9.9.9.9";
  changed++;
  await clock.advance(31_000);
  assert.equal(filter.isAllowed("9.9.9.9"), false);
  filter.close();
});

test("filteredNet: blocked addresses are neither connected to nor accepted", async () => {
  const net = new MemoryNet();
  const filtered = filteredNet(net, (host) => host !== "192.0.2.9");
  let admitted = 0;
  const nothing = { received() {}, drained() {}, closed() {} };
  await filtered.listen({ host: "127.0.0.1", port: 1 }, () => {
    admitted++;
    return nothing;
  });
  // Everybody calls from 192.0.2.9 there.
  net.connect({ host: "127.0.0.1", port: 1 }, nothing);
  net.settle();
  assert.equal(admitted, 0);
  assert.equal(net.calls.length, 1);
  const reason = await new Promise<string>((closed) => {
    filtered.connect({ host: "192.0.2.9", port: 1 }, { ...nothing, closed }, { timeoutMs: 1 });
  });
  assert.match(reason, /blocked by ip-filter/);
  filtered.connect({ host: "127.0.0.1", port: 1 }, nothing, { timeoutMs: 1 });
  assert.equal(net.calls.length, 2);
});

test("filteredUdp: drops datagrams to and from blocked addresses", () => {
  const sent: string[] = [];
  const receivedFrom: string[] = [];
  let receive: Parameters<SharedUdp["listen"]>[1] = () => {};
  const udp: SharedUdp = {
    port: 1,
    send: (_, to) => void sent.push(to.host),
    listen: (_, received) => {
      receive = received;
    },
    close() {},
  };
  const filtered = filteredUdp(udp, (host) => host !== "1.2.3.4");
  filtered.listen("dht", (_, from) => void receivedFrom.push(from.host));
  for (const host of ["1.2.3.4", "1.2.3.5"]) {
    filtered.send(new Uint8Array(1), { host, port: 1 });
    receive(new Uint8Array(1), { host, port: 1 });
  }
  assert.deepEqual([sent, receivedFrom], [["1.2.3.5"], ["1.2.3.5"]]);
});
