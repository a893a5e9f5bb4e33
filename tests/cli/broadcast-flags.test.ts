import assert from "node:assert/strict";
import { test } from "node:test";
import { parseArguments } from "../../src/cli/args.ts";
import { broadcastOptions } from "../../src/cli/broadcast-flags.ts";
import { bitsText, parseBitRate } from "../../src/cli/units.ts";

const wish = (...args: string[]) =>
  broadcastOptions(parseArguments(["broadcast", ...args], ["upload-limit"]), 0);

test("broadcastOptions: one source, and repeated flags", () => {
  const made = wish(
    "-",
    "--tracker",
    "http://a/",
    "--tracker=udp://b:1",
    "--name",
    "news",
    "--bitrate",
    "8Mbit",
  );
  assert.deepEqual(made.trackers, ["http://a/", "udp://b:1"]);
  assert.deepEqual([made.name, made.source, made.bitsPerSecond, made.uploadLimit], ["news", "-", 8e6, null]);
  assert.deepEqual(made.relays, []);
  assert.deepEqual([made.isStandby, wish("-", "--standby").isStandby], [undefined, true]);
  const pattern = wish("--test-pattern");
  assert.deepEqual([pattern.name, pattern.source], ["test-pattern", null]);
});

test("broadcastOptions: no source, two sources, and an invalid rate are usage errors", () => {
  assert.throws(() => wish(), { code: "bad_configuration", message: /expected a source/ });
  assert.throws(() => wish("--test-pattern", "a.ts"), { message: /remove "a\.ts"/ });
  assert.throws(() => wish("-", "--bitrate", "fast"), { message: /^--bitrate: expected bits a second/ });
  assert.throws(() => wish("--test-pattern", "--name", " "), { message: /^--name: the name is empty/ });
});

test("parseBitRate and bitsText: bits, or bytes if written as B", () => {
  const rates: readonly [string, number | undefined][] = [
    ["8Mbit", 8e6],
    ["2500 kbit/s", 2.5e6],
    ["1.5M", 1.5e6],
    ["8000000", 8e6],
    ["6mbps", 6e6],
    ["1MB", 8e6],
    ["0", undefined],
    ["-1", undefined],
    ["8 apples", undefined],
  ];
  for (const [text, bits] of rates) assert.equal(parseBitRate(text), bits, text);
  assert.deepEqual([27_125, 1e6, 124_940, 25e6].map(bitsText), [
    "217 kbit/s",
    "8.0 Mbit/s",
    "1.0 Mbit/s",
    "200 Mbit/s",
  ]);
});
