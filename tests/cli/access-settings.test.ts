import assert from "node:assert/strict";
import { test } from "node:test";
import { SluiceError } from "../../src/base/errors.ts";
import { accessSettings } from "../../src/cli/access-settings.ts";
import { readConfig } from "../../src/settings/config.ts";
import { settingsTable } from "../../src/settings/settings.ts";

const table = settingsTable({ dataDir: "/data/sluice" });

function read(flags: Record<string, string>, content?: unknown) {
  const file = content === undefined ? undefined : { path: "/etc/config.json", content };
  return readConfig(table, { flags: new Map(Object.entries(flags)), environment: {}, file });
}

function refusal(flags: Record<string, string>): string {
  try {
    read(flags);
  } catch (error) {
    assert.ok(error instanceof SluiceError && error.code === "bad_configuration");
    return error.message;
  }
  throw new Error("nothing was refused");
}

test("allowed-hosts: names and addresses with and without ports; anything else is refused", () => {
  const { allowedHosts } = read({
    "allowed-hosts": "TV.lan, nas:8080,10.0.0.2,[2001:db8::5]:80,2001:db8::6",
  });
  assert.deepEqual(allowedHosts, ["tv.lan", "nas:8080", "10.0.0.2", "[2001:db8::5]:80", "2001:db8::6"]);
  assert.deepEqual(read({}, { "allowed-hosts": ["a", "b"] }).allowedHosts, ["a", "b"]);
  assert.deepEqual(read({}).allowedHosts, []);
  for (const text of ["http://tv.lan", "tv.lan/", "tv.lan:0", "10.0.0.300", "*", "a b", "tv.lan:99999"])
    assert.match(refusal({ "allowed-hosts": text }), /^allowed-hosts: expected host names/, text);
});

test("intranet-networks, trusted-proxies: networks and addresses; anything else is refused", () => {
  const config = read({ "intranet-networks": "192.168.0.0/16,fd00::/8", "trusted-proxies": "127.0.0.1" });
  assert.deepEqual(config.intranetNetworks, [
    { host: "192.168.0.0", bits: 16 },
    { host: "fd00::", bits: 8 },
  ]);
  assert.deepEqual(config.trustedProxies, [{ host: "127.0.0.1", bits: 32 }]);
  for (const text of ["proxy.lan", "192.168.0.0/33", "192.168/16", "127.1"])
    assert.match(refusal({ "trusted-proxies": text }), /expected addresses or networks/, text);
});

test("allowed-origins: origins as browsers send them; anything else is refused", () => {
  const { allowedOrigins } = read({ "allowed-origins": "https://TV.example/,http://nas.lan:8080" });
  assert.deepEqual(allowedOrigins, ["https://tv.example", "http://nas.lan:8080"]);
  for (const text of [
    "tv.example",
    "null",
    "*",
    "https://tv.example/page",
    "https://tv.example:443",
    "file://x",
  ])
    assert.match(refusal({ "allowed-origins": text }), /expected origins/, text);
});

test("access-token: at least 32 characters, and no error repeats it", () => {
  const secret = "0123456789abcdef0123456789abcdef";
  assert.equal(read({ "access-token": secret }).accessToken, secret);
  assert.equal(read({}).accessToken, "");
  for (const text of ["hunter2hunter2", `${secret} x`, `${secret}ä`, "s".repeat(600)]) {
    const message = refusal({ "access-token": text });
    assert.match(message, /^access-token: expected at least 32 .*not shown/);
    assert.ok(!message.includes(text));
  }
});

test("accessSettings: the host name, its first label, and that label in the zones of local networks", () => {
  const names = (machine: string) => accessSettings(read({}), machine).ownNames;
  assert.deepEqual(names("NAS"), ["nas", "nas.local", "nas.home.arpa", "nas.lan"]);
  assert.deepEqual(names("nas.example.org"), [
    "nas.example.org",
    "nas",
    "nas.local",
    "nas.home.arpa",
    "nas.lan",
  ]);
  assert.deepEqual(names(""), []);
});
