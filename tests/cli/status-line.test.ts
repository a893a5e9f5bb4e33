import assert from "node:assert/strict";
import { test } from "node:test";
import { StatusLine } from "../../src/cli/status-line.ts";

/** A line that is written to a log once a minute, and the written text. */
function plainLine() {
  const lines: string[] = [];
  const write = (part: string) => lines.push(part);
  return { line: new StatusLine({ isTerminal: false, columns: 80, write, plainLineMs: 60_000 }), lines };
}

test("StatusLine rewrites one line on a terminal, cut to its width, and clears it", () => {
  let text = "";
  const write = (part: string) => (text += part);
  const line = new StatusLine({ isTerminal: true, columns: 24, write, plainLineMs: 1000 });
  line.show("good · 12 peers, 3 direct viewers", 0);
  line.show("good · 12 peers, 3 direct viewers", 1);
  line.end();
  assert.equal(text, "\r\x1b[2Kgood · 12 peers, 3 dire\r\x1b[2K");
});

test("StatusLine writes plain lines elsewhere, at most at the interval, and never the same twice in a row", () => {
  const { line, lines } = plainLine();
  for (let ms = 0; ms <= 180_000; ms += 500) line.show(ms < 120_000 ? "a" : `b ${ms}`, ms);
  assert.deepEqual(lines, ["a\n", "b 120000\n", "b 180000\n"]);
});

test("StatusLine: a change of state is logged soon, but not every one if it alternates", () => {
  const { line, lines } = plainLine();
  for (let ms = 0; ms < 30_000; ms += 500) line.show(`good ${ms}`, ms, "good");
  for (let ms = 30_000; ms < 40_000; ms += 500) line.show(`silent ${ms}`, ms, "silent");
  assert.deepEqual(lines, ["good 0\n", "silent 30000\n"]);
  for (let ms = 40_000; ms < 60_000; ms += 500) line.show(`${ms}`, ms, ms % 1000 === 0 ? "good" : "silent");
  assert.equal(lines.length, 2 + 4);
});
