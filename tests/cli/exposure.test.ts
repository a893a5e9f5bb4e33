import assert from "node:assert/strict";
import { test } from "node:test";
import { exposureWarnings } from "../../src/cli/exposure.ts";
import type { OwnNetwork } from "../../src/runtime/contract.ts";

function network(interfaceName: string, host: string, bits: number): OwnNetwork {
  return { interfaceName, host, bits, isLoopback: interfaceName === "lo", multicastAddress: host };
}

const HOME = [
  network("lo", "127.0.0.1", 8),
  network("eth0", "192.168.1.5", 24),
  network("eth0", "2001:db8::5", 64),
];
const PUBLIC = [...HOME, network("eth1", "203.0.113.5", 24)];
const DOCKER = [...HOME, network("docker0", "172.17.0.1", 16), network("br-0123456789ab", "172.18.0.1", 16)];

const CASES: readonly (readonly [string, string, readonly OwnNetwork[], boolean, readonly RegExp[]])[] = [
  ["a home network, public IPv6 included", "::", HOME, false, []],
  ["a public IPv4 address", "::", PUBLIC, false, [/^203\.0\.113\.5 is a public address.*\/24.*--host/]],
  [
    "a public IPv6 address alone",
    "::",
    [network("eth0", "2001:4860::5", 64)],
    false,
    [/^2001:4860::5 .*\/64/],
  ],
  ["a public IPv6 address that is not served", "0.0.0.0", [network("eth0", "2001:4860::5", 64)], false, []],
  ["one private address beside a public one", "192.168.1.5", PUBLIC, false, []],
  ["container bridges", "0.0.0.0", DOCKER, false, [/^containers on docker0, br-0123456789ab count/]],
  ["a container", "::", HOME, true, [/^in a container/]],
  ["loopback", "127.0.0.1", [...PUBLIC, ...DOCKER], true, []],
];

for (const [name, host, networks, isContained, expected] of CASES)
  test(`exposureWarnings: ${name}`, () => {
    const warnings = exposureWarnings({ host, port: 6878 }, networks, isContained);
    assert.equal(warnings.length, expected.length, warnings.join("\n"));
    for (const [index, pattern] of expected.entries()) assert.match(warnings[index]!, pattern);
  });
