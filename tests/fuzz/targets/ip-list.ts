import { latin1Bytes, latin1Text } from "../../../src/base/bytes.ts";
import { DecodeError } from "../../../src/base/errors.ts";
import { parseIpListLine } from "../../../src/wire/ip-list.ts";
import type { FuzzTarget } from "../contract.ts";
import { repeated } from "../extremes.ts";

const LINES = [
  "Some University:1.2.3.4-1.2.3.9",
  "001.002.003.004 - 001.002.003.255 , 100 , Some name, with more",
  "1.10.16.0/20 ; SBL256894",
  "2001:db8::1 - 2001:db8::2",
  "Some name:2001:db8::1-2001:db8::2",
  "# a comment",
];

export const target: FuzzTarget = {
  name: "parseIpListLine",
  // Longer lines are cut before.
  maxBytes: 4096,
  corpus: () => LINES.map((line) => latin1Bytes(line)),
  words: ["-", ":", ",", "/32", "::", "255.255.255.255"].map((word) => latin1Bytes(word)),
  extremes: () =>
    ["1.2.3.4-", ":", " ", "1.2.3.4-1.2.3.9 , ", "a:"].map((unit) => repeated("", unit, "", 4096)),
  run(bytes) {
    const range = parseIpListLine(latin1Text(bytes));
    if (range === undefined) throw new DecodeError("list of addresses", 0, "no line of one");
    if (range !== "ignored" && range.first.length !== range.last.length) throw new Error("two families");
    return range;
  },
};
