import assert from "node:assert/strict";
import { networkInterfaces } from "node:os";
import { test } from "node:test";
import {
  announcedAddresses,
  lanAddresses,
  networkUrls,
  ownAddresses,
  ownLookup,
} from "../../src/cli/own-addresses.ts";
import type { Config } from "../../src/settings/settings.ts";

function config(parts: Partial<Config>): Config {
  return { p2pHost: "::", bind: "", proxy: "", proxyStrict: "on", ...parts } as Config;
}

test("announcedAddresses: a strict proxy hides the addresses of this machine", () => {
  const proxy = "socks5://192.0.2.1:1080";
  const nowhere = [{ host: "127.0.0.1", port: 8621 }];
  assert.deepEqual(announcedAddresses(config({ proxy }), 8621), nowhere);
  assert.deepEqual(announcedAddresses(config({ proxy, p2pHost: "192.0.2.7" }), 8621), nowhere);
});

test("lanAddresses: only the addresses of the bound interface or address", () => {
  for (const [name, addresses] of Object.entries(networkInterfaces())) {
    const own = (addresses ?? []).filter(({ internal }) => !internal).map(({ address }) => address);
    assert.ok(lanAddresses(name).every((address) => own.includes(address)));
    for (const address of lanAddresses(name)) assert.deepEqual(lanAddresses(address), [address]);
  }
  assert.deepEqual(lanAddresses("no-such-interface"), []);
});

test("ownLookup: refuses to resolve names outside of a strict proxy", async () => {
  const lookup = async () => ["192.0.2.1"];
  assert.deepEqual(await ownLookup({ lookup }, config({}))("a.example"), ["192.0.2.1"]);
  const strict = config({ proxy: "http://192.0.2.1:3128" });
  await assert.rejects(ownLookup({ lookup }, strict)("a.example"), { code: "bad_parameter" });
});

test("ownAddresses: the networks of this machine for a wildcard host, otherwise the host itself", () => {
  const lan = ["192.168.1.5", "fd00::5"];
  const hosts = (host: string, addresses: readonly string[]) =>
    ownAddresses(host, 1, addresses).map((each) => each.host);
  assert.deepEqual(hosts("::", lan), lan);
  assert.deepEqual(hosts("0.0.0.0", lan), ["192.168.1.5"]);
  assert.deepEqual(hosts("127.0.0.1", lan), ["127.0.0.1"]);
  assert.deepEqual(hosts("::", []), ["127.0.0.1"]);
  assert.equal(hosts("::", Array(9).fill("10.0.0.1")).length, 4);
});

const LAN = ["192.168.1.5", "fd00::5"];

const CASES: readonly (readonly [host: string, urls: readonly string[]])[] = [
  ["127.0.0.1", []],
  ["::1", []],
  ["0.0.0.0", ["http://192.168.1.5:6878/"]],
  ["::", ["http://192.168.1.5:6878/", "http://[fd00::5]:6878/"]],
  ["192.168.1.5", ["http://192.168.1.5:6878/"]],
];

for (const [host, urls] of CASES)
  test(`networkUrls: ${urls.length} for the host ${host}`, () =>
    assert.deepEqual(networkUrls({ host, port: 6878 }, LAN), urls));
