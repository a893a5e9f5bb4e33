import assert from "node:assert/strict";
import { networkInterfaces } from "node:os";
import { test } from "node:test";
import { lanAddresses, ownLookup, toldAddresses } from "../../src/cli/lan-addresses.ts";
import type { Config } from "../../src/settings.ts";

function config(parts: Partial<Config>): Config {
  return { p2pHost: "::", bind: "", proxy: "", proxyStrict: "on", ...parts } as Config;
}

test("toldAddresses: behind a strict proxy none of this machine's addresses is told", () => {
  const proxy = "socks5://192.0.2.1:1080";
  const nowhere = [{ host: "127.0.0.1", port: 8621 }];
  assert.deepEqual(toldAddresses(config({ proxy }), 8621), nowhere);
  assert.deepEqual(toldAddresses(config({ proxy, p2pHost: "192.0.2.7" }), 8621), nowhere);
});

test("lanAddresses: those of the bound interface or address alone", () => {
  for (const [name, addresses] of Object.entries(networkInterfaces())) {
    const own = (addresses ?? []).filter(({ internal }) => !internal).map(({ address }) => address);
    assert.ok(lanAddresses(name).every((address) => own.includes(address)));
    for (const address of lanAddresses(name)) assert.deepEqual(lanAddresses(address), [address]);
  }
  assert.deepEqual(lanAddresses("no-such-interface"), []);
});

test("ownLookup: with a strict proxy no name is looked up beside it", async () => {
  const lookup = async () => ["192.0.2.1"];
  assert.deepEqual(await ownLookup({ lookup }, config({}))("a.example"), ["192.0.2.1"]);
  const strict = config({ proxy: "http://192.0.2.1:3128" });
  await assert.rejects(ownLookup({ lookup }, strict)("a.example"), { code: "bad_parameter" });
});
