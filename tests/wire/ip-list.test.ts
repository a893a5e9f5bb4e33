import assert from "node:assert/strict";
import { test } from "node:test";
import { parseIpv4 } from "../../src/base/address.ts";
import { parseIpListLine } from "../../src/wire/ip-list.ts";

const range4 = (first: string, last: string) => ({ first: [parseIpv4(first)], last: [parseIpv4(last)] });

test("parseIpListLine reads P2P text, eMule's form, networks and addresses", () => {
  const cases: readonly [line: string, expected: unknown][] = [
    ["Some University:1.2.3.4-1.2.3.9", range4("1.2.3.4", "1.2.3.9")],
    ["a:b, c - 10.0.0.1:1.2.3.4-1.2.3.9 ", range4("1.2.3.4", "1.2.3.9")],
    [":1.2.3.4-1.2.3.4", range4("1.2.3.4", "1.2.3.4")],
    ["001.002.003.004 - 001.002.003.255 , 100 , Some name, with more", range4("1.2.3.4", "1.2.3.255")],
    ["000.000.000.000 - 000.255.255.255 , 000 , [L2]Bogon", range4("0.0.0.0", "0.255.255.255")],
    ["1.2.3.4 - 1.2.3.9 , 127", range4("1.2.3.4", "1.2.3.9")],
    ["1.2.3.4-1.2.3.9", range4("1.2.3.4", "1.2.3.9")],
    ["1.2.3.4", range4("1.2.3.4", "1.2.3.4")],
    ["1.10.16.0/20 ; SBL256894", range4("1.10.16.0", "1.10.31.255")],
    ["10.0.0.77/8 # the whole", range4("10.0.0.0", "10.255.255.255")],
    ["0.0.0.0/0", range4("0.0.0.0", "255.255.255.255")],
    [
      "2001:db8::/33",
      { first: [0x20010db8, 0, 0, 0], last: [0x20010db8, 0x7fffffff, 0xffffffff, 0xffffffff] },
    ],
    ["2001:db8::1 - 2001:db8::2", { first: [0x20010db8, 0, 0, 1], last: [0x20010db8, 0, 0, 2] }],
    ["Some name:2001:db8::1-2001:db8::2", { first: [0x20010db8, 0, 0, 1], last: [0x20010db8, 0, 0, 2] }],
  ];
  for (const [line, expected] of cases) assert.deepEqual(parseIpListLine(line), expected, line);
});

test("parseIpListLine: ignores comments, empty lines and allowed ranges; refuses other lines", () => {
  for (const line of ["", "  ", "# 1.2.3.4", "// 1.2.3.4", "; 1.2.3.4", "1.2.3.4 - 1.2.3.9 , 128 , fine"]) {
    assert.equal(parseIpListLine(line), "ignored", line);
  }
  const bad = [
    "hello",
    "1.2.3.256",
    "1.2.3.4-1.2.3.256",
    "1.2.3.9-1.2.3.4",
    "1.2.3/24",
    "1.2.3.4/33",
    "-",
    "a:b",
  ];
  // A malformed address must not become a larger network.
  bad.push("fe80:::1/10", "1.2.3.4-", "1.2.3.4-2001:db8::1", "1.2.3.4 - 2001:db8::1", "2001:db8::/129");
  for (const line of bad) assert.equal(parseIpListLine(line), undefined, line);
});
