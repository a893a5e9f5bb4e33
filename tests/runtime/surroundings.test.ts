import assert from "node:assert/strict";
import { test } from "node:test";
import { runtime } from "#runtime";
import { defaultGateway } from "../../src/runtime/route-table.ts";

const HEAD = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT";
const row = (destination: string, gateway: string, flags: string, metric: number) =>
  `eth0\t${destination}\t${gateway}\t${flags}\t0\t0\t${metric}\t00000000\t0\t0\t0`;

const TABLES: readonly [what: string, lines: readonly string[], gateway: string | undefined][] = [
  ["one default route", [row("00000000", "0101A8C0", "0003", 100)], "192.168.1.1"],
  [
    "the default route with the lowest metric",
    [row("00000000", "0100000A", "0003", 600), row("00000000", "0101A8C0", "0003", 100)],
    "192.168.1.1",
  ],
  ["no default route", [row("0000A8C0", "00000000", "0001", 0)], undefined],
  ["a default route without a gateway (a tunnel)", [row("00000000", "00000000", "0001", 0)], undefined],
  ["malformed rows", ["", "eth0", "eth0 00000000 xyz 0003"], undefined],
];

for (const [what, lines, gateway] of TABLES) {
  test(`defaultGateway: ${what}`, () => assert.equal(defaultGateway([HEAD, ...lines].join("\n")), gateway));
}

test("surroundings.networks: includes the loopback network", () => {
  const loopback = runtime.surroundings.networks().find(({ host }) => host === "127.0.0.1");
  assert.equal(loopback?.isLoopback, true);
  assert.equal(loopback?.bits, 8);
  assert.equal(loopback?.multicastAddress, "127.0.0.1");
});

test("surroundings.run: resolves to the output, and rejects if the command fails", async () => {
  assert.equal((await runtime.surroundings.run("echo 51413", 30_000)).trim(), "51413");
  await assert.rejects(runtime.surroundings.run("exit 3", 30_000));
});
