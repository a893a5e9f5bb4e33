import assert from "node:assert/strict";
import { test } from "node:test";
import { networkUrls } from "../../src/cli/network-urls.ts";

const OWN = ["192.168.1.5", "fd00::5"];

const CASES: readonly (readonly [host: string, urls: readonly string[]])[] = [
  ["127.0.0.1", []],
  ["::1", []],
  ["0.0.0.0", ["http://192.168.1.5:6878/"]],
  ["::", ["http://192.168.1.5:6878/", "http://[fd00::5]:6878/"]],
  ["192.168.1.5", ["http://192.168.1.5:6878/"]],
];

for (const [host, urls] of CASES)
  test(`networkUrls: who listens on ${host} is found at ${urls.length} addresses`, () =>
    assert.deepEqual(networkUrls({ host, port: 6878 }, OWN), urls));
