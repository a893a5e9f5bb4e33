import assert from "node:assert/strict";
import { test } from "node:test";
import { parseArguments } from "../../src/cli/args.ts";
import { settingsTable } from "../../src/settings/settings.ts";

const NAMES = Object.values(settingsTable({ dataDir: "/data" })).map((setting) => setting.name);
const parse = (...args: string[]) => parseArguments(args, NAMES);

test("parseArguments: serve is the default command", () => {
  assert.equal(parse().command, "serve");
  assert.deepEqual([...parse("--http-port", "7000").settings], [["http-port", "7000"]]);
  assert.deepEqual([...parse("serve", "--http-port=7000").settings], [["http-port", "7000"]]);
});

test("parseArguments reads flags and operands in any order", () => {
  const args = parse("play", "-o", "-", "magnet:?xt=1", "--index=2", "--log", "debug");
  assert.equal(args.command, "play");
  assert.deepEqual(args.operands, ["magnet:?xt=1"]);
  assert.equal(args.flags.get("output"), "-");
  assert.equal(args.flags.get("index"), "2");
  assert.equal(args.settings.get("log"), "debug");
});

test("parseArguments ends the flags at --", () => {
  assert.deepEqual(parse("play", "--", "-odd-name.torrent").operands, ["-odd-name.torrent"]);
});

test("parseArguments suggests the nearest flag", () => {
  assert.throws(() => parse("--http-prot", "1"), /unknown flag --http-prot; did you mean --http-port\?/);
  assert.throws(() => parse("play", "--ouptut", "x"), /did you mean --output\?/);
  assert.throws(() => parse("--xyzzy"), /unknown flag --xyzzy; see sluice serve --help/);
});

test("parseArguments suggests the nearest command, and play for a bare link", () => {
  assert.throws(() => parse("sevre"), /unknown command "sevre"; did you mean serve\?/);
  assert.throws(() => parse("magnet:?xt=1"), /did you mean: sluice play 'magnet:\?xt=1'\?/);
  assert.throws(() => parse("frobnicate"), /see sluice --help/);
});

test("parseArguments refuses a missing value, a value of a flag without one, and too many operands", () => {
  assert.throws(() => parse("--http-port"), /--http-port needs a value/);
  assert.throws(() => parse("--host", "--log", "debug"), /--host needs a value/);
  assert.throws(() => parse("--help=yes"), /--help takes no value/);
  assert.throws(() => parse("play", "a", "b"), /unexpected "b"/);
});
