import assert from "node:assert/strict";
import { test } from "node:test";
import { type BannerFacts, banner } from "../../src/cli/banner.ts";

const FACTS: BannerFacts = {
  version: "1.2.3",
  runtime: "bun 1",
  http: { host: "::", port: 7000 },
  hasUdp: true,
  p2pPort: 8621,
  dataDir: "/data",
  cacheLimit: 20e9,
  lanAddresses: ["192.168.1.5"],
  warnings: [],
};
const ESCAPE = "\x1b";
const ALONE = { ...FACTS, http: { host: "127.0.0.1", port: 6878 } };

test("banner: addresses of this machine and of its network, and the data folder", () => {
  const text = banner(FACTS, "text");
  assert.match(text, /Open +http:\/\/127\.0\.0\.1:7000\/\n/);
  assert.match(text, /Network +http:\/\/192\.168\.1\.5:7000\/\n/);
  assert.match(text, /Data +\/data \(cache up to 20GB\)/);
  assert.match(text, /curl 'http:\/\/127\.0\.0\.1:7000\/ace\/getstream\?/);
});

test("banner: on loopback, no address of the network and no QR code", () => {
  const text = banner(ALONE, "terminal");
  assert.match(text, /Network +this machine only/);
  assert.ok(!text.includes("192.168") && !text.includes(ESCAPE));
});

test("banner: only a terminal gets a QR code, and each of its lines resets the colors", () => {
  assert.ok(!banner(FACTS, "text").includes(ESCAPE));
  const lines = banner(FACTS, "terminal")
    .split("\n")
    .filter((line) => line.includes(ESCAPE));
  // Version 2 has 25 modules a side; with a border of 2 that is 29, in pairs of rows.
  assert.equal(lines.length, 15);
  for (const line of lines)
    assert.match(line.replaceAll(ESCAPE, "ESC"), /^ {2}ESC\[30;107m[█▀▄ ]{29}ESC\[0m$/);
});

test("banner: warnings, and the facts as JSON", () => {
  const facts = { ...FACTS, warnings: ["look out"] };
  assert.match(banner(facts, "text"), /Warning +look out\n/);
  const json = JSON.parse(banner(facts, "json"));
  assert.deepEqual([json.url, json.network_urls], ["http://127.0.0.1:7000/", ["http://192.168.1.5:7000/"]]);
  assert.deepEqual(json.warnings, ["look out"]);
});
