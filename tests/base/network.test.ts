import assert from "node:assert/strict";
import { test } from "node:test";
import { isInNetwork, parseNetwork } from "../../src/base/network.ts";

const READ: readonly (readonly [text: string, host: string | undefined, bits?: number])[] = [
  ["192.168.1.0/24", "192.168.1.0", 24],
  ["192.168.1.7", "192.168.1.7", 32],
  ["0.0.0.0/0", "0.0.0.0", 0],
  ["FD00::/8", "fd00::", 8],
  ["::1", "::1", 128],
  ["::ffff:10.0.0.0/104", "10.0.0.0", 8],
  ["::ffff:10.0.0.0/90", undefined],
  ["192.168.1.0/33", undefined],
  ["fd00::/129", undefined],
  ["192.168.1/24", undefined],
  ["010.0.0.0/8", undefined],
  ["10.0.0.0/", undefined],
  ["10.0.0.0/8/8", undefined],
  ["fe80::1%eth0", undefined],
  ["tv.lan", undefined],
  ["", undefined],
];

for (const [text, host, bits] of READ) {
  test(`parseNetwork: ${text || "nothing"} ${host === undefined ? "is none" : `is ${host}/${bits}`}`, () => {
    assert.deepEqual(parseNetwork(text), host === undefined ? undefined : { host, bits });
  });
}

const INSIDE: readonly (readonly [host: string, network: string, isIn: boolean])[] = [
  ["192.168.1.255", "192.168.1.7/24", true],
  ["192.168.2.0", "192.168.1.7/24", false],
  ["192.168.1.127", "192.168.1.0/25", true],
  ["192.168.1.128", "192.168.1.0/25", false],
  ["10.1.2.3", "10.1.2.3/32", true],
  ["10.1.2.2", "10.1.2.3/32", false],
  ["8.8.8.8", "0.0.0.0/0", true],
  ["::1", "0.0.0.0/0", false],
  ["8.8.8.8", "::/0", false],
  ["2001:db8::1", "2001:db8::ffff/64", true],
  ["2001:db8:0:1::1", "2001:db8::ffff/64", false],
  ["2001:db8:0:1::1", "2001:db8::/63", true],
  ["no address", "0.0.0.0/0", false],
];

for (const [host, network, isIn] of INSIDE) {
  test(`isInNetwork: ${host} is ${isIn ? "in" : "not in"} ${network}`, () => {
    assert.equal(isInNetwork(host, parseNetwork(network)!), isIn);
  });
}
